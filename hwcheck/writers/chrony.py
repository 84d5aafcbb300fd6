"""
chrony's servers and directives, in files of ours beside the site's: ``90-hwcheck.conf`` and ``90-hwcheck.sources``.

Keys: ``servers`` (list with commas, each with options; ``iburst`` where it has none; those of others stay, ours become
these), and directives: ``makestep``, ``hwtimestamp``, ``rtcsync`` (value ``on``), ``maxdistance`` ... Source:
chrony.conf(5).

The files go where the configuration looks for them (confdir and sourcedir, as Debian's has; include). Where it looks
nowhere, as RHEL's, the step is refused with the line that is missing: chrony.conf is the site's. Servers are read
again by ``chronyc reload sources``; anything else by a restart of the service.

The clock is never stepped in passing: ``makestep`` without a limit (which steps at any time) is refused, and with a
limit counts from the next start; no restart is made while the clock is off or not synchronised, since the first
updates after it may step. Refused while another daemon keeps the clock; it is named. Facets are what the files say;
what chronyd has done with them, a check says.
"""

from __future__ import annotations

import re

from . import unit_property
from .change import file_change
from .chrony_files import SOURCES, lines, main_file, settings_file, sources_file
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Json, Place, WriteError
from .step import Step

_ADDING = ("hwtimestamp", "refclock")
_DIRECTIVES = (
    *_ADDING, "makestep", "rtcsync", "maxdistance", "maxupdateskew", "maxslewrate", "minsources", "leapsectz",
    "leapsecmode", "smoothtime",
)  # fmt: skip
_VALUE = re.compile(r"[A-Za-z0-9*./:_+ -]{1,200}")
_SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}( [a-z][a-z0-9]*| -?[0-9.]+)*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_UNITS = ("chrony.service", "chronyd.service")
_OTHERS = (
    "systemd-timesyncd.service", "ntpd.service", "ntp.service", "ntpsec.service", "openntpd.service",
    "phc2sys.service", "timemaster.service",
)  # fmt: skip
_SMALL = 0.1
"""Seconds that a clock may be off when chronyd is restarted: far below what distributions let it step (1 s)."""


@mechanism("chrony")
class Chrony(Mechanism):
    """Servers and directives of chrony."""

    def files(self, place: Place) -> list[Owned]:
        """Return our files."""
        paths = {settings_file(place), sources_file(place)} - {""}
        return [Owned(path, _owned(place, path)) for path in sorted(paths)]

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let chronyd read them; it is not known any more which has changed."""
        return [*_reload(place, steps), *_restart(place, steps)]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read what chronyd will take at its next start."""
        wanted = ", ".join(_servers(step.value)) if step.key == "servers" else _spelled(step.value)
        why = _not_understood(step) or _not_possible(place, step)
        if why:
            return unsupported(wanted, why)
        if step.key == "servers":
            there = [words[1] for _, words in lines(place) if words[0].lower() in SOURCES and len(words) > 1]
            asked = _servers(step.value)
            ours = _owned(place, sources_file(place)).lines("servers")
            is_ours = not ours or sorted(ours) == sorted(f"server {one}" for one in asked)
            is_there = is_ours and all(one.split()[0] in there for one in asked)
            return Facets(wanted, None, wanted if is_there else ", ".join(there) or "none")
        found = [(path, _spelled(" ".join(words[1:]) or "on")) for path, words in lines(place) if _is(words, step.key)]
        values = [value for _, value in found]
        if step.key in _ADDING:
            return Facets(wanted, None, wanted if wanted in values else ", ".join(values) or "none")
        refused = ""
        if found and found[-1][1] != wanted and _comes_after(place, found[-1][0], step.key):
            refused = f"{found[-1][0]} sets {step.key} to {values[-1]} after ours; its owner must change it"
        return Facets(wanted, None, values[-1] if values else "none", None, refused)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our files, and what lets chronyd read them."""
        changes: list[Json] = []
        commands: list[Command] = []
        for path in sorted({_file_of(place, step) for step in steps}):
            mine = [step for step in steps if _file_of(place, step) == path]
            owned = _owned(place, path)
            for step in mine:
                owned.put(step.key, _lines(step), step.id)
            numbers = [step.number for step in mine]
            change = file_change(place, path, owned.render(), numbers)
            changes += [change] if change is not None else []
            if path.endswith(".sources"):
                commands += _reload(place, numbers)
            elif any(step.key != "makestep" for step in mine):
                commands += _restart(place, numbers)
        return Proposal(changes, commands if changes else [])


def _servers(value: str) -> list[str]:
    names = [" ".join(one.split()) for one in value.split(",") if one.strip()]
    return [one if " " in one else f"{one} iburst" for one in names]


def _spelled(value: str) -> str:
    return " ".join(str(float(word)) if re.fullmatch(r"-?\d+(\.\d*)?", word) else word for word in value.split())


def _lines(step: Step) -> str:
    if step.key == "servers":
        return "\n".join(f"server {one}" for one in _servers(step.value))
    return step.key if step.value == "on" else f"{step.key} {step.value}"


def _owned(place: Place, path: str) -> OwnedFile:
    return OwnedFile(place.bytes_as_text(path), _key_of)


def _key_of(line: str) -> str:
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return "servers" if word == "server" else word if word in _DIRECTIVES else ""


def _is(words: list[str], directive: str) -> bool:
    return words[0].lower() == directive


def _file_of(place: Place, step: Step) -> str:
    return sources_file(place) if step.key == "servers" else settings_file(place)


def _comes_after(place: Place, path: str, directive: str) -> bool:
    """Tell whether a file sets a directive after ours would."""
    ours = settings_file(place)
    if path != main_file(place):
        return path.rpartition("/")[2] > ours.rpartition("/")[2]
    rows = [words for file, words in lines(place) if file == path]
    looks = [n for n, words in enumerate(rows) if words[0].lower() in ("confdir", "include")]
    return any(n > looks[0] for n, words in enumerate(rows) if _is(words, directive)) if looks else False


def _not_understood(step: Step) -> str:
    if step.key == "servers":
        bad = [one for one in _servers(step.value) if not _SERVER.fullmatch(one)]
        return f"no time server: {', '.join(bad)}" if bad or not _servers(step.value) else ""
    if step.key not in _DIRECTIVES:
        return f"{step.key!r} is none of servers, {', '.join(_DIRECTIVES)}"
    if not _VALUE.fullmatch(step.value):
        return f"{step.key}: {step.value!r} is no value of chrony.conf"
    if step.key == "makestep":
        words = step.value.split()
        if len(words) != 2 or not words[1].isdigit() or not 0 < int(words[1]) <= 10:
            return "makestep needs a threshold and a number of updates, 1 to 10: else the clock is stepped at any time"
    return ""


def _not_possible(place: Place, step: Step) -> str:
    main = main_file(place)
    if not main:
        return "chrony is not installed here"
    if not _file_of(place, step):
        folder = main.replace("chrony.conf", "conf.d") if main == "/etc/chrony/chrony.conf" else "/etc/chrony.d"
        word = "sourcedir" if step.key == "servers" else "confdir"
        return f'{main} looks for no further files: its owner must add the line "{word} {folder}"'
    others = _other_daemons(place)
    return (
        f"{', '.join(others)} keeps this clock; one daemon only may: its unit must be disabled first" if others else ""
    )


def _other_daemons(place: Place) -> list[str]:
    if place.is_image:
        return []
    known = [unit for unit in _OTHERS if unit_property.is_known(place, unit)]
    if not known:
        return []
    said = place.run(["systemctl", "show", "-p", "Id,ActiveState", *known], 20.0)
    blocks = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in said.split("\n\n"))
    return [block.get("Id", "?") for block in blocks if block.get("ActiveState") in ("active", "activating")]


def _reload(place: Place, steps: list[int]) -> list[Command]:
    return [Command(["chronyc", "reload", "sources"], steps)] if not place.is_image and _offset(place) != "" else []


def _restart(place: Place, steps: list[int]) -> list[Command]:
    """Return the restart of the service, where the clock would not be stepped by it."""
    unit = next((unit for unit in _UNITS if unit_property.is_known(place, unit)), "")
    offset = "" if place.is_image else _offset(place)
    if not unit or not offset or abs(float(offset)) > _SMALL:
        return []
    return [Command(["systemctl", "try-restart", unit], steps, 120.0)]


def _offset(place: Place) -> str:
    """Return by how many seconds the clock is off: "inf" while not synchronised, "" where chronyd is not there."""
    try:
        words = place.run(["chronyc", "-n", "-c", "tracking"], 20.0).strip().split(",")
    except WriteError:
        return ""
    if len(words) < 14 or words[-1] == "Not synchronised" or not _NUMBER.fullmatch(words[4]):
        return "inf"
    return words[4]
