"""
Parameters of kernel modules: ``options MODULE NAME=VALUE`` in /etc/modprobe.d/90-hwcheck.conf.

Source: modprobe.d(5): the options of all files are joined in the order of their names, the last of a parameter counts,
and ``MODULE.NAME=`` on the kernel command line comes after all. Key: ``nvidia NVreg_EnableGpuFirmware``. Running is
/sys/module/MODULE/parameters, for NVIDIA's driver /proc/driver/nvidia/params, which leaves ``NVreg_`` out. It counts
when the module is loaded: by a reload of the driver or the next boot.

Where the module lies in the initial RAM disk, its options do too: that is made anew (update-initramfs(8), dracut(8)).
Refused: a module or parameter that this kernel does not have, one that is built in (its parameters are kernel
arguments), one that a later file or the command line sets otherwise.
"""

from __future__ import annotations

import re

from . import modprobe
from .change import file_change
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Place, WriteError
from .step import Step

FILE = "/etc/modprobe.d/90-hwcheck.conf"
_KEY = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,63}) ([A-Za-z_][A-Za-z0-9_]{0,99})")
_VALUE = re.compile(r"[^\s\"'\\#]{1,1000}")
_NVIDIA = "/proc/driver/nvidia/params"
_LONG = 600.0
_RAM_DISKS = (
    ("/boot/initrd.img-{}", "lsinitramfs", ["update-initramfs", "-u"]),
    ("/boot/initramfs-{}.img", "lsinitrd", ["dracut", "-f"]),
)
"""Path by kernel release, what lists it, what makes it."""


@mechanism("module_option")
class ModuleOption(Mechanism):
    """Parameters of modules."""

    def files(self, place: Place) -> list[Owned]:
        """Return our file."""
        return [Owned(FILE, _owned(place))]

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Make the initial RAM disk anew; that a module lies there was found before."""
        return [Command(words, steps, _LONG) for words in _ram_disk(place, None)]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a parameter as the module was loaded with, and as it will be."""
        found = _KEY.fullmatch(step.key)
        wanted = spelled(step.value)
        if found is None or not _VALUE.fullmatch(step.value):
            return unsupported(wanted, f"{step.key} = {step.value!r} names no module, parameter and value")
        module, name = found[1], found[2]
        running = None
        if not place.is_image:
            why = _unknown(place, module, name)
            if why:
                return unsupported(wanted, why)
            running = _running(place, module, name)
        following, owner = _next_boot(place, module, name)
        refused = f"{owner} sets {name} to {following} after ours; its owner must change it" if owner else ""
        told = following if following is not None else "absent" if running != wanted else None
        waits = f"counts when {module} is loaded again, or from the next boot"
        return Facets(wanted, running, told, None, refused if following != wanted else "", waits=waits)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our file, and a new RAM disk where a module lies in it."""
        wrong = [step for step in steps if _next_boot(place, *step.key.split())[0] != spelled(step.value)]
        owned = _owned(place)
        for step in wrong:
            module, name = step.key.split()
            owned.put(step.key, f"options {module} {name}={step.value}", step.id)
        numbers = [step.number for step in wrong]
        change = file_change(place, FILE, owned.render(), numbers) if wrong else None
        if change is None:
            return Proposal([], [])
        modules = {step.key.split()[0] for step in wrong}
        return Proposal([change], [Command(words, numbers, _LONG) for words in _ram_disk(place, modules)])


def spelled(value: str) -> str:
    """Spell a value as it is compared: what is true or false as 1 or 0, numbers in decimal."""
    word = {"Y": "1", "y": "1", "N": "0", "n": "0"}.get(value.strip(), value.strip())
    return str(int(word, 0)) if re.fullmatch(r"0x[0-9A-Fa-f]+|[1-9]\d*|0", word) else word


def _owned(place: Place) -> OwnedFile:
    return OwnedFile(place.bytes_as_text(FILE), _key_of)


def _key_of(line: str) -> str:
    _, pairs = modprobe.options(line)
    return f"{line.split()[1]} {next(iter(pairs))}" if pairs else ""


def _unknown(place: Place, module: str, name: str) -> str:
    """Say why this kernel cannot take a parameter; "" when it can."""
    try:
        if modprobe.file_of(place, module) == modprobe.BUILT_IN:
            return f"{module} is part of the kernel; its parameters are kernel arguments: {module}.{name}="
        known = place.run(["modinfo", "-F", "parm", module], 20.0)
    except WriteError as error:
        return str(error)
    names = {line.partition(":")[0].strip() for line in known.splitlines()}
    return "" if name in names else f"the module {module} has no parameter {name}"


def _running(place: Place, module: str, name: str) -> str | None:
    text = place.text(f"/sys/module/{modprobe.plain(module)}/parameters/{name}")
    if text is None and module == "nvidia":
        pairs = (line.partition(":") for line in (place.text(_NVIDIA) or "").splitlines())
        text = next((value for key, _, value in pairs if key.strip() == name[len("NVreg_") :]), None)
    return None if text is None else spelled(text.strip().strip('"'))


def _next_boot(place: Place, module: str, name: str) -> tuple[str | None, str]:
    """Return what a parameter will be, and who sets it after ours; "" when ours is the last word or may be."""
    value, owner = None, ""
    for path, line in modprobe.lines(place, "modprobe.d"):
        found, pairs = modprobe.options(line)
        if found == modprobe.plain(module) and name in pairs:
            value = spelled(pairs[name])
            owner = path if path.rpartition("/")[2] > FILE.rpartition("/")[2] else ""
    for word in (place.text("/proc/cmdline") or "").split() if not place.is_image else []:
        key, sign, text = word.partition("=")
        if sign and modprobe.plain(key) == f"{modprobe.plain(module)}.{name}":
            value, owner = spelled(text), "the kernel command line"
    return value, owner


def _ram_disk(place: Place, modules: set[str] | None) -> list[list[str]]:
    """Return what makes the running kernel's RAM disk anew, if one of the modules (any of ours: None) lies there."""
    release = (place.text("/proc/sys/kernel/osrelease") or "").strip()
    if place.is_image or not release:
        return []
    names = modules if modules is not None else {key.split()[0] for key in _owned(place).all_keys()}
    for pattern, lister, maker in _RAM_DISKS:
        path = pattern.format(release)
        if not place.exists(path):
            continue
        try:
            listed = place.run([lister, place.real(path)], 120.0)
        except WriteError:
            return [maker]  # not to be seen: made anew to be sure
        found = {modprobe.plain(name) for name in re.findall(r"/([\w-]+)\.ko\b", listed)}
        return [maker] if found & {modprobe.plain(name) for name in names} else []
    return []
