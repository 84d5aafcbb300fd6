"""
Host keys of OpenSSH's known_hosts files, by name; read once for a whole fleet.

A fleet's file may hold thousands of hashed names, each of which costs an HMAC a look-up; plain names are found at once.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

REVOKED, AUTHORITY = "@revoked", "@cert-authority"


@dataclass(frozen=True, slots=True)
class HostKey:
    """One line: marker (``@revoked``, ``@cert-authority`` or ""), type, and the key as base64."""

    marker: str
    type: str
    key: str


class KnownHosts:
    """
    The lines of some known_hosts files; files that are not there are empty.

    Args:
        paths: in order.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._plain: dict[str, list[HostKey]] = {}
        self._hashed: list[tuple[bytes, bytes, HostKey]] = []
        self._patterns: list[tuple[list[str], HostKey]] = []
        for path in paths:
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            for line in text.splitlines():
                self._add(line.split())

    def _add(self, words: list[str]) -> None:
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            return
        names, key = words[0], HostKey(marker, words[1], words[2])
        if names.startswith("|1|"):
            try:
                salt, digest = (base64.b64decode(part, validate=True) for part in names[3:].split("|", 1))
            except (ValueError, binascii.Error):
                return
            self._hashed.append((salt, digest, key))
        elif any(char in names for char in "*?!"):
            self._patterns.append((names.lower().split(","), key))
        else:
            for name in names.lower().split(","):
                self._plain.setdefault(name, []).append(key)

    def of(self, name: str) -> list[HostKey]:
        """
        Return the keys of a host.

        Args:
            name: as OpenSSH writes it: ``gpu-1``, or ``[gpu-1]:2222`` for another port.
        """
        name = name.lower()
        found = list(self._plain.get(name, ()))
        for salt, digest, key in self._hashed:
            if hmac.digest(salt, name.encode(), "sha1") == digest:
                found.append(key)
        found += [key for patterns, key in self._patterns if _matches(name, patterns)]
        return found


def _matches(name: str, patterns: list[str]) -> bool:
    if any(pattern.startswith("!") and fnmatchcase(name, pattern[1:]) for pattern in patterns):
        return False
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@functools.lru_cache(maxsize=32)
def read_known_hosts(paths: tuple[Path, ...]) -> KnownHosts:
    """Read files once."""
    return KnownHosts(paths)


def name_of(host: str, port: int) -> str:
    """Spell a host as known_hosts does."""
    return host if port == 22 else f"[{host}]:{port}"


def fingerprint(key: bytes) -> str:
    """Return the fingerprint as ``ssh-keygen -l`` prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
