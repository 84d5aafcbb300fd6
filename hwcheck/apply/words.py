"""Messages that a node, Ansible or a command of the site had a hand in, made fit for one line of a terminal."""

from __future__ import annotations

from typing import Any

_LONG = 500


def plain(text: Any) -> str:
    """Return one line of at most 500 characters, without what a terminal would obey or hide."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())[:_LONG]
