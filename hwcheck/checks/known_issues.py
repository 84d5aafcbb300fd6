"""The driver's version: new enough for the board, and in none of the known issues (hwcheck/knowledge)."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.relation import Answer, Given, Some, ok, relation, skip, unknown, warn
from hwcheck.findings import Remedy, Urgency
from hwcheck.knowledge.known_issues import SECONDS_A_DAY, KnownIssue, known_issues, older


@relation(
    "driver.minimum",
    needs=("driver.version",),
    urgency=Urgency.MAINTENANCE,
    remedy=Remedy(
        "act",
        "Install a driver branch that supports the board, with fabric manager or IMEX of exactly the same version, on "
        "the drained node, and reboot.",
        disturbs="node",
    ),
)
def driver_knows_the_board(given: Given) -> Answer:
    """
    The driver is not older than the board.

    What it checks: the driver version against the first production driver that lists the board by name.

    Why it matters: an older driver may bring the GPU up as "NVIDIA Graphics Device", with wrong limits and without the
    board's fixes. Guides name versions that never supported the board: no driver of branch 535 knows H200.

    How to fix: update the driver set.

    Applies to: platforms whose first driver is known.

    Source: the bound driver.minimum of the platform's profile.
    """
    version, first = given["driver.version"], given.bound("driver.minimum")
    if first is None:
        return skip(f"driver {version}; the first driver for this platform is not known", observed=version)
    old = older(version, first)
    if old is None:
        return unknown(
            f"driver version {version[:40]} cannot be compared with {first}", observed=version, expected=first
        )
    if old:
        text = f"driver {version} is older than {first}, the first one for this board"
        return warn(text, observed=version, expected=f"{first} or later")
    return ok(f"driver {version} is not older than {first}", observed=version, expected=f"{first} or later")


@relation(
    "driver.known_issues",
    needs=("driver.version", Some("gpu.name")),
    uses=("kernel.uptime",),
)
def not_in_a_known_issue(given: Given) -> Iterator[Answer]:
    """
    Driver, GPU and uptime are in no known issue.

    What it checks: driver version and GPU models against a dated list of public reports; where an issue needs a long
    uptime, the time since boot too. Entries that need a VBIOS version are driver.known_vbios_issues.

    Why it matters: some faults come with a combination and not with a broken part; the node looks healthy until it
    hangs.

    How to fix: what the entry says, mostly a reboot in time or an update.

    Applies to: nodes whose driver and GPU model are in the evidence. An issue whose uptime is not known is skipped and
    named.

    Source: each entry names its own.
    """
    driver, names = given["driver.version"], set(given["gpu.name"].values())
    uptime = given.maybe("kernel.uptime")
    met = [issue for issue in known_issues() if issue.vbios_before is None and _concerned(issue, driver, names)]
    for issue in met:
        yield _judge(issue, driver, uptime)
    if not met:
        yield ok(f"driver {driver} with {', '.join(sorted(names))} is in no known issue of the list", observed=driver)


@relation(
    "driver.known_vbios_issues",
    needs=("driver.version", "gpu.name", "gpu.vbios"),
)
def vbios_not_in_a_known_issue(given: Given) -> Iterator[Answer]:
    """
    The GPU's firmware is in no known issue with this driver.

    What it checks: VBIOS version, GPU model and driver version against the dated list of public reports.

    Why it matters: as for driver.known_issues.

    How to fix: update the GPU firmware at the next maintenance.

    Applies to: GPUs whose VBIOS version is in the evidence and for which the list has an entry.

    Source: each entry names its own.
    """
    driver, name, vbios = given["driver.version"], given["gpu.name"], given["gpu.vbios"]
    for issue in known_issues():
        if issue.vbios_before is not None and issue.concerns(driver, name) and issue.covers_vbios(vbios):
            yield _warning(issue, f"VBIOS {vbios}, driver {driver}", vbios)


def _concerned(issue: KnownIssue, driver: str, names: set[str]) -> bool:
    return any(issue.concerns(driver, name) for name in names)


def _judge(issue: KnownIssue, driver: str, uptime: float | None) -> Answer:
    if issue.uptime_days is None:
        return _warning(issue, f"driver {driver}", driver)
    if uptime is None:
        return skip(f"known issue {issue.id}: {issue.what}; the uptime is not in the evidence", observed=driver)
    days = uptime / SECONDS_A_DAY
    if days < issue.uptime_days:
        text = (
            f"known issue {issue.id} counts from {issue.uptime_days:g} days of uptime; this node is up {days:.1f} days"
        )
        return ok(text, observed=round(days, 1), expected=f"below {issue.uptime_days:g} days")
    return _warning(issue, f"driver {driver}, up {days:.1f} days", round(days, 1))


def _warning(issue: KnownIssue, state: str, observed: str | float) -> Answer:
    text = f"known issue {issue.id}: {issue.what} ({state}; {issue.source}, {issue.since})"
    return warn(
        text, observed=observed, urgency=Urgency(issue.urgency), remedy=Remedy("act", issue.remedy, disturbs="node")
    )
