"""
Where the boot loader has its kernel arguments from, and what it really has.

grub  Debian, Ubuntu: ``update-grub`` makes /boot/grub/grub.cfg from /etc/default/grub and /etc/default/grub.d/*.cfg,
      shell files read in the order of their names. GRUB_CMDLINE_LINUX is part of every entry, recovery included; after
      it comes GRUB_CMDLINE_LINUX_DEFAULT in the others.
bls   RHEL: /boot/loader/entries/*.conf (Boot Loader Specification), edited by grubby(8); a kernel that is installed
      later takes the arguments of /etc/kernel/cmdline where it is there (kernel-install(8)), else of the running one.

Source: GRUB's util/grub-mkconfig.in and util/grub.d/10_linux.in.
"""

from __future__ import annotations

import re
import shlex

from .arguments import split
from .place import Place

GRUB, BLS = "grub", "bls"
OURS = "/etc/default/grub.d/90-hwcheck.cfg"
INHERITED = "/etc/kernel/cmdline"
_CFG = "/boot/grub/grub.cfg"
_ENTRIES = "/boot/loader/entries/*.conf"
_TUNED = "/etc/tuned/bootcmdline"
_ASSIGN = re.compile(r"\s*(?:export\s+)?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)(\+?=)(.*)")
_RESCUE = ("single", "recovery", "systemd.unit=rescue.target", "rescue")


def loader(place: Place) -> str:
    """Return which kind this node has; "" for none that is known."""
    if place.exists(_CFG):
        return GRUB
    if place.expand(_ENTRIES):
        return BLS
    if place.is_image and (place.exists("/etc/default/grub") or place.exists("/etc/default/grub.d")):
        return BLS if place.exists(INHERITED) else GRUB
    return ""


def entries(place: Place) -> dict[str, list[str]]:
    """Return each entry that is no rescue, and its arguments; of an image, what its entries will be made from."""
    if loader(place) == BLS:
        found = {path: split(options(place.text(path) or "")) for path in place.expand(_ENTRIES)}
        if place.is_image and not found:
            found = {INHERITED: split(place.text(INHERITED) or "")}
        return {path: words for path, words in found.items() if "-0-rescue" not in path}
    if place.is_image:
        return {OURS: configured(place)}
    lines = re.findall(r"^\s*linux(?:efi|16)?\s+\S*vmlinu\S*\s+(.*)$", place.text(_CFG) or "", re.MULTILINE)
    words = {f"entry {number + 1}": split(line) for number, line in enumerate(lines)}
    return {name: one for name, one in words.items() if not any(word in one for word in _RESCUE)}


def options(entry: str) -> str:
    """Return the arguments of an entry of the Boot Loader Specification."""
    found = re.findall(r"^options\s+(.*)$", entry, re.MULTILINE)
    return " ".join(found)


def with_options(entry: str, words: list[str]) -> str:
    """Return an entry with other arguments."""
    line = "options " + " ".join(words)
    kept = [one for one in entry.splitlines() if not re.match(r"options\s", one)]
    place = next((n for n, one in enumerate(entry.splitlines()) if re.match(r"options\s", one)), len(kept))
    return "\n".join([*kept[:place], line, *kept[place:]]) + "\n"


def assignments(text: str) -> list[tuple[str, str, str]]:
    """Return variable, sign and value of what a file of GRUB's settings assigns to arguments."""
    found = []
    for line in text.splitlines():
        match = _ASSIGN.match(line)
        if match is None:
            continue
        try:
            words = shlex.split(match[3], comments=True)
        except ValueError:
            continue  # goes on in the next line: not understood, so nothing is said of it
        found.append((match[1], match[2], words[0] if words else ""))
    return found


def configured(place: Place) -> list[str]:
    """Return the arguments of a normal entry that update-grub would make."""
    values = {"GRUB_CMDLINE_LINUX": "", "GRUB_CMDLINE_LINUX_DEFAULT": ""}
    for path in _settings(place):
        for name, sign, value in assignments(place.text(path) or ""):
            filled = re.sub(r"\$\{?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)\b\}?", lambda found: values[found[1]], value)
            values[name] = values[name] + filled if sign == "+=" else filled
    return [word for value in values.values() for word in split(value)]


def _settings(place: Place) -> list[str]:
    first = ["/etc/default/grub"] if place.exists("/etc/default/grub") else []
    return first + place.expand("/etc/default/grub.d/*.cfg")


def owners(place: Place) -> dict[str, list[str]]:
    """Return files of others that set arguments, and what they set."""
    found: dict[str, list[str]] = {}
    if loader(place) == GRUB:
        for path in _settings(place):
            if path != OURS:
                values = [value for _, _, value in assignments(place.text(path) or "")]
                found[path] = [word for value in values for word in split(value)]
    tuned = re.search(r'^TUNED_BOOT_CMDLINE="?(.*?)"?$', place.text(_TUNED) or "", re.MULTILINE)
    if tuned:
        found[f"TuneD ({_TUNED})"] = split(tuned[1])
    return found


def forgetful(place: Place) -> str:
    """Return the file that assigns the arguments anew after ours, so that ours is lost; "" for none."""
    for path in _settings(place):
        for name, sign, value in assignments(place.text(path) or ""):
            anew = name == "GRUB_CMDLINE_LINUX" and sign == "=" and "GRUB_CMDLINE_LINUX" not in value
            if anew and path.rpartition("/")[2] > OURS.rpartition("/")[2] and path != "/etc/default/grub":
                return path
    return ""
