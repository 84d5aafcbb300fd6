"""NVLink fabric registration of the GPUs, as the driver reports it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, unknown, warn
from hwcheck.findings import Act, Remedy, Urgency

_HOST = Remedy(
    "act",
    "On a bare-metal HGX node start or restart nvidia-fabricmanager of exactly the driver's version and wait a few "
    "minutes. In a guest (pass-through) it cannot be cured from inside: ask the host, hypervisor or cloud provider to "
    "activate the NVSwitch partition of this VM.",
    disturbs="board",
)
_RESTART = replace(_HOST, acts=(Act("restart", "nvidia-fabricmanager.service", opt_in=True),))
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
    acts=(Act("reset_gpu", "{subject}", opt_in=True),),
)
_ZERO = "00000000-0000-0000-0000-000000000000"
_SUCCESS = ("success", "ok")


@relation(
    "fabric.state",
    needs=("gpu.fabric.state",),
    uses=("gpu.fabric.status", "platform.virtualization"),
    urgency=Urgency.NOW,
    remedy=_HOST,
)
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
        # only where this host runs the fabric manager: in a rack, or for a guest, somebody else does
        here = given.bound("fabric.kind") == "nvswitch" and given.maybe("platform.virtualization") == "none"
        text = f"fabric state is {state}, expected Completed"
        return fail(text, observed=state, expected="Completed", remedy=_RESTART if here else _HOST)
    if status is None:
        return skip("fabric state is Completed, which is no success without a status; the status is not there")
    if status.lower() in _SUCCESS:
        return ok(
            "fabric state is Completed, status Success", observed=f"{state}, {status}", expected="Completed, Success"
        )
    return fail(
        f"fabric registration ended with {status}: the GPU is not a member of the NVLink fabric",
        observed=status,
        expected="Success",
        remedy=_PARTITION,
        because="gpu.fabric.state",
    )


_FLAGS = (
    # fact, words, is it a fault (else: a recovery that is under way)
    ("gpu.fabric.route_unhealthy", "route unhealthy", True),
    ("gpu.fabric.route_recovery", "route recovery in progress", False),
    ("gpu.fabric.access_recovery", "access timeout recovery", False),
)
_DETAILS = ("gpu.fabric.bandwidth", "gpu.fabric.misconfigured", *(name for name, _, _ in _FLAGS))


@relation("fabric.health", any_of=("gpu.fabric.health", *_DETAILS), urgency=Urgency.NOW, remedy=_HEALTH)
def fabric_is_healthy(given: Given) -> Answer:
    """
    The fabric reports this GPU healthy.

    What it checks: the health summary, and each detail with or without it: degraded bandwidth, unhealthy route,
    recoveries in progress, incorrect configuration. The worst of them counts.

    Why it matters: the fabric sees what the GPU alone cannot: a switch port or route that is down on its way.

    How to fix: drain, find the NVLink or switch error, reset the GPU; the rest is the fabric operator's.

    Applies to: GPUs with an NVLink fabric. Drivers before R580 print details without the summary.

    Source: nvml.h, nvmlGpuFabricInfoV_t healthMask; nvidia-smi -q -x of GB200 and GB300.
    """
    health = given.maybe("gpu.fabric.health")
    faults, remarks, strange = _health_details(given)
    word = (health or "healthy").lower()
    if word not in ("healthy", "unhealthy", "limited capacity"):
        strange.append(f"health {health}")
    told = f"fabric health is {health}" if health else "the fabric gives no health summary"
    because = "gpu.fabric.health" if health and word != "healthy" else ""
    reasons = ", ".join([*faults, *remarks])
    text = f"{told} ({reasons})" if reasons else told
    common: dict[str, Any] = {"observed": health or reasons, "expected": "Healthy", "because": because}
    if word == "unhealthy" or faults:
        return fail(text, **common)
    if word == "limited capacity" or remarks:
        return warn(text, **common)
    if strange:
        return unknown(f"{told}; not understood: {', '.join(strange)}", **common)
    if health:
        return ok("fabric health is Healthy", observed=health, expected="Healthy")
    return ok("no detail of the fabric health is bad; there is no summary", expected="Healthy")


def _health_details(given: Given) -> tuple[list[str], list[str], list[str]]:
    """Sort the details into faults, remarks, and words that nobody knows."""
    faults = [words for name, words, fault in _FLAGS if fault and given.maybe(name)]
    remarks = [words for name, words, fault in _FLAGS if not fault and given.maybe(name)]
    strange: list[str] = []
    bandwidth = given.maybe("gpu.fabric.bandwidth")
    if bandwidth is not None and bandwidth.lower() != "full":
        (remarks if bandwidth.lower() == "degraded" else strange).append(f"bandwidth {bandwidth}")
    wrong = given.maybe("gpu.fabric.misconfigured")
    if wrong is not None and wrong.lower() != "none":
        faults.append(f"incorrect configuration: {wrong}")
    return faults, remarks, strange


@relation(
    "fabric.domain", needs=(Some("gpu.fabric.cluster"), Some("gpu.fabric.clique")), urgency=Urgency.NOW, remedy=_HEALTH
)
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
    if len(clusters) < 2:
        return None
    if len(pairs) > 1:
        shown = sorted(f"{cluster} clique {clique}" for cluster, clique in pairs)
        return fail(f"the GPUs are in {len(pairs)} NVLink cliques", observed=shown, expected="one")
    ((cluster, clique),) = pairs
    if given.bound("fabric.kind") == "nvlink-domain" and cluster == _ZERO:
        return skip("no cluster UUID: this tray is not part of an NVLink domain, see fabric.state")
    return ok(f"all {len(clusters)} GPUs are in one NVLink domain, clique {clique}", observed=clique)
