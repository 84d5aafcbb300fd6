"""The fleet checks: domains that must agree, adapters and clocks that should, and one cause behind many faults."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from hwcheck.findings import Remedy, Status, Urgency
from hwcheck.fleet.fold import FleetAnswer, Row, fold

_ZERO_CLUSTER = "00000000-0000-0000-0000-000000000000"
_CLOCK_SECONDS = 0.010
_SHARED_NODES = 3
_SHARED_RATIO = 0.3
"""The same check failing on this many nodes and this share of them is told as one cause. Our judgement, no source."""


def _by_domain(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Group nodes by NVLink domain: the cluster UUID that all their GPUs report. A single board has UUID zero."""
    domains: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        cluster = row.one("gpu.fabric.cluster")
        if cluster and cluster != _ZERO_CLUSTER:
            domains[cluster].append(row)
    return ((cluster, members) for cluster, members in domains.items() if len(members) > 1)


def _names(rows: Iterable[Row], limit: int = 8) -> str:
    nodes = [row.node or "unnamed node" for row in rows]
    return ", ".join(nodes[:limit]) + (f" and {len(nodes) - limit} more" if len(nodes) > limit else "")


_ONE_SET = Remedy(
    "act",
    "Bring all nodes of the NVLink domain to one driver, fabric and IMEX version in one drained batch.",
    disturbs="node",
)
_DOMAIN = Remedy("hands", "Ask the operator of the NVLink domain to assign the GPUs to one partition; then reset them.")
_ONE_FIRMWARE = Remedy(
    "act",
    "Pin the wanted firmware per PSID in the site's layer; bring the odd adapters to it, drained, one per node first.",
    disturbs="network",
)
_CLOCKS = Remedy(
    "write", "Give these nodes the time servers of the others, and see chronyc tracking there.", "time_sync"
)
_COMMON = Remedy(
    "hands", "Look for what these nodes share (switch, rack power, image, subnet manager) before you touch one."
)


@fold(
    "driver.domain_set",
    "driver.version",
    "driver.imex.version",
    "gpu.fabric.cluster",
    urgency=Urgency.NOW,
    remedy=_ONE_SET,
)
def one_driver_set_per_domain(rows: list[Row]) -> Iterator[FleetAnswer]:
    """
    All nodes of an NVLink domain run one driver set.

    What it checks: driver and IMEX version of nodes whose GPUs report the same cluster UUID.

    Why it matters: IMEX refuses peers of another version, and memory export across the rack fails. A rack-scale domain
    can only be upgraded as a whole.

    How to fix: one version on all nodes of the domain, in one drained batch.

    Applies to: two or more nodes of one NVLink domain (NVL72).

    Source: NVIDIA IMEX service guide (version mismatch), NVIDIA/DCGM issue 313.
    """
    for cluster, members in _by_domain(rows):
        for name, what in (("driver.version", "driver"), ("driver.imex.version", "IMEX")):
            versions = Counter(row.one(name) for row in members if row.one(name) is not None)
            if len(versions) > 1:
                common = versions.most_common(1)[0][0]
                odd = [row for row in members if row.one(name) not in (None, common)]
                text = f"NVLink domain {cluster}: {len(versions)} {what} versions; {_names(odd)} not on {common}"
                yield FleetAnswer(Status.FAIL, text, dict(versions))
            elif versions and sum(versions.values()) == len(members):
                text = f"NVLink domain {cluster}: {what} {next(iter(versions))} on all {len(members)} nodes"
                yield FleetAnswer(Status.PASS, text)


@fold("fabric.domain_clique", "gpu.fabric.cluster", "gpu.fabric.clique", urgency=Urgency.NOW, remedy=_DOMAIN)
def one_clique_per_domain(rows: list[Row]) -> Iterator[FleetAnswer]:
    """
    All nodes of an NVLink domain are in one clique.

    What it checks: the clique id of all GPUs that report the same cluster UUID.

    Why it matters: GPUs of two cliques do not reach each other over NVLink; jobs across them take the slow path.

    How to fix: the operator of the domain assigns partitions; then reset the GPUs.

    Applies to: two or more nodes of one NVLink domain. Partitions made on purpose are the site's decision: waive them.

    Source: nvml.h, nvmlGpuFabricInfoV_t.
    """
    for cluster, members in _by_domain(rows):
        cliques = Counter(value for row in members for value in row.values.get("gpu.fabric.clique", {}).values())
        if len(cliques) > 1:
            yield FleetAnswer(Status.WARN, f"NVLink domain {cluster}: {len(cliques)} cliques", dict(cliques))
        elif cliques:
            text = f"NVLink domain {cluster}: one clique on {len(members)} nodes"
            yield FleetAnswer(Status.PASS, text)


@fold("firmware.nic_fleet", "rdma.device.fw", "rdma.device.psid", urgency=Urgency.MAINTENANCE, remedy=_ONE_FIRMWARE)
def one_firmware_per_psid(rows: list[Row]) -> Iterator[FleetAnswer]:
    """
    Adapters of one kind run one firmware across the fleet.

    What it checks: firmware versions by PSID over all nodes. What most run is no proof of what is right, so this only
    warns; the site's layer says which versions are allowed.

    Why it matters: mixed firmware gives mixed behaviour of congestion control and link training, found one node a time.

    How to fix: pin a version per PSID, upgrade the odd ones in waves.

    Applies to: three or more adapters of one PSID on at least two nodes.

    Source: NVIDIA firmware release notes; one version per fleet and PSID is this tool's demand.
    """
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    where: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        psids, firmware = row.values.get("rdma.device.psid", {}), row.values.get("rdma.device.fw", {})
        for device, psid in psids.items():
            if device in firmware:
                versions[psid][firmware[device]] += 1
                if row not in where[psid, firmware[device]]:
                    where[psid, firmware[device]].append(row)
    for psid, seen in sorted(versions.items()):
        common, count = seen.most_common(1)[0]
        if len(seen) == 1 and count > 2:  # fewer say nothing of a fleet
            yield FleetAnswer(Status.PASS, f"{psid}: firmware {common} on all {count} adapters")
        elif len(seen) > 1:
            odd = [f"{version} on {_names(where[psid, version], 4)}" for version in seen if version != common]
            yield FleetAnswer(Status.WARN, f"{psid}: most run {common}, but {'; '.join(odd)}", dict(seen))


@fold("time.fleet_skew", "time.skew", "time.skew.slack", urgency=Urgency.MAINTENANCE, remedy=_CLOCKS)
def clocks_agree(rows: list[Row]) -> Iterator[FleetAnswer]:
    """
    The clocks of the fleet agree.

    What it checks: each node's clock against the median of all, by more than the round trip could have added.

    Why it matters: logs and traces of ranks cannot be put in order, and credentials of munge or Kerberos expire early.
    RDMA itself does not care.

    How to fix: one set of time servers for all, and a daemon that follows them.

    Applies to: three or more nodes that were read over a connection; their clocks are compared with this machine's,
    whose own error is the same for all and drops out.

    Source: tuning practice: 10 ms is where ordering of events between nodes is lost; munge's default is 300 s.
    """
    skews = {row.node: (row.one("time.skew"), row.one("time.skew.slack") or 0.0, row) for row in rows}
    known = {node: entry for node, entry in skews.items() if entry[0] is not None}
    if len(known) < _SHARED_NODES:
        return
    middle = statistics.median(entry[0] for entry in known.values())
    odd = [entry for entry in known.values() if abs(entry[0] - middle) - entry[1] > _CLOCK_SECONDS]
    if odd:
        worst = max(odd, key=lambda entry: abs(entry[0] - middle))
        text = f"{len(odd)} of {len(known)} clocks are off, most of all {worst[2].node}: {worst[0] - middle:+.3f} s"
        yield FleetAnswer(Status.WARN, f"{text} ({_names(entry[2] for entry in odd)})", round(worst[0] - middle, 3))
    else:
        yield FleetAnswer(
            Status.PASS, f"{len(known)} clocks agree within {_CLOCK_SECONDS * 1000:.0f} ms and the round trip"
        )


@fold("evidence.shared_cause", urgency=Urgency.NOW, remedy=_COMMON)
def same_check_on_many_nodes(rows: list[Row]) -> Iterator[FleetAnswer]:
    """
    No check fails on many nodes at once.

    What it checks: how many nodes fail the same check.

    Why it matters: one fault on a third of the nodes is one cause (a switch, a power feed, an image, a subnet manager),
    not forty broken nodes. Draining or repairing them one by one hides it.

    How to fix: find what the nodes share first.

    Applies to: at least three nodes and three in ten of all that were judged.

    Source: practice; the bounds are this tool's judgement.
    """
    counts = Counter(check for row in rows for check in row.failing)
    for check, count in counts.most_common():
        if count >= _SHARED_NODES and count >= _SHARED_RATIO * len(rows):
            nodes = _names(row for row in rows if check in row.failing)
            yield FleetAnswer(Status.WARN, f"{check} fails on {count} of {len(rows)} nodes at once: {nodes}", count)
