"""
Units of our own that bring a value about again: at boot, and whenever the device or its driver comes anew.

A unit is one fixed file; what it does stands in drop-ins, ``NAME.d/settings.conf``, one ``ExecStart=`` a key with the
check that asked for it. Of a template (``hwcheck-qos@.service``) each device has a drop-in of its own. Unit and links
go with the last setting. Nothing of hwcheck itself is left on the node: the lines run tools that are there.

Source: systemd.service(5): a oneshot runs all its ExecStart in turn; ``-`` before one lets the next run where it fails
(one GPU that is gone must not keep the others from their setting). systemd.device(5): SYSTEMD_WANTS of a rule of udev
starts a unit each time the device appears.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import NamedTuple

from .change import file_change
from .mechanism import Command
from .owned_file import Owned, OwnedFile
from .place import Json, Place, WriteError
from .planned import Planned
from .symlink import link_change

FOLDER = "/etc/systemd/system"
FIRST = "[Service]\n"
_TOOLS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")
_INSTANCE = re.compile(r"[A-Za-z0-9:_.-]{1,64}")


class OwnUnit(NamedTuple):
    """
    A unit of ours.

    Attributes:
        name: ``hwcheck-gpu.service``, or a template ``hwcheck-qos@.service``.
        text: of its file.
        wanted_by: units whose ``.wants`` folder has a link to it.
    """

    name: str
    text: str
    wanted_by: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where its file is."""
        return f"{FOLDER}/{self.name}"

    def settings(self, instance: str = "") -> str:
        """Return the drop-in of an instance; of the unit itself where it is no template."""
        return f"{FOLDER}/{self.name.replace('@.', f'@{instance}.')}.d/settings.conf"

    def owned(self, place: Place, instance: str = "", prefix: str = "") -> Owned:
        """Return the drop-in as a file of ours."""
        path = self.settings(instance)
        return Owned(path, OwnedFile(place.bytes_as_text(path), None), FIRST, prefix)

    def instances(self, place: Place) -> list[str]:
        """Return the instances that have settings; one empty name for a unit that is no template."""
        pattern = self.settings("*")
        before, _, after = pattern.partition("*")
        found = place.expand(pattern)
        return [path[len(before) : len(path) - len(after)] for path in found] if after else [""] * len(found)


def unit_changes(place: Place, unit: OwnUnit, files: list[Owned], steps: list[int]) -> list[Json]:
    """
    Propose drop-ins as they stand in memory, and with them the unit and its links.

    Args:
        place: of the node.
        unit: ours.
        files: drop-ins, changed by the caller.
        steps: which steps want it.
    """
    found: list[Json | None] = [file_change(place, one.path, one.lines.render(one.first), steps) for one in files]
    changes = [change for change in found if change is not None]
    return [*changes, *frame_changes(place, unit, changes, steps)]


def frame_changes(place: Place, unit: OwnUnit, changes: list[Json], steps: list[int]) -> list[Json]:
    """Propose the unit itself and its links: there with the first setting, gone with the last."""
    states = dict(place.states) if isinstance(place, Planned) else {}
    states.update({change["target"]: change["after"] for change in changes if change["kind"] == "file"})
    view = Planned(place, states)
    text = unit.text if view.expand(unit.settings("*")) else None
    found = [file_change(place, unit.path, text, steps)]
    for other in unit.wanted_by:
        link = f"{FOLDER}/{other}.wants/{unit.name}"
        found.append(link_change(place, link, None if text is None else unit.path, steps))
    return [change for change in found if change is not None]


def reload_units(place: Place, changes: list[Json]) -> list[Command]:
    """Return what lets systemd read changed units."""
    numbers = sorted({number for change in changes if FOLDER in change["target"] for number in change["steps"]})
    return [Command(["systemctl", "daemon-reload"], numbers)] if numbers and not place.is_image else []


def exec_line(words: list[str]) -> str:
    """
    Spell a command as a unit has it; it may fail without keeping the next from running.

    Raises:
        WriteError: a word that no unit can hold.
    """
    return "ExecStart=-" + " ".join(_word(word) for word in words)


def shell_line(script: str) -> str:
    """Spell a command of the shell as a unit has it, where no program does the same."""
    if "'" in script or "\n" in script:
        raise WriteError(f"cannot be written in a unit: {script[:80]!r}")
    return f"ExecStart=-/bin/sh -c '{script.replace('%', '%%').replace('$', '$$')}'"


def check_instance(name: str) -> str:
    """
    Return a name that can be that of an instance.

    Raises:
        WriteError: it cannot.
    """
    if not _INSTANCE.fullmatch(name) or name in (".", ".."):
        raise WriteError(f"no name of a device: {name[:80]!r}")
    return name


def find_tool(place: Place, name: str) -> str:
    """Return the path of a program of the node, as a unit or a rule names it; "" when it is not installed."""
    for folder in _TOOLS:
        if place.exists(f"{folder}/{name}"):
            return f"{folder}/{name}"
    if place.root and not place.is_image and shutil.which(name, path=os.environ.get("PATH")):
        return f"/usr/bin/{name}"
    return ""


def _word(word: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9/_:.,=@%+-]+", word):
        raise WriteError(f"cannot be written in a unit: {word[:80]!r}")
    return word.replace("%", "%%")
