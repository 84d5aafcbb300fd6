"""
Attributes of the kernel below /sys: running by one write each, next boot by tmpfiles.d(5) or a rule of udev(7).

Key: a path, with shell patterns (``/sys/devices/system/cpu/cpufreq/policy*/scaling_governor``): one line at boot, one
write for each match, each file once (the CPUs of a policy share theirs). Value: a word. How a text is compared follows
from the attribute: ``always [madvise] never`` by the word in brackets, numbers and lists of CPUs by what they mean.

Attributes of devices that appear after tmpfiles has run (links of PCI devices, network and RDMA devices) get a rule of
udev instead, which acts again when a driver is reloaded.

* Energy performance preference: intel_pstate refuses it (EBUSY) while the governor is performance (cpufreq
  documentation of the kernel); so it is written before that governor and after any other. The preference performance
  counts wherever the governor is performance, whatever is read.
* An offline CPU answers EBUSY: it is read three times, then left out.
* What TuneD's profile sets otherwise is TuneD's.
* ASPM policy: refused (EPERM) where the firmware keeps control, drivers/pci/pcie/aspm.c; then ``link/`` is there and
  empty on every device, or the FADT (offset 109, bit 4) says so. Whether links are off all the same, the check says.
"""

from __future__ import annotations

import errno
import os
import re
import time

from . import tmpfiles, tuned, udev
from .change import file_change, value_change
from .forms import FORMS
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned
from .place import Json, Place, words_of
from .step import Step

_KEY = re.compile(r"/sys/[^\x00-\x1f\x7f]{1,400}")
_LATE = re.compile(r"/sys/(?:bus/(?P<bus>pci)/devices|class/(?P<class>net|infiniband))/(?P<name>[^/]+)/(?P<rest>.+)")
_PREFERENCE, _GOVERNOR = "energy_performance_preference", "scaling_governor"
_ASPM = "/sys/module/pcie_aspm/parameters/policy"
_LINK = ("l0s_aspm", "l1_aspm", "clkpm", "l1_1_aspm", "l1_2_aspm")
_FADT, _NO_ASPM = "/sys/firmware/acpi/tables/FACP", (109, 1 << 4)
_TRIES, _PAUSE = 3, 0.05


@mechanism("attribute")
class Attribute(Mechanism):
    """Attributes below /sys."""

    def same(self, one: str, other: str) -> bool:
        """Compare what several attributes say: their words, not how many have which (``performance (8)``)."""
        first, second = (set(re.sub(r" \(\d+\)", "", text).split(", ")) for text in (one, other))
        return first == second

    def files(self, place: Place) -> list[Owned]:
        """Return our file for tmpfiles, and our rules."""
        return [Owned(tmpfiles.FILE, tmpfiles.owned(place)), udev.owned_rules(place, "attribute")]

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let udev read its rules; tmpfiles acts at boot."""
        return [] if place.is_image else udev.reload(steps)

    def facets(self, place: Place, step: Step) -> Facets:
        """Read all attributes that a key matches: one value where they agree, each with its count where not."""
        if not _KEY.fullmatch(step.key) or "/../" in step.key:
            return unsupported(step.value, f"{step.key!r} is no path below /sys")
        if not step.value:
            return unsupported(step.value, f"{step.key}: there is no value to write")
        found = {} if place.is_image else _counting(place, step, readings(place, step.key))
        if not place.is_image and not found:
            return unsupported(step.value, f"this node has no {step.key}")
        form = _form(step.value, found)
        values = sorted({FORMS[form](text) for text in found.values()})
        counts = [f"{one} ({sum(FORMS[form](text) == one for text in found.values())})" for one in values]
        running = None if place.is_image else values[0] if len(values) == 1 else ", ".join(counts)
        wanted = FORMS[form](step.value)
        following, over = _next_boot(place, step, sorted(found))
        told = ", ".join(sorted({FORMS[form](one) for one in following})) or None
        refused = _aspm_refusal(place) if step.key == _ASPM and running != wanted else ""
        if over and told != wanted:
            refused = f"{over} writes {told} to {step.key} at boot instead of ours; its owner must change it"
        theirs = tuned.attribute(place, step.key)
        if theirs is not None and not tuned.allows(theirs, step.value):
            name = tuned.profile(place)
            refused = (
                f"TuneD's profile {name} sets {step.key} to {theirs} at boot; change the profile, or disable TuneD"
            )
        return Facets(wanted, running, told, None, refused)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose the file, the rules, and one write for each attribute."""
        owned = tmpfiles.owned(place)
        early = [step for step in steps if rule_of(step) is None]
        for step in early:
            owned.put(step.key, tmpfiles.line_of(step.key, step.value), step.id)
        file = file_change(place, tmpfiles.FILE, owned.render(), [step.number for step in early])
        late = [(step, rule_of(step)) for step in steps]
        ruled = udev.rule_changes(place, [udev.Rule(step.key, line, step) for step, line in late if line is not None])
        changes: list[Json] = [*([file] if file is not None and early else []), *ruled.changes]
        if not place.is_image:
            changes += _in_order(_writes(place, steps))
        return Proposal(changes, ruled.commands)

    def retire(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose that neither file holds these; udev reads its own only when that has changed."""
        changes, commands = super().retire(place, steps)
        return Proposal(changes, commands if any(change["target"] == udev.FILE for change in changes) else [])


def readings(place: Place, key: str) -> dict[str, str]:
    """
    Return what the attributes that a key matches say, each file once; offline CPUs are left out.

    Raises:
        OSError: one cannot be read for another reason.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    for path in place.expand(key):
        real = os.path.realpath(place.real(path))
        if real in seen or os.path.isdir(real):
            continue
        seen.add(real)
        text = _patiently(place, path)
        if text is not None:
            found[path] = text
    return found


def _patiently(place: Place, path: str) -> str | None:
    for left in range(_TRIES - 1, -1, -1):
        try:
            return place.text(path)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EAGAIN):
                raise
            if left:
                time.sleep(_PAUSE)
    return None


def _counting(place: Place, step: Step, found: dict[str, str]) -> dict[str, str]:
    """Return what counts: the governor performance acts as that preference, whatever the attribute says."""
    if not step.key.endswith(_PREFERENCE) or step.value != "performance":
        return found
    governors = {path: _patiently(place, path.replace(_PREFERENCE, _GOVERNOR)) for path in found}
    return {path: step.value if (governors[path] or "").strip() == step.value else found[path] for path in found}


def rule_of(step: Step) -> str | None:
    """Return the rule of udev that keeps an attribute of a device that appears late; None for any other."""
    found = _LATE.fullmatch(step.key)
    if found is None:
        return None
    subsystem = found["bus"] or found["class"]
    # A network interface gets its name after it was added: that is told as a move.
    action = "add|move" if subsystem == "net" else "add|bind" if subsystem == "pci" else "add"
    return (
        f'ACTION=="{action}", SUBSYSTEM=="{subsystem}", KERNEL=={udev.quoted(found["name"])}, '
        f"ATTR{{{found['rest']}}}={udev.quoted(step.value)}"
    )


def _next_boot(place: Place, step: Step, paths: list[str]) -> tuple[list[str], str]:
    if rule_of(step) is None:
        return tmpfiles.next_boot(place, step.key, paths)
    is_ours = udev.rules(place, "attribute").get(step.key) == rule_of(step)
    return ([step.value] if is_ours else []), ""


def _form(value: str, found: dict[str, str]) -> str:
    """Tell how the attributes' texts are compared."""
    texts = list(found.values())
    if any(re.search(r"\[\S+\]", text) for text in texts):
        return "choice"
    if re.fullmatch(r"\d+(?:[-,]\d+)+", value) or any(re.fullmatch(r"\d+(?:[-,]\d+)+", text.strip()) for text in texts):
        return "cpus"
    return "numbers" if re.fullmatch(r"[-+]?(?:0x[0-9a-fA-F]+|\d+)(?:\s+\d+)*", value) else "text"


def _writes(place: Place, steps: list[Step]) -> list[Json]:
    changes = []
    for step in steps:
        found = _counting(place, step, readings(place, step.key))
        form = _form(step.value, found)
        for path in (path for path, text in found.items() if FORMS[form](text) != FORMS[form](step.value)):
            change = value_change(place, path, form, step.value, [step.number])
            if change is not None:
                changes.append(change)
    return changes


def _in_order(changes: list[Json]) -> list[Json]:
    """Put governors that let a preference be written before it, and the one that does not after it."""

    def rank(change: Json) -> int:
        if change["target"].endswith("/" + _GOVERNOR):
            return 2 if change["after"] == "performance" else 0
        return 1

    return sorted(changes, key=rank)


def _aspm_refusal(place: Place) -> str:
    """Say why the policy cannot be written, as far as that can be told without a try; "" when it cannot."""
    if place.is_image:
        return ""
    if "pcie_aspm=off" in (place.text("/proc/cmdline") or "").split():
        return "the kernel argument pcie_aspm=off locks the ASPM policy and leaves links as the firmware set them"
    try:
        table = place.read(_FADT) or b""
    except OSError as error:
        return "" if error.errno in (errno.EACCES, errno.EPERM) else words_of(error)
    offset, bit = _NO_ASPM
    if len(table) > offset + 1 and table[offset] & bit:
        return "the firmware keeps control of ASPM (its ACPI FADT says so); the kernel lets nobody change the policy"
    links = place.expand("/sys/bus/pci/devices/*/link")
    if links and not any(place.exists(f"{link}/{name}") for link in links for name in _LINK):
        return "the firmware keeps control of ASPM: the kernel manages it on no link of this node"
    return ""
