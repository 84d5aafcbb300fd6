"""
What an attribute of the kernel does when it is read or written: the rules of Linux, and a node's own exceptions.

The value lies in the node's tree, so that both forms of the lab show the same. A rule says what may be written:

* choice: one of the words that it shows, of which the chosen one stands in brackets;
* word: one of the words in the file beside it that lists them;
* numbers: whole numbers within a range, as many as there are now;
* bytes: written where they are written, as in PCI config space;
* text: anything of one line;
* sysrq: ``b`` reboots the node at once, anything else does nothing.

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
from fnmatch import fnmatchcase, translate
from pathlib import Path

from hwcheck.lab.actor.place import NODE
from hwcheck.lab.actor.power import TRIGGER

TABLE, LOG = "attributes.json", "attributes.log"
HANG, DIE = "hang", "die"
_MOST = 65536
_BIG = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Rule:
    """
    What may be written to attributes.

    Attributes:
        pattern: of the path on the node, ``*`` also over slashes.
        kind: choice, word, numbers, bytes, text or sysrq.
        low, high: of numbers.
        among: for words: name of the file beside it.
    """

    pattern: str
    kind: str
    low: int = 0
    high: int = _BIG
    among: str = ""


RULES = (
    Rule("/sys/module/pcie_aspm/parameters/policy", "choice"),
    Rule("/sys/kernel/mm/transparent_hugepage/enabled", "choice"),
    Rule("/sys/kernel/mm/transparent_hugepage/defrag", "choice"),
    Rule("/sys/kernel/mm/hugepages/*/nr_hugepages", "numbers"),
    Rule("/sys/devices/system/cpu/cpufreq/policy[0-7]/scaling_governor", "word", among="scaling_available_governors"),
    Rule("/sys/devices/system/cpu/cpufreq/policy[0-7]/energy_performance_preference", "word",
         among="energy_performance_available_preferences"),
    Rule("/sys/devices/system/cpu/intel_pstate/no_turbo", "numbers", high=1),
    Rule("/sys/devices/system/clocksource/clocksource0/current_clocksource", "word", among="available_clocksource"),
    Rule("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", "text"),
    Rule("/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference", "text"),
    Rule("/sys/devices/*/config", "bytes"),
    Rule("/sys/devices/*/power/control", "text"),
    Rule("/sys/devices/*/link/l1_aspm", "numbers", high=1),
    Rule("/sys/devices/*/link/l0s_aspm", "numbers", high=1),
    Rule("/sys/devices/*/infiniband/*/tc/*/traffic_class", "text"),
    Rule("/sys/kernel/config/rdma_cm/*/default_roce_tos", "numbers", high=255),
    Rule("/proc/irq/*/smp_affinity_list", "text"),
    Rule("/proc/sys/vm/swappiness", "numbers", high=200),
    Rule("/proc/sys/vm/zone_reclaim_mode", "numbers", high=7),
    Rule("/proc/sys/kernel/numa_balancing", "numbers", high=2),
    Rule("/proc/sys/net/ipv4/conf/*/rp_filter", "numbers", high=2),
    Rule("/proc/sys/net/ipv4/tcp_congestion_control", "word", among="tcp_available_congestion_control"),
    Rule("/proc/sys/kernel/random/*", ""),
    Rule("/proc/sys/kernel/osrelease", ""),
    Rule("/proc/sys/kernel/hung_task_detect_count", ""),
    Rule("/proc/sys/net/ipv4/tcp_available_congestion_control", ""),
    Rule("/proc/sys/*", "numbers", low=-1),
    Rule("/proc/sysrq-trigger", "sysrq"),
)  # fmt: skip
"""The first that fits counts; an empty kind is read only."""


def rule_of(path: str) -> Rule | None:
    """Return the rule of a path on the node, or None for a plain file."""
    return next((rule for rule in RULES if fnmatchcase(path, rule.pattern)), None)


class Node:
    """
    A node's attributes: where their values lie, and what it does with them.

    Args:
        folder: of the node, with ``root`` and ``nvml``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
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
            raise _invalid()
        now = self.file.read_text(encoding="utf-8", errors="replace").strip()
        fresh = _WRITES[self.kind](self.rule, self.file, now, text)
        self.file.write_text(fresh + "\n", encoding="utf-8")

    def _patch(self, data: bytes, offset: int) -> None:
        size = self.file.stat().st_size
        if offset >= size:
            raise _invalid()
        with self.file.open("r+b") as file:
            file.seek(offset)
            file.write(data[: size - offset])


def _invalid() -> OSError:
    return OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _choose(_rule: Rule, _file: Path, now: str, text: str) -> str:
    words = [word.strip("[]") for word in now.split()]
    if text not in words:
        raise _invalid()
    return " ".join(f"[{word}]" if word == text else word for word in words)


def _one_of(rule: Rule, file: Path, _now: str, text: str) -> str:
    try:
        known = file.with_name(rule.among).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        known = [text]
    if text not in known:
        raise _invalid()
    return text


def _numbers(rule: Rule, _file: Path, now: str, text: str) -> str:
    words, had = text.split(), now.split()
    if not all(word.lstrip("-").isdecimal() for word in had):
        return text  # a parameter of words: the rule is of its folder
    if not words or len(words) > max(1, len(had)):
        raise _invalid()
    try:
        values = [int(word, 0) for word in words]
    except ValueError:
        raise _invalid() from None
    if any(not rule.low <= value <= rule.high for value in values):
        raise _invalid()
    return "\t".join([*map(str, values), *had[len(values) :]])


def _text(_rule: Rule, _file: Path, _now: str, text: str) -> str:
    return text


_WRITES = {"choice": _choose, "word": _one_of, "numbers": _numbers, "text": _text}


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
