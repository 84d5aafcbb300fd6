"""Texts that a node, Ansible or a command of the site had a hand in, made fit for a terminal."""

from __future__ import annotations

from typing import Any

_LONG = 500


def plain(text: Any) -> str:
    """Return one line of at most 500 characters, without what a terminal would obey or hide."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())[:_LONG]


def printable(text: str) -> str:
    """Return a text of several lines with everything else that a terminal would obey or hide spelled out."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)
