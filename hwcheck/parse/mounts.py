"""
Mounts: what is mounted and how, and what the next boot would mount.

Source: ``/proc/self/mountinfo`` and ``/proc/mounts`` (proc(5)), ``/etc/fstab`` (fstab(5)).
Shape: ``storage.mount.*`` per mount point, for file systems on disks; network mounts by type only.
Units: none.
Missing: only mountinfo tells the mount's own flag from that of the file system: a mount for writing whose file system
is read-only was turned so by the kernel after an error. ``/proc/mounts`` shows ``ro`` for both. Mounts of containers
are left out: they come and go, and many are read-only by intent.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_DISK = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs")
_NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "wekafs", "cifs")
_OF_CONTAINERS = ("/var/lib/kubelet/", "/var/lib/docker/", "/var/lib/containers/", "/run/", "/snap/")
_GIVES = tuple(f"storage.mount.{name}" for name in ("device", "type", "options", "read_only"))
_OPTIONAL = {"noauto", "nofail", "x-systemd.automount", "_netdev"}
_ESCAPES = re.compile(r"\\(040|011|012|134)")
_MOST = 500


def _path(text: str) -> str:
    """Undo the kernel's octal escapes, but keep a path on one line."""
    return _ESCAPES.sub(lambda found: chr(int(found[1], 8)).replace("\n", " "), text)[:200]


def _kept(kind: str, where: str) -> bool:
    return kind in (*_DISK, *_NETWORK) and where.startswith("/") and not where.startswith(_OF_CONTAINERS)


@fmt(
    "proc.mountinfo",
    "/proc/self/mountinfo",
    gives=(*_GIVES, "storage.mount.forced", "storage.root"),
    opens=r"\d{1,7} \d{1,7} \d{1,5}:\d{1,7} /\S* /\S* (?:rw|ro)[,\w=-]* ",
    continues=r"^\d{1,7} \d{1,7} \d{1,5}:\d{1,7} \S+ /",
)
def mountinfo(output: Output, facts: FactSink) -> None:
    """Read each mount of a disk or network file system; of mounts on one path the last is seen."""
    seen: dict[str, tuple[int, list[str], list[str]]] = {}
    for number, line in enumerate(output.lines[: 20 * _MOST], output.first_line):
        left, _, right = line[:4096].partition(" - ")
        fields, behind = left.split(), right.split()
        if len(fields) >= 6 and len(behind) >= 2:
            seen[_path(fields[4])] = number, fields[5].split(","), behind
    for where, (number, own, behind) in seen.items():
        if where == "/":
            facts.put(NODE, "storage.root", behind[0][:30], number)
        if not _kept(behind[0], where) or len(behind) < 3:
            continue
        options = tuple(behind[2].split(",")[:60])
        of_system = "ro" in options or "emergency_ro" in options
        mount = _put(facts, where, behind[0], behind[1], options, number)
        facts.put(mount, "storage.mount.read_only", "ro" in own or of_system, number)
        facts.put(mount, "storage.mount.forced", "rw" in own and of_system, number)


def _put(facts: FactSink, where: str, kind: str, device: str, options: tuple[str, ...], line: int) -> Subject:
    mount = Subject("mount", where)
    facts.put(mount, "storage.mount.device", _path(device), line)
    facts.put(mount, "storage.mount.type", kind, line)
    facts.put(mount, "storage.mount.options", options, line)
    return mount


_NO_FSTAB = (
    r"(?!(?:PART)?(?:LABEL|UUID)=|\S{1,300}\s+\S{1,300}\s+\S{1,30}\s+\S{0,300}\b(?:defaults|nofail|noauto|_netdev)\b)"
)
"""A line of fstab may look like one of /proc/mounts; what it asks for is not what is mounted."""


@fmt(
    "proc.mounts",
    "/proc/mounts",
    gives=_GIVES,
    opens=_NO_FSTAB + r"\S{1,300} /\S{0,300} [a-z0-9._]{2,30} (?:rw|ro)(?:,[^\s,]+)* 0 0\s*$",
    continues=_NO_FSTAB + r"\S+ /\S* \S+ (?:rw|ro)\S* \d \d\s*$",
    command=r"\bcat\s+/(?:proc/(?:self/)?mounts|etc/mtab)\b",
)
def mounts(output: Output, facts: FactSink) -> None:
    """Read each mount; what the mount and what the file system says is not told apart here."""
    seen: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(output.lines[: 20 * _MOST], output.first_line):
        fields = line[:4096].split()
        if len(fields) == 6:
            seen[_path(fields[1])] = number, fields
    for where, (number, fields) in seen.items():
        if where == "/":
            facts.put(NODE, "storage.root", fields[2][:30], number)
        if not _kept(fields[2], where):
            continue
        options = tuple(fields[3].split(",")[:60])
        mount = _put(facts, where, fields[2], fields[0], options, number)
        facts.put(mount, "storage.mount.read_only", options[0] == "ro" or "emergency_ro" in options, number)


@fmt(
    "fstab",
    "/etc/fstab",
    gives=("storage.mount.needed",),
    command=r"\bcat\s+/etc/fstab\b",
)
def fstab(output: Output, facts: FactSink) -> None:
    """Read what the next boot mounts, and what it waits for."""
    for number, line in enumerate(output.lines[:_MOST], output.first_line):
        fields = line[:4096].split()
        if len(fields) < 4 or fields[0].startswith("#"):
            continue
        where, options = _path(fields[1]), fields[3].split(",")
        if not _kept(fields[2], where):
            continue
        mount, there = Subject("mount", where.rstrip("/") or "/"), Facet.NEXT_BOOT
        facts.put(mount, "storage.mount.read_only", "ro" in options, number, there)
        facts.put(mount, "storage.mount.needed", not _OPTIONAL.intersection(options), number, there)
