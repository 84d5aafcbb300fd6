"""
Packages that no update replaces: dpkg's selections by apt-mark(8), or dnf's versionlock plugin.

Key: package. Value: ``held`` or ``free``. On Debian and Ubuntu ``apt-mark hold`` writes the selection into dpkg's
database, which only dpkg's own tools may write. With dnf a line in /etc/dnf/plugins/versionlock.list names the exact
version that is installed (dnf-plugins-core, versionlock); the lines of others stay.

Refused: a package that is not installed, a node without versionlock (with what to install), and images: there is
nothing to ask which version is installed.
"""

from __future__ import annotations

import re
from typing import Any

from .change import PERSIST, Kind, file_change, kind
from .mechanism import Facets, Mechanism, Proposal, mechanism, unsupported
from .place import Json, Place, WriteError
from .step import Step

LIST = "/etc/dnf/plugins/versionlock.list"
_PLUGIN = "/etc/dnf/plugins/versionlock.conf"
HELD, FREE = "held", "free"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._:-]{0,127}")


@kind("hold")
class Hold(Kind):
    """The selection of one package in dpkg's database: whether it is held."""

    def look(self, place: Place, change: Json) -> Any:
        """Return held or free."""
        return HELD if change["target"] in place.run(["apt-mark", "showhold", change["target"]]).split() else FREE

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Hold it, or not."""
        place.run(["apt-mark", "hold" if state == HELD else "unhold", change["target"]], 120.0)


@mechanism("package_hold")
class PackageHold(Mechanism):
    """Packages kept at their version."""

    def facets(self, place: Place, step: Step) -> Facets:
        """Tell whether a package is held; it is the same now and after a boot."""
        if not _NAME.fullmatch(step.key) or step.value not in (HELD, FREE):
            return unsupported(step.value, f"{step.key} = {step.value!r}: a package can be {HELD} or {FREE}")
        if place.is_image:
            return unsupported(step.value, "packages of an image are held when it is built")
        if _is_dpkg(place):
            said = _installed(place, ["dpkg-query", "-W", "-f", "${db:Status-Status}", step.key], step.key)
            if said != "installed":
                return unsupported(step.value, f"the package {step.key} is not installed (dpkg says {said})")
            now = Hold().look(place, {"target": step.key})
        elif place.exists("/var/lib/rpm") or place.exists("/usr/lib/sysimage/rpm"):
            if not place.exists(_PLUGIN):
                why = "dnf cannot hold a version here: install python3-dnf-plugin-versionlock"
                return unsupported(step.value, why)
            now = HELD if _locked(place, step.key) else FREE
        else:
            return unsupported(step.value, "neither dpkg nor rpm keeps packages here")
        return Facets(step.value, now, now)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose the selections, or the file of locks."""
        if _is_dpkg(place):
            return Proposal([
                {"kind": "hold", "target": step.key, "before": FREE if step.value == HELD else HELD,
                 "after": step.value, "phase": PERSIST, "steps": [step.number]}
                for step in steps
            ], [])  # fmt: skip
        text = place.text(LIST) or ""
        for step in steps:
            text = _without(text, step.key)
            if step.value == HELD:
                text += f"{_mark(step.key)}, {step.id}\n{_version(place, step.key)}\n"
        change = file_change(place, LIST, text, [step.number for step in steps])
        return Proposal([change] if change is not None else [], [])


def _mark(package: str) -> str:
    return f"# hwcheck: {package}"


def _without(text: str, package: str) -> str:
    """Take our lock of a package out of the list; those of others stay as they are."""
    kept: list[str] = []
    ours = False
    for line in text.splitlines():
        if not ours and not line.startswith(_mark(package) + ","):
            kept.append(line)
        ours = line.startswith(_mark(package) + ",")
    return "".join(line + "\n" for line in kept)


def _is_dpkg(place: Place) -> bool:
    return place.exists("/var/lib/dpkg/status")


def _installed(place: Place, words: list[str], package: str) -> str:
    try:
        return place.run(words, 30.0).strip()
    except WriteError as error:
        raise WriteError(f"the package {package} is not installed ({error})") from None


def _version(place: Place, package: str) -> str:
    """Return what a lock names: name, epoch, version, release, any architecture."""
    form = "%{NAME}-%|EPOCH?{%{EPOCH}}:{0}|:%{VERSION}-%{RELEASE}.*"
    return _installed(place, ["rpm", "-q", "--qf", form, package], package).splitlines()[-1]


def _locked(place: Place, package: str) -> bool:
    wanted = _version(place, package)
    return wanted in (line.strip() for line in (place.text(LIST) or "").splitlines())
