"""What a dry run prints of differences stays readable on a node with hundreds of CPUs."""

from __future__ import annotations

from hwcheck.cli.differences import folded
from hwcheck.writers.differences import difference as difference_of


def difference(target: str, before: str, after: str) -> str:
    """Return what a node says of one change."""
    return difference_of({"target": target, "before": before.rstrip("\n"), "after": after.rstrip("\n")})


def test_places_that_change_alike_are_one_line() -> None:
    """Many CPUs or bridges that get one value are told once, with their number."""
    cpus = [difference(f"/sys/cpu{number}/governor", "powersave\n", "performance\n") for number in range(128)]
    bridges = [difference(f"0000:{bus}:00.0 acs_redirect", "28\n", "0\n") for bus in ("17", "aa", "da")]
    assert folded([*cpus, *bridges]) == (
        "/sys/cpu0/governor and 127 more: powersave -> performance\n0000:17:00.0 acs_redirect and 2 more: 28 -> 0\n"
    )


def test_other_differences_stay_whole() -> None:
    """A file, a place that stands alone, and one that gets another value are shown as they are."""
    file = difference("/etc/sysctl.d/90-hwcheck.conf", "", "# ours\nkernel.numa_balancing = 0\n")
    alone = difference("/proc/sys/kernel/numa_balancing", "1\n", "0\n")
    others = difference("/sys/cpu0/governor", "a\n", "b\n") + difference("/sys/cpu1/governor", "a\n", "c\n")
    assert folded([file, alone, others]) == file + alone + others
