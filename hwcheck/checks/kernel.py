"""Faults of the kernel itself, of memory and of CPUs, as the kernel log reports them."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.kernel_events import EVENTS, USES, clean, events, tell
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
    words = {"kernel.panic": "kernel panic", "kernel.oops": "kernel oops", "kernel.hard_lockup": "hard lockup of CPU"}
    found = events(given, *words)
    for record in found:
        yield tell(given, record, Status.FAIL, words[record["kind"]])
    if not found:
        yield from clean(given, "panic, oops or hard lockup")


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
    words = {
        "kernel.soft_lockup": "soft lockup of CPU",
        "kernel.hung_task": "a task was blocked for minutes",
        "kernel.rcu_stall": "RCU stall",
    }
    found = events(given, *words)
    for record in found:
        yield tell(given, record, Status.WARN, words[record["kind"]])
    if not found:
        yield from clean(given, "stalled CPU or task")


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
    words = {
        "kernel.oom": "out of memory, a process was killed",
        "kernel.oom_cgroup": "a job was killed at its memory limit",
    }
    found = events(given, *words)
    for record in found:
        urgency = Urgency.MAINTENANCE if record["kind"] == "kernel.oom" else Urgency.NOTE
        yield tell(given, record, Status.WARN, words[record["kind"]], urgency=urgency)
    if not found:
        yield from clean(given, "process killed for want of memory")


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
    fatal = {"mce.uncorrected": "uncorrected machine check of CPU", "ghes.fatal": "uncorrected platform error"}
    mild = {
        "mce.corrected": "corrected machine check of CPU",
        "mce.logged": "machine checks were logged",
        "ghes.corrected": "corrected platform error",
    }
    found = events(given, *fatal, *mild)
    for record in found:
        bad = record["kind"] in fatal
        what = fatal[record["kind"]] if bad else mild[record["kind"]]
        urgency = Urgency.NOW if bad else Urgency.MAINTENANCE
        yield tell(given, record, Status.FAIL if bad else Status.WARN, what, urgency=urgency)
    if not found:
        yield from clean(given, "machine check")


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
    words = {
        "edac.uncorrected": (Status.FAIL, Urgency.NOW, "uncorrected memory error"),
        "memory.poison": (Status.FAIL, Urgency.NOW, "a page with an uncorrected memory error was taken out of use"),
        "edac.corrected": (Status.WARN, Urgency.MAINTENANCE, "corrected memory error"),
    }
    for record in events(given, *words):
        status, urgency, what = words[record["kind"]]
        yield tell(given, record, status, what, urgency=urgency)


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
    for record in events(given, "cpu.throttled"):
        yield tell(given, record, Status.WARN, "throttled for heat: CPU")


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
    for record in events(given, "peermem.invalid_context"):
        what = "nvidia-peermem freed mappings of a process that was gone (invalid context): harmless noise, not judged"
        yield tell(given, record, Status.SKIP, what)


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
