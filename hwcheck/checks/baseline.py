"""
Measured results against the floors of the platform.

One relation answers for every measurement, whatever tool it is from: the tables below say which floor a test is held
against. A figure that meets its floor passes unless a condition that could inflate it is in doubt. A low figure fails
only where the text itself shows that nothing else explains it; it warns where conditions are not in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwcheck.baselines.own import PREFIX
from hwcheck.checks.measurements import VALUES
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import NAMES
from hwcheck.findings import Remedy, Urgency
from hwcheck.profiles.identify import GENERIC

_FLOORS: dict[str, tuple[str, str]] = {
    # measurement: (check, bound). What counts the same bytes the same way shares a floor, nothing else does.
    "nvbandwidth.host_to_device_memcpy_ce": ("baseline.host_copy", "baseline.h2d"),
    "nvbandwidth.host_to_device_memcpy_sm": ("baseline.host_copy", "baseline.h2d"),
    "nvbandwidth.device_to_host_memcpy_ce": ("baseline.host_copy", "baseline.d2h"),
    "nvbandwidth.device_to_host_memcpy_sm": ("baseline.host_copy", "baseline.d2h"),
    "nvbandwidth.device_to_device_memcpy_read_ce": ("baseline.peer_copy", "baseline.p2p.read"),
    "nvbandwidth.device_to_device_memcpy_write_ce": ("baseline.peer_copy", "baseline.p2p.write"),
    "p2pbandwidth.unidirectional_enabled": ("baseline.peer_copy", "baseline.p2p.write"),
    "perftest.ib_write_bw": ("baseline.rdma_write", "baseline.ib_write_bw"),
}
_ONE_GPU: dict[str, tuple[str, str]] = {
    # All GPUs share the host's memory here, so the floor of a single copy applies to a single GPU only.
    "nvbandwidth.host_to_all_memcpy_ce": ("baseline.host_copy", "baseline.h2d"),
    "nvbandwidth.host_to_all_memcpy_sm": ("baseline.host_copy", "baseline.h2d"),
    "nvbandwidth.all_to_host_memcpy_ce": ("baseline.host_copy", "baseline.d2h"),
    "nvbandwidth.all_to_host_memcpy_sm": ("baseline.host_copy", "baseline.d2h"),
}
_RATES = (100.0, 200.0, 400.0, 800.0)
"""Data rates of links in Gb/s; a result of 90 to 100 % of one fits a link of that rate."""
_ONE_MACHINE = 16
"""No machine has more GPUs under one kernel than this; more ranks are more than one node."""

_NODE_SLOW = Remedy(
    "act",
    "Check nvidia-smi nvlink -s (every link of every GPU active), the fabric manager and its log, and clocks under "
    "load, and see that no other job runs; then run all_reduce_perf -b 1G -e 16G -f 2 -g 8 again with "
    "NCCL_DEBUG=INFO: it must say NVLS.",
    disturbs="nothing",
)
_NETWORK_SLOW = Remedy(
    "act",
    "Run again with NCCL_DEBUG=INFO and look for GDRDMA on the channels; without it check nvidia-peermem or dma-buf, "
    "PCIe ACS and IOMMU, NCCL_IB_HCA and which NIC is near which GPU; then run ib_write_bw --use_cuda on each rail: "
    "about 47 GB/s a 400 Gb/s NIC is what NCCL can reach.",
    disturbs="nothing",
)
_WRONG = Remedy(
    "act",
    "Take the node out of work, keep the log, run the test again on each pair of GPUs to find the one that is wrong, "
    "then dcgmi diag -r 3 on it; wrong sums that return are a case for the field diagnostic and RMA.",
    disturbs="node",
)
_HOST_SLOW = Remedy(
    "act",
    "Check the PCIe link of the slowest GPU under load (lspci -vv: LnkSta against LnkCap), then run the test bound to "
    "the GPU's own NUMA node with nothing else running; in a guest ask for the figure of the host.",
    disturbs="nothing",
)
_PEER_SLOW = Remedy(
    "act",
    "Check nvidia-smi nvlink -s and nvlink -e of both GPUs of the slowest pair and the fabric manager; run the test "
    "again without other load; a pair that stays slow with links down needs a GPU reset, then service.",
    disturbs="nothing",
)
_RDMA_SLOW = Remedy(
    "act",
    "Check rate and width of the port (ibstat) and the PCIe link of the NIC, bind the test to the NIC's NUMA node, "
    "and run ib_write_bw -q 4 --report_gbits again on both ends.",
    disturbs="nothing",
)
_NOT_RUN = Remedy(
    "act",
    "Find the first error above this line, on this node or on the other one (NCCL_DEBUG=WARN for NCCL, the server "
    "side for perftest), remove its cause and run the test again.",
    disturbs="nothing",
)
_REMEDIES = {
    "baseline.host_copy": _HOST_SLOW,
    "baseline.peer_copy": _PEER_SLOW,
    "baseline.rdma_write": _RDMA_SLOW,
}


@relation(
    "baseline.result",
    any_of=(*VALUES, "result.error", "result.conditions"),
    uses=("result.conditions", *VALUES, "result.error"),
    scope="measurement",
    urgency=Urgency.MAINTENANCE,
    ids=(
        "baseline.nccl",
        "baseline.nccl_correct",
        "baseline.host_copy",
        "baseline.peer_copy",
        "baseline.rdma_write",
        "baseline.run",
    ),
)
def measured_result(given: Given) -> Iterator[Answer]:
    """
    A measured result meets the floor of the platform.

    What it checks: each figure of nccl-tests, nvbandwidth, p2pBandwidthLatencyTest, perftest and GPU STREAM against
    the bound ``baseline.*`` of the recognised platform, for the slowest GPU or pair, under the conditions the bound
    was made for.

    Why it matters: a link that trained down, a NIC without GPUDirect RDMA or a GPU that shares its path shows in no
    status field, but in every training step.

    How to fix: see the remedy of the finding; first repeat the test alone on the node.

    Applies to: a known platform and the test's own conditions: full node, one host and at least the bound's message
    size for NCCL; single copies for nvbandwidth; write, not read, for RDMA. Several nodes have no single-node floor.
    A figure without a floor is a skip that tells the figure; a condition that was seen false makes it unknown.

    Source: bounds of the platform profile, each with its own.
    """
    name = given.subject.id.partition("@")[0]
    if name.startswith(PREFIX):
        return  # judged by hwcheck.checks.baseline_load, which knows how it was measured
    conditions = given.maybe("result.conditions") or {}
    error = given.maybe("result.error")
    if error is not None:
        yield warn(error, check="baseline.run", remedy=_NOT_RUN, because="result.error")
    if conditions.get("failed") and given.maybe("result.busbw") is None:
        yield _correct(name, conditions)
    for fact in VALUES:
        value = given.maybe(fact)
        if value is None:
            continue
        if fact == "result.busbw":
            yield _correct(name, conditions)
            yield _collective(given, name, value, conditions)
        else:
            yield _figure(given, name, f"{value:.6g} {NAMES[fact].unit}", value, conditions)


def _correct(name: str, conditions: dict[str, Any]) -> Answer:
    """Judge whether the sums were right; GPUs or links that corrupt data show here first."""
    wrong, failed = conditions.get("wrong"), conditions.get("failed")
    if wrong or failed:
        text = f"{name}: {wrong} wrong elements" if wrong else f"{name}: out of bounds values: {failed}"
        seen = wrong or failed
        return fail(text, check="baseline.nccl_correct", observed=seen, expected=0, urgency=Urgency.NOW, remedy=_WRONG)
    if conditions.get("validated"):
        return ok(f"{name}: no wrong element", check="baseline.nccl_correct", observed=0, expected=0)
    return skip(f"{name}: results were not validated (#wrong is N/A)", check="baseline.nccl_correct")


def _collective(given: Given, name: str, value: float, conditions: dict[str, Any]) -> Answer:
    """Judge the bus bandwidth of a collective by where it ran."""
    ranks, hosts = conditions.get("ranks"), conditions.get("hosts")
    figure = f"{name}: {value:.6g} GB/s bus bandwidth at {_size(conditions.get('size'))}{_where(ranks, hosts)}"
    if name != "nccl.all_reduce":
        return skip(f"{figure}; no floor is known for this collective", check="baseline.nccl", observed=value)
    if given.platform == GENERIC:
        return skip(f"{figure}; no platform is known, so no floor applies", check="baseline.nccl", observed=value)
    if (hosts or 0) > 1 or (ranks or 0) > _ONE_MACHINE:
        return _several_nodes(given, figure, value, conditions)
    floor = given.bound("baseline.nccl.all_reduce.busbw")
    if floor is None:
        return skip(f"{figure}; no floor is known for {given.platform}", check="baseline.nccl", observed=value)
    return _one_node(given, figure, value, floor, conditions)


def _several_nodes(given: Given, figure: str, value: float, conditions: dict[str, Any]) -> Answer:
    """Over several nodes the NICs decide, and they are not in the text: warn when far too low, else say the figure."""
    if conditions.get("gpudirect") is False:
        text = f"{figure}; does not count: its channels went over the NICs without GPUDirect RDMA"
        return unknown(text, check="baseline.nccl", observed=value, remedy=_NETWORK_SLOW)
    low = given.bound("baseline.nccl.all_reduce.several_nodes")
    size = given.bound("baseline.nccl.all_reduce.size") or 0
    if low is not None and value < low and (conditions.get("size") or 0) >= size:
        peak, at = conditions.get("peak", value), conditions.get("peak_size")
        falls = f"; it peaks at {peak:.6g} GB/s with {_size(at)} and then falls" if peak > value * 1.05 else ""
        unseen = "the NICs and the path are not in the evidence"
        text = f"{figure}, low for any network of {given.platform} nodes{falls}; {unseen}"
        return warn(text, check="baseline.nccl", observed=value, expected=f">= {low} GB/s", remedy=_NETWORK_SLOW)
    text = f"{figure}; over several nodes the NICs decide, so no floor applies"
    return skip(text, check="baseline.nccl", observed=value)


def _one_node(given: Given, figure: str, value: float, floor: float, conditions: dict[str, Any]) -> Answer:
    """Hold a full single node against the floor; a condition that is not the floor's makes it unknown."""
    doubt = _doubt(given, conditions, met=value >= floor)
    common: dict[str, Any] = {"check": "baseline.nccl", "observed": value, "expected": f">= {floor} GB/s"}
    if doubt:
        return unknown(f"{figure}; cannot be held against the floor of {floor} GB/s: {doubt}", **common)
    if value >= floor:
        return ok(f"{figure}, at least {floor} GB/s", **common)
    certain = given.bound("baseline.nccl.all_reduce.certain")
    if certain is not None and value >= certain:
        text = (
            f"{figure}, below {floor} GB/s but above {certain} GB/s: it may have run without NVLS (in-switch reduction)"
        )
        return warn(text, remedy=_NODE_SLOW, **common)
    return fail(f"{figure}, below {floor} GB/s on one full node", remedy=_NODE_SLOW, **common)


def _doubt(given: Given, conditions: dict[str, Any], *, met: bool) -> str:
    """Name the condition that differs from the floor's, or ""."""
    ranks, wanted = conditions.get("ranks"), given.bound("baseline.nccl.all_reduce.ranks")
    size, least = conditions.get("size") or 0, given.bound("baseline.nccl.all_reduce.size") or 0
    if conditions.get("transport") in ("SHM", "NET") and conditions.get("hosts") == 1:
        return f"NCCL's channels went over {conditions['transport']}, not from GPU to GPU (P2P)"
    if conditions.get("hosts") is None:
        return "the list of ranks is not complete, so it may have run on several nodes"
    if wanted is not None and ranks != wanted:
        return f"it is for {wanted} GPUs, this run had {ranks}"
    if met and not conditions.get("validated"):
        return "the results were not validated"
    if not met and size < least:
        return f"it is for {_size(least)} and more, the largest message was {_size(size)}"
    if not met and (conditions.get("wrong") or conditions.get("failed")):
        return "results were wrong"
    return ""


def _figure(given: Given, name: str, shown: str, value: float, conditions: dict[str, Any]) -> Answer:
    """Judge a copy, a transfer or a latency by the floor of its test."""
    words = f"{name}: {shown}{_which(conditions)}"
    check, bound = _FLOORS.get(name) or _ONE_GPU.get(name) or ("baseline.result", "")
    if not bound:
        return skip(f"{words}; no floor is known for this test", observed=value)
    common: dict[str, Any] = {"check": check, "observed": value}
    if given.platform == GENERIC:
        return skip(f"{words}; no platform is known, so no floor applies", **common)
    floor = given.bound(bound)
    if floor is None:
        return skip(f"{words}; no floor is known for {given.platform}", **common)
    if conditions.get("statistic") == "sum":
        return skip(f"{words}; the floor is for one GPU or pair, and only the sum is told", **common)
    if name in _ONE_GPU and conditions.get("gpus") != 1:
        return skip(f"{words}; all GPUs share the host here, so the floor of one does not apply", **common)
    common["expected"] = f">= {floor} {'Gb/s' if check == 'baseline.rdma_write' else 'GB/s'}"
    if check == "baseline.rdma_write":
        return _transfer(words, value, floor, conditions, common)
    if value >= floor:
        return ok(f"{words}, at least {floor} GB/s", **common)
    judge = fail if check == "baseline.peer_copy" else warn
    return judge(f"{words}, below {floor} GB/s on {given.platform}", remedy=_REMEDIES[check], **common)


def _transfer(words: str, value: float, floor: float, conditions: dict[str, Any], common: dict[str, Any]) -> Answer:
    """Judge an RDMA write: the rate of the link is not in perftest's text."""
    if conditions.get("counts") == "both-ways":
        return skip(f"{words}; both directions are counted, the floor is for one", **common)
    if conditions.get("cpu_frequency_doubted"):
        return unknown(f"{words}; perftest doubts the CPU frequency that it computes time with", **common)
    if value >= floor:
        return ok(f"{words}, at least {floor} Gb/s, with {conditions.get('memory', 'host')} memory", **common)
    fits = next((rate for rate in _RATES if 0.9 * rate <= value <= rate), None)
    if fits:
        return skip(f"{words}; it fits a link of {fits:.0f} Gb/s, whose rate is not in the evidence", **common)
    return warn(f"{words}, below {floor} Gb/s and below every usual link rate", remedy=_RDMA_SLOW, **common)


def _size(size: int | None) -> str:
    """Print a size in bytes for a person."""
    if not size:
        return "an unknown size"
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} B"


def _where(ranks: int | None, hosts: int | None) -> str:
    if not ranks:
        return ""
    return f" over {ranks} GPUs" + (f" of {hosts} node{'s' if hosts > 1 else ''}" if hosts else "")


def _which(conditions: dict[str, Any]) -> str:
    """Say what a figure stands for: the slowest of many, a sum, a device."""
    if conditions.get("statistic") == "sum":
        return " in sum"
    if conditions.get("samples", 0) > 1:
        row, column = conditions["worst"]
        place = f"row {row}, column {column}; median {conditions['median']:.6g}"
        return f" for the slowest of {conditions['samples']} ({place})"
    if conditions.get("device"):
        queues = f", {conditions['qps']} QP" if conditions.get("qps") else ""
        return f" on {conditions['device']}{queues}"
    return f" ({conditions['peak_share']:.4g} % of the peak)" if conditions.get("peak_share") else ""
