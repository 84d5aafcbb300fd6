"""PCIe ports above the devices: uplinks of switches, both ends of a link, error counters, windows, ASPM policy."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.pcie import in_guest, name_of
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Act, Remedy, Urgency, Write

_UPLINK = Remedy(
    "hands",
    "Drain and power-cycle the node; if the uplink stays narrow or slow, reseat the cable or riser between the CPU "
    "board and the switch board, then replace it. All devices below the switch share this link.",
    disturbs="node",
)
_SIGNAL = Remedy(
    "hands",
    "Find the AER lines of this device in the kernel log; reseat device, riser or cable, and replace what keeps "
    "counting.",
    disturbs="node",
)
_WINDOW = Remedy(
    "hands",
    "Turn on 'Above 4G decoding' and a large MMIO window in the BIOS (kernel argument pci=realloc=off where the kernel "
    "moves what the BIOS had placed), then reboot.",
    disturbs="node",
)
_PAYLOAD = Remedy(
    "act",
    "Reboot, so that firmware and kernel set MaxPayload anew on the whole path; a device that was hot-plugged or reset "
    "alone may keep another value.",
    disturbs="node",
    acts=(Act("reboot", opt_in=True),),
)


@relation("pcie.switch_link", needs=("pci.bridges",), urgency=Urgency.JOB_END, remedy=_UPLINK)
def uplinks_are_whole(given: Given) -> Iterator[Answer]:
    """
    The uplink of each PCIe switch is as wide and fast as both of its ends can.

    What it checks: width and speed of every switch's upstream port against what this port and the port above it can.

    Why it matters: GPU, adapter and drives below a switch share its uplink: one that trained to x8 or to a lower speed
    halves what all of them get from the CPU, while each device's own link looks right.

    How to fix: power-cycle; then reseat or replace cable, riser or board between the CPU and the switch.

    Applies to: machines with PCIe switches whose registers were read. A guest sees ports of its host's making.

    Source: PCI Express base specification (LnkCap, LnkSta); HGX boards connect by x16 uplinks.
    """
    bridges = {bridge["address"]: bridge for bridge in given["pci.bridges"]}
    whole = 0
    for bridge in bridges.values():
        above = bridges.get(bridge["parent"])
        if bridge["port"] != "Upstream Port" or above is None:
            continue
        bad = []
        for key, word in (("width", "x{:g}"), ("speed", "{:g} GT/s")):
            limits = [port[f"{key}_max"] for port in (bridge, above) if port[f"{key}_max"]]
            if bridge[key] and limits and bridge[key] < min(limits):
                bad.append(f"{word.format(bridge[key])} of {word.format(min(limits))}")
        if bad:
            text = f"the uplink of the PCIe switch at {bridge['address']} runs at {' and '.join(bad)}"
            yield fail(text, observed=", ".join(bad))
        elif bridge["width"]:
            whole += 1
    if whole:
        yield ok(f"{whole} uplinks of PCIe switches are whole", observed=whole)


@relation(
    "pcie.aer_counters",
    needs=("pci.aer",),
    uses=("pci.upstream", "pci.name", "pci.class", "pci.device_id"),
    urgency=Urgency.MAINTENANCE,
    remedy=_SIGNAL,
)
def no_errors_counted(given: Given) -> Answer:
    """
    The kernel has counted no fatal PCIe error at either end of a link since boot.

    What it checks: AER counters of the device and of the port above it. Corrected errors are only mentioned: a few a
    day are normal, and one reading shows no rate. UnsupReq is left out, probing of absent functions makes it.

    Why it matters: fatal errors reset the link; timeouts and malformed packets come before a device that falls off.

    How to fix: reseat device, riser or cable; replace what keeps counting.

    Applies to: devices whose errors the kernel handles itself (AER native); else there are no counters.

    Source: Linux kernel, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
    """
    ends = {"": given["pci.aer"], "port above: ": (given.maybe("pci.upstream") or {}).get("aer") or {}}
    name = name_of(given)
    serious = [
        f"{end}{error} {count}"
        for end, kinds in ends.items()
        for kind in ("fatal", "nonfatal")
        for error, count in kinds.get(kind, {}).items()
        if error != "UnsupReq"
    ]
    if serious:
        return warn(f"PCIe errors since boot at {name}: {', '.join(serious[:6])}", observed=serious, expected=[])
    minor = [
        f"{end}{error} {count}" for end, kinds in ends.items() for error, count in kinds.get("correctable", {}).items()
    ]
    if minor:
        return skip(
            f"corrected PCIe errors since boot at {name}: {', '.join(minor[:6])}; no rate is known", observed=minor
        )
    return ok("no PCIe errors since boot", observed=[])


@relation(
    "pcie.bar",
    needs=("pci.bar.unset",),
    uses=("pci.name", "pci.class", "pci.device_id", "pci.bar.largest"),
    urgency=Urgency.NOW,
    remedy=_WINDOW,
)
def windows_have_addresses(given: Given) -> Answer:
    """
    Every memory window of a device has an address.

    What it checks: the windows BAR 0 to 5 in the kernel's resource file.

    Why it matters: a GPU whose large window found no room is refused by the driver, or cannot be reached by adapters.

    How to fix: above-4G decoding and a large enough MMIO window in the BIOS.

    Applies to: GPUs, adapters and drives on PCIe.

    Source: Linux kernel, Documentation/ABI/testing/sysfs-bus-pci (resource); NVIDIA driver, BAR1 is 0M.
    """
    unset, largest = given["pci.bar.unset"], given.maybe("pci.bar.largest")
    if unset:
        which = ", ".join(map(str, unset))
        return fail(f"memory window {which} of {name_of(given)} has no address", observed=list(unset), expected=[])
    return ok(f"all memory windows have an address, the largest has {largest} MiB", observed=[])


@relation(
    "pcie.max_payload",
    needs=("pci.max_payload", "pci.upstream"),
    uses=("pci.name", "pci.class", "pci.device_id", "platform.virtualization"),
    urgency=Urgency.MAINTENANCE,
    remedy=_PAYLOAD,
)
def payload_fits_the_port(given: Given) -> Answer | None:
    """
    A device sends no larger packets than the port above it takes.

    What it checks: MaxPayload in DevCtl at both ends of the link.

    Why it matters: a packet above the receiver's limit is malformed, a fatal error.

    How to fix: reboot, so that the whole path is set anew.

    Applies to: bare metal; in a guest the ports are its host's making.

    Source: PCI Express base specification, Device Control register.
    """
    here, there = given["pci.max_payload"], given["pci.upstream"]["max_payload"]
    if not there or in_guest(given):
        return None
    if here > there:
        text = f"MaxPayload of {name_of(given)} is {here} B, the port above takes {there} B"
        return warn(text, observed=here, expected=there)
    return ok(f"MaxPayload is {here} B, the port above takes {there} B", observed=here)


_SAVING = ("powersave", "powersupersave")


@relation(
    "pcie.aspm_policy",
    needs=("pci.aspm.policy",),
    uses=("pci.aspm.refused", "platform.virtualization"),
    urgency=Urgency.NOTE,
    remedy=Remedy(
        "write",
        "Write performance to /sys/module/pcie_aspm/parameters/policy and boot with pcie_aspm.policy=performance.",
        role="pcie_aspm",
        disturbs="nothing",
        writes=(
            Write("attribute", "/sys/module/pcie_aspm/parameters/policy", "performance"),
            Write("kernel_argument", "pcie_aspm.policy", "performance", indirect=True),
        ),
    ),
)
def policy_saves_no_power(given: Given) -> Answer:
    """
    The kernel does not turn ASPM on for links by its own policy.

    What it checks: the policy powersave or powersupersave where the kernel may touch links. Others are only mentioned:
    the policy proves nothing, each link's register does (pcie.aspm). Under default, links stay as firmware set them.

    Why it matters: a link that comes up later, after a reset or hot-plug, is put to sleep by the policy.

    How to fix: the policy performance, now and as a kernel argument.

    Applies to: bare metal. Where firmware keeps control of ASPM every write of the policy is refused (EPERM), which is
    no fault while links are off.

    Source: Linux drivers/pci/pcie/aspm.c; ACPI specification, FADT IAPC_BOOT_ARCH bit 4.
    """
    policy, refused = given["pci.aspm.policy"], given.maybe("pci.aspm.refused")
    if policy in _SAVING and not refused and not in_guest(given):
        text = f"the kernel's ASPM policy is {policy}: it puts links to sleep"
        return warn(text, observed=policy, expected="performance")
    control = f"the kernel may not change links: {refused}" if refused else "links are judged by their registers"
    return skip(f"the kernel's ASPM policy is {policy}; {control}", observed=policy)
