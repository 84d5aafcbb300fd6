"""The tree of a lab node: everything that it shows as files, rendered from its machine and put on disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hwcheck.lab import tree_host, tree_kernel, tree_pci, tree_rdma
from hwcheck.lab.machine import Machine
from hwcheck.lab.render import File, Link, Planter, Tree

VOLATILE = ("/proc/", "/sys/", "/dev/", "/run/")
"""What a reboot makes anew; everything else stays on the node's disk."""


def render(machine: Machine) -> Tree:
    """Return the files of a node: path → content or link. The form of a lab that serves files asks here too."""
    files = Planter()
    for part in (tree_pci, tree_rdma, tree_host, tree_kernel):
        part.plant(machine, files)
    return files.tree


def write(root: Path, tree: Tree) -> None:
    """Put files and links below a root; what is there under their names is replaced."""
    made: set[Path] = set()
    for path, entry in tree.items():
        target = root / path.lstrip("/")
        folder = target if path.endswith("/") else target.parent
        if folder not in made:
            folder.mkdir(parents=True, exist_ok=True)
            made.add(folder)
        if path.endswith("/"):
            continue
        if isinstance(entry, Link):
            target.unlink(missing_ok=True)
            target.symlink_to(entry.target)
        else:
            _write(target, entry)


def _write(target: Path, entry: File) -> None:
    if target.is_symlink():
        target.unlink()
    target.write_bytes(entry.content)
    if entry.mode != 0o644:
        target.chmod(entry.mode)


def update(root: Path, before: Tree, after: Tree) -> list[str]:
    """
    Change on disk what differs between two trees, and nothing else: what a remedy has written elsewhere stays.

    Returns:
        Paths that were written or taken away.
    """
    changed = {path: entry for path, entry in after.items() if before.get(path) != entry}
    gone = [path for path in before if path not in after]
    for path in gone:
        target = root / path.strip("/")
        if path.endswith("/"):
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
            _prune(target.parent, root)
    write(root, changed)
    return sorted([*changed, *gone])


def _prune(folder: Path, root: Path) -> None:
    """Take away folders that have become empty: a device that is gone has none."""
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def restore(root: Path, wanted: Tree) -> None:
    """Make what lies below a root the same as a tree: what is not in it goes, what differs is written."""
    for path in sorted(root.rglob("*"), reverse=True):  # what is in a folder before the folder
        name = "/" + str(path.relative_to(root))
        if name in wanted or f"{name}/" in wanted:
            continue
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif not any(path.iterdir()):
            path.rmdir()
    write(root, {path: entry for path, entry in wanted.items() if not _is_there(root / path.strip("/"), path, entry)})


def _is_there(target: Path, path: str, entry: File | Link) -> bool:
    try:
        if isinstance(entry, Link):
            return str(target.readlink()) == entry.target
        if path.endswith("/"):
            return target.is_dir()
        return not target.is_symlink() and target.read_bytes() == entry.content
    except OSError:
        return False


def volatile(tree: Tree) -> Tree:
    """Return the part of a tree that a reboot makes anew."""
    return {path: entry for path, entry in tree.items() if path.startswith(VOLATILE)}


def renew_volatile(root: Path, tree: Tree) -> None:
    """Make what does not outlive a reboot that of a tree; what is the same is not written again."""
    wanted = volatile(tree)
    folders = {path[:at] for path in wanted for at, sign in enumerate(path) if sign == "/"}
    top = str(root)
    for folder in VOLATILE:
        for base, inner, names in os.walk(top + folder.rstrip("/"), topdown=False):
            here = base[len(top) :]
            for name in names:
                if f"{here}/{name}" not in wanted:
                    (root / base / name).unlink()
            for name in inner:
                place = root / base / name
                if place.is_symlink():
                    if f"{here}/{name}" not in wanted:
                        place.unlink()
                elif f"{here}/{name}" not in folders:
                    place.rmdir()
    write(root, {path: entry for path, entry in wanted.items() if not _is_there(root / path.strip("/"), path, entry)})
