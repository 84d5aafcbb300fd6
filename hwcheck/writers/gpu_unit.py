"""
What a GPU is set to at boot and after a reload of the driver: ``hwcheck-gpu.service``, and who else sets it.

Clock locks and power limits are lost when the driver is unloaded (NVML API reference). The unit runs nvidia-smi, one
line a GPU and key, by UUID, so that a replaced board does not inherit them, and notes what it locked. It comes with
nvidia-persistenced, which whoever reloads the driver has to start again, and after the fabric manager, which may hold
GPUs back until it is done.

Persistence mode at boot is that of nvidia-persistenced: on, unless it is started with ``--no-persistence-mode`` as some
distributions do (option_table.h of nvidia-persistenced).
"""

from __future__ import annotations

import re

from . import gpu_clocks, own_unit
from .own_unit import OwnUnit
from .place import Place
from .step import Step

UNIT = OwnUnit(
    "hwcheck-gpu.service",
    """# Written by hwcheck: clocks and power limits of GPUs, at each load of their driver. Undo: hwcheck rollback.
[Unit]
Description=Clocks and power limits of GPUs, as hwcheck was asked for
After=nvidia-persistenced.service nvidia-fabricmanager.service
PartOf=nvidia-persistenced.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=-/bin/mkdir -p /run/hwcheck/clocks
ExecStop=-/bin/rm -rf /run/hwcheck/clocks
[Install]
WantedBy=multi-user.target nvidia-persistenced.service
""",
    ("multi-user.target", "nvidia-persistenced.service"),
)
DAEMON = "nvidia-persistenced.service"
_OPTIONS = {"graphics_clocks": "-lgc", "memory_clocks": "-lmc", "power_limit": "-pl"}
_ALSO = {
    "graphics_clocks": ("-lgc", "--lock-gpu-clocks"), "memory_clocks": ("-lmc", "--lock-memory-clocks"),
    "power_limit": ("-pl", "--power-limit"), "application_clocks": ("-ac", "--applications-clocks"),
}  # fmt: skip
_SETS = re.compile(r"-i (\S+) -(?:lgc|lmc|pl) (\S+)")
_OTHERS = ("/etc/systemd/system/*.service", "/usr/local/lib/systemd/system/*.service", "/etc/rc.local")
_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
_RULES = ("/etc/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d")


def name_of(step: Step) -> str:
    """Return the key of a step in our drop-in."""
    return f"{step.subject} {step.key}"


def line_of(tool: str, uuid: str, key: str, value: str) -> str:
    """Return the line that sets a key."""
    words = [tool, "-i", uuid, _OPTIONS[key], value]
    if key == "power_limit":
        return own_unit.exec_line(words)
    words[0] = tool.rpartition("/")[2]  # systemd gives the shell the usual PATH
    return own_unit.shell_line(f"{' '.join(words)} && echo {value} > {gpu_clocks.mark_of(uuid, key)}")


def kept(place: Place, step: Step, uuid: str) -> str | None:
    """Return what our unit sets a key to for this GPU; None when it does not."""
    lines = UNIT.owned(place).lines.lines(name_of(step))
    found = _SETS.search(lines[0]) if lines else None
    return found[2] if found is not None and found[1] == uuid else None


def owner(place: Place, key: str) -> str:
    """Return another unit that sets a key at boot; "" when there is none."""
    if key not in _ALSO:
        return ""
    wanted = re.compile(rf"\bnvidia-smi\b.*\s(?:{'|'.join(_ALSO[key])})(?:\s|=|$)")
    for pattern in _OTHERS:
        for path in place.expand(pattern):
            if path != UNIT.path and any(wanted.search(line) for line in (place.text(path) or "").splitlines()):
                return path
    return ""


def persistence(place: Place) -> str:
    """Return persistence mode after the next boot: 1 where the daemon is started, and not told otherwise."""
    if not any(place.exists(f"{folder}/{DAEMON}") for folder in _FOLDERS) or not _is_started(place):
        return "0"
    modes = re.findall(r"--(no-)?persistence-mode\b", _command(place))
    return "0" if modes and modes[-1] else "1"


def _is_started(place: Place) -> bool:
    """Tell whether a target or a rule of udev starts the daemon; the driver's packages do it by either."""
    for folder in _FOLDERS:
        if any(place.expand(f"{folder}/*.{kind}/{DAEMON}") for kind in ("wants", "requires")):
            return True
    return any(
        "nvidia-persistenced" in line and not line.lstrip().startswith("#")
        for folder in _RULES
        for path in place.expand(f"{folder}/*nvidia*.rules")
        for line in (place.text(path) or "").splitlines()
    )


def _command(place: Place) -> str:
    """Return the daemon's ExecStart: the last that its unit and drop-ins give."""
    unit = next((f"{folder}/{DAEMON}" for folder in _FOLDERS if place.exists(f"{folder}/{DAEMON}")), "")
    found = ""
    for path in [unit, *place.drop_ins(*(f"{folder}/{DAEMON}.d/*.conf" for folder in _FOLDERS))]:
        for line in (place.text(path) or "").splitlines():
            name, sign, value = line.partition("=")
            if sign and name.strip() == "ExecStart":
                found = value
    return found
