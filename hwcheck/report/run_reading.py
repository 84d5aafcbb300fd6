"""
Runs that were kept as JSON, read back for a report.

A run says of a subject only its id, and of what could not be told only the sentence. The kind of a subject and the
reason of a gap are read off those, as far as reports fold by them.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hwcheck.errors import UsageError
from hwcheck.facts import NODE, Missing, Origin, Reason, Subject, pci_address
from hwcheck.findings import Finding, Incident, Measurement, NodeVerdict, Remedy, Status, Urgency
from hwcheck.report.json_run import SCHEMA

_REASONS = "|".join(reason.value for reason in Reason)
_ASKED = re.compile(rf": could not be told, \S+ ({_REASONS})(?:: (.*))?$", re.DOTALL)
_NOT_ASKED = re.compile(rf"\S+ ({_REASONS}) \(")
_PORT = re.compile(r"[\w.-]+/\d+$")
_UNIT = re.compile(r"\.(?:service|socket|timer|slice|target)$")
_VERDICTS = ("pass", "fail", "unknown")
_NEEDED = {
    "nodes": {"name", "platform", "confidence", "verdict", "simulated", "coverage", "about"},
    "findings": {"id", "node", "check", "subject", "status", "urgency", "observed", "expected", "message", "evidence",
                 "remedy", "waived"},
    "incidents": {"lead", "follows", "text"},
    "measurements": {"node", "name", "subject", "value", "unit", "conditions"},
}  # fmt: skip


def started_of(run: dict[str, Any]) -> dt.datetime:
    """
    Return when a run began; a time without a zone is UTC.

    Raises:
        UsageError: it has none.
    """
    try:
        told = dt.datetime.fromisoformat(run["started"])
    except ValueError as error:
        raise UsageError(f"a run has no time: {run['started'][:40]!r}") from error
    return told if told.tzinfo else told.replace(tzinfo=dt.UTC)


def read_run(text: str, where: str) -> dict[str, Any]:
    """
    Read the JSON of a run.

    The schema is not gone through in full: a million findings would take minutes. What reports look at has to be there.

    Args:
        text: one JSON object.
        where: it is from, for the error.

    Raises:
        UsageError: it is no JSON, no run, of another version, or lacks something.
    """
    try:
        run = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}") from error
    schema = run.get("schema") if isinstance(run, dict) else None
    if schema != SCHEMA:
        found = f" but of {schema!r}" if isinstance(schema, str) else ""
        raise UsageError(f"{where} is no run of hwcheck: not of schema {SCHEMA}{found}")
    for wrong in _wrong(run):
        raise UsageError(f"{where} is no whole run: {wrong}")
    return dict(run)


def _wrong(run: dict[str, Any]) -> Iterator[str]:
    profile = run.get("profile")
    if not isinstance(profile, dict) or not {"name", "hash"} <= profile.keys():
        yield "no profile"
    if run.get("verdict") not in _VERDICTS or not isinstance(run.get("started"), str):
        yield "no verdict, or no time"
    for part, needed in _NEEDED.items():
        rows = run.get(part)
        if not isinstance(rows, list):
            yield f"no list of {part}"
            return
        for number, row in enumerate(rows):
            if not isinstance(row, dict) or not needed <= row.keys():
                yield f"{part} {number} lacks {', '.join(sorted(needed - set(row))) or 'everything'}"
    count = len(run["findings"])
    for incident in run["incidents"]:
        if not all(isinstance(index, int) and 0 <= index < count for index in (incident["lead"], *incident["follows"])):
            yield "an incident of findings that are not there"


def placed_findings(run: dict[str, Any]) -> list[tuple[dict[str, Any], Sequence[int]]]:
    """
    Return each node with the places of its findings.

    Two nodes may have one name (evidence of one machine taken twice): findings stand in the order of nodes, and the
    coverage says how many each has. Where that does not fit (a list that somebody filtered), names decide.
    """
    nodes, names = run["nodes"], [row["node"] for row in run["findings"]]
    ends = list(itertools.accumulate(sum(node["coverage"].values()) for node in nodes))
    places = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if ends[-1:] == [len(names)] and all(
        names[i] == node["name"] for node, span in zip(nodes, places, strict=True) for i in span
    ):
        return list(zip(nodes, places, strict=True))
    by_name: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        by_name.setdefault(name, []).append(i)
    return [(node, by_name.pop(node["name"], [])) for node in nodes]


def verdicts_of(run: dict[str, Any]) -> list[NodeVerdict]:
    """Make of a run what :func:`hwcheck.report.text.print_run` and the like take."""
    verdicts: list[NodeVerdict] = []
    home: dict[int, tuple[NodeVerdict, int]] = {}
    for node, places in placed_findings(run):
        made = NodeVerdict(
            node["name"], node["platform"], node["confidence"], [_finding(run["findings"][i]) for i in places],
            simulated=node["simulated"], about=node["about"],
        )  # fmt: skip
        home.update((place, (made, number)) for number, place in enumerate(places))
        verdicts.append(made)
    for item in run["incidents"]:
        if item["lead"] in home:
            made, lead = home[item["lead"]]
            made.incidents.append(Incident(lead, tuple(home[index][1] for index in item["follows"]), item["text"]))
    by_name = {made.node: made for made in verdicts}
    for row in run["measurements"]:
        if row["node"] in by_name:
            values = (row[key] for key in ("name", "subject", "value", "unit", "conditions"))
            by_name[row["node"]].measurements.append(Measurement(*values))
    return verdicts


def _finding(row: dict[str, Any]) -> Finding:
    evidence, remedy, message = row["evidence"], row["remedy"], row["message"]
    return Finding(
        row["check"], _subject(row), Status(row["status"]), message,
        Urgency(row["urgency"]) if row["urgency"] else None, row["observed"], row["expected"],
        Origin(evidence["source"], evidence["file"], evidence["line"] or 0, evidence["excerpt"]) if evidence else None,
        Remedy(remedy["kind"], remedy["text"], remedy["role"] or "", remedy["disturbs"] or "") if remedy else None,
        _gap(row["status"], message), row["waived"],
    )  # fmt: skip


def _gap(status: str, message: str) -> Missing | None:
    match = _ASKED.search(message) if status == "unknown" else _NOT_ASKED.match(message) if status == "skip" else None
    return None if match is None else Missing(Reason(match[1]), (match[2] or "") if status == "unknown" else "")


def _subject(row: dict[str, Any]) -> Subject:
    id, family = row["subject"], row["check"].partition(".")[0]
    if not id:
        return NODE
    if family == "baseline":
        return Subject("measurement", id)
    if id.startswith("GPU"):
        return Subject("gpu", id)
    if pci_address(id):
        kinds = {"pcie": "pci", "sxid": "switch", "rdma": "nic", "numa": "pci"}
        return Subject(kinds.get(family, "gpu"), id)
    if _PORT.match(id):
        return Subject("port", id)
    return Subject("unit" if _UNIT.search(id) else {"numa": "numa", "firmware": "component"}.get(family, ""), id)
