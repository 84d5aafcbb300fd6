"""PCI Express errors as the kernel log reports them (Advanced Error Reporting)."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.kernel_events import EVENTS, USES, clean, events, tell
from hwcheck.checks.relation import Answer, Given, relation
from hwcheck.findings import Remedy, Status, Urgency

_PCIE = Remedy(
    "hands",
    "Drain; reseat the device, its riser or cable, and compare LnkSta with LnkCap (lspci -vvv); replace it if "
    "the errors return.",
    disturbs="node",
)


@relation("pcie.aer_fatal", needs=(EVENTS,), uses=USES, urgency=Urgency.NOW, remedy=_PCIE)
def no_fatal_pcie_error(given: Given) -> Iterator[Answer]:
    """
    No PCI Express device reports a fatal error.

    What it checks: Advanced Error Reporting lines of severity "Uncorrected (Fatal)".

    Why it matters: the link lost its integrity; the device behind it is reset or gone.

    How to fix: seating, riser, cable; then the device.

    Applies to: any Linux node; a pass needs a log that covers a boot. Where firmware keeps error reporting to itself,
    the BMC's event log tells more.

    Source: PCI Express base specification, Advanced Error Reporting; Linux kernel, Documentation/PCI/pcieaer-howto.
    """
    yield from _aer(given, "aer.fatal", "fatal PCIe error", Status.FAIL)


@relation("pcie.aer_nonfatal", needs=(EVENTS,), uses=USES, urgency=Urgency.MAINTENANCE, remedy=_PCIE)
def no_nonfatal_pcie_error(given: Given) -> Iterator[Answer]:
    """
    No PCI Express device reports an uncorrected, non-fatal error.

    What it checks: Advanced Error Reporting lines of severity "Uncorrected (Non-Fatal)".

    Why it matters: a transaction was lost while the link stayed up. One at boot or at a driver reload is common; more
    are not.

    How to fix: find which device sent them; seating and firmware.

    Applies to: any Linux node; a pass needs a log that covers a boot.

    Source: PCI Express base specification, Advanced Error Reporting; Linux kernel, Documentation/PCI/pcieaer-howto.
    """
    yield from _aer(given, "aer.nonfatal", "uncorrected PCIe error", Status.WARN)


def _aer(given: Given, kind: str, what: str, status: Status) -> Iterator[Answer]:
    found = events(given, kind)
    for record in found:
        yield tell(given, record, status, what, subject="pci")
    if not found:
        yield from clean(given, what)


@relation("pcie.aer_corrected", needs=(EVENTS,), uses=USES, urgency=Urgency.MAINTENANCE, remedy=_PCIE)
def few_corrected_pcie_errors(given: Given) -> Iterator[Answer]:
    """
    PCI Express devices report few corrected errors.

    What it checks: the number of Advanced Error Reporting lines of severity "Corrected" of one device.

    Why it matters: each one was repaired by a repeat, so a few are normal. A storm of them costs bandwidth and
    announces a link that will drop lanes.

    How to fix: seating, riser, cable.

    Applies to: any Linux node; the kernel prints only some of the errors, so the count is a lower bound.

    Source: PCI Express base specification, Advanced Error Reporting; bound pcie.aer_corrected_lines.
    """
    limit = given.bound("pcie.aer_corrected_lines")
    found = events(given, "aer.corrected")
    for record in found:
        storm = limit is not None and record["count"] > limit
        what = "storm of corrected PCIe errors" if storm else "corrected PCIe errors, too few to judge"
        yield tell(given, record, Status.WARN if storm else Status.SKIP, what, subject="pci")
    if not found:
        yield from clean(given, "corrected PCIe error")
