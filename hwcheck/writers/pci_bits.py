"""
Bits of a PCI function's configuration space. Subject: its address.

=================  =================================================================================================
aspm               0: link power management off, at both ends of the link, the lower one first
max_read_request   128 to 4096 bytes (PCI Express, Device Control, bits 14:12)
relaxed_ordering   1 or 0 (Device Control, bit 4)
acs_redirect       off or on: the redirect bits of access control (2, 3 and 4), and no others
=================  =================================================================================================

Only these bits are written: the other halves of those words belong to firmware and kernel. A reset, a rebind or a hot
plug clears them, so a rule of udev has setpci write them at each add and bind; where setpci (pciutils) is not installed
only the running value is set, and the next boot says so.

Refused: what the function does not have, one that fell off the bus, ASPM and access control in a guest (its host owns
the bridges), access control where a data-direct function (ConnectX-8, -9) wants a pattern of its own or where functions
are given to virtual machines, a register that a rule or unit of somebody else writes.

Source: PCI Express base specification, Device Control, Link Control, ACS Control; rdma-core rdma_topo for ConnectX-8;
NVIDIA NCCL documentation on ACS. Disabling L1 begins at the lower end: PCI Express base specification, 5.4.1.3.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from . import config_space, udev
from .change import VOLATILE, Kind, kind
from .config_space import ACCESS_CONTROL, ADDRESS, EXPRESS
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .own_unit import find_tool
from .owned_file import Owned
from .place import Json, Place
from .step import Step

KEYS = ("aspm", "max_read_request", "relaxed_ordering", "acs_redirect")
REDIRECT = 0x1C
_REGISTERS = {
    "aspm": "CAP_EXP+10.w", "max_read_request": "CAP_EXP+8.w", "relaxed_ordering": "CAP_EXP+8.w",
    "acs_redirect": "ECAP_ACS+6.w",
}  # fmt: skip
_VALUES = {
    "aspm": {"0": 0}, "max_read_request": {str(128 << code): code << 12 for code in range(6)},
    "relaxed_ordering": {"0": 0, "1": 0x10}, "acs_redirect": {"off": 0, "on": REDIRECT},
}  # fmt: skip
_MASKS = {"aspm": 0x3, "max_read_request": 0x7000, "relaxed_ordering": 0x10, "acs_redirect": REDIRECT}
_CAPABILITIES = {**dict.fromkeys(KEYS, "PCI Express capability"), "acs_redirect": "access control (ACS) that redirects"}
_OFFSETS = {"aspm": 0x10, "max_read_request": 0x8, "relaxed_ordering": 0x8, "acs_redirect": 0x6}
_NOT_KEPT = "not kept: setpci (pciutils) is not installed"
_ROOT_PORT, _DOWNSTREAM_PORT = 4, 6
_SPECIAL = ("0x1023", "0x1025", "0x2100", "0x2101")
"""ConnectX-8 and -9, and their data-direct functions."""
_OTHERS = ("/etc/udev/rules.d/*.rules", "/etc/systemd/system/*.service", "/etc/rc.local")


class Bits(NamedTuple):
    """Where a setting lies: function, offset of the word, and which of its bits."""

    address: str
    offset: int
    mask: int


class BitsFacets(Facets):
    """Facets of bits, which are right as well where nothing can keep them."""

    @property
    def is_right(self) -> bool:
        """Whether the running value is right, and kept as far as it can be."""
        return super().is_right or (self.running == self.wanted and self.next_boot == _NOT_KEPT)


@kind("bits")
class Masked(Kind):
    """Some bits of a word: ``target`` (address), ``offset``, ``mask``; the state is the word under the mask."""

    def look(self, place: Place, change: Json) -> Any:
        """Read the word, and leave out the other bits."""
        return config_space.word(place, change["target"], change["offset"]) & change["mask"]

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Write these bits."""
        config_space.put(place, change["target"], change["offset"], change["mask"], state)


@mechanism("pci_bits")
class PciBits(Mechanism):
    """Bits of PCI functions."""

    def files(self, place: Place) -> list[Owned]:
        """Return our rules."""
        return [udev.owned_rules(place, "pci_bits")]

    def name_of(self, step: Step) -> str:
        """Return the address and the key."""
        return f"{step.subject} {step.key}"

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let udev read its rules."""
        return [] if place.is_image else udev.reload(steps)

    def facets(self, place: Place, step: Step) -> Facets:
        """Read the bits; of an image the rule alone."""
        wrong = _misspelled(step)
        if wrong:
            return unsupported(step.value, wrong)
        tool = find_tool(place, "setpci")
        if place.is_image:
            if not tool:
                return unsupported(step.value, f"{_NOT_KEPT}, and an image has no running value")
            return Facets(step.value, None, _kept(place, step, rule_of(tool, step, "")))
        if not place.exists(config_space.folder(step.subject)):
            return unsupported(step.value, f"there is no PCI function {step.subject} here")
        where = _where(place, step)
        if not where:
            return unsupported(step.value, f"{step.subject} has no {_CAPABILITIES[step.key]}")
        running = _running(place, step.key, where)
        following = _kept(place, step, rule_of(tool, step, _other_end(where, step))) if tool else _NOT_KEPT
        refused = _refusal(place, step.key) or _owner(place, step.key)
        return BitsFacets(step.value, running, following, None, refused if running != step.value else "")

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose rules, then the bits."""
        tool = find_tool(place, "setpci")
        found = {step.number: [] if place.is_image else _where(place, step) for step in steps}
        rules = [
            udev.Rule(self.name_of(step), rule_of(tool, step, _other_end(found[step.number], step)), step)
            for step in steps
            if tool
        ]
        kept = udev.rule_changes(place, rules)
        changes = list(kept.changes)
        for step in steps:
            for bits in found[step.number]:
                before = config_space.word(place, bits.address, bits.offset) & bits.mask
                after = _VALUES[step.key][step.value] & bits.mask
                if before != after:
                    changes.append({
                        "kind": "bits", "target": bits.address, "key": step.key, "offset": bits.offset,
                        "mask": bits.mask, "before": before, "after": after, "phase": VOLATILE,
                        "steps": [step.number],
                    })  # fmt: skip
        return Proposal(changes, kept.commands)


def rule_of(tool: str, step: Step, other_end: str) -> str:
    """
    Return the rule that writes a setting again.

    Args:
        tool: path of setpci.
        step: with function, key and value.
        other_end: address of the link's other end, which is written after it; "" for none.
    """
    bits, mask = _VALUES[step.key][step.value], _MASKS[step.key]
    runs = [
        f'RUN+="{tool} -s {address} {_REGISTERS[step.key]}={bits:04x}:{mask:04x}"'
        for address in ("%k", other_end)
        if address
    ]
    return f'ACTION=="add|bind", SUBSYSTEM=="pci", KERNEL=="{step.subject}", {", ".join(runs)}'


def _misspelled(step: Step) -> str:
    if not ADDRESS.fullmatch(step.subject):
        return f"{step.subject!r} is no PCI address as the kernel spells it (0000:18:00.0)"
    if step.key not in KEYS:
        return f"there are no bits {step.key!r}; there are {', '.join(KEYS)}"
    if step.value not in _VALUES[step.key]:
        return f"{step.key} can be {', '.join(_VALUES[step.key])}; not {step.value!r}"
    return ""


def _where(place: Place, step: Step) -> list[Bits]:
    """Return where a setting lies, in the order of writing; nowhere when the function does not have it."""
    address, key = step.subject, step.key
    if key == "acs_redirect":
        at = config_space.find(place, address, ACCESS_CONTROL, extended=True)
        able = 0 if at is None else config_space.word(place, address, at + 4) & REDIRECT
        return [Bits(address, (at or 0) + _OFFSETS[key], able)] if able else []
    if key != "aspm":
        return _express(place, address, key)
    at = config_space.find(place, address, EXPRESS)
    if at is None:
        return []
    # A root port and a downstream port are the upper end of their link, anything else is the lower one.
    if config_space.word(place, address, at + 2) >> 4 & 0xF in (_ROOT_PORT, _DOWNSTREAM_PORT):
        lower = [bits for one in config_space.below(place, address) for bits in _express(place, one, key)]
        return [*lower, *_express(place, address, key)]
    upper = config_space.above(place, address)
    return [*_express(place, address, key), *(_express(place, upper, key) if upper else [])]


def _express(place: Place, address: str, key: str) -> list[Bits]:
    at = config_space.find(place, address, EXPRESS)
    return [] if at is None else [Bits(address, at + _OFFSETS[key], _MASKS[key])]


def _other_end(where: list[Bits], step: Step) -> str:
    """Return the upper end of a link for the rule of its lower end; a port's own rule needs no other."""
    last = where[-1].address if where else ""
    return last if step.key == "aspm" and last != step.subject else ""


def _running(place: Place, key: str, where: list[Bits]) -> str:
    """Return the value in the key's words; of a link the more that either end allows."""
    words = [config_space.word(place, one.address, one.offset) & one.mask for one in where]
    if key == "aspm":
        return str(max(words))
    if key == "acs_redirect":
        return "off" if not words[0] else "on" if words[0] == where[0].mask else "partly on"
    return next((value for value, bits in _VALUES[key].items() if bits == words[0]), f"code {words[0] >> 12}")


def _kept(place: Place, step: Step, rule: str) -> str | None:
    """Return the value that our rule writes; None when there is none, or one of another link or tool."""
    ours = udev.rules(place, "pci_bits").get(f"{step.subject} {step.key}")
    if ours is None:
        return None
    if ours == rule or (place.is_image and ours.startswith(rule)):
        return step.value
    found = re.search(r"\.w=([0-9a-f]{4}):", ours)
    bits = int(found[1], 16) if found else -1
    told = next((value for value, number in _VALUES[step.key].items() if number == bits), "unknown")
    return f"{told} (by another rule)" if told == step.value else told


def _refusal(place: Place, key: str) -> str:
    if key in ("aspm", "acs_redirect") and _is_guest(place):
        return "this is a guest: its host owns the bridges and links"
    if key != "acs_redirect":
        return ""
    for path in place.expand("/sys/bus/pci/devices/*/vendor"):
        here = path.rpartition("/")[0]
        if (place.text(path) or "").strip() == "0x15b3" and (place.text(here + "/device") or "").strip() in _SPECIAL:
            return (
                f"{here.rpartition('/')[2]} is an adapter with a data-direct function, which wants a pattern of its "
                "own: ask rdma_topo check of rdma-core"
            )
    given = place.expand("/sys/bus/pci/drivers/vfio-pci/*:*")
    if given:
        return f"{given[0].rpartition('/')[2]} is given to virtual machines (vfio-pci), which access control isolates"
    return ""


def _is_guest(place: Place) -> bool:
    if re.search(r"^flags\s*:.*\bhypervisor\b", place.text("/proc/cpuinfo") or "", re.MULTILINE):
        return True
    names = (place.text(f"/sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    return any(re.search(r"\b(?:QEMU|KVM|VMware|VirtualBox|Xen|Virtual Machine)\b", name) for name in names)


def _owner(place: Place, key: str) -> str:
    """Name a rule or unit of somebody else that writes the same register."""
    register = _REGISTERS[key].partition(".")[0]
    for pattern in _OTHERS:
        for path in place.expand(pattern):
            lines = (place.text(path) or "").splitlines() if path != udev.FILE else []
            if any("setpci" in line and register in line.upper() for line in lines):
                return f"{path} writes {register} by setpci; its owner must change it"
    return ""
