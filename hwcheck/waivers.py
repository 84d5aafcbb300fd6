"""
Waivers: findings that the site accepts, with owner, reason and expiry. Shown as waived, never hidden.

File: a YAML list of ``{check: ID or family.*, subject: ID or *, nodes: [NAME patterns], owner, reason,
expires: DATE}``. After its expiry a waiver counts for nothing, and the finding counts again.
"""

from __future__ import annotations

import datetime as dt
import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hwcheck.errors import ProfileError
from hwcheck.findings import Finding, Status
from hwcheck.profiles.yaml_lines import line_of, load_yaml

_REQUIRED = ("check", "owner", "reason", "expires")
_KEYS = {*_REQUIRED, "subject", "nodes"}


@dataclass(frozen=True, slots=True)
class Waiver:
    """
    One entry of the file: which findings are accepted, by whom, and until when.

    Attributes:
        check: check id, or a shell pattern over ids.
        subject: subject, or a pattern; ``*`` for all.
        nodes: node name patterns; empty for all.
        owner, reason: who accepts it and why.
        expires: the last day it holds.
    """

    check: str
    owner: str
    reason: str
    expires: dt.date
    subject: str = "*"
    nodes: tuple[str, ...] = ()

    def covers(self, finding: Finding, node: str) -> bool:
        """Tell whether this waiver is for that finding."""
        return (
            fnmatch.fnmatchcase(finding.check, self.check)
            and fnmatch.fnmatchcase(finding.subject.id, self.subject)
            and (not self.nodes or any(fnmatch.fnmatchcase(node, pattern) for pattern in self.nodes))
        )


def load_waivers(text: str, path: str, today: dt.date) -> list[Waiver]:
    """
    Read a waiver file; expired entries are left out.

    Raises:
        ProfileError: with the line.
    """
    data, lines = load_yaml(text, path)
    if not isinstance(data, list):
        raise ProfileError("a waiver file is a list", path, 1)
    waivers = [_waiver(entry, path, line_of(lines, (index,))) for index, entry in enumerate(data)]
    return [waiver for waiver in waivers if waiver.expires >= today]


def _waiver(entry: Any, path: str, line: int | None) -> Waiver:
    if not isinstance(entry, dict):
        raise ProfileError("a waiver is a map", path, line)
    for key in _REQUIRED:
        if not entry.get(key):
            raise ProfileError(f"a waiver needs {key}", path, line)
    if unknown := set(entry) - _KEYS:
        raise ProfileError(f"unknown key in a waiver: {min(map(str, unknown))}", path, line)
    expires = entry["expires"]
    if isinstance(expires, str):
        try:
            expires = dt.date.fromisoformat(expires)
        except ValueError as error:
            raise ProfileError(f"expires is no date: {error}", path, line) from error
    if not isinstance(expires, dt.date) or isinstance(expires, dt.datetime):
        raise ProfileError("expires is no date (YYYY-MM-DD)", path, line)
    nodes = entry.get("nodes") or []
    if not isinstance(nodes, list):
        raise ProfileError("nodes is a list of names", path, line)
    return Waiver(
        str(entry["check"]),
        str(entry["owner"]),
        str(entry["reason"]),
        expires,
        str(entry.get("subject", "*")),
        tuple(map(str, nodes)),
    )


def apply_waivers(findings: list[Finding], node: str, waivers: Iterable[Waiver]) -> None:
    """Mark waived findings, in place; only warn, fail and unknown can be waived."""
    for finding in findings:
        if finding.status not in (Status.WARN, Status.FAIL, Status.UNKNOWN):
            continue
        for waiver in waivers:
            if waiver.covers(finding, node):
                finding.waived = {
                    "owner": waiver.owner,
                    "reason": waiver.reason,
                    "expires": waiver.expires.isoformat(),
                }
                break
