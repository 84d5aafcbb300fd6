"""What a boot takes from a lab node's own files: kernel arguments, parameters, module files, limits of units."""

from __future__ import annotations

import re
from pathlib import Path

from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import boot_up

_FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def apply(machine: Machine, root: Path) -> None:
    """Let a machine boot from the files below a root, in the order that the real tools have."""
    kernel = machine.kernel
    kernel.arguments = kernel.next_arguments = _arguments(root) or kernel.arguments
    kernel.sysctls |= {key: value for key, value in _sysctls(root).items() if key in kernel.sysctls}
    version = _module_version(root / f"lib/modules/{kernel.release}/updates/dkms/nvidia.ko")
    if version:
        kernel.module_files = dict.fromkeys(kernel.module_files, version)
    boot_up(machine)
    for name, service in machine.services.items():
        service.memlock = _memlock(root, name, service.memlock)


def _arguments(root: Path) -> str:
    """Return the arguments of the first entry of grub.cfg, as the kernel sees them."""
    found = re.search(r"^\s*linux\s+(\S+)\s+(.+)$", _text(root / "boot/grub/grub.cfg"), re.MULTILINE)
    return f"BOOT_IMAGE={found[1]} {found[2].strip()}" if found else ""


def _sysctls(root: Path) -> dict[str, str]:
    """Read the drop-ins: the first folder wins a name, names in order, /etc/sysctl.conf last."""
    files: dict[str, Path] = {}
    for folder in _FOLDERS:
        for path in sorted((root / folder.lstrip("/")).glob("*.conf")):
            files.setdefault(path.name, path)
    found = {}
    for path in [*(files[name] for name in sorted(files)), root / "etc/sysctl.conf"]:
        for line in _text(path).splitlines():
            key, sign, value = line.strip().lstrip("-").partition("=")
            if sign and not line.lstrip().startswith(("#", ";")):
                found[key.strip().replace("/", ".")] = value.strip()
    return {key: "\t".join(value.split()) if "tcp_" in key else value for key, value in found.items()}


def _module_version(path: Path) -> str:
    try:
        found = re.search(rb"version=([\d.]+)\0", path.read_bytes())
    except OSError:
        return ""
    return found[1].decode() if found else ""


def _memlock(root: Path, unit: str, otherwise: int) -> int:
    """Return the LimitMEMLOCK of a unit's last drop-in that has one."""
    value = otherwise
    for path in sorted((root / f"etc/systemd/system/{unit}.service.d").glob("*.conf")):
        for word in re.findall(r"^LimitMEMLOCK=(\w+)$", _text(path), re.MULTILINE):
            value = _bytes(word, value)
    return value


def _bytes(word: str, otherwise: int) -> int:
    if word == "infinity":
        return 2**64 - 1
    found = re.fullmatch(r"(\d+)([KMG]?)", word)
    return int(found[1]) * _UNITS.get(found[2], 1) if found else otherwise


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
