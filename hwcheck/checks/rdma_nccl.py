"""What NCCL's environment and log tell of RDMA: failed completions, the GID in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.facts import number
from hwcheck.findings import Remedy, Urgency

_GDR = Remedy(
    "act",
    "Turn PCIe ACS redirection off on the bridges between GPU and NIC (BIOS, or setpci on the ACS control at each "
    "boot) and set iommu=pt or off on bare metal; NCCL_NET_GDR_LEVEL=0 shows whether the GPUDirect path is at fault. "
    "Verify with ib_write_bw --use_cuda.",
    disturbs="node",
)
_PEER = Remedy(
    "act",
    "Look at the peer first: its process, its port (ibstat) and the switch between; then at this port's counters.",
    disturbs="nothing",
)
_GID = Remedy(
    "write",
    "Unset NCCL_IB_GID_INDEX (NCCL 2.21 and newer picks the GID itself), or set it to the index of the RoCE v2 GID "
    "with an IPv4 address that show_gids lists, the same on every node.",
    disturbs="nothing",
    by_hand="The variable belongs to the jobs, or to a file of the site.",
)
_STATUS = {
    1: "local length error", 2: "local QP error", 4: "local protection error", 5: "flushed",
    6: "memory window bind error", 9: "remote invalid request", 10: "remote access error",
    11: "remote operation error", 12: "retries exceeded",
    13: "receiver-not-ready retries exceeded",
}  # fmt: skip
_LOCAL_PROTECTION, _FLUSHED = 4, 5


@relation(
    "rdma.completion",
    needs=("nccl.log.completions",),
    uses=("nccl.log.gdr",),
    urgency=Urgency.NOW,
    remedy=_PEER,
)
def completions_succeed(given: Given) -> Iterator[Answer]:
    """
    NCCL's RDMA work requests complete.

    What it checks: completions with an error status in NCCL's log. Status 4 (vendor error 81) while channels use
    GPUDirect RDMA is a NIC that may not reach GPU memory. Flushed requests follow another error and are not counted.
    Why it matters: NCCL ends the job at the first one.
    How to fix: status 4 with GDRDMA: PCIe ACS and IOMMU settings. Status 12: the peer or the way to it.
    Applies to: logs with NCCL_DEBUG=INFO or WARN.
    Source: libibverbs ibv_wc_status; NVIDIA/nccl-tests issue 252, NVIDIA/nccl issues 214, 304, 523.
    """
    errors: tuple[dict[str, Any], ...] = given["nccl.log.completions"]
    kinds = Counter((one["status"], one["vendor"]) for one in errors)
    flushed = sum(count for (status, _), count in kinds.items() if status == _FLUSHED)
    for (status, vendor), count in sorted(kinds.items()):
        if status == _FLUSHED and flushed < len(errors):
            continue
        hcas = sorted({one["hca"] for one in errors if (one["status"], one["vendor"]) == (status, vendor)} - {""})
        where = f" on {', '.join(hcas[:8])}" if hcas else ""
        times = f"{count} time{'s' * (count > 1)}{where}"
        text = f"status={status} ({_STATUS.get(status, 'error')}), vendor err {vendor}, {times}"
        if status == _LOCAL_PROTECTION and given.maybe("nccl.log.gdr"):
            yield fail(f"GPUDirect RDMA completion error: {text}", observed=text, remedy=_GDR)
        else:
            yield warn(f"NCCL work requests failed: {text}", observed=text)


@relation(
    "rdma.gid_index",
    needs=("rdma.port.gids",),
    any_of=("nccl.env", "nccl.log.env"),
    uses=("rdma.port.link_layer", "nccl.env", "nccl.log.env"),
    urgency=Urgency.NOW,
    remedy=_GID,
)
def gid_index_is_v2(given: Given) -> Answer | None:
    """
    NCCL_IB_GID_INDEX names a routable RoCE v2 GID.

    What it checks: the entry of the port's GID table at that index: it exists, is of version 2, and is not link-local.
    Why it matters: RoCE v1 is not routed, and an fe80 address is not either: connections to other subnets time out.
    How to fix: unset the variable, or set it to the index of the v2 entry with an IPv4 address.
    Applies to: RoCE ports that NCCL_IB_HCA does not exclude. InfiniBand ports have no RoCE GIDs.
    Source: NVIDIA/nccl issues 426, 769, 1510; NCCL environment variables, NCCL_IB_GID_INDEX.
    """
    env = {**(given.maybe("nccl.log.env") or {}), **(given.maybe("nccl.env") or {})}
    if "NCCL_IB_GID_INDEX" not in env or not _used(given.subject.id, env.get("NCCL_IB_HCA", "")):
        return None
    gids = given["rdma.port.gids"]
    if given.maybe("rdma.port.link_layer") == "InfiniBand" or all(gid["netdev"].startswith("ib") for gid in gids):
        return skip("InfiniBand ports have no RoCE GIDs")
    try:
        index = number(env["NCCL_IB_GID_INDEX"])
    except ValueError:
        return warn(f"NCCL_IB_GID_INDEX is no number: {env['NCCL_IB_GID_INDEX'][:20]!r}")
    if index < 0:
        return skip("NCCL_IB_GID_INDEX is negative: NCCL picks the GID itself")
    good = [gid["index"] for gid in gids if gid["version"] == "v2" and not gid["gid"].startswith("fe80")]
    advice = f"the RoCE v2 GID is index {', '.join(map(str, good))}" if good else "no routable RoCE v2 GID is listed"
    more: dict[str, Any] = {"observed": index, "expected": good}
    entry = next((gid for gid in gids if gid["index"] == index), None)
    if entry is None:
        return warn(f"GID index {index} does not exist on {given.subject.id}; {advice}", **more)
    if entry["version"] != "v2":
        return warn(f"GID index {index} is RoCE {entry['version']}, which is not routed; {advice}", **more)
    if entry["gid"].startswith("fe80"):
        return warn(f"GID index {index} is link-local and not routed; {advice}", **more)
    return ok(f"GID index {index} is RoCE v2", **more)


def _used(port: str, chosen: str) -> bool:
    """Tell whether NCCL_IB_HCA takes this port: ``mlx5``, ``=mlx5_0,mlx5_1:1``, ``^mlx5_3``."""
    device, _, one = port.rpartition("/")
    exclude = chosen.startswith("^")
    exact = chosen.lstrip("^").startswith("=")
    names = [name for name in chosen.lstrip("^=").split(",") if name]
    hit = any(
        (device == bare if exact else device.startswith(bare)) and wanted in ("", one)
        for bare, _, wanted in (name.partition(":") for name in names)
    )
    return (hit != exclude) if names else True
