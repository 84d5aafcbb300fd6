"""
Kernel parameters: running under /proc/sys, next boot by drop-ins, ours last in ``/etc/sysctl.d/90-hwcheck.conf``.

Source: sysctl.d(5); systemd-sysctl reads the files of all folders sorted by name, one in /etc masks the same name
elsewhere, and the last assignment wins. /etc/sysctl.conf counts only where a link leads to it (Debian: 99-sysctl.conf).
Key: name as sysctl prints it (``net.ipv4.conf.ens1f0.rp_filter``). Value: numbers. Never ``sysctl -p``: each value is
written itself, so that one refused does not hide behind the others.

Refused: a key that this kernel does not have (never created: ``dev.ib_uverbs.max_devices`` does not exist), one that
another file sets otherwise *after* ours (its owner is named), one that the kernel does not let write. The effective
value of ``arp_announce``, ``arp_ignore`` and ``rp_filter`` is the greater of the interface's own and that of ``all``.
Keys of an interface that appears after systemd-sysctl has run are set by udev (99-systemd.rules of systemd).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from . import tuned
from .change import file_change, value_change
from .forms import numbers
from .mechanism import Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Json, Place
from .step import Step

FILE = "/etc/sysctl.d/90-hwcheck.conf"
_FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
_KEY = re.compile(r"[a-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_@/:-]+)+")
_GREATER = re.compile(r"net\.ipv4\.conf\.(.+)\.(arp_announce|arp_ignore|rp_filter)")


@mechanism("sysctl")
class Sysctl(Mechanism):
    """Kernel parameters."""

    def files(self, place: Place) -> list[Owned]:
        """Return our drop-in."""
        return [Owned(FILE, OwnedFile(place.bytes_as_text(FILE), _key_of))]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a parameter; for an image its value at the next boot."""
        key, wanted = step.key, numbers(step.value)
        if not _KEY.fullmatch(key):
            return unsupported(wanted, f"{key!r} is no name of a kernel parameter")
        path = path_of(key)
        running = None
        if not place.is_image:
            text = place.text(path)
            if text is None:
                return unsupported(wanted, f"this kernel has no parameter {key}")
            running = numbers(text)
        following, owner = next_boot(place, key)
        refused = ""
        if owner and following != wanted:
            refused = f"{owner} sets {key} to {following} after {FILE}; its owner must change it, or leave it out"
        theirs = tuned.parameter(place, key)
        if theirs is not None and not tuned.allows(theirs, wanted):
            refused = (
                f"TuneD's profile {tuned.profile(place)} sets {key} to {theirs} after sysctl.d; change the profile"
            )
        return Facets(wanted, running, following, _effective(place, key, running), refused)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our drop-in, then the running values."""
        owned = OwnedFile(place.bytes_as_text(FILE), _key_of)
        for step in steps:
            if next_boot(place, step.key)[0] != numbers(step.value):
                owned.put(step.key, f"{step.key} = {step.value}", step.id)
        changes: list[Json | None] = [file_change(place, FILE, owned.render(), [step.number for step in steps])]
        if not place.is_image:
            changes += [value_change(place, path_of(step.key), "numbers", step.value, [step.number]) for step in steps]
        return Proposal([change for change in changes if change is not None], [])


def path_of(key: str) -> str:
    """Return the file of a parameter; an interface's dots are written as slashes in its name."""
    return "/proc/sys/" + key.translate({ord("."): "/", ord("/"): "."})


def next_boot(place: Place, key: str) -> tuple[str | None, str]:
    """
    Return what the drop-ins set a parameter to, and the file that has the last word.

    Returns:
        The value, None when none sets it; and the file, "" when it is ours or one that ours comes after.
    """
    by_name: tuple[str, str] | None = None
    by_pattern: tuple[str, str] | None = None
    for path in place.drop_ins(*(f"{folder}/*.conf" for folder in _FOLDERS)):
        for name, value in _assignments(place.text(path) or ""):
            if name == key:
                by_name = value, path
            elif "*" in name and _matches(key, name):
                by_pattern = value, path
    winner = by_name or by_pattern
    if winner is None:
        return None, ""
    later = winner[1].rpartition("/")[2] > FILE.rpartition("/")[2]
    return numbers(winner[0]), winner[1] if later else ""


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Go through what a file sets; where a slash comes first, dots and slashes change places."""
    for line in text.splitlines():
        name, sign, value = line.strip().lstrip("-").partition("=")
        name = name.strip()
        if not sign or name[:1] in ("#", ";"):
            continue
        if next((char for char in name if char in "./"), ".") == "/":
            name = name.translate({ord("/"): ".", ord("."): "/"})
        yield name, value.strip()


def _matches(key: str, pattern: str) -> bool:
    parts, wanted = key.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _effective(place: Place, key: str, running: str | None) -> str | None:
    found = _GREATER.fullmatch(key)
    if found is None or running is None or found[1] in ("all", "default"):
        return None
    of_all = place.text(f"/proc/sys/net/ipv4/conf/all/{found[2]}")
    if of_all is None or not of_all.strip().isdigit() or not running.isdigit():
        return None
    return str(max(int(of_all), int(running)))


def _key_of(line: str) -> str:
    name, sign, _ = line.partition("=")
    return name.strip() if sign and name.strip()[:1] not in ("#", ";", "") else ""
