"""
What machine this is: DMI, hypervisor, firmware, operating system, time zone.

Source: /sys/class/dmi/id, the flag ``hypervisor`` in /proc/cpuinfo, /sys/hypervisor, /sys/firmware; os-release(5);
    localtime(5).
Shape: ``platform.*``, ``firmware.bios*`` and ``time.zone`` of the node. Lines ``PATH: value``; what is only there or
    not is ``PATH: present``; ``/proc/cpuinfo hypervisor: yes`` is the flag of the first CPU.
Units: none.
Missing: DMI strings that manufacturers left unfilled (``To Be Filled By O.E.M.``) are none. Serial numbers that a user
    may not read are denied. Without DMI and without a flag (Arm) nothing tells whether the machine is virtual.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.file_text import gap_of, links, rows
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_DMI = "/sys/class/dmi/id/"
_UNFILLED = re.compile(
    r"(?i)to be filled|default string|not specified|system manufacturer|system product name|^\W*$|^n/?a$"
)
_NO_SERIAL = re.compile(r"(?i)system serial number|chassis serial|^[0.\s]*$|^0?123456789$|^x+$|^none$")
"""As :data:`_UNFILLED`, for serial numbers."""
_VIRTUAL = (
    ("QEMU", "qemu"), ("Amazon EC2", "amazon"), ("Google", "google"), ("VMware", "vmware"), ("innotek GmbH", "oracle"),
    ("Xen", "xen"), ("Bochs", "bochs"), ("Parallels", "parallels"), ("OpenStack", "kvm"), ("KubeVirt", "kvm"),
    ("Red Hat", "kvm"), ("Microsoft Corporation", "microsoft"), ("Oracle Corporation", "oracle"),
)  # fmt: skip
"""Vendor as DMI has it → the word of systemd-detect-virt."""
_ONLY_VIRTUAL = ("qemu", "vmware", "xen", "bochs", "parallels", "kvm")
"""Vendors that make no bare metal: enough where the CPU has no flag (Arm)."""


@fmt(
    "sysfs.machine",
    "/sys/class/dmi",
    gives=(
        "platform.vendor", "platform.product", "platform.board", "platform.virtualization", "platform.bmc",
        "platform.efi", "platform.secure_boot", "platform.container", "firmware.bios", "firmware.bios_date",
    ),
    opens=r"/sys/class/dmi/id/sys_vendor: ",
    continues=r"^(?:/|$)",
)  # fmt: skip
def machine(output: Output, facts: FactSink) -> None:
    """Read all lines, then what follows from them."""
    seen: dict[str, tuple[str, int]] = {}
    for number, text in enumerate(output.lines, output.first_line):
        match = re.match(r"^(/proc/cpuinfo hypervisor|/[^\s:]{1,200}): (.{0,400})$", text[:700])
        if match and gap_of(match[2]) is None:
            seen[match[1]] = match[2].strip(), number
    for leaf, name in (
        ("sys_vendor", "platform.vendor"),
        ("product_name", "platform.product"),
        ("bios_version", "firmware.bios"),
        ("bios_date", "firmware.bios_date"),
    ):
        text, line = seen.get(_DMI + leaf, ("", 0))
        if text and not _UNFILLED.search(text):
            facts.put(NODE, name, text[:100], line)
    _serials(output, facts)
    _board(seen, facts)
    _presence(seen, facts, output.first_line)
    _virtual(seen, facts)


def _serials(output: Output, facts: FactSink) -> None:
    for leaf, name in (("product_serial", "platform.serial"), ("board_serial", "platform.board_serial")):
        for path, text, line in rows(output):
            gap = gap_of(text)
            if path != _DMI + leaf:
                continue
            if gap is not None:
                facts.missing(NODE, name, gap.reason, gap.detail, line)
            elif not _UNFILLED.search(text) and not _NO_SERIAL.search(text):
                facts.put(NODE, name, text[:100], line)


def _board(seen: dict[str, tuple[str, int]], facts: FactSink) -> None:
    parts = [seen.get(_DMI + leaf, ("", 0)) for leaf in ("board_vendor", "board_name")]
    known = [(text, line) for text, line in parts if text and not _UNFILLED.search(text)]
    if known:
        facts.put(NODE, "platform.board", " ".join(text for text, _ in known)[:100], known[-1][1])


def _presence(seen: dict[str, tuple[str, int]], facts: FactSink, first: int) -> None:
    for name, paths in (
        ("platform.bmc", ("/dev/ipmi0",)),
        ("platform.efi", ("/sys/firmware/efi",)),
        ("platform.container", ("/.dockerenv", "/run/.containerenv")),
    ):
        there = [seen[path][1] for path in paths if path in seen]
        facts.put(NODE, name, bool(there), there[0] if there else first)
    for path, (text, line) in seen.items():
        if "/efivars/SecureBoot-" in path and re.fullmatch(r"hex:[0-9a-f]{8}0[01]", text):
            on = text.endswith("1")  # four bytes of attributes, then the value
            facts.put(NODE, "platform.secure_boot", on, line)


def _virtual(seen: dict[str, tuple[str, int]], facts: FactSink) -> None:
    flag, line = seen.get("/proc/cpuinfo hypervisor", ("", 0))
    vendor, vendor_line = seen.get(_DMI + "sys_vendor", ("", 0))
    product = seen.get(_DMI + "product_name", ("", 0))[0]
    kind = next((word for start, word in _VIRTUAL if vendor.startswith(start) or product.startswith(start)), "")
    if "/sys/hypervisor/type" in seen and flag != "no":
        kind, line = "xen" if seen["/sys/hypervisor/type"][0] == "xen" else "vm-other", seen["/sys/hypervisor/type"][1]
    elif flag == "no":
        kind = "none"
    elif flag == "yes":
        kind = kind or "vm-other"
    elif any("devicetree" in path for path in seen):
        kind = "kvm"
    elif not vendor or (kind and kind not in _ONLY_VIRTUAL):
        return
    facts.put(NODE, "platform.virtualization", kind or "none", line or vendor_line)


@fmt(
    "os-release",
    "os-release",
    gives=("platform.os",),
    continues=r"^[A-Z][A-Z0-9_]{1,40}=|^\s*$",
    command=r"/(?:etc|usr/lib)/os-release\b",
)
def os_release(output: Output, facts: FactSink) -> None:
    """Read ID and VERSION_ID."""
    values: dict[str, str] = {}
    first = 0
    for number, text in enumerate(output.lines, output.first_line):
        key, sign, value = text.strip()[:300].partition("=")
        if sign and key in ("ID", "VERSION_ID"):
            values[key] = value.strip().strip("\"'")[:40]
            first = first or number
    if "ID" in values:
        facts.put(NODE, "platform.os", f"{values['ID']} {values.get('VERSION_ID', '')}".strip(), first)


@fmt("localtime.link", "/etc/localtime", gives=("time.zone",))
def localtime(output: Output, facts: FactSink) -> None:
    """Read the zone from ``/etc/localtime -> /usr/share/zoneinfo/Etc/UTC``."""
    for _, target, number in links(output):
        zone = target.partition("/zoneinfo/")[2]
        if re.fullmatch(r"[\w+/-]{1,60}", zone):
            facts.put(NODE, "time.zone", zone, number)
        else:
            facts.unparsable(NODE, "time.zone", target, number)
