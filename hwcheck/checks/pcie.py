"""PCIe functions: links, ACS, errors, and what could not be read. ASPM and MaxReadReq are settings of the profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.findings import Remedy, Urgency, Write

GRACE_NAMES = ("GH200", "GB200", "GB300")
"""Marketing names of GPUs on a Grace CPU: their PCIe link is narrow or capped by design, traffic runs over C2C."""

_AS_ROOT = Remedy("act", "Run lspci -vvv as root (sudo lspci -vvv) and give the whole output.", disturbs="nothing")
_ACS = Remedy(
    "write",
    "Turn ACS redirect off on the bridges between GPUs and NICs: ACS off in the BIOS, or the kernel argument "
    "pci=disable_acs_redir, or setpci -s BRIDGE ECAP_ACS+6.w=0:1c at each boot; on bare metal also iommu=pt. "
    "A host of virtual machines needs ACS: enable ATS on the NIC there instead.",
    role="pcie_acs",
    disturbs="node",
    worked_out="pci_bits acs_redirect = off of each bridge that redirects (only with opt-in)",
)


def on_grace(given: Given) -> bool:
    """Tell whether the GPUs sit on a Grace CPU, as far as the evidence says."""
    names = " ".join(given.maybe("platform.lspci_names") or ())
    return (
        given.platform.startswith(("gh200", "gb200", "gb300"))
        or given.maybe("cpu.architecture") == "aarch64"
        or any(name in names for name in GRACE_NAMES)
    )


def in_guest(given: Given) -> str:
    """Return the kind of virtual machine, "" on bare metal or when nothing tells."""
    kind = given.maybe("platform.virtualization") or ""
    return "" if kind == "none" else str(kind)


@relation(
    "pcie.acs",
    any_of=("pci.acs", "pci.denied"),
    uses=("platform.virtualization", "platform.lspci_names", "cpu.architecture"),
    urgency=Urgency.JOB_END,
    remedy=_ACS,
)
def acs_redirect(given: Given) -> Answer:
    """
    No PCIe bridge redirects peer traffic to the root complex.

    What it checks: the redirect bits ReqRedir, CmpltRedir and UpstreamFwd in ACSCtl of every bridge; where the topology
    is known, only of the switch ports between a GPU and an adapter or another GPU. SrcValid alone is source validation
    and redirects nothing; a bridge without it may redirect all the same.

    Why it matters: with redirect on, traffic between a GPU and a NIC under one switch goes up to the CPU and back:
    GPUDirect RDMA loses most of its bandwidth, hangs, or fails with local protection errors.

    How to fix: switch ACS off in the BIOS on bare metal, or clear the redirect bits at each boot.

    Applies to: bare metal with GPUs and NICs under PCIe switches. In a guest the host owns the bridges. On Grace
    machines GPU and NIC have root ports of their own, and ConnectX-8 boards want a pattern of their own.

    Source: NVIDIA NCCL documentation on ACS; rdma-core rdma_topo; PCI Express base specification, ACS control register.
    """
    records = given.maybe("pci.acs")
    if records is None:
        return unknown(f"PCIe ACS could not be read: {given['pci.denied']}", remedy=_AS_ROOT, because="pci.denied")
    ports = [record for record in records if record["port"] in ("", "Root Port", "Upstream Port", "Downstream Port")]
    if not ports:
        return skip("no bridge in the evidence has access control (ACS)")
    bridges = [record for record in ports if record.get("between", True)]
    if not bridges:
        return skip(f"none of the {len(ports)} bridges with ACS lies between a GPU and an adapter")
    redirecting = [record for record in bridges if record["redirect"]]
    if not redirecting:
        return ok(f"none of {len(bridges)} bridges redirects peer traffic (ACS)", observed=0)
    found = f"{len(redirecting)} of {len(bridges)} bridges redirect peer traffic (ACS)"
    away = _acs_belongs_elsewhere(given)
    if away:
        return skip(f"{found}; {away}", observed=len(redirecting))
    which = [record["device"] for record in redirecting if record["device"]]
    named = f": {', '.join(which[:6])}" if which else "; a grep does not tell which ones"
    clear = tuple(Write("pci_bits", "acs_redirect", "off", opt_in=True, subject=device) for device in which)
    remedy = replace(_ACS, writes=clear, by_hand="" if clear else "The evidence does not tell which bridges redirect.")
    return fail(f"{found}{named}", observed=f"{len(redirecting)} of {len(bridges)}", expected="0", remedy=remedy)


def _acs_belongs_elsewhere(given: Given) -> str:
    guest = in_guest(given)
    if guest:
        return f"this is a virtual machine ({guest}), its host owns the bridges"
    if given.platform == "hgx-b300":
        return "boards with ConnectX-8 want a pattern of their own, see rdma_topo check of rdma-core"
    return "on Grace machines GPU and NIC do not share a PCIe switch" if on_grace(given) else ""


@relation(
    "pcie.link",
    scope="pci",
    needs=("pci.link.width", "pci.link.width_max"),
    uses=(
        "pci.link.speed", "pci.link.speed_max", "pci.name", "pci.device_id", "pci.class", "pci.upstream",
        "cpu.architecture", "platform.lspci_names",
    ),
    remedy=Remedy(
        "hands",
        "Reseat the card or its riser and cable, check the slot's width and the BIOS bifurcation, then compare again "
        "under load; a link that stays narrow on a good slot is a defective board.",
        disturbs="node",
    ),
)  # fmt: skip
def link_of_function(given: Given) -> Answer | None:
    """
    A PCIe link runs as wide and as fast as its device can.

    What it checks: LnkSta against LnkCap of GPUs, network adapters and NVMe drives, and against LnkCap of the port
    above where that is known: a slot that gives fewer lanes or a lower speed is no fault of the device.

    Why it matters: a x16 link that trained to x8 halves the bandwidth to and from the CPU and, for a NIC, the network.

    How to fix: reseat; look for a slot or bifurcation that gives fewer lanes.

    Applies to: machines whose GPUs hang on PCIe. An NVSwitch is not judged: its PCIe link is for control only. A GPU in
    a slot that is too narrow fails all the same, other devices are only mentioned. GH200 shows x1, GB200 and GB300 less
    than their device maximum, all by design. An idle GPU may lower its speed, so a low speed is no fault by itself; a
    width never changes when idle.

    Source: PCI Express base specification (LnkCap, LnkSta); GH200 and GB200 captures for the design limits.
    """
    width, most = given["pci.link.width"], given["pci.link.width_max"]
    gpu, name = _is_gpu(given), name_of(given)
    if gpu and on_grace(given):
        return skip("the PCIe link of GPUs on Grace is narrow by design; traffic runs over C2C")
    if given.maybe("pci.class") == "Bridge":
        return None
    above = given.maybe("pci.upstream") or {}
    if width < most:
        text = f"PCIe link of {name} is x{width} of x{most}"
        if not gpu and width == above.get("width_max"):
            return skip(f"{text}: the port above it, {above['address']}, has no more lanes", observed=f"x{width}")
        judge = fail if gpu or _is_mellanox(given) else warn
        return judge(text, observed=f"x{width}", expected=f"x{most}")
    speed, best = given.maybe("pci.link.speed"), given.maybe("pci.link.speed_max")
    if speed is None or best is None:
        return skip(f"PCIe link width of {name} is x{width}; its speed is not known")
    if above.get("speed_max"):
        best = min(best, above["speed_max"])
    if speed < best:
        return _slow(gpu, name, speed, best)
    return ok(f"PCIe link of {name} is {speed:g} GT/s x{width}", observed=f"{speed:g} GT/s x{width}")


def _slow(gpu: bool, name: str, speed: float, best: float) -> Answer:  # noqa: FBT001 - a property of the device
    text = f"PCIe link of {name} runs at {speed:g} of {best:g} GT/s"
    if gpu and speed <= 2.5:
        return skip(f"{text}: what an idle GPU does; look again under load", observed=speed)
    return warn(f"{text}; look again under load", observed=speed, expected=best, urgency=Urgency.NOTE)


def name_of(given: Given) -> str:
    """Name a function: as lspci does, else by class and ids."""
    name = given.maybe("pci.name")
    if name:
        return str(name)
    return f"{given.maybe('pci.class') or 'the device'} {given.maybe('pci.device_id') or ''}".rstrip()


def _is_gpu(given: Given) -> bool:
    kind = given.maybe("pci.class")
    vendor = (given.maybe("pci.device_id") or "").startswith("10de:") or "NVIDIA" in (given.maybe("pci.name") or "")
    return vendor and kind in ("3D controller", "VGA compatible controller")


def _is_mellanox(given: Given) -> bool:
    return (given.maybe("pci.device_id") or "").startswith("15b3:") or "Mellanox" in (given.maybe("pci.name") or "")


@relation(
    "pcie.device_lost",
    needs=("pci.lost",),
    uses=("pci.name", "pci.class", "pci.device_id"),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "hands",
        "Drain the node and power it off and on; if the device is gone again, reseat or replace it. A warm reboot is "
        "often not enough.",
        disturbs="node",
    ),
)
def device_lost(given: Given) -> Answer:
    """
    Every PCIe device still answers.

    What it checks: lspci shows ``rev ff`` or an unknown header type 7f for no device: its registers read as all ones.

    Why it matters: the device has fallen off the bus; every job that touches it fails or hangs.

    How to fix: power cycle, then reseat or replace.

    Applies to: every machine.

    Source: lspci of pciutils (rev ff); NVIDIA Xid 79, GPU has fallen off the bus.
    """
    name = name_of(given)
    return fail(f"{name} no longer answers on the PCIe bus (reads as all ones)", observed="rev ff")


_HARMLESS = ("UnsupReq",)
"""Set by the kernel's own probing of absent functions on most machines."""


@relation(
    "pcie.errors",
    needs=("pci.uncorrectable",),
    uses=("pci.name", "pci.class", "pci.device_id"),
    remedy=Remedy(
        "hands",
        "Look for AER lines of this device in the kernel log; reseat the card if the bit comes back after clearing it.",
        disturbs="node",
    ),
)
def uncorrectable_errors(given: Given) -> Answer:
    """
    No uncorrectable PCIe error is recorded in the device.

    What it checks: the bits of UESta, which stay set until someone clears them. UnsupReq is left out: probing sets it.

    Why it matters: a completion timeout or malformed packet comes before a device that falls off the bus.

    How to fix: find the time in the kernel log; reseat when it comes back.

    Applies to: every device whose advanced error registers were read (root).

    Source: PCI Express base specification, Advanced Error Reporting.
    """
    bits: list[Any] = [bit for bit in given["pci.uncorrectable"] if bit not in _HARMLESS]
    if not bits:
        return ok("no uncorrectable PCIe error is recorded")
    name = name_of(given)
    return warn(f"uncorrectable PCIe errors recorded for {name}: {', '.join(bits)}", observed=bits, expected=[])
