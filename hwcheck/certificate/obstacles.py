"""
What is in the way of a certificate, as the shortest list that says it: causes first, consequences counted.

A node is certified when nothing fails and nothing that was asked stayed open, when the sources on which a verdict rests
(the profile's ``requires``) were told, and when the families without which "pass" says little were judged (a run of
``--only thermal`` passes on a broken node).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwcheck.errors import NotCertifiedError

FAMILIES = ("driver", "gpu", "hbm", "pcie", "thermal", "xid")
"""Families in which at least one check must have come to an answer."""
_BAD = ("fail", "unknown")


def certifiable(run: dict[str, Any], name: str) -> dict[str, Any]:
    """
    Return the node's record of a run, if nothing is in the way of its certificate.

    Args:
        run: of schema ``hwcheck.run/1``.
        name: of the node.

    Raises:
        NotCertifiedError: something is in the way.
    """
    nodes = [node for node in run["nodes"] if node["name"] == name]
    if not name or len(nodes) != 1:
        held = ", ".join(sorted({node["name"] or "(no name)" for node in run["nodes"]})[:8]) or "no node"
        why = "stands in the run more than once" if nodes else f"is not in the run, which has {held}"
        raise NotCertifiedError(name, [why], failed=False)
    findings = [finding for finding in run["findings"] if finding["node"] == name]
    reasons = [*_findings(run, findings), *_requirements(nodes[0], findings)]
    if not reasons and nodes[0]["verdict"] != "pass":
        reasons = [f"its verdict is {nodes[0]['verdict']}"]
    if reasons:
        failed = any(f["status"] == "fail" and f["waived"] is None for f in findings)
        raise NotCertifiedError(name, reasons, failed=failed)
    found: dict[str, Any] = nodes[0]
    return found


def _findings(run: dict[str, Any], findings: list[dict[str, Any]]) -> Iterator[str]:
    """Say which findings are in the way: fails first, leads with the number of what follows them."""
    bad = {f["id"]: f for f in findings if f["status"] in _BAD and f["waived"] is None}
    follows: dict[int, int] = {}
    followers: set[int] = set()
    for incident in run["incidents"]:
        lead = run["findings"][incident["lead"]]["id"]
        if lead in bad:
            mine = {run["findings"][index]["id"] for index in incident["follows"]} & set(bad)
            follows[lead] = len(mine)
            followers |= mine
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for id, finding in bad.items():
        if id not in followers:
            alike.setdefault((finding["status"], finding["check"]), []).append(finding)
    for (status, check), group in sorted(alike.items(), key=lambda item: _BAD.index(item[0][0])):
        more = sum(follows.get(finding["id"], 0) for finding in group)
        yield _said(status, check, group, more)


def _said(status: str, check: str, group: list[dict[str, Any]], more: int) -> str:
    first = group[0]
    places = [finding["subject"] for finding in group if finding["subject"]]
    where = f" on {', '.join(places[:3])}{f' and {len(places) - 3} more' if len(places) > 3 else ''}" if places else ""
    behind = f" ({more} more {'findings follow' if more > 1 else 'finding follows'} from it)" if more else ""
    remedy = f". To do: {first['remedy']['text']}" if first["remedy"] else ""
    return f"{status} {check}{where}: {first['message']}{behind}{remedy}"


def _requirements(node: dict[str, Any], findings: list[dict[str, Any]]) -> Iterator[str]:
    """Say what was not told or not judged, though a certificate rests on it."""
    sources, required = node["about"].get("sources"), node["about"].get("requires")
    if not isinstance(sources, dict) or not isinstance(required, dict):
        yield "the run does not say which sources were told and required: judge the node anew with this hwcheck"
        return
    for words, kinds in required.items():
        if not any(sources.get(kind) == "read" for kind in kinds):
            why = next((f": {sources[kind]}" for kind in kinds if kind in sources), ": not asked")
            yield f"not told: {words}{why}"
    if not node["about"].get("boot_id"):
        yield "not told: which boot it was"
    judged = {finding["check"].partition(".")[0] for finding in findings if finding["status"] != "skip"}
    if missing := [family for family in FAMILIES if family not in judged]:
        yield f"not judged: {', '.join(missing)}"
