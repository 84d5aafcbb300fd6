"""What Fabric Manager's log says of its own work; NVSwitch errors in it are judged in hwcheck.checks.sxid."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.log_lines import origin_of, times_of
from hwcheck.checks.relation import Answer, Given, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_REGISTER = Remedy(
    "act",
    "Drain; compare nvidia-smi -q -d FABRIC of all GPUs, reset the one whose state is not Completed, restart "
    "Fabric Manager.",
    disturbs="board",
)
_READ_ON = Remedy(
    "act", "Read the log from this line on; restart Fabric Manager once the cause is gone.", disturbs="board"
)


@relation("fabric.manager_started", needs=("fabricmanager.log.start",), urgency=Urgency.NOW, remedy=_REGISTER)
def manager_registered_all_gpus(given: Given) -> Answer:
    """
    Fabric Manager configured the NVSwitches, and all GPUs registered.

    What it checks: the lines of its last start: "Successfully configured all the available NVSwitches", and
    the GPUs that were added since, against the number in its topology file.

    Why it matters: a GPU that is not registered has no peer-to-peer traffic, and CUDA refuses to start on it.

    How to fix: look at the GPU that is missing: its fabric state, its NVLinks, its Xids.

    Applies to: HGX boards on which Fabric Manager runs on the node; a log that ends right after the start tells
    nothing.

    Source: NVIDIA Fabric Manager user guide; logs of HGX H100 nodes (eight GPUs register within nine seconds).
    """
    start = given["fabricmanager.log.start"]
    expected = start["expected"]
    if expected is None or not start["configured"]:
        return skip(f"the log shows Fabric Manager {start['version']} starting, not how it ended")
    told = f"{start['gpus']} of {expected} GPUs"
    if start["gpus"] >= expected:
        return ok(f"Fabric Manager {start['version']} configured its NVSwitches and registered {told}")
    if not start["settled"]:
        return skip(f"Fabric Manager had registered {told} when the log ends, shortly after its start")
    return warn(f"only {told} registered with Fabric Manager", observed=start["gpus"], expected=expected)


@relation("fabric.manager_errors", needs=("fabricmanager.log.errors",), urgency=Urgency.MAINTENANCE, remedy=_READ_ON)
def manager_logs_no_error(given: Given) -> Iterator[Answer]:
    """
    Fabric Manager logs no other error.

    What it checks: lines of level ERROR and above that report no NVSwitch error code.

    Why it matters: they say which part of the set-up of the fabric failed.

    How to fix: as the line says.

    Applies to: HGX boards on which Fabric Manager runs on the node.

    Source: NVIDIA Fabric Manager user guide.
    """
    for record in given["fabricmanager.log.errors"]:
        yield warn(
            f"Fabric Manager logs an error, {times_of([record])}: {record['text'][:120]}",
            observed=record["level"],
            origin=origin_of(given, "fabricmanager.log.errors", record),
        )
