"""What the running kernel says of itself: taint, crashes, processes that hang."""

from __future__ import annotations

from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_BAD_TAINTS = {
    4: "a machine check was reported",
    5: "a page of memory was found corrupt",
    7: "the kernel has oopsed",
    14: "a soft lockup has happened",
}
"""Bits that tell of an event; the others (proprietary, out-of-tree or unsigned module, warning) are usual here."""
_DRIVER = ("nvidia", "nv_", "os_acquire", "rm_", "uvm_", "_nv0", "nvidia_")
_SHOWN = 3


@relation(
    "kernel.taint",
    needs=("kernel.taint",),
    remedy=Remedy(
        "act",
        "Read the kernel log of this boot for the event (oops, machine check, lockup), then drain and reboot the node.",
        disturbs="node",
    ),
)
def kernel_is_sound(given: Given) -> Answer:
    """
    Nothing has happened in this boot that taints the kernel by an event.

    What it checks: the bits of /proc/sys/kernel/tainted for machine check, bad page, oops and soft lockup.

    Why it matters: after an oops a lock may be held for ever, and a driver works on broken state; the ring buffer of
    the log may have lost the line, the bit stays.

    How to fix: find the event, then reboot.

    Applies to: every node. Bits for the proprietary, out-of-tree or unsigned NVIDIA module are no fault.

    Source: Linux admin guide, tainted kernels.
    """
    taint = given["kernel.taint"]
    events = [words for bit, words in _BAD_TAINTS.items() if taint >> bit & 1]
    if events:
        return warn(f"since boot {'; '.join(events)} (taint {taint})", observed=taint)
    return ok(f"no event taints the kernel (taint {taint})", observed=taint)


@relation(
    "kernel.crashed",
    needs=("kernel.crashes",),
    uses=("kernel.uptime",),
    urgency=Urgency.JOB_END,
    remedy=Remedy(
        "act",
        "Read the dump (dmesg in the kdump folder, or the pstore records) for why the kernel crashed before the node "
        "takes work again.",
        disturbs="nothing",
    ),
)
def did_not_crash(given: Given) -> Answer:
    """
    The node did not come up from a kernel crash.

    What it checks: dumps of kdump and records of pstore, by their time: one that was left shortly before this boot is
    the crash that led to it.

    Why it matters: a node that crashed and came back looks healthy, and crashes again.

    How to fix: the dump names the reason.

    Applies to: nodes with kdump or pstore. Older traces are listed only.

    Source: kdump; systemd-pstore; Linux pstore documentation.
    """
    crashes, uptime = given["kernel.crashes"], given.maybe("kernel.uptime")
    if not crashes:
        return ok("no dump and no pstore record of a crash", observed=0)
    limit = given.bound("kernel.crash_before_boot")
    fresh = [one["path"] for one in crashes if _led_here(one, uptime, limit)]
    if fresh:
        return warn(f"a kernel crash led to this boot: {', '.join(fresh[:_SHOWN])}", observed=fresh[:_SHOWN])
    return skip(f"{len(crashes)} older traces of crashes, the last is {crashes[-1]['path']}", observed=len(crashes))


def _led_here(crash: dict[str, Any], uptime: float | None, limit: float | None) -> bool:
    if crash["age"] is None or uptime is None or limit is None:
        return False
    return bool(abs(crash["age"] - uptime) <= limit)


@relation(
    "process.hung",
    needs=("process.hung",),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Drain the node and read dmesg for the Xid or the hung task; processes in state D cannot be killed, so reboot.",
        disturbs="node",
    ),
)
def nothing_hangs(given: Given) -> Answer:
    """
    No process hangs in the GPU driver.

    What it checks: processes that were in uninterruptible sleep in two looks and did not run in between: one that waits
    in a function of the NVIDIA driver, or holds a GPU.

    Why it matters: a wedged driver blocks every tool that asks it, and the GPU cannot be reset.

    How to fix: reboot; the kernel log tells what the driver waits for.

    Applies to: nodes read live. Initialising a GPU without persistence mode takes seconds too, so a process younger
    than two minutes is no proof. Processes that wait for a disk or a network file system are listed only.

    Source: Linux hung task detection (120 s); proc(5).
    """
    hung = given["process.hung"]
    if not hung:
        return ok("no process hangs", observed=0)
    driver = [one for one in hung if _in_driver(one)]
    words = ", ".join(
        f"{one['name']} ({one['pid']}) in {one['wait'].split(',')[0]}" for one in (driver or hung)[:_SHOWN]
    )
    if any((one["age"] or 0) >= 120 for one in driver):
        return fail(f"hangs in the GPU driver: {words}", observed=len(driver), expected=0)
    return skip(f"in uninterruptible sleep: {words}", observed=len(hung))


def _in_driver(process: dict[str, Any]) -> bool:
    holds = any(device.startswith("/dev/nvidia") for device in process["devices"])
    return holds or any(name.startswith(_DRIVER) for name in process["wait"].split(","))


_DAEMONS = (
    "nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvsm_core", "nvidia-powerd",
    "nvlsm", "nvidia-modprobe", "irqbalance",
)  # fmt: skip
"""Names as the kernel cuts them (15 characters)."""


@relation("process.holders", needs=("process.holders",), urgency=Urgency.NOTE)
def who_holds_the_gpus(given: Given) -> Answer:
    """
    Processes that hold the node's GPUs are listed.

    What it checks: open files under /dev/nvidia*, of all processes; the driver's own daemons do not count.

    Why it matters: a process left over from a dead job holds memory and keeps a GPU from being reset. NVML lists only
    those with a context; one that merely holds the device is seen here. Which of them should be there only the
    scheduler knows, so this is never a fault.

    How to fix: where no job runs on the node, end the process, then look at the job's epilog.

    Applies to: nodes read as root; other users' open files are hidden from everybody else.

    Source: proc(5); reset steps of the NVIDIA GPU debug guidelines.
    """
    holders = [
        one
        for one in given["process.holders"]
        if one["name"] not in _DAEMONS and any(device.startswith("/dev/nvidia") for device in one["devices"])
    ]
    if not holders:
        return ok("no process beside the driver's daemons holds a GPU", observed=0)
    words = ", ".join(f"{one['name']} ({one['pid']})" for one in holders[:_SHOWN])
    more = f" and {len(holders) - _SHOWN} more" if len(holders) > _SHOWN else ""
    return skip(f"held by {words}{more}", observed=len(holders))
