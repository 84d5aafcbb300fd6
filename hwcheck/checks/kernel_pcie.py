"""PCI Express as the kernel log reports it: errors (Advanced Error Reporting), contained links, narrow links."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.kernel_events import EVENTS, USES, Words, clean, events, tell, tell_all
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
    what = "fatal PCIe error"
    yield from tell_all(given, {"aer.fatal": (Status.FAIL, None, what)}, subject="pci", absent=what)


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
    what = "uncorrected PCIe error"
    yield from tell_all(given, {"aer.nonfatal": (Status.WARN, None, what)}, subject="pci", absent=what)


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


@relation("pcie.log_link_lost", needs=(EVENTS,), urgency=Urgency.NOW, remedy=_PCIE)
def no_link_was_lost(given: Given) -> Iterator[Answer]:
    """
    No PCI Express port cut its device off.

    What it checks: lines "DPC: containment event" (the port took the link down to contain an uncorrected error) and
    "pciehp: Slot(N): Link Down" (what sat in the slot is gone).

    Why it matters: the device behind the port is away for its driver, whatever was running on it.

    How to fix: find the device behind the port (lspci -tv); seating, riser, cable, power; then the device.

    Applies to: any Linux node. A slot whose disk was pulled on purpose says the same, so a slot alone is a warning.

    Source: Linux kernel, drivers/pci/pcie/dpc.c and drivers/pci/hotplug/pciehp_ctrl.c.
    """
    words: dict[str, Words] = {
        "pcie.contained": (Status.FAIL, Urgency.NOW, "the port cut its device off after an uncorrected error, DPC"),
        "pcie.slot_down": (Status.WARN, Urgency.MAINTENANCE, "the link of the slot went down"),
    }
    yield from tell_all(given, words, subject="pci")


@relation("pcie.log_bandwidth", needs=(EVENTS,), urgency=Urgency.MAINTENANCE, remedy=_PCIE)
def devices_have_their_bandwidth(given: Given) -> Iterator[Answer]:
    """
    No device is limited by the link it came up with.

    What it checks: the line that drivers print at start, "... Gb/s available PCIe bandwidth, limited by ... (capable of
    ...)": the device could do more lanes or a higher speed than the narrowest link on its way has.

    Why it matters: a 400 Gb/s adapter on half its lanes moves half of what its port could.

    How to fix: compare LnkSta with LnkCap on the whole path (lspci -vvv); reseat the device, another slot or riser.
    Where the slot is made with fewer lanes or for an older generation, nothing is to be fixed: waive it.

    Applies to: devices whose driver prints the line (mlx5 and other network adapters, NVMe).

    Source: Linux kernel, pcie_print_link_status; boot logs of HGX H100 nodes, where the line names no limit.
    """
    words: dict[str, Words] = {"pcie.limited": (Status.WARN, None, "the PCIe link is narrow or slow")}
    yield from tell_all(given, words, subject="pci")
