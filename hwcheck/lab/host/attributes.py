"""
What an attribute of the kernel does when it is read or written: the rules of Linux, and a node's own exceptions.

The value lies in the node's tree, so that both forms of the lab show the same. What may be written, rules say
(:mod:`hwcheck.lab.actor.attribute`).

Where anything is taken, and no exception is made, a node has the file itself, writable: each read of an attribute that
we serve costs four messages, and a node has hundreds. For the same reason only the first eight CPUs refuse governors.

A node's ``attributes.json`` gives single attributes another behaviour: ``{"root/sys/...": {"write": "EPERM"}}``,
``{"read": "EIO"}``, ``{"read": "hang"}``: the reader waits and cannot be killed, as with a driver that does not answer;
``{"read": "die"}``: the node loses power.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from hwcheck.lab.actor.attribute import RULES, Rule, refusal, rule_of, store
from hwcheck.lab.actor.place import NODE
from hwcheck.lab.actor.place import Node as Place
from hwcheck.lab.actor.power import TRIGGER

TABLE, LOG = "attributes.json", "attributes.log"
HANG, DIE = "hang", "die"
_MOST = 65536


class Node:
    """
    A node's attributes: where their values lie, and what it does with them.

    Args:
        folder: of the node, with ``root`` and ``nvml``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.place = Place(str(folder))
        self._log = (folder / LOG).open("a", encoding="utf-8", buffering=1)
        self._table: dict[str, dict[str, str]] = {}
        self.read_table()

    def read_table(self) -> None:
        """Read the node's own behaviours anew."""
        try:
            self._table = json.loads((self.folder / TABLE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._table = {}

    def special(self) -> list[str]:
        """Return the paths that the node's own table names, below its folder."""
        return sorted(self._table)

    def behaviour(self, path: str, action: str) -> str:
        """Return what the node's own table says about reading or writing a path; "" for nothing."""
        return self._table.get(path, {}).get(action, "")

    def note(self, action: str, path: str, what: str) -> None:
        """Add a line to the attribute log: time, action, path, value or error."""
        self._log.write(f"{time.time():.6f} {action} {path} {what}\n")

    def close(self) -> None:
        """Close the log."""
        self._log.close()


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of one node; ``path`` is below the node's folder: ``root/sys/...``."""

    node: Node
    path: str
    rule: Rule | None

    @property
    def file(self) -> Path:
        """Where the value lies."""
        return self.node.folder / self.path

    @property
    def is_plain(self) -> bool:
        """Whether the file itself does what the attribute would."""
        return self.kind in ("bytes", "text") and self.path not in self.node.special()

    @property
    def kind(self) -> str:
        """What may be written; "" for nothing."""
        return self.rule.kind if self.rule else ""

    def read(self) -> bytes:
        """
        Return the value.

        Raises:
            OSError: as the driver behind it would.
        """
        self._refuse("read")
        value = self.file.read_bytes()
        self.node.note("read", self.path, "")
        return value

    def write(self, data: bytes, offset: int) -> None:
        """
        Take a value as the kernel would.

        Raises:
            OSError: it is none.
        """
        shown = repr(data[:200].decode("utf-8", "backslashreplace"))
        try:
            self._refuse("write")
            self._store(data, offset)
        except OSError as error:
            self.node.note("write", self.path, f"{shown} {errno.errorcode.get(error.errno or 0, 'error')}")
            raise
        self.node.note("write", self.path, shown)

    def _refuse(self, action: str) -> None:
        name = self.node.behaviour(self.path, action)
        if name and name not in (HANG, DIE):
            number = getattr(errno, name)
            raise OSError(number, os.strerror(number))

    def _store(self, data: bytes, offset: int) -> None:
        if self.rule is None or not self.rule.kind:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        if self.kind == "bytes":
            self._patch(data, offset)
            return
        if self.kind == "sysrq":
            return
        text = data.decode("utf-8", "replace").strip("\n\0 \t")
        if offset or len(data) > _MOST or "\n" in text:
            raise refusal(errno.EINVAL)
        store(self.node.place, self.path.removeprefix("root"), self.rule, text)

    def _patch(self, data: bytes, offset: int) -> None:
        size = self.file.stat().st_size
        if offset >= size:
            raise refusal(errno.EINVAL)
        with self.file.open("r+b") as file:
            file.seek(offset)
            file.write(data[: size - offset])


_TOPS = ("proc/sys", "proc/irq", "sys")
_ATTRIBUTE = re.compile("|".join(translate(rule.pattern) for rule in RULES))


def attributes_of(of: Node) -> list[tuple[str, Attribute]]:
    """Find the attributes of a node: path on the node → attribute."""
    found: dict[str, Attribute] = {}
    root = str(of.folder / "root")
    for top in _TOPS:
        for base, _, names in os.walk(f"{root}/{top}"):
            shown = base[len(root) :]
            for name in names:
                path = f"{shown}/{name}"
                if _ATTRIBUTE.match(path):
                    found[path] = Attribute(of, "root" + path, rule_of(path))
    if (of.folder / f"root{TRIGGER}").exists():
        found[TRIGGER] = Attribute(of, "root" + TRIGGER, rule_of(TRIGGER))
    for path in of.special():
        if (of.folder / path).is_file():
            place = path.removeprefix("root") if path.startswith("root/") else f"{NODE}/{path}"
            found[place] = Attribute(of, path, rule_of(place))
    return list(found.items())
