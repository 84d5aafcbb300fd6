"""
Incidents: findings that belong together, with the lead one and why. This is how the fault tree starts.

A rule says which finding leads which others, and how near they must be: on the same GPU, or anywhere on the node. A
follower that leads others itself brings them along, so that a chain has one lead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hwcheck.findings import Finding, Incident, Status, Urgency

_BAD = (Status.FAIL, Status.WARN, Status.UNKNOWN)
_URGENCIES = tuple(Urgency)


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One kind of chain: which finding explains which others.

    Attributes:
        lead: pattern of the lead's check id.
        follows: pattern of the followers' check ids.
        near: ``gpu`` (same subject) or ``node``.
        text: why, completed by the lead's subject.
        message: pattern that must stand in the lead's message; "" for any.
    """

    lead: str
    follows: str
    near: str
    text: str
    message: str = ""


RULES = (
    Rule(
        r"xid\.79",
        r"xid\.(45|13|31|43|48|62|63|64|74|92|94|95|109|119|120|154)|gpu\.(recovery_action|reset.*|access)", "gpu",
        "the GPU fell off the bus; what else it logged follows from that",
    ),
    Rule(
        r"xid\.79", r"sxid\..*|nvlink\.(active|topology)|fabric\..*|pcie\.aer.*|gpu\.count.*", "node",
        "the GPU fell off the bus; its NVLinks went down with it",
    ),
    Rule(
        r"xid\.(119|120|143)", r"xid\.(45|109|154)|gpu\.(recovery_action|reset.*|access)", "gpu",
        "the GPU's firmware (GSP) stopped answering; later errors of this GPU follow from that",
    ),
    Rule(
        r"xid\.48", r"xid\.(45|63|64|92|94|95|154)|hbm\..*|gpu\.(recovery_action|reset.*)", "gpu",
        "an uncorrectable memory error; row remapping and the stopped applications are its consequences",
    ),
    Rule(
        r"xid\.(63|64|94|95|92)", r"xid\.(45|154)|hbm\.(remap.*|ecc.*|repair.*)|gpu\.(recovery_action|reset.*)", "gpu",
        "a memory error; the remap that waits for a reset is its consequence",
    ),
    Rule(
        r"xid\.(74|14[4-9]|150)", r"xid\.(45|154)|nvlink\..*|gpu\.(recovery_action|reset.*)|fabric\..*", "gpu",
        "an NVLink error of this GPU; what follows on its links and jobs is its consequence",
    ),
    Rule(r"xid\.(74|14[4-9]|150)", r"sxid\..*", "node", "an NVLink error; the switch reports the same link"),
    Rule(r"gpu\.recovery_action", r"xid\.154|gpu\.reset.*", "gpu", "the driver itself asks for this recovery"),
    Rule(
        r"driver\.(api_mismatch|library)", r"driver\..*|gpu\.access|service\..*", "node",
        "kernel module and libraries are of two versions; NVML cannot start until they agree",
    ),
    Rule(
        r"driver\.fabric_manager|service\.fabric_?manager.*",
        r"service\.fabric_?manager.*|fabric\..*|driver\.cuda_init|baseline\..*", "node",
        "without a running fabric manager of the driver's version the GPUs of this board cannot be used",
    ),
    Rule(
        r"driver\.cuda_init", r"baseline\.dcgm.*|baseline\..*|fabric\..*", "node",
        "CUDA cannot initialise; each test that needs CUDA fails for this reason",
    ),
    Rule(
        r"fabric\.(state|status|registration|nvswitch|health).*",
        r"fabric\..*|nvlink\..*|imex\..*|baseline\.nccl.*|service\.fabric.*|platform\.virtual.*", "node",
        "the GPU is not a healthy member of its NVLink fabric",
    ),
    Rule(
        r"pcie\.acs", r"rdma\.(gpudirect.*|completion.*|gdr.*)|baseline\..*", "node",
        "ACS redirects peer-to-peer traffic to the root complex; GPUDirect RDMA breaks or crawls",
    ),
    Rule(
        r"rdma\.(peermem|gpu_memory.*)|kernel\.peermem",
        r"baseline\.perftest.*|baseline\.ib_.*|rdma\.(gpu_memory.*|gpudirect.*)", "node",
        "there is no way to register GPU memory for RDMA", message="peermem",
    ),
    Rule(
        r"nvlink\.(active|topology|speed)", r"baseline\.(nccl|p2p).*|fabric\..*", "node",
        "a GPU without its NVLinks explains slow or failing GPU-to-GPU traffic",
    ),
    Rule(
        r"power\.(brake|hw.*)", r"clocks\..*|thermal\.hw.*|baseline\..*", "node",
        "the platform asserts the power brake; clocks are held down by it",
    ),
    Rule(
        r"thermal\.(slowdown|tlimit|sw.*|hw.*)", r"thermal\..*|clocks\..*|baseline\..*", "gpu",
        "the GPU cannot be cooled; slowdown and low clocks follow",
    ),
    Rule(
        r"time\.chrony.*", r"time\..*", "node", "the clock is not synchronised; everything else said of it follows",
    ),
    Rule(r"rdma\.port_state", r"rdma\.(rate|gid|sm).*|baseline\.(ib|nccl).*", "node", "a port is down"),
)  # fmt: skip


def group(findings: list[Finding]) -> list[Incident]:
    """
    Group findings.

    Returns:
        Incidents of at least two findings, each finding in at most one of them, leads in order of severity.
    """
    bad = [index for index, finding in enumerate(findings) if finding.status in _BAD and finding.counts]
    parent: dict[int, tuple[int, Rule]] = {}
    for rule in RULES:
        leads = [i for i in bad if _is_lead(rule, findings[i])]
        for lead in leads:
            for index in bad:
                if index == lead or index in parent or _root(parent, lead) == index:
                    continue
                if _follows(rule, findings[lead], findings[index]):
                    parent[index] = (lead, rule)
    families: dict[int, list[int]] = {}
    for index in parent:
        families.setdefault(_root(parent, index), []).append(index)
    incidents = []
    for lead, follows in families.items():
        rule = next(rule for index, (direct, rule) in parent.items() if direct == lead)
        where = f" ({findings[lead].subject})" if findings[lead].subject.id else ""
        incidents.append(Incident(lead, tuple(sorted(follows)), f"{rule.text[0].upper()}{rule.text[1:]}{where}."))
    return sorted(incidents, key=lambda item: (_severity(findings[item.lead]), item.lead))


def _root(parent: dict[int, tuple[int, Rule]], index: int) -> int:
    while index in parent:
        index = parent[index][0]
    return index


def _is_lead(rule: Rule, finding: Finding) -> bool:
    if finding.status is Status.UNKNOWN:
        return False
    return bool(re.fullmatch(rule.lead, finding.check)) and rule.message in finding.message


def _follows(rule: Rule, lead: Finding, finding: Finding) -> bool:
    if not re.fullmatch(rule.follows, finding.check) or (lead.status is Status.WARN and finding.status is Status.FAIL):
        return False
    return rule.near == "node" or finding.subject == lead.subject or finding.subject.kind == "node"


def _severity(finding: Finding) -> tuple[int, int]:
    """Fails before warnings, what is urgent before what can wait."""
    return _BAD.index(finding.status), _URGENCIES.index(finding.urgency) if finding.urgency else len(_URGENCIES)
