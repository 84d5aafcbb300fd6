"""Installed packages and held ones, of dpkg or rpm, without asking any server."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..place import Place, WriteError

_DPKG = "/var/lib/dpkg/status"
_LOCKS = ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list")


class Package(NamedTuple):
    """
    A package that is installed.

    Attributes:
        version: as the package manager spells it.
        held: no upgrade replaces it.
    """

    version: str
    held: bool

    @property
    def upstream(self) -> str:
        """The version without epoch and the distribution's part: ``570.124.06`` of ``1:570.124.06-0ubuntu1``."""
        found = re.match(r"(?:\d+:)?([0-9][0-9.]*[0-9])", self.version)
        return found[1] if found else self.version


def installed(place: Place) -> tuple[str, dict[str, Package]]:
    """
    Return the package manager and what is installed, by name.

    Raises:
        WriteError: this node has neither of both, or it cannot be asked.
    """
    text = place.text(_DPKG)
    if text:
        return "dpkg", _of_dpkg(text)
    said = place.run(["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"])
    rows = [line.split() for line in said.splitlines()]
    locks = "\n".join(place.text(path) or "" for path in _LOCKS)
    found = {row[0]: Package(row[1], _is_locked(row[0], locks)) for row in rows if len(row) == 2}
    if not found:
        raise WriteError("rpm lists no package")
    return "rpm", found


def _of_dpkg(text: str) -> dict[str, Package]:
    found = {}
    for block in text.split("\n\n"):
        pairs = (line.partition(": ") for line in block.splitlines() if not line.startswith(" "))
        fields = {name: value for name, sign, value in pairs if sign}
        status = fields.get("Status", "").split()
        if status[1:] == ["ok", "installed"] and "Package" in fields:
            found[fields["Package"]] = Package(fields.get("Version", ""), status[0] == "hold")
    return found


def _is_locked(name: str, locks: str) -> bool:
    return any(
        re.match(rf"(?:\d+:)?{re.escape(name)}-(?:\d+:)?[0-9*]", line.strip()) is not None
        for line in locks.splitlines()
        if not line.strip().startswith(("#", "!"))
    )
