"""
What a certificate says of a node, taken from the JSON of a run.

Schema ``hwcheck.certificate/1``, published as ``hwcheck/report/certificate.schema.json``. Texts of a node are made
printable and kept short (:func:`hwcheck.certificate.canonical.plain`); nothing is judged here.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hwcheck.certificate.canonical import plain
from hwcheck.certificate.obstacles import certifiable
from hwcheck.errors import NotCertifiedError
from hwcheck.mechanisms import MECHANISMS

SCHEMA = "hwcheck.certificate/1"
CLOCKS = dt.timedelta(minutes=5)
"""By how much the clock of the machine that ran hwcheck may be ahead of the one that certifies."""
MAX_DAYS = 3650
_MARKS = ("lab", "recorded", "iron")


@dataclass(frozen=True, slots=True)
class Policy:
    """
    What the profile and the tables of hwcheck say about what a run holds.

    Attributes:
        settings: check id → the mechanisms by which hwcheck would set it; a check that is not here is no setting.
        bounds: bound id (``baseline.h2d``) → where its figure is from.
        sources: kind of output → how its source was tried, a key of :data:`hwcheck.mechanisms.SEEN`.
    """

    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def make(
    run: dict[str, Any],
    node: str,
    *,
    settings: Policy,
    who: str,
    issued: dt.datetime,
    valid_days: int,
    evidence_hash: str = "",
) -> dict[str, Any]:
    """
    Make the certificate of a node that passed.

    It counts from the time of the run, not from now, and ends with the first waiver it rests on.

    Args:
        run: of schema ``hwcheck.run/1``.
        node: name of the node in it.
        settings: what of it is a setting, and where figures and sources are from.
        who: who certifies, user and host.
        issued: now, with time zone.
        valid_days: days after the run that it holds.
        evidence_hash: :func:`evidence_hash` of what was read; "" where the evidence was not kept.

    Raises:
        NotCertifiedError: the node did not pass, what it rests on was not told, or the run is too old or of the future.
    """
    about = certifiable(run, node)
    taken = dt.datetime.fromisoformat(run.get("ended") or run["started"]).astimezone(dt.UTC)
    findings = [finding for finding in run["findings"] if finding["node"] == node]
    waived = [finding for finding in findings if finding["waived"] is not None]
    until = _until(node, taken, issued.astimezone(dt.UTC), valid_days, waived)
    certificate = {
        "schema": SCHEMA,
        "tool": run["tool"],
        "run": {"name": run.get("run", ""), "kind": run.get("kind", "check"), "time": _time(taken),
                "who": run.get("who", "")},
        "node": node,
        "simulated": about["simulated"],
        "verdict": "pass",
        "who": who,
        "issued": _time(issued),
        "valid_until": _time(until),
        "platform": about["platform"],
        "confidence": about["confidence"],
        "policy": dict(run["profile"]),
        "evidence": evidence_hash or None,
        **_about(about["about"]),
        **_found(run, about, findings, settings),
    }  # fmt: skip
    told: dict[str, Any] = {key: _deep(value) for key, value in certificate.items()}
    return told


def _found(
    run: dict[str, Any], about: dict[str, Any], findings: list[dict[str, Any]], policy: Policy
) -> dict[str, Any]:
    """Say what the certificate rests on: settings, figures, what is accepted or warned of, and what was looked at."""
    waived = [finding for finding in findings if finding["waived"] is not None]
    chosen = [
        f for f in findings if f["check"] in policy.settings and (f["status"] == "pass" or f["waived"] is not None)
    ]
    mechanisms = {name for f in chosen for name in policy.settings[f["check"]]}
    mechanisms |= {change["mechanism"] for change in run.get("changes", ()) if change["node"] == about["name"]}
    return {
        "settings": [_setting(finding, policy) for finding in chosen],
        "baselines": _baselines(run, about["name"], findings, policy),
        "waivers": [_waiver(finding) for finding in waived],
        "warnings": [_short(f) for f in findings if f["status"] == "warn" and f["waived"] is None],
        "coverage": _coverage(about, findings),
        "seen": _seen(about["about"]["sources"], policy, mechanisms),
    }


def evidence_hash(files: Mapping[str, bytes]) -> str:
    """
    Hash the files of a node's evidence, the manifest included.

    It is the SHA-256 of what ``sha256sum`` prints for them in the order of their names: ``HASH  NAME`` lines.
    """
    lines = (f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files, key=str.encode))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _until(
    node: str, taken: dt.datetime, issued: dt.datetime, days: int, waived: Iterable[dict[str, Any]]
) -> dt.datetime:
    if not 1 <= days <= MAX_DAYS:
        raise NotCertifiedError(node, [f"a certificate holds from 1 to {MAX_DAYS} days, not {days}"], failed=False)
    if taken > issued + CLOCKS:
        why = f"the run is of {_time(taken)}, and it is {_time(issued)}: one of the two clocks is wrong"
        raise NotCertifiedError(node, [why], failed=False)
    ends = [(taken + dt.timedelta(days=days), f"the run is of {_time(taken)}, more than {days} days ago")]
    for finding in waived:
        day = dt.datetime.fromisoformat(finding["waived"]["expires"]).replace(tzinfo=dt.UTC)
        ends.append((day + dt.timedelta(days=1), f"the waiver of {finding['check']} expired"))
    until, why = min(ends)
    if until <= issued:
        raise NotCertifiedError(node, [why], failed=False)
    return until


def _time(time: dt.datetime) -> str:
    return time.astimezone(dt.UTC).isoformat(timespec="seconds")


def _deep(value: Any) -> Any:
    """Make lists of any length plain, entry by entry: :func:`plain` itself cuts what a node sends."""
    if isinstance(value, list):
        return [_deep(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): _deep(item) for key, item in value.items()}
    return plain(value)


def _about(about: dict[str, Any]) -> dict[str, Any]:
    parts = {
        "gpus": ("id", "index", "name", "uuid", "serial", "vbios"),
        "nics": ("id", "address", "model", "guid", "psid", "firmware"),
    }
    return {
        "boot_id": about["boot_id"],
        "cohort": about.get("cohort", ""),
        "identity": {
            "product": about.get("product", ""),
            **{key: about[key] for key in ("serial", "board_serial") if about.get(key)},
            **{
                kind: [{key: part[key] for key in keys if key in part} for part in about.get(kind, ())]
                for kind, keys in parts.items()
            },
        },
        "versions": dict(about.get("versions", {})),
    }


def _setting(finding: dict[str, Any], policy: Policy) -> dict[str, Any]:
    return {
        "check": finding["check"],
        "subject": finding["subject"],
        "observed": plain(finding["observed"]),
        "waived": finding["waived"] is not None,
        "mechanisms": list(policy.settings[finding["check"]]),
    }


def _baselines(run: dict[str, Any], node: str, findings: list[dict[str, Any]], policy: Policy) -> list[dict[str, Any]]:
    """List what was measured, each figure with the finding that judged it and where its bound is from."""
    judged = [finding for finding in findings if finding["check"].startswith("baseline.")]
    rows = []
    for item in run["measurements"]:
        if item["node"] != node:
            continue
        finding, bound = _judgement(item, judged)
        rows.append({
            "measurement": item["name"],
            "subject": item["subject"],
            "value": item["value"],
            "unit": item["unit"],
            "conditions": plain(item["conditions"]),
            "judged": finding["status"],
            "bound": plain(finding["expected"]),
            "source": policy.bounds.get(bound, "") if finding["expected"] is not None else "",
            "said": finding["message"],
        })  # fmt: skip
    return rows


def _judgement(item: dict[str, Any], judged: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """
    Find the finding about a figure, and the id of the profile's bound for it.

    Findings about hwcheck's own tests name the part that was measured (a GPU, a NUMA node), others the measurement.
    """
    from hwcheck.baselines.own import OWN, split  # noqa: PLC0415 - loads all facts; who verifies needs none of it

    test, on = split(item["subject"])
    own = OWN.get(test)
    places = {item["subject"], on, on.removeprefix("numa")} if own else {item["subject"]}
    found = [f for f in judged if f["subject"] in places and (own is None or f["check"] == own.check)]
    nothing: dict[str, Any] = {"status": "skip", "expected": None, "message": ""}
    finding = next((f for f in found if f["status"] != "skip"), found[0] if found else nothing)
    return finding, own.bound if own else str(finding.get("check", ""))


def _short(finding: dict[str, Any]) -> dict[str, Any]:
    return {key: finding[key] for key in ("check", "subject", "message")}


def _waiver(finding: dict[str, Any]) -> dict[str, Any]:
    waived = {key: finding["waived"][key] for key in ("owner", "reason", "expires")}
    return {**_short(finding), "status": finding["status"], **waived}


def _coverage(node: dict[str, Any], findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what was not told and what did not apply, a line a check."""
    skipped: dict[str, dict[str, Any]] = {}
    for finding in findings:
        if finding["status"] == "skip":
            entry = skipped.setdefault(
                finding["check"], {"check": finding["check"], "why": finding["message"], "of": 0}
            )
            entry["of"] += 1
    untold = [{"source": kind, "why": why} for kind, why in node["about"]["sources"].items() if why != "read"]
    return {"counts": dict(node["coverage"]), "untold": untold, "skipped": list(skipped.values())}


def _seen(sources: dict[str, str], policy: Policy, mechanisms: set[str]) -> dict[str, Any]:
    """Say how what was used had been tried; a source or mechanism that is in no table has no mark."""
    read = [kind for kind, how in sources.items() if how == "read" and kind in policy.sources]
    used = {
        "sources": {kind: policy.sources[kind] for kind in read},
        "mechanisms": {name: MECHANISMS[name].seen for name in sorted(mechanisms) if name in MECHANISMS},
    }  # fmt: skip
    marks = {mark for table in used.values() for mark in table.values()}
    return {**used, "least": next((mark for mark in _MARKS if mark in marks), "lab")}
