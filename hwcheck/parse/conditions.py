"""Which conditions of hwcheck's own measurements are known, and of which type. Declares no format."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

VALUES_MAX, TEXT_MAX = 200, 300
_NUMBERS = frozenset((
    "size", "spread", "seconds", "sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max", "pcie_gen",
    "pcie_gen_max", "pcie_width", "pcie_width_max", "temperature", "looks", "ecc_errors", "remapped_rows", "numa_node",
    "busy", "load_average", "samples", "count", "threads", "p50", "p99", "p999", "max", "host_p50", "host_p99",
    "host_p999", "host_max", "depth", "link_rate", "client_rate", "server_rate", "first_us", "steady_us", "ratio",
    "streams", "qps",
))  # fmt: skip
_FLAGS = frozenset(("numa_bound", "retested", "p2p", "gpudirect", "mig"))
_TEXTS = frozenset((
    "counts", "memory", "unwatched", "log_unread", "numa_unknown", "numa_refused", "governor", "transport",
    "transport_expected", "where", "client", "server", "rail", "device", "client_state", "server_state",
))  # fmt: skip
_LISTS = frozenset(("rdma_users", "throttled", "strangers", "xids", "runaways"))
_SERIES = frozenset(("series",))
_TABLES = frozenset(("interrupts",))


def known_conditions(told: Any) -> dict[str, Any]:
    """Take the conditions whose name and type are known."""
    found: dict[str, Any] = {}
    for key, value in told.items() if isinstance(told, dict) else ():
        if (
            (key in _NUMBERS and is_number(value))
            or (key in _FLAGS and isinstance(value, bool))
            or (key in _TEXTS and isinstance(value, str))
        ):
            found[key] = value[:TEXT_MAX] if isinstance(value, str) else value
        elif key in _LISTS and isinstance(value, list):
            found[key] = [str(item)[:TEXT_MAX] for item in value[:VALUES_MAX]]
        elif key in _SERIES:
            found[key] = [item for item in some(value) if is_number(item)]
        elif key in _TABLES and isinstance(value, dict):
            rows = [(str(name)[:60], count) for name, count in list(value.items())[:20] if is_number(count)]
            found[key] = dict(rows)
    return found


def some(value: Any) -> list[Any]:
    """Return the beginning of a list, [] of anything else."""
    return value[:VALUES_MAX] if isinstance(value, list) else []


def is_number(value: Any) -> TypeGuard[int | float]:
    """Tell whether a JSON value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
