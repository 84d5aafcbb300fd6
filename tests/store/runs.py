"""Runs as hwcheck writes them, small and made up."""

from __future__ import annotations

import datetime as dt
from typing import Any

START = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC).timestamp()
"""When the first run begins."""
HOUR, DAY = 3600.0, 86400.0
GPU, PORT = "0000:18:00.0", "mlx5_0/1"
XID, DOWN, PASSED = ("xid.79", GPU), ("rdma.port_down", PORT), ("hbm.total", GPU)
WAIVER = {"owner": "ops", "reason": "a spare is ordered", "expires": "2999-01-01"}

Statuses = dict[tuple[str, str], str]


def make_run(
    at: float, nodes: dict[str, Statuses], name: str = "", *, waived: Statuses | None = None, **more: Any
) -> dict[str, Any]:
    """
    Make run JSON.

    Args:
        at: when it began, seconds since 1970.
        nodes: by node, status by check and subject.
        name: of the run; "" for one without.
        waived: checks and subjects with the day on which their waiver expires.
        more: further keys; ``about`` is what every node is.
    """
    about = {"boot_id": "boot-1", "taken": at, "cohort": "hgx-h200", "versions": {"driver": "570.1"}}
    about |= more.pop("about", {})
    findings = [
        _finding(node, *key, status, (waived or {}).get(key, ""))
        for node, told in nodes.items()
        for key, status in told.items()
    ]
    verdicts = {node: _verdict([one for one in findings if one["node"] == node]) for node in nodes}
    return {
        "schema": "hwcheck.run/1", "tool": "hwcheck 0.1", "profile": {"name": "auto", "hash": "0" * 16},
        "started": iso(at), "verdict": _verdict(findings),
        "nodes": [_node(node, told, verdicts[node], about) for node, told in nodes.items()],
        "findings": [{**one, "id": index} for index, one in enumerate(findings)],
        "incidents": [], "measurements": [], **({"run": name} if name else {}), **more,
    }  # fmt: skip


def iso(at: float) -> str:
    """Write a time as runs do."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="seconds")


def told(run: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what a run tells of each check, in an order of our own."""
    return sorted((one["node"], one["check"], one["subject"], one["status"]) for one in run["findings"])


def _node(name: str, told: Statuses, verdict: str, about: dict[str, Any]) -> dict[str, Any]:
    counts = {status: list(told.values()).count(status) for status in ("pass", "warn", "fail", "unknown", "skip")}
    return {
        "name": name, "platform": "hgx-h200", "confidence": "pci-id", "verdict": verdict, "simulated": False,
        "coverage": counts, "about": about,
    }  # fmt: skip


def _finding(node: str, check: str, subject: str, status: str, expires: str) -> dict[str, Any]:
    is_bad = status not in ("pass", "skip")
    return {
        "node": node, "check": check, "subject": subject, "status": status, "urgency": "now" if is_bad else None,
        "observed": 7, "expected": 8, "message": f"{check} says {status}",
        "evidence": {"source": "kernel.log", "file": "dmesg", "line": 3, "excerpt": "NVRM: Xid"},
        "remedy": {"kind": "hands", "role": None, "disturbs": "node", "text": "Reseat it."} if is_bad else None,
        "waived": {**WAIVER, "expires": expires} if expires else None,
    }  # fmt: skip


def _verdict(findings: list[dict[str, Any]]) -> str:
    statuses = {one["status"] for one in findings if one["waived"] is None}
    return "fail" if "fail" in statuses else "unknown" if "unknown" in statuses else "pass"
