"""
The data that an HTML report carries: a run JSON, packed so that a thousand nodes still open at once.

What is neither pass nor skip, what an incident names, and measurements that passed are kept whole. Other passed and
skipped checks are kept as rows of (check, status, subjects), and nodes with the same rows share them; their sentences
are kept too while there are few (:data:`SPOKEN`). Each text stands once, and records refer to it by number. Every text
is spelled out (:func:`visible`): no control character and no bidirectional trick of a node reaches the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hwcheck.report.run_reading import placed_findings
from hwcheck.report.sheet import visible

SPOKEN = 20_000
"""Passed and skipped findings up to which their sentences are in the page: about 1 MB."""
MEASURED = 5_000
"""Measurements up to which the conditions of all are in the page; of more, only of those that are not right."""
_QUIET = ("pass", "skip")
_LONG_VALUE = 400
_HEAD = ("tool", "profile", "started", "ended", "kind", "run", "who", "verdict")

Json = dict[str, Any]


class _Table:
    """Values that stand once; ``put`` returns the number of one."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def put(self, value: Any, key: str) -> int:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.values)
            self.values.append(value)
        return place

    def text(self, value: Any) -> int:
        """Put a text, spelled out."""
        key = value if isinstance(value, str) else json.dumps(value)
        place = self._places.get(key)
        return self.put(visible(key), key) if place is None else place

    def record(self, value: Any) -> int:
        """Put a JSON value, its texts spelled out; null is -1."""
        return -1 if value is None else self.put(plain(value), json.dumps(value, sort_keys=True, default=str))


def plain(value: Any) -> Any:
    """Spell out each text of a JSON value, the names of members included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {visible(str(key)): plain(item) for key, item in value.items()}
    return value


class _Packing:
    """The tables of one page, and what is packed with them."""

    def __init__(self, run: Json) -> None:
        self.run = run
        self.texts, self.records, self.rows, self.sets = _Table(), _Table(), _Table(), _Table()
        findings = run["findings"]
        self.spoken = sum(finding["status"] in _QUIET for finding in findings) <= SPOKEN
        self.many = len(run["measurements"]) > MEASURED
        self.named = {index for item in run["incidents"] for index in (item["lead"], *item["follows"])}

    def _is_whole(self, finding: Json) -> bool:
        """Tell what is kept whole: what is not well, and measurements that passed, for their bounds."""
        passed_measurement = finding["status"] == "pass" and finding["check"].startswith("baseline.")
        return finding["status"] not in _QUIET or passed_measurement

    def finding(self, index: int, finding: Json) -> list[Any]:
        """Pack one that is kept whole; the order is that of ``FINDING`` in data.js."""
        if self.many and finding["status"] == "pass":
            finding = {**finding, "observed": None, "message": "", "evidence": None}
        text, evidence = self.texts.text, finding["evidence"] or {}
        return [
            index, text(finding["check"]), text(finding["subject"]), finding["status"], finding["urgency"] or "",
            text(say(finding["observed"])), text(say(finding["expected"])), text(finding["message"]),
            text(evidence.get("source", "")), text(evidence.get("file", "")), evidence.get("line") or 0,
            text(evidence.get("excerpt", "")), self.records.record(finding["remedy"]),
            self.records.record(finding["waived"]),
        ]  # fmt: skip

    def measurement(self, row: Json) -> list[Any]:
        """Pack one as name, subject, value, unit and conditions."""
        text = self.texts.text
        value = float(f"{row['value']:.6g}")
        return [text(row["name"]), text(row["subject"]), value, text(row["unit"]), plain(row["conditions"])]

    def quiet(self, findings: list[Json]) -> int:
        """Pack the passed and skipped ones of a node: one row for each check and status, the whole set once."""
        rows: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        for finding in findings:
            subjects, messages = rows.setdefault((finding["check"], finding["status"]), ([], []))
            subjects.append(self.texts.text(finding["subject"]))
            if self.spoken:
                messages.append(self.texts.text(finding["message"]))
        packed = []
        for (check, status), (subjects, messages) in rows.items():
            row = [self.texts.text(check), status, subjects, messages]
            packed.append(self.rows.put(row, repr(row)))
        return self.sets.put(packed, repr(packed))

    def node(self, node: Json, key: str, places: Sequence[int]) -> Json:
        """Pack a node with everything that belongs to it."""
        findings = self.run["findings"]
        whole = [i for i in places if self._is_whole(findings[i]) or i in self.named]
        kept = set(whole)
        about = {name: value for name, value in node["about"].items() if name != "topology"}
        return {
            **{name: plain(node[name]) for name in ("name", "platform", "confidence", "verdict", "simulated")},
            "key": visible(key),
            "coverage": node["coverage"],
            "about": plain(about),
            "topology": self.records.record(node["about"].get("topology")),
            "quiet": self.quiet([findings[i] for i in places if i not in kept]),
            "findings": [self.finding(i, findings[i]) for i in whole],
            "incidents": [],
            **{name: [] for name in ("measurements", "changes", "stages")},
        }


def say(value: Any) -> str:
    """Print an observed or expected value for a person; "" for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        value = json.dumps(value, default=str)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONG_VALUE else text[:_LONG_VALUE] + "…"


def pack(run: Json) -> Json:
    """
    Pack a run.

    Args:
        run: of schema ``hwcheck.run/1``.

    Returns:
        JSON: ``run`` (its head), ``texts``, ``records``, ``rows``, ``sets``, ``spoken``, ``short`` (conditions are left
        out) and ``nodes``.
    """
    packing = _Packing(run)
    nodes: list[Json] = []
    owner: dict[int, int] = {}
    for node, key, places in _keyed(run):
        owner.update(dict.fromkeys(places, len(nodes)))
        nodes.append(packing.node(node, key, places))
    for item in run["incidents"]:
        if item["lead"] not in owner:
            continue
        nodes[owner[item["lead"]]]["incidents"].append(
            {"lead": item["lead"], "follows": item["follows"], "text": visible(item["text"])}
        )
    by_name = {node["name"]: packed for node, packed in zip(run["nodes"], nodes, strict=True)}
    for row in _short(run) if packing.many else run["measurements"]:
        if row["node"] in by_name:
            by_name[row["node"]]["measurements"].append(packing.measurement(row))
    for part in ("changes", "stages"):
        for row in run.get(part, ()):
            if row["node"] in by_name:
                by_name[row["node"]][part].append(plain({key: value for key, value in row.items() if key != "node"}))
    return {
        "run": plain({key: run[key] for key in _HEAD if key in run}),
        "spoken": packing.spoken,
        "short": packing.many,
        "texts": packing.texts.values,
        "records": packing.records.values,
        "rows": packing.rows.values,
        "sets": packing.sets.values,
        "nodes": nodes,
    }


def _short(run: Json) -> list[Json]:
    """Leave out the conditions of measurements with which nothing is wrong: a thousand nodes have 30 MB of them."""
    wrong = {
        (row["node"], row["subject"])
        for row in run["findings"]
        if row["status"] not in _QUIET and row["check"].startswith("baseline.")
    }
    rows = []
    for row in run["measurements"]:
        names = (row["subject"], row["subject"].rpartition("@")[2])  # itself, or what it was measured on
        bad = any((row["node"], name) in wrong for name in names)
        rows.append(row if bad else {**row, "conditions": {}})
    return rows


def _keyed(run: Json) -> Iterator[tuple[Json, str, Sequence[int]]]:
    """Give each node its key in addresses of the page; the second of one name has ~2 behind it."""
    seen: dict[str, int] = {}
    for node, places in placed_findings(run):
        name = node["name"] or "unnamed"
        seen[name] = seen.get(name, 0) + 1
        yield node, name if seen[name] == 1 else f"{name}~{seen[name]}", places
