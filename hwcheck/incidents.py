"""
Incidents: findings that belong together, with the lead one and why. This is how the fault tree starts.

A rule says which finding leads which others, and how near they must be: on the same GPU, or anywhere on the node. A
follower that leads others itself brings them along, so that a chain has one lead. A warning leads no fail, but for one
of a measurement: that tells how slow it is, and the setting that warns tells why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hwcheck.findings import Finding, Incident, Status, Urgency

COMPLETE = "evidence.complete"
"""A source without a whole answer: the one thing that could not be told and explains others."""
_OF_GPUS = ("nvml", "nvidia-smi", "cuda", "dcgm")
"""Sources that ask the driver: a GPU that does not answer explains them, and neither the clock nor a port."""
_BAD = (Status.FAIL, Status.WARN, Status.UNKNOWN)
_URGENCIES = tuple(Urgency)
_OVER_PCIE = r"baseline\.(h2d|d2h|p2p|copy_small.*|host_copy|peer_copy|rdma_write|nccl.*|perftest.*|ib_.*)"
"""Measurements whose data goes over PCIe, at least where there is no NVLink."""
_OF_CLOCKS = r"baseline\.(hbm_copy|h2d|d2h|p2p|launch.*|copy_small.*|host_copy|peer_copy|nccl.*|dcgm.*)"
"""Measurements that the GPU's clocks decide."""


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One kind of chain: which finding explains which others.

    Attributes:
        lead: pattern of the lead's check id.
        follows: pattern of the followers' check ids.
        near: ``gpu`` (same subject, or a measurement that names it) or ``node``.
        text: why, completed by the lead's subject.
        message: pattern that must stand in the lead's message; "" for any.
        unknown: only what could not be told follows.
        source: only what the lead's own source would have told follows.
    """

    lead: str
    follows: str
    near: str
    text: str
    message: str = ""
    unknown: bool = False
    source: bool = False


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
        r"fabric\..*|nvlink\..*|imex\..*|baseline\.(nccl|p2p|peer_copy).*|service\.fabric.*|platform\.virtual.*",
        "node",
        "the GPU is not a healthy member of its NVLink fabric",
    ),
    Rule(
        r"pcie\.acs", r"rdma\.(gpudirect.*|completion.*|gdr.*)|" + _OVER_PCIE, "node",
        "ACS redirects peer-to-peer traffic to the root complex; GPUDirect RDMA breaks or crawls",
    ),
    Rule(
        r"rdma\.(peermem|gpu_memory.*)|kernel\.peermem",
        r"baseline\.perftest.*|baseline\.ib_.*|rdma\.(gpu_memory.*|gpudirect.*)", "node",
        "there is no way to register GPU memory for RDMA", message="peermem",
    ),
    Rule(
        r"nvlink\.(active|topology|speed)", r"baseline\.(nccl|p2p|peer_copy).*|fabric\..*", "node",
        "a GPU without its NVLinks explains slow or failing GPU-to-GPU traffic",
    ),
    Rule(
        r"power\.(brake|hw.*)", r"clocks\..*|thermal\.hw.*|" + _OF_CLOCKS, "node",
        "the platform asserts the power brake; clocks are held down by it",
    ),
    Rule(
        r"thermal\.(slowdown|tlimit|sw.*|hw.*)", r"thermal\..*|clocks\..*|baseline\..*", "gpu",
        "the GPU cannot be cooled; slowdown and low clocks follow",
    ),
    Rule(
        r"time\.chrony.*", r"time\..*", "node", "the clock is not synchronised; everything else said of it follows",
    ),
    Rule(
        r"rdma\.(port_state|port_rate|netdev_speed|port_mtu)", r"rdma\.(rate|gid|sm).*|baseline\.(rdma_write|nccl|tcp)",
        "node", "a port is down or slow",
    ),
    # Why a measurement is slow, or does not count.
    Rule(
        r"pcie\.(link|gpu_width|gpu_speed|gpu_generation|gpu_width_peers|gpu_gen_peers|max_payload|max_read_request)",
        _OVER_PCIE, "gpu", "the PCIe link of the GPU is narrow or slow; every copy over it is",
    ),
    Rule(
        r"pcie\.(switch_link|log_bandwidth)|kernel\.iommu(_argument)?", _OVER_PCIE, "node",
        "the way of PCIe traffic through this node is narrow or leads through the IOMMU",
    ),
    Rule(
        r"clocks\..*|power\.(limit|default|profile)|hbm\.memory_clock|thermal\..*", _OF_CLOCKS, "gpu",
        "the GPU's clocks are held down; what is measured on it is slow, or does not count",
    ),
    Rule(
        r"hbm\..*|xid\.(48|63|64|92|94|95)", r"baseline\.hbm_copy", "gpu",
        "the GPU's memory corrects, remaps or lacks a part",
    ),
    Rule(r"c2c\..*", r"baseline\.(h2d|d2h|host_copy)", "gpu", "the links between the GPU and its Grace are not all up"),
    Rule(
        r"cpu\.(governor|epp|turbo|idle_latency|log_throttled)|sysctl\.numa_balancing|memory\.thp|numa\.irqs",
        r"baseline\.(launch.*|copy_small.*|os_jitter|cpu_memory)", "node",
        "the CPUs are slow to wake, or are interrupted; so is what waits for them",
    ),
    Rule(
        r"memory\.(total|corrected|uncorrected|log_errors)|numa\.(layout|memory)", r"baseline\.cpu_memory", "node",
        "the memory of the CPUs lacks a part or corrects errors",
    ),
    Rule(r"storage\..*", r"baseline\.disk", "node", "the disk is not well; so are its figures"),
    Rule(
        r"xid\.79", r"pcie\.(device_lost|aer.*|errors)|gpu\.log_on_bus", "gpu",
        "the GPU fell off the bus; its registers read as ones",
    ),
    Rule(
        r"hbm\.(remap_pending|ecc_dram_uncorrected)",
        r"xid\.(63|94)|hbm\.(ecc_(dram_)?uncorrected|remap_pending)", "gpu",
        "an uncorrectable error of HBM; counters, Xids and the remap that waits for a reset all tell of it",
    ),
    Rule(
        r"hbm\.ecc_sram_(uncorrected|parity|secded)|hbm\.sram_threshold", r"hbm\.ecc_(sram_.*|uncorrected)", "gpu",
        "an uncorrectable error of SRAM; the totals count it too",
    ),
    Rule(r"hbm\.remap_failure", r"hbm\.bank_(low|none)", "gpu", "a bank has no spare row left, so remapping failed"),
    Rule(r"hbm\.banks", r"hbm\.total", "gpu", "part of the memory is switched off"),
    Rule(r"memory\.uncorrected", r"memory\.log_errors", "node", "counter and log tell of the same memory errors"),
    Rule(r"kernel\.(crash|stalls)", r"kernel\.taint", "node", "the kernel marks itself after such an event"),
    Rule(r"pcie\.link", r"pcie\.gpu_(width|speed).*", "gpu", "the registers and the driver tell of the same link"),
    Rule(
        r"rdma\.port_down|rdma\.port_state|rdma\.port_link",
        r"rdma\.(port_link|subnet_manager|netdev.*|port_down|link_flaps|log_flaps)", "node",
        "a port carries no traffic; its interface and its fabric say the same",
    ),
    Rule(r"driver\.next_(boot|load)", r"driver\.next_(boot|load)", "node", "the module file on disk is another one"),
    Rule(r"service\.state", r"time\..*|imex\..*", "node", "the daemon does not run; nobody does its work"),
    # What could not be told, by what kept it from being told.
    Rule(
        r"driver\.(loaded|library|api_mismatch|devices)", COMPLETE, "node",
        "without a running driver of the libraries' version NVML tells nothing", unknown=True,
    ),
    Rule(
        r"xid\.79|gpu\.access|pcie\.device_lost", r".*", "gpu",
        "the GPU does not answer; what only it can tell is not known", unknown=True,
    ),
    # The source's own first: two that are late by the same time say the same.
    *(
        Rule(
            COMPLETE, r"(?!evidence\.complete).*", "node",
            "a source did not give its whole answer; what it alone tells is not known", unknown=True, source=source,
        )
        for source in (True, False)
    ),
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
    return sorted(
        incidents, key=lambda item: (min(_severity(findings[i]) for i in (item.lead, *item.follows)), item.lead)
    )


def _root(parent: dict[int, tuple[int, Rule]], index: int) -> int:
    while index in parent:
        index = parent[index][0]
    return index


def _is_lead(rule: Rule, finding: Finding) -> bool:
    if finding.status is Status.UNKNOWN and finding.check != COMPLETE:
        return False
    return bool(re.fullmatch(rule.lead, finding.check)) and rule.message in finding.message


def _follows(rule: Rule, lead: Finding, finding: Finding) -> bool:
    milder = lead.status is Status.WARN and finding.status is Status.FAIL and finding.family != "baseline"
    if milder or not re.fullmatch(rule.follows, finding.check):
        return False
    if rule.unknown and not _for_that_reason(lead, finding):
        return False
    if rule.source and (lead.origin is None or finding.origin is None or lead.origin.source != finding.origin.source):
        return False
    return rule.near == "node" or finding.subject.kind == "node" or _same(lead, finding)


def _same(lead: Finding, finding: Finding) -> bool:
    """Tell whether a finding is about the lead's subject, or a measurement whose name has it."""
    if finding.subject.kind == "measurement":
        return bool(lead.subject.id) and lead.subject.id in finding.subject.id
    return finding.subject.id == lead.subject.id


def _for_that_reason(lead: Finding, finding: Finding) -> bool:
    """Tell whether a finding could not be told for the reason that the lead, a source without an answer, names."""
    if finding.status is not Status.UNKNOWN:
        return False
    if lead.status is not Status.UNKNOWN:
        asked = finding.origin.source if finding.origin is not None else ""
        return bool(finding.subject.id and finding.subject == lead.subject) or asked.startswith(_OF_GPUS)
    if finding.gap is None or not finding.gap.detail:
        return False
    words = finding.gap.detail[:60]
    return words == lead.gap.detail[:60] if lead.gap is not None else words in lead.message


def _severity(finding: Finding) -> tuple[int, int]:
    """Fails before warnings, what is urgent before what can wait."""
    return _BAD.index(finding.status), _URGENCIES.index(finding.urgency) if finding.urgency else len(_URGENCIES)
