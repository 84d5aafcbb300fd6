"""
Kernel arguments: running in /proc/cmdline, next boot as the boot loader has them (:mod:`.boot_loader`).

Key: name (``iommu``). Value: its value, empty for a bare flag; ``absent`` takes ours away. Of ``pci`` and ``console``,
which may stand several times, the value is among the others; such a key is retired by the whole word
(``pci=realloc=off``).

* Debian, Ubuntu: one line an argument in /etc/default/grub.d/90-hwcheck.cfg, which appends; then ``update-grub``.
* RHEL: ``grubby --update-kernel=KERNEL`` for each kernel there is, with the words of before in the journal, and
  /etc/kernel/cmdline for those to come. What is ours stands in /etc/kernel/90-hwcheck.conf. Of an image the entries
  themselves are written, since nothing is run there.

The verdict comes from the entries that the loader has, not from our file. Refused: ``pcie_aspm=off`` and ``=force``
(off leaves links as the firmware set them and locks the policy; force can hang machines), an argument that a file of
others or TuneD sets otherwise, and a node whose boot loader is not known.

A boot entry that is tried once and then made the default is not offered: GRUB keeps ``next_entry`` in a file that it
cannot write on every file system, and an entry of ours would have to follow every update of the kernel.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from . import boot_loader
from .arguments import ABSENT, SEVERAL, name_of, of_name, split, stated, with_word, word_of
from .boot_loader import BLS, INHERITED, OURS
from .change import PERSIST, Kind, file_change, kind
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Json, Place, WriteError
from .step import Step

RECORD = "/etc/kernel/90-hwcheck.conf"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_VALUE = re.compile(r"[^\s\"'\\$`]{0,2000}")
_PLAIN = re.compile(r"[\w.,:=/@+-]*")
_NEVER = {
    "pcie_aspm=off": "pcie_aspm=off does not turn ASPM off: it leaves links as the firmware set them and locks the "
    "policy; pcie_aspm.policy=performance turns it off",
    "pcie_aspm=force": "pcie_aspm=force overrides the firmware and can hang the machine",
}
_LONG = 300.0
_NEXT_BOOT = "counts from the next boot"


@mechanism("kernel_argument")
class KernelArgument(Mechanism):
    """Kernel arguments."""

    def files(self, place: Place) -> list[Owned]:
        """Return the file that says what is ours."""
        return [_owned(place)]

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let the boot loader's entries be made anew, where a file makes them."""
        if place.is_image or boot_loader.loader(place) == BLS:
            return []
        return [Command(["update-grub"], steps, _LONG)]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read an argument of the running kernel and of the entries."""
        refused = _not_allowed(step)
        if refused:
            return unsupported(step.value, refused)
        if not boot_loader.loader(place):
            return unsupported(
                step.value,
                "no boot loader that hwcheck knows has its settings here (neither GRUB's nor loader entries): "
                "whoever builds the image must set the argument",
            )
        running = None
        if not place.is_image:
            running = stated(split(place.text("/proc/cmdline") or ""), step.key, step.value)
        following = _next_boot(place, step)
        refused = _owner(place, step) if following != step.value else ""
        return Facets(step.value, running, following, None, refused, waits=_NEXT_BOOT)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our file, and the entries."""
        wrong = [step for step in steps if _next_boot(place, step) != step.value]
        owned = _owned(place)
        for step in wrong:
            word = word_of(step.key, step.value)
            owned.lines.put(_key_of_word(word), word if owned.path == RECORD else _line(word), step.id)
        numbers = [step.number for step in wrong]
        file = file_change(place, owned.path, owned.lines.render(owned.first), numbers) if wrong else None
        changes = [file] if file is not None else []
        if boot_loader.loader(place) == BLS:
            changes += _edits(place, [(step.number, word_of(step.key, step.value), "") for step in wrong])
        return Proposal(changes, self.after(place, numbers) if wrong else [])

    def retire(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose that our file and the entries no longer have what is ours."""
        held = self.held(place)
        proposal = super().retire(place, steps)
        if boot_loader.loader(place) != BLS:
            return proposal
        gone = [(step.number, "", held[step.key].line) for step in steps if step.key in held]
        return Proposal([*proposal.changes, *_edits(place, gone)], proposal.commands)


def _owned(place: Place) -> Owned:
    if boot_loader.loader(place) == BLS:
        text = place.bytes_as_text(RECORD)
        return Owned(RECORD, OwnedFile(text, lambda line: "" if line[:1] == "#" else _key_of_word(line)))
    return Owned(OURS, OwnedFile(place.bytes_as_text(OURS), _key_of))


def _key_of(line: str) -> str:
    words = [word for _, _, value in boot_loader.assignments(line) for word in split(value)[1:]]
    return _key_of_word(words[0]) if words else ""


def _key_of_word(word: str) -> str:
    return word if name_of(word) in SEVERAL else word.partition("=")[0]


def _line(word: str) -> str:
    """Return a line of GRUB's settings; what is special to GRUB's own language stands in quotes there."""
    spelled = word if _PLAIN.fullmatch(word) else f'\\"{word}\\"'
    return f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {spelled}"'


def _not_allowed(step: Step) -> str:
    if not _NAME.fullmatch(step.key):
        return f"{step.key!r} is no name of a kernel argument"
    if not _VALUE.fullmatch(step.value):
        return f"the value of {step.key} has blanks, quotes or signs of the shell, which boot loaders spell differently"
    if step.key in SEVERAL and not step.value:
        return f"{step.key} needs a value"
    return _NEVER.get(word_of(step.key, step.value), "")


def _next_boot(place: Place, step: Step) -> str:
    """Return what the entries say; where they do not agree, what the first says that is not as wanted."""
    found = [stated(words, step.key, step.value) for words in boot_loader.entries(place).values()]
    return next((one for one in found if one != step.value), found[0] if found else ABSENT)


def _owner(place: Place, step: Step) -> str:
    """Say who else sets an argument otherwise; "" when nobody does."""
    if step.key not in SEVERAL:
        for path, words in boot_loader.owners(place).items():
            others = [word for word in of_name(words, step.key) if word.partition("=")[2] != step.value]
            if others:
                return f"{path} sets {others[-1]}; its owner must change it, or leave it out"
    path = boot_loader.forgetful(place)
    return f"{path} assigns GRUB_CMDLINE_LINUX anew after ours; it must append to it" if path else ""


@kind("boot_argument")
class BootArgument(Kind):
    """All words of one name in the entries of one kernel, by grubby(8): it replaces the words of that name."""

    def look(self, place: Place, change: Json) -> Any:
        """Return the words, with blanks between; "" for none."""
        kernels = _kernels(place)
        if change["kernel"] not in kernels:
            raise WriteError(f"the kernel {change['kernel']} is no longer installed")
        return " ".join(of_name(kernels[change["kernel"]], change["key"]))

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Replace them."""
        what = f"--args={state}" if state else f"--remove-args={change['key']}"
        place.run(["grubby", f"--update-kernel={change['kernel']}", what], _LONG)


def _kernels(place: Place) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    kernel = ""
    for line in place.run(["grubby", "--info=ALL"]).splitlines():
        name, _, value = line.partition("=")
        if name == "kernel":
            kernel = value.strip('"')
        elif name == "args" and kernel:
            found[kernel] = split(value[1:-1] if value[:1] == '"' else value)
    return found


def _edits(place: Place, edits: list[tuple[int, str, str]]) -> list[Json]:
    """
    Propose entries of a kernel, and what those to come inherit.

    Args:
        place: of the node.
        edits: step, word to add, word to take away; "" for none.
    """
    changes: list[Json] = []
    numbers = [number for number, _, _ in edits]
    if place.exists(INHERITED) and edits:
        words = _edited(split(place.text(INHERITED) or ""), edits)
        change = file_change(place, INHERITED, " ".join(map(_quoted, words)) + "\n", numbers)
        changes += [change] if change is not None else []
    if place.is_image:
        for path in place.expand("/boot/loader/entries/*.conf") if edits else []:
            text = place.text(path) or ""
            words = _edited(split(boot_loader.options(text)), edits)
            change = file_change(
                place, path, boot_loader.with_options(text, [_quoted(word) for word in words]), numbers
            )
            changes += [change] if change is not None else []
        return changes
    for kernel, words in sorted(_kernels(place).items()) if edits else []:
        for name in sorted({name_of(add or gone) for _, add, gone in edits}):
            mine = [edit for edit in edits if name_of(edit[1] or edit[2]) == name]
            before, after = of_name(words, name), of_name(_edited(words, mine), name)
            if before != after:
                changes.append({
                    "kind": "boot_argument", "target": f"boot entry of {kernel}", "kernel": kernel,
                    "key": (mine[0][1] or mine[0][2]).partition("=")[0],
                    "before": " ".join(before), "after": " ".join(after), "phase": PERSIST,
                    "steps": [edit[0] for edit in mine],
                })  # fmt: skip
    return changes


def _edited(words: list[str], edits: list[tuple[int, str, str]]) -> list[str]:
    for _, add, gone in edits:
        words = [word for word in words if word != gone]
        words = with_word(words, add) if add else words
    return words


def _quoted(word: str) -> str:
    name, sign, value = word.partition("=")
    return word if shlex.split(word) == [word] else f'{name}{sign}"{value}"'
