"""Findings and facts of which tests make plans."""

from __future__ import annotations

from typing import Any

from hwcheck.facts import NODE, Facet, Fact, Snapshot, Subject
from hwcheck.findings import Act, Finding, NodeVerdict, Remedy, Status, Write
from hwcheck.plan import NodePlan, plan_node
from hwcheck.profiles import ProfileSet

SHIPPED = ProfileSet()
H200 = SHIPPED.profile("hgx-h200")
BOOT = "11111111-2222-3333-4444-555555555555"


def snapshot(*facts: tuple[str, Any], node: str = "gpu-001") -> Snapshot:
    """Make the facts of a node that was recognised: name → value, ``name@next`` for the next boot."""
    made = Snapshot(node)
    identity = {"platform": "hgx-h200", "confidence": "pci-id", "basis": "ids", "models": (), "mixed": False}
    for key, value in (("platform.identity", identity), ("kernel.boot_id", BOOT), *facts):
        name, _, facet = key.partition("@")
        made.put(NODE, name, Fact(value), Facet.NEXT_BOOT if facet else Facet.RUNNING)
    return made


def unit(made: Snapshot, name: str, **states: str) -> Snapshot:
    """Add a unit's states (active, enabled, loaded)."""
    for state, value in states.items():
        made.put(Subject("unit", name), f"service.{state}", Fact(value))
    return made


def finding(
    check: str,
    *,
    writes: tuple[Write, ...] = (),
    acts: tuple[Act, ...] = (),
    subject: Subject = NODE,
    status: Status = Status.FAIL,
    disturbs: str = "nothing",
    **more: Any,
) -> Finding:
    """Make a finding with a remedy."""
    remedy = Remedy("write" if writes else "act", "What to do about it.", "", disturbs, writes, acts)
    return Finding(check, subject, status, f"{check} is not as it should be", remedy=remedy, **more)


def plan(*findings: Finding, facts: Snapshot | None = None, asked: tuple[str, ...] = (), **verdict: Any) -> NodePlan:
    """Plan a node of an HGX H200 from these findings."""
    told = {"node": "gpu-001", "platform": "hgx-h200", "confidence": "pci-id", **verdict}
    return plan_node(NodeVerdict(**told, findings=list(findings)), facts or snapshot(), H200, asked)


def balancing(value: str = "0", **more: Any) -> Write:
    """Return a write of kernel.numa_balancing."""
    return Write("sysctl", "kernel.numa_balancing", value, **more)
