"""Kernel parameters at boot: who sets them, who wins, and what is never read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, relation, skip, warn
from hwcheck.findings import Remedy, Urgency, Write

_DEFAULTS: dict[str, tuple[str, Any]] = {
    "kernel.numa_balancing": ("sysctl.numa_balancing", 1),
    "vm.max_map_count": ("sysctl.max_map_count", 65530),
}
"""Parameters that a profile judges, and the kernel default that a reboot brings back unless a file says otherwise."""


_KEEP = Remedy(
    "write",
    "Write the parameter into a drop-in under /etc/sysctl.d with a name that sorts late (90-...).",
    role="rdma_sysctl",
    disturbs="nothing",
    worked_out="sysctl of the parameter = its present value, unless another check wants another one",
)


@relation(
    "sysctl.persistence",
    needs=("sysctl.values", "sysctl.boot_values"),
    uses=("kernel.arg.numa_balancing", "cpu.tuned_profile"),
    urgency=Urgency.NOTE,
    remedy=_KEEP,
)
def parameters_survive(given: Given) -> Iterator[Answer]:
    """
    Kernel parameters that were changed are set at boot too.

    What it checks: parameters that a profile judges and that differ from the kernel's default, against all files of
    sysctl.d. /etc/sysctl.conf counts only where a drop-in links to it.

    Why it matters: a value written by hand is gone after a reboot.

    How to fix: a drop-in of one's own.

    Applies to: nodes where no TuneD profile is active, which sets parameters at boot as well.

    Source: sysctl.d(5); kernel defaults of Linux 5.4 to 6.18.
    """
    values, boot = given["sysctl.values"], given["sysctl.boot_values"]
    if given.maybe("cpu.tuned_profile"):
        yield skip("a TuneD profile is active; it sets parameters at boot")
        return
    by_argument = given.maybe("kernel.arg.numa_balancing") not in (None, "default")
    for key, (_, default) in _DEFAULTS.items():
        if key not in values or (key == "kernel.numa_balancing" and by_argument):
            continue
        if values[key] == str(default) or key in boot:
            continue
        if key == "kernel.numa_balancing" and values[key] == "0":
            yield skip(
                f"{key} is 0 and no file sets it: a kernel built so, or with one NUMA node, has it off by itself"
            )
            continue
        remedy = replace(_KEEP, writes=(Write("sysctl", key, values[key], keeps=True),))
        yield warn(f"{key} is {values[key]} now, and no file sets it at boot", observed=values[key], remedy=remedy)


@relation(
    "sysctl.overridden",
    needs=("sysctl.overridden",),
    urgency=Urgency.NOTE,
    remedy=Remedy(
        "write",
        "Keep the parameter in one file only, or give the file that should win a name that sorts after the other.",
        role="rdma_sysctl",
        disturbs="nothing",
        by_hand="The files are not hwcheck's; a value that is wrong in the end is written by its own check.",
    ),
)
def no_drop_in_fights(given: Given) -> Answer | None:
    """
    Drop-ins of sysctl.d do not contradict each other.

    What it checks: parameters that two files set to different values; files count by name, whatever their folder.

    Why it matters: the file that sorts last wins; a tuning in 60-... is undone by a 99-... that nobody thinks of.

    How to fix: one file a parameter.

    Applies to: every node. A distribution's file that a later one overrides is how it is meant to work, so this is
    said and not judged; a value that is wrong in the end fails its own check.

    Source: sysctl.d(5).
    """
    records = given["sysctl.overridden"]
    if not records:
        return None
    words = [
        f"{one['key']}: {one['value']} of {one['file']} wins over {one['lost_value']} of {one['lost_file']}"
        for one in records
    ]
    return skip("; ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else ""), observed=len(words))


@relation(
    "sysctl.unread",
    needs=("sysctl.unread",),
    urgency=Urgency.NOTE,
    remedy=Remedy(
        "write",
        "Move the parameters into a file under /etc/sysctl.d: systemd does not read /etc/sysctl.conf unless a drop-in "
        "links to it.",
        role="rdma_sysctl",
        disturbs="nothing",
        by_hand="Whether the old file is still meant, only its owner knows.",
    ),
)
def everything_is_read(given: Given) -> Answer | None:
    """
    No parameter stands only in a file that is not read at boot.

    What it checks: parameters in /etc/sysctl.conf that no drop-in sets, and that no drop-in links to that file.

    Why it matters: systemd-sysctl reads sysctl.d alone. Debian, Ubuntu and RHEL linked the file for years and newer
    releases do not; what an older playbook writes there is lost.

    How to fix: a drop-in.

    Applies to: nodes started by systemd.

    Source: sysctl.d(5); systemd-sysctl.
    """
    records = given["sysctl.unread"]
    if not records:
        return None
    words = ", ".join(f"{one['key']} = {one['value']}" for one in records[:4])
    return warn(f"not read at boot, only in /etc/sysctl.conf: {words}", observed=len(records), expected=0)
