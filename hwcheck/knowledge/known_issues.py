"""
The dated list of known issues, ``known_issues.yaml``, and the test whether a node is in one.

Driver versions are compared part by part as decimal numbers (580.65.06), VBIOS versions as hexadecimal ones
(97.00.B9.00.69). A version that cannot be read so never matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from hwcheck.facts import bare_name

PACKAGE = "hwcheck.knowledge"
SECONDS_A_DAY = 86400


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """
    One entry; see the head of the YAML file for the keys.

    Attributes:
        gpus: product names without ``NVIDIA``, lower case; empty: any GPU.
        drivers: ranges as (from, before) versions, each part of a pair may be None; empty: any driver.
        vbios_before: None: any VBIOS.
        uptime_days: None: any uptime.
    """

    id: str
    since: str
    what: str
    gpus: tuple[str, ...]
    drivers: tuple[tuple[str | None, str | None], ...]
    vbios_before: str | None
    uptime_days: float | None
    urgency: str
    remedy: str
    why: str
    source: str
    confidence: str

    def concerns(self, driver: str, gpu: str) -> bool:
        """Tell whether this driver version with this GPU (product name) is in the entry."""
        named = not self.gpus or bare_name(gpu) in self.gpus
        return named and (not self.drivers or any(_within(driver, *limits) for limits in self.drivers))

    def covers_vbios(self, vbios: str) -> bool:
        """Tell whether the entry is about this VBIOS version; without a limit it is about all."""
        if self.vbios_before is None:
            return True
        have, limit = _parts(vbios, 16), _parts(self.vbios_before, 16)
        return have is not None and limit is not None and have < limit


@cache
def known_issues() -> tuple[KnownIssue, ...]:
    """Read the shipped list, in the order of the file."""
    text = resources.files(PACKAGE).joinpath("known_issues.yaml").read_text(encoding="utf-8")
    return tuple(_issue(entry) for entry in yaml.safe_load(text)["issues"])


def older(version: str, than: str) -> bool | None:
    """Tell whether a driver version is older than another; None when one of them is no version."""
    have, wanted = _parts(version, 10), _parts(than, 10)
    return None if have is None or wanted is None else have < wanted


def _issue(entry: dict[str, Any]) -> KnownIssue:
    ranges = [(item["exactly"], item["exactly"]) if "exactly" in item else (item.get("from"), item.get("before"))
              for item in entry.get("drivers", ())]  # fmt: skip
    return KnownIssue(
        id=entry["id"],
        since=entry["since"],
        what=entry["what"],
        gpus=tuple(bare_name(name) for name in entry.get("gpus", ())),
        drivers=tuple(ranges),
        vbios_before=entry.get("vbios_before"),
        uptime_days=entry.get("uptime_days"),
        urgency=entry["urgency"],
        remedy=entry["remedy"],
        why=entry["why"],
        source=entry["source"],
        confidence=entry["confidence"],
    )


def _within(version: str, start: str | None, end: str | None) -> bool:
    have = _parts(version, 10)
    if have is None:
        return False
    if start is not None and start == end:
        return version.strip() == start
    first, last = _parts(start or "0", 10), _parts(end, 10) if end else None
    return first is not None and have >= first and (last is None or have < last)


def _parts(version: str, base: int) -> tuple[int, ...] | None:
    try:
        return tuple(int(part, base) for part in version.strip().split("."))
    except ValueError:
        return None
