"""
What TuneD sets when it loads its profile, after files of tmpfiles.d have been read: it owns that then.

Source: tuned.conf(5), tuned-main.conf(5): ``[main] include=`` names profiles that come first; a section is of the type
that its name or ``type=`` says; ``>`` before a number means at least. TuneD counts where its service is enabled. Kernel
parameters of sysctl.d are set again after those of the profile (``reapply_sysctl``, on by default), so that ours win.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from .place import Place

_ACTIVE = "/etc/tuned/active_profile"
_FOLDERS = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_ENABLED = "/etc/systemd/system/*.wants/tuned.service"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_DEEPEST = 8
_OPTIONS = {
    "/cpufreq/scaling_governor": ("cpu", ("governor",)),
    "/cpufreq/energy_performance_preference": ("cpu", ("energy_performance_preference",)),
    "/sys/kernel/mm/transparent_hugepage/enabled": ("vm", ("transparent_hugepages", "transparent_hugepage")),
    "/sys/kernel/mm/transparent_hugepage/defrag": ("vm", ("transparent_hugepage.defrag",)),
}
"""End of an attribute's path → type of the section, and its options."""

Settings = dict[tuple[str, str], str]
"""Type of section and option → value."""


def profile(place: Place) -> str:
    """Return the name of the profile that TuneD loads at boot; "" for none."""
    return (place.text(_ACTIVE) or "").strip() if place.expand(_ENABLED) else ""


def attribute(place: Place, key: str) -> str | None:
    """Return what the profile sets an attribute to; None where it leaves it alone."""
    settings = _all(place)
    for end, (kind, options) in _OPTIONS.items():
        found = next((settings[kind, option] for option in options if (kind, option) in settings), None)
        if key.endswith(end) and found is not None:
            return found
    for (kind, path), value in settings.items():
        if kind == "sysfs" and (fnmatchcase(key, path) or fnmatchcase(path, key)):
            return value
    return None


def parameter(place: Place, key: str) -> str | None:
    """Return what the profile sets a kernel parameter to; None where sysctl.d comes after it, or it leaves it alone."""
    main = place.text("/etc/tuned/tuned-main.conf") or ""
    if not re.search(r"^\s*reapply_sysctl\s*=\s*(?:0|false|no|off)\b", main, re.MULTILINE | re.IGNORECASE):
        return None
    return _all(place).get(("sysctl", key))


def allows(theirs: str, wanted: str) -> bool:
    """Tell whether a value of a profile leaves ours: the same, one of several, or a bound that ours keeps."""
    bound = re.fullmatch(r"([<>])\s*(\d+)", theirs)
    if bound and wanted.isdigit():
        return int(wanted) >= int(bound[2]) if bound[1] == ">" else int(wanted) <= int(bound[2])
    return wanted == theirs.split("|", maxsplit=1)[0].strip()


def _all(place: Place) -> Settings:
    settings: Settings = {}
    for name in profile(place).split():
        settings.update(_settings(place, name, 0))
    return settings


def _settings(place: Place, name: str, depth: int) -> Settings:
    """Read a profile and those that it includes."""
    text = None
    for folder in _FOLDERS if _NAME.fullmatch(name) and depth < _DEEPEST else ():
        text = place.text(f"{folder}/{name}/tuned.conf") if text is None else text
    own: Settings = {}
    included: Settings = {}
    section = kind = ""
    for line in (text or "").splitlines():
        header = re.match(r"\s*\[(.+)\]", line)
        option, sign, value = (part.strip() for part in line.partition("="))
        if header:
            section = kind = header[1]
        elif not sign or option[:1] in ("#", ";"):
            continue
        elif section == "main" and option == "include":
            for other in re.split(r"[,;\s]+", value):
                included.update(_settings(place, other, depth + 1))
        elif option == "type":
            kind = value
        else:
            own[kind, option] = value
    return {**included, **own}
