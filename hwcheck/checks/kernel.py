"""Faults of the kernel itself, of memory and of CPUs, as the kernel log reports them."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.kernel_events import EVENTS, USES, Words, tell_all
from hwcheck.checks.relation import Answer, Given, relation
from hwcheck.findings import Remedy, Status, Urgency

_CRASHED = Remedy(
    "act",
    "Drain and reboot the node; keep the vmcore or the pstore records. If it returns with another kernel, "
    "suspect CPU or memory.",
    disturbs="node",
)
_STUCK = Remedy(
    "act",
    "Look in front of these lines for the cause (an Xid, a storage or network time-out, lack of memory). "
    "Drain and reboot if tasks stay blocked.",
    disturbs="node",
)
_MEMORY = Remedy("act", "Limit the memory of the job, or give it a node with more.", disturbs="nothing")
_DIMM = Remedy(
    "hands",
    "Drain; run the vendor's memory test, replace the DIMM that the line or the BMC's event log names.",
    disturbs="node",
)
_CPU = Remedy(
    "hands",
    "Drain; read the BMC's event log and rasdaemon (ras-mc-ctl --errors); replace the part it names.",
    disturbs="node",
)
_COOLING = Remedy("hands", "Check fans, inlet temperature and heat sinks of the node.", disturbs="nothing")


@relation("kernel.crash", needs=(EVENTS,), uses=USES, urgency=Urgency.NOW, remedy=_CRASHED)
def kernel_did_not_crash(given: Given) -> Iterator[Answer]:
    """
    The kernel neither panicked nor oopsed, and no CPU locked up hard.

    What it checks: lines "Kernel panic", "Oops", "BUG: unable to handle", "general protection fault", "hard LOCKUP".

    Why it matters: after an oops the kernel runs on with locks held and data lost; after a panic it does not run on.

    How to fix: reboot, keep the crash dump, and look for the cause in hardware when it returns.

    Applies to: any Linux node; a pass needs a log that covers a boot.

    Source: Linux kernel, Documentation/admin-guide/bug-hunting and lockup-watchdogs.
    """
    words: dict[str, Words] = {
        "kernel.panic": (Status.FAIL, None, "kernel panic"),
        "kernel.oops": (Status.FAIL, None, "kernel oops"),
        "kernel.hard_lockup": (Status.FAIL, None, "hard lockup of CPU"),
    }
    yield from tell_all(given, words, absent="panic, oops or hard lockup")


@relation("kernel.stalls", needs=(EVENTS,), uses=USES, urgency=Urgency.MAINTENANCE, remedy=_STUCK)
def kernel_does_not_stall(given: Given) -> Iterator[Answer]:
    """
    No CPU and no task was stuck.

    What it checks: soft lockups, RCU stalls and tasks blocked for minutes.

    Why it matters: they show that something holds the kernel up. Mostly it is a consequence: a GPU whose firmware does
    not answer, a dead file server, no memory left.

    How to fix: find what the blocked tasks wait for; the lines before tell.

    Applies to: any Linux node; a pass needs a log that covers a boot.

    Source: Linux kernel, Documentation/admin-guide/lockup-watchdogs and RCU/stallwarn.
    """
    words: dict[str, Words] = {
        "kernel.soft_lockup": (Status.WARN, None, "soft lockup of CPU"),
        "kernel.hung_task": (Status.WARN, None, "a task was blocked for minutes"),
        "kernel.rcu_stall": (Status.WARN, None, "RCU stall"),
    }
    yield from tell_all(given, words, absent="stalled CPU or task")


@relation("kernel.oom", needs=(EVENTS,), uses=USES, urgency=Urgency.NOTE, remedy=_MEMORY)
def memory_did_not_run_out(given: Given) -> Iterator[Answer]:
    """
    The kernel killed no process for want of memory.

    What it checks: lines of the out-of-memory killer, of the whole node and of one control group.

    Why it matters: a job died, or a service of the node with it. The hardware is not at fault.

    How to fix: limit or move the job; check that no service of the node was killed.

    Applies to: any Linux node; a pass needs a log that covers a boot.

    Source: Linux kernel, mm/oom_kill.c.
    """
    words: dict[str, Words] = {
        "kernel.oom": (Status.WARN, Urgency.MAINTENANCE, "out of memory, a process was killed"),
        "kernel.oom_cgroup": (Status.WARN, Urgency.NOTE, "a job was killed at its memory limit"),
    }
    yield from tell_all(given, words, absent="process killed for want of memory")


@relation("kernel.machine_check", needs=(EVENTS,), uses=USES, urgency=Urgency.NOW, remedy=_CPU)
def no_machine_check(given: Given) -> Iterator[Answer]:
    """
    The CPUs report no machine check.

    What it checks: machine checks ("mce: [Hardware Error]") and platform error records ("[Hardware Error]: event
    severity"). Uncorrected ones fail; corrected ones are a warning.

    Why it matters: an uncorrected error is lost data in a CPU, in memory or on a bus. Corrected ones announce it.

    How to fix: read the BMC's event log, which names the part.

    Applies to: any Linux node; a pass needs a log that covers a boot.

    Source: Intel SDM volume 3, machine-check architecture (status bit 61); UEFI specification, appendix N.
    """
    words: dict[str, Words] = {
        "mce.uncorrected": (Status.FAIL, Urgency.NOW, "uncorrected machine check of CPU"),
        "ghes.fatal": (Status.FAIL, Urgency.NOW, "uncorrected platform error"),
        "mce.corrected": (Status.WARN, Urgency.MAINTENANCE, "corrected machine check of CPU"),
        "mce.logged": (Status.WARN, Urgency.MAINTENANCE, "machine checks were logged"),
        "ghes.corrected": (Status.WARN, Urgency.MAINTENANCE, "corrected platform error"),
    }
    yield from tell_all(given, words, absent="machine check")


@relation("memory.log_errors", needs=(EVENTS,), urgency=Urgency.NOW, remedy=_DIMM)
def memory_reports_no_error(given: Given) -> Iterator[Answer]:
    """
    The memory controllers report no error.

    What it checks: EDAC lines (UE uncorrected, CE corrected) and pages that the kernel took out of use.

    Why it matters: an uncorrected error kills the process that meets it, or the node. A DIMM with corrected errors
    often becomes one with uncorrected ones.

    How to fix: replace the DIMM that the line names.

    Applies to: nodes whose kernel runs an EDAC driver, or whose firmware hands memory errors to the kernel.

    Source: Linux kernel, Documentation/admin-guide/RAS.
    """
    words: dict[str, Words] = {
        "edac.uncorrected": (Status.FAIL, Urgency.NOW, "uncorrected memory error"),
        "memory.poison": (Status.FAIL, Urgency.NOW, "a page with an uncorrected memory error was taken out of use"),
        "edac.corrected": (Status.WARN, Urgency.MAINTENANCE, "corrected memory error"),
    }
    yield from tell_all(given, words)


@relation("cpu.log_throttled", needs=(EVENTS,), urgency=Urgency.MAINTENANCE, remedy=_COOLING)
def cpus_are_not_throttled(given: Given) -> Iterator[Answer]:
    """
    No CPU slowed down for heat.

    What it checks: lines "temperature above threshold, cpu clock throttled".

    Why it matters: a throttled CPU slows the launch of kernels and the network stack, and the node with it.

    How to fix: cooling of the node.

    Applies to: x86 nodes.

    Source: Linux kernel, arch/x86/kernel/cpu/mce/therm_throt.c.
    """
    yield from tell_all(given, {"cpu.throttled": (Status.WARN, None, "throttled for heat: CPU")})


@relation("kernel.log_peermem", needs=(EVENTS,))
def peermem_noise(given: Given) -> Iterator[Answer]:
    """
    Messages of nvidia-peermem at the end of a process are noise.

    What it checks: lines "nvidia-peermem ... invalid context"; they are never judged as an error.

    Why it matters: they look like one and are often taken for the cause of something else. The driver frees the
    mappings of a process that is already gone.

    How to fix: nothing to fix. Whether GPUDirect RDMA works is shown by a measurement, not by these lines.

    Applies to: nodes with the nvidia-peermem module.

    Source: nvidia-peermem source, free callback; kernel logs of healthy H100 nodes.
    """
    what = "nvidia-peermem freed mappings of a process that was gone (invalid context): harmless noise, not judged"
    yield from tell_all(given, {"peermem.invalid_context": (Status.SKIP, None, what)})


@relation("evidence.log_groups", needs=("kernel.log.window",), urgency=Urgency.NOTE)
def log_was_kept_whole(given: Given) -> Iterator[Answer]:
    """
    No error of the log was left out for want of room.

    What it checks: that all different error lines of the kernel log found a place; a device keeps 64 kinds, the log 256
    devices.

    Why it matters: a log with more different errors than that is flooded or forged, and the findings are not all of
    them.

    How to fix: read the log itself around the lines named in the findings.

    Applies to: any kernel log.

    Source: hwcheck's own bound on memory.
    """
    dropped = given["kernel.log.window"]["truncated"]
    if dropped:
        text = f"{dropped} error lines of the kernel log fit no group that is kept: the findings are not all of them"
        yield Answer(Status.UNKNOWN, text, observed=dropped, expected=0)
