"""Times as people read them: UTC, by the clock of the machine that ran hwcheck."""

from __future__ import annotations

import datetime as dt


def moment(at: float) -> str:
    """Write seconds since 1970 as ``2026-12-01 14:02 UTC``."""
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M} UTC"


def iso(at: float) -> str:
    """Write seconds since 1970 in ISO 8601."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="seconds")


def span(seconds: float) -> str:
    """Write a time as people say it: ``26 h``, ``3 days``."""
    return f"{seconds / 3600:.0f} h" if seconds < 3 * 86400 else f"{seconds / 86400:.0f} days"
