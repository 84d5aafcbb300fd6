"""What a file of a lab tree is: content and mode, or a link."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link; the target as the kernel prints it, relative ones stay inside the tree."""

    target: str


Tree = dict[str, File | Link]
"""Path (``/sys/...``) → what is there. Folders follow from the paths; one that is empty ends in ``/``."""


class Planter:
    """Collects the files of a tree."""

    def __init__(self) -> None:
        self.tree: Tree = {}

    def put(self, path: str, text: str | int | bytes, mode: int = 0o644) -> None:
        """Add a file; text gets its line end, as attributes of the kernel have it."""
        content = text if isinstance(text, bytes) else str(text).encode()
        ended = content if isinstance(text, bytes) or not content or content.endswith(b"\n") else content + b"\n"
        self.tree[path] = File(ended, mode)

    def link(self, path: str, target: str) -> None:
        """Add a link."""
        self.tree[path] = Link(target)

    def folder(self, path: str) -> None:
        """Add an empty folder."""
        self.tree[path.rstrip("/") + "/"] = File(b"")
