"""
PCI functions as ``lspci`` lists them, with registers where it was run as root.

Source: ``lspci`` of pciutils 3.5 to 3.14, plain, ``-D``, ``-nn``, ``-vv`` or ``-vvv``, whole or filtered through grep.
Shape: ``pci.*`` facts of GPUs, network adapters, NVMe drives and NVSwitches, subject is the PCI address; ``gpu.pci.*``
for NVIDIA display functions. Other functions matter only for ``pci.acs`` of the node, which holds one record per ACSCtl
line, since a bare grep does not say which bridge it is of.
Units: ``16GT/s`` is GT/s, MaxPayload and MaxReadReq are bytes.
Missing: ``Capabilities: <access denied>`` is denied: as a user lspci shows no link and no ACS at all, so the link of a
GPU or NIC is denied too, and an empty grep proves nothing. ``rev ff`` is a function that reads as all ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason, Subject, gpu_at, pci_address, whole
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]"
_CLASS = r"[A-Z0-9][A-Za-z0-9 /().-]{2,60}?(?: \[[0-9a-f]{4}\])?"
_HEAD = re.compile(rf"^({_ADDRESS}) ({_CLASS}): (.{{1,300}})$")
_REGISTER = r"\s*(?:ACSCtl|LnkSta|LnkCap|LnkCtl|DevCtl|UESta):\s"
_IDS = re.compile(r"\s*\[([0-9a-f]{4}:[0-9a-f]{4})\]")
_FLAG = re.compile(r"\b([A-Za-z]{2,16})([+-])(?=\s|$)")
_ONE_DEVICE = re.compile(r"\s-s\s*([0-9a-fA-F:.]{5,16})\b")
_DISPLAY = ("3D controller", "VGA compatible controller")
_WANTED = (*_DISPLAY, "Infiniband controller", "Ethernet controller", "Non-Volatile memory controller")
_REDIRECT = ("ReqRedir", "CmpltRedir", "UpstreamFwd")
_LINK_NAMES = ("pci.link.speed", "pci.link.width", "pci.link.speed_max", "pci.link.width_max")


@dataclass(slots=True)
class _Reading:
    """Where we are in the output: the function whose block this is, and what belongs to the whole."""

    facts: FactSink
    device: Subject | None = None
    address: str = ""
    port: str = ""
    gpu: Subject | None = None
    acs: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    denied: str = ""


@fmt(
    "lspci",
    "lspci",
    gives=("pci.*", "platform.lspci_names"),
    opens=rf"{_ADDRESS} {_CLASS}: \S|{_REGISTER}",
    continues=rf"^(?:\s|$)|^{_ADDRESS} ",
    command=r"(?:^|[\s/|;&])lspci(?:\s|$)",
    rank=40,
)
def lspci(output: Output, facts: FactSink) -> None:
    """Read functions, their registers, and what was denied."""
    reading = _Reading(facts)
    only = _ONE_DEVICE.search(output.command[:2000])
    address = pci_address(only[1]) if only else None
    if address:
        reading.device, reading.address = Subject("pci", address), address
    for number, line in enumerate(output.lines, output.first_line):
        head = _HEAD.match(line[:400])
        if head:
            _function(reading, head, number)
        else:
            _detail(reading, line[:2000].strip(), number)
    if reading.acs:
        facts.put(NODE, "pci.acs", tuple(reading.acs), reading.acs[0]["line"])
    elif _empty_grep(output):
        reading.denied = "an empty grep by a user proves nothing: lspci shows capabilities to root only"
    if reading.denied:
        facts.put(NODE, "pci.denied", reading.denied, output.first_line if output.lines else 0)
    if reading.names:
        facts.put(NODE, "platform.lspci_names", tuple(reading.names), output.first_line)


def _empty_grep(output: Output) -> bool:
    """Tell whether a user asked for capabilities and nothing came back."""
    asked = re.search(r"lspci.*grep.*(?:ACS|Lnk|DevCtl)", output.command[:2000], re.IGNORECASE)
    return bool(asked) and "sudo" not in output.command and not any(line.strip() for line in output.lines)


def _function(reading: _Reading, head: re.Match[str], line: int) -> None:
    address, words, name = head.groups()
    facts, ids, bare = reading.facts, _IDS.search(name), _IDS.sub("", name).split(" (rev ")[0].strip()
    title = words.partition(" [")[0]
    nvidia = "NVIDIA" in name or (ids is not None and ids[1].startswith("10de:"))
    reading.address, reading.port = pci_address(address) or address, ""
    reading.device = device = Subject("pci", reading.address) if nvidia or title in _WANTED else None
    reading.gpu = gpu_at(reading.address) if nvidia and title in _DISPLAY else None
    if device is None:
        return
    facts.put(device, "pci.class", title, line)
    facts.put(device, "pci.name", bare, line)
    if ids:
        facts.put(device, "pci.device_id", ids[1], line)
    if reading.gpu and ids:
        facts.put(reading.gpu, "gpu.pci.device_id", ids[1], line)
    if nvidia:
        reading.names.append(bare)
    if "(rev ff)" in name:
        facts.put(device, "pci.lost", value=True, line=line)


def _detail(reading: _Reading, line: str, number: int) -> None:
    """Read one line of a block; lines nobody needs are left alone."""
    key, _, value = line.partition(":")
    if key == "ACSCtl":
        _acs(reading, value, number)
    elif key == "Capabilities":
        _capabilities(reading, value, number)
    elif reading.device is None:
        return
    elif key in _DETAILS:
        _DETAILS[key](reading, reading.device, value.strip(), number)
    elif line.startswith(("RlxdOrd", "MaxPayload")):  # the second and third line of DevCtl have no key
        _device_control(reading, reading.device, line, number)
    elif line.startswith("!!! Unknown header type"):
        reading.facts.put(reading.device, "pci.lost", value=True, line=number)


def _acs(reading: _Reading, value: str, number: int) -> None:
    flags = {name: sign == "+" for name, sign in _FLAG.findall(value)}
    if not all(name in flags for name in _REDIRECT):
        reading.facts.unparsable(NODE, "pci.acs", value, number)
        return
    reading.acs.append(
        {
            "device": reading.address,
            "port": reading.port,
            "redirect": any(flags[name] for name in _REDIRECT),
            "flags": tuple(name for name, is_set in flags.items() if is_set),
            "line": number,
        }
    )


def _subsystem(reading: _Reading, _device: Subject, value: str, line: int) -> None:
    ids = _IDS.search(value)
    if ids and reading.gpu:
        reading.facts.put(reading.gpu, "gpu.pci.subsystem_id", ids[1], line)


def _capabilities(reading: _Reading, value: str, line: int) -> None:
    """Read the PCI Express type, of bridges too: only their ACS counts."""
    express = re.search(r"Express (?:\(v\d\) )?([A-Z][A-Za-z /-]{2,40}?)(?: \(|,|$)", value)
    if express:
        reading.port = express[1]
    elif "access denied" in value:
        reading.denied = "lspci was not run as root: capabilities are access denied"
        for name in _LINK_NAMES:
            if reading.device:
                reading.facts.missing(reading.device, name, Reason.DENIED, "capabilities: access denied", line)


def _link_now(reading: _Reading, device: Subject, value: str, line: int) -> None:
    _link(reading, device, value, line, ("pci.link.speed", "pci.link.width"))


def _link_best(reading: _Reading, device: Subject, value: str, line: int) -> None:
    _link(reading, device, value, line, ("pci.link.speed_max", "pci.link.width_max"))
    if "ASPM" in value:
        reading.facts.put(device, "pci.aspm.possible", _aspm_states(value), line)


def _link(reading: _Reading, device: Subject, value: str, line: int, names: tuple[str, str]) -> None:
    """Read ``Speed 8GT/s (downgraded), Width x16``; ``Speed unknown`` is a link that is down."""
    speed = re.search(r"Speed (\d{1,3}(?:\.\d)?)GT/s", value)
    width = re.search(r"Width x(\d{1,2})\b", value)
    if speed:
        reading.facts.put(device, names[0], float(speed[1]), line)
    else:
        reading.facts.unparsable(device, names[0], value, line)
    if width:
        reading.facts.put(device, names[1], int(width[1]), line)
    else:
        reading.facts.unparsable(device, names[1], value, line)


def _link_control(reading: _Reading, device: Subject, value: str, line: int) -> None:
    if value.startswith("ASPM"):
        reading.facts.put(device, "pci.aspm", _aspm_states(value.partition(";")[0]), line)


def _aspm_states(text: str) -> str:
    """Read ``ASPM L0s L1 Enabled``, ``ASPM Disabled``, ``ASPM not supported``."""
    part = text[text.find("ASPM") :].partition(",")[0]
    return " ".join(state for state in ("L0s", "L1") if re.search(rf"\b{state}\b", part)) or "none"


def _device_control(reading: _Reading, device: Subject, value: str, line: int) -> None:
    ordering = re.search(r"\bRlxdOrd([+-])", value)
    if ordering:
        reading.facts.put(device, "pci.relaxed_ordering", ordering[1] == "+", line)
    for name, word in (("pci.max_payload", "MaxPayload"), ("pci.max_read_request", "MaxReadReq")):
        found = re.search(rf"\b{word} (\d{{3,4}}) bytes", value)
        if found:
            reading.facts.put(device, name, int(found[1]), line)


def _errors(reading: _Reading, device: Subject, value: str, line: int) -> None:
    flags = tuple(name for name, sign in _FLAG.findall(value) if sign == "+")
    reading.facts.put(device, "pci.uncorrectable", flags, line)


def _number_of(name: str) -> Callable[[_Reading, Subject, str, int], None]:
    def read(reading: _Reading, device: Subject, value: str, line: int) -> None:
        reading.facts.read(device, name, whole, value, line)

    return read


def _driver(reading: _Reading, device: Subject, value: str, line: int) -> None:
    if re.fullmatch(r"[\w-]{1,40}", value):
        reading.facts.put(device, "pci.driver", value, line)


_DETAILS: dict[str, Callable[[_Reading, Subject, str, int], None]] = {
    "Subsystem": _subsystem,
    "LnkSta": _link_now,
    "LnkCap": _link_best,
    "LnkCtl": _link_control,
    "DevCtl": _device_control,
    "UESta": _errors,
    "NUMA node": _number_of("pci.numa_node"),
    "IOMMU group": _number_of("pci.iommu_group"),
    "Kernel driver in use": _driver,
}


@fmt(
    "iommu-groups",
    "IOMMU groups of PCI functions",
    gives=("pci.iommu_group",),
    opens=rf"\s*{_ADDRESS} ?-> ?\S{{0,80}}?iommu_groups?[ /]\d",
    continues=rf"^\s*{_ADDRESS} ?-> ",
)
def iommu_groups(output: Output, facts: FactSink) -> None:
    """Read ``0008:06:00.0 -> iommu_group 79``, or the target of the sysfs link ``.../iommu_groups/79``."""
    for number, line in enumerate(output.lines, output.first_line):
        found = re.match(rf"\s*({_ADDRESS}) ?-> ?\S{{0,80}}?iommu_groups?[ /](\d{{1,6}})\s*$", line[:200])
        if found:
            facts.put(Subject("pci", pci_address(found[1]) or found[1]), "pci.iommu_group", int(found[2]), number)
