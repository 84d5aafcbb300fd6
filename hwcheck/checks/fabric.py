"""NVLink fabric registration of the GPUs, as the driver reports it."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_HOST = Remedy(
    "act",
    "On a bare-metal HGX node start or restart nvidia-fabricmanager of exactly the driver's version and wait a few "
    "minutes. In a guest (pass-through) it cannot be cured from inside: ask the host, hypervisor or cloud provider to "
    "activate the NVSwitch partition of this VM.",
    disturbs="board",
)
_PARTITION = Remedy(
    "hands",
    "The fabric refuses this GPU its resources: ask the rack's or cloud operator (NMX, fabric manager on the switch "
    "trays) to assign the GPU GUIDs to a partition, then reset the GPU or reboot the node.",
    disturbs="node",
)
_HEALTH = Remedy(
    "act",
    "Drain the node; look for Xid 74 or 144-150 and switch errors of this GPU, then reset the GPU; if the fabric stays "
    "unhealthy, the operator of the NVLink domain must look at the switch trays and cables.",
    disturbs="board",
)
_ZERO = "00000000-0000-0000-0000-000000000000"
_SUCCESS = ("success", "ok")


@relation("fabric.state", needs=("gpu.fabric.state",), uses=("gpu.fabric.status",), urgency=Urgency.NOW, remedy=_HOST)
def registered_with_fabric(given: Given) -> Answer:
    """
    The GPU is registered with its NVLink fabric.

    What it checks: fabric state is "Completed" and its status "Success". Completed alone is no success.

    Why it matters: until registration is complete CUDA answers "system not yet initialized" on an NVSwitch board, and
    a GPU outside of its clique cannot reach its rack.

    How to fix: bare metal: fabric manager of the driver's version; guest: the provider's partition; rack: the operator
    of the NVLink domain.

    Applies to: GPUs that report a fabric; PCIe cards and a single GH200 read N/A.

    Source: nvml.h, nvmlGpuFabricInfoV_t; nvidia-smi -q of HGX H100, H200, B200 and NVL72 trays.
    """
    state, status = given["gpu.fabric.state"], given.maybe("gpu.fabric.status")
    if state.lower() in ("not supported", "n/a"):
        return skip("the GPU has no NVLink fabric")
    if state.lower() != "completed":
        return fail(f"fabric state is {state}, expected Completed", observed=state, expected="Completed")
    if status is None:
        return skip("fabric state is Completed, which is no success without a status; the status is not there")
    if status.lower() in _SUCCESS:
        return ok("fabric state is Completed, status Success", observed=f"{state}, {status}", expected="Completed, Success")
    return fail(
        f"fabric registration ended with {status}: the GPU is not a member of the NVLink fabric",
        observed=status,
        expected="Success",
        remedy=_PARTITION,
        because="gpu.fabric.state",
    )


@relation("fabric.health", needs=("gpu.fabric.health",), uses=(
    "gpu.fabric.bandwidth", "gpu.fabric.route_unhealthy", "gpu.fabric.route_recovery", "gpu.fabric.access_recovery",
    "gpu.fabric.misconfigured",
), urgency=Urgency.NOW, remedy=_HEALTH)  # fmt: skip
def fabric_is_healthy(given: Given) -> Answer:
    """
    The fabric reports this GPU healthy.

    What it checks: health summary, and behind it degraded bandwidth, unhealthy route, recoveries in progress and
    incorrect configuration.

    Why it matters: the summary sees what the GPU alone cannot: a switch port or route that is down on its way.

    How to fix: drain, find the NVLink or switch error, reset the GPU; the rest is the fabric operator's.

    Applies to: drivers from R580 on that print the summary.

    Source: nvml.h, nvmlGpuFabricInfoV_t healthMask; nvidia-smi -q -x of GB200 and GB300.
    """
    health = given["gpu.fabric.health"]
    if health.lower() == "healthy":
        return ok("fabric health is Healthy", observed=health, expected="Healthy")
    reasons = []
    if (bandwidth := given.maybe("gpu.fabric.bandwidth")) not in (None, "Full"):
        reasons.append(f"bandwidth {bandwidth}")
    for name, words in (
        ("gpu.fabric.route_unhealthy", "route unhealthy"),
        ("gpu.fabric.route_recovery", "route recovery in progress"),
        ("gpu.fabric.access_recovery", "access timeout recovery"),
    ):
        if given.maybe(name):
            reasons.append(words)
    if (wrong := given.maybe("gpu.fabric.misconfigured")) not in (None, "None"):
        reasons.append(f"incorrect configuration: {wrong}")
    text = f"fabric health is {health}" + (f" ({', '.join(reasons)})" if reasons else "")
    answer = warn if health.lower() == "limited capacity" else fail
    return answer(text, observed=health, expected="Healthy")


@relation("fabric.domain", needs=(Some("gpu.fabric.cluster"), Some("gpu.fabric.clique")), urgency=Urgency.NOW, remedy=_HEALTH)
def one_domain_per_node(given: Given) -> Answer | None:
    """
    All GPUs of the node are in one NVLink domain and clique.

    What it checks: cluster UUID and clique id are the same on every GPU that reports them.

    Why it matters: GPUs in two cliques cannot reach each other over NVLink, and a multi-node job takes the wrong path.

    How to fix: the operator of the NVLink domain assigns partitions; then reset the GPUs.

    Applies to: nodes with two or more GPUs in a fabric. On a single HGX board UUID zero and clique 0 are right.

    Source: nvidia-smi -q -x of HGX H100, B200 (zero UUID) and of NVL72 trays (one UUID, cliques 2 and 32766).
    """
    clusters, cliques = given["gpu.fabric.cluster"], given["gpu.fabric.clique"]
    pairs = {(clusters[gpu], cliques[gpu]) for gpu in clusters if gpu in cliques}
    if len(clusters) < 2:  # noqa: PLR2004 - a domain of one says nothing
        return None
    if len(pairs) > 1:
        shown = sorted(f"{cluster} clique {clique}" for cluster, clique in pairs)
        return fail(f"the GPUs are in {len(pairs)} NVLink cliques", observed=shown, expected="one")
    ((cluster, clique),) = pairs
    if given.bound("fabric.kind") == "nvlink-domain" and cluster == _ZERO:
        return skip("no cluster UUID: this tray is not part of an NVLink domain, see fabric.state")
    return ok(f"all {len(clusters)} GPUs are in one NVLink domain, clique {clique}", observed=clique)
