"""Runs that reports are made of: of lab nodes, judged as by ``hwcheck check``, and of verdicts made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hwcheck.findings import NodeVerdict
from hwcheck.lab import nodes
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.report.html import html
from hwcheck.report.json_run import dump, run_object
from tests.lab.lab_node import evidence_from

PROFILE = {"name": "auto", "hash": "0123456789abcdef"}
STARTED = "2030-01-01T10:00:00+00:00"
FAULTS = {"gpu-001": (), "gpu-002": ("gpu-lost", "nic-link-x8", "nvlinks-dead", "numa-balancing")}


def run_of(*verdicts: NodeVerdict, **more: Any) -> dict[str, Any]:
    """Return a run, as a reader of its JSON gets it."""
    run: dict[str, Any] = json.loads(dump(run_object(verdicts, "hwcheck 1.0", PROFILE, STARTED)))
    return {**run, **more}


def lab_verdicts(folder: Path) -> list[NodeVerdict]:
    """Judge two lab nodes in tree form: a healthy one, and one that lost a GPU, lanes and links."""
    pipeline = Pipeline(ProfileSet())
    made = []
    for name, faults in FAULTS.items():
        node, _ = nodes.up(folder, name, "hgx-h200", list(faults))
        made.append(pipeline.judge_snapshot(take_snapshot(evidence_from(node))))
    return made


def measured(run: dict[str, Any], node: str) -> None:
    """Add copies of HBM, the third of which is slow and fails, and a series of jitter."""
    gpus = [part["id"] for one in run["nodes"] if one["name"] == node for part in one["about"]["gpus"]]
    for number, gpu in enumerate(gpus[:4]):
        value = 2710.5 if number == 2 else 3900.0 + number
        run["measurements"].append(
            _measurement(node, f"hwcheck.hbm.copy@{gpu}", value, "GB/s", {"values": [value - 9, value]})
        )
        said = {"check": "baseline.hbm_copy", "subject": gpu, "expected": ">= 3700 GB/s"}
        _judge(run, node, {**said, "observed": value, "status": "fail" if number == 2 else "pass"})
    series = [3.0 + (60.0 if number % 40 == 39 else number % 3) for number in range(200)]
    spectrum = {"series": series, "p50": 4.0, "p99": 9.0, "p999": 62.5, "max": 63.0}
    run["measurements"].append(_measurement(node, "hwcheck.os.jitter@numa0", 5.0, "us", spectrum))
    for one, other in (gpus[:2], gpus[1::-1]):
        run["measurements"].append(_measurement(node, f"hwcheck.p2p@{one}>{other}", 390.0, "GB/s", {}))


def _judge(run: dict[str, Any], node: str, said: dict[str, Any]) -> None:
    """Add what the check of a measurement says."""
    more = {"urgency": None if said["status"] == "pass" else "note", "evidence": None, "remedy": None, "waived": None}
    message = f"{said['observed']} GB/s"
    run["findings"].append({"id": len(run["findings"]), "node": node, "message": message, **more, **said})
    next(one for one in run["nodes"] if one["name"] == node)["coverage"][said["status"]] += 1


def accepted(run: dict[str, Any], node: str) -> None:
    """Add what an accept adds: its name, stages, and what it changed."""
    times = [f"2030-01-01T10:0{minute}:00+00:00" for minute in range(4)]
    stages: Iterable[str] = ("collect", "check", "apply")
    run.update(kind="accept", run="20300101-100000-a1b2", ended=times[3], who="ops@head01")
    run["stages"] = [
        {"node": node, "stage": stage, "began": times[i], "ended": times[i + 1], "outcome": f"{stage} done"}
        for i, stage in enumerate(stages)
    ]
    change = {"mechanism": "sysctl", "key": "kernel.numa_balancing", "from": "1", "to": "0", "status": "changed"}
    run["changes"] = [{"node": node, "check": "sysctl.numa_balancing", "subject": "", "why": "written", **change}]


def _measurement(node: str, subject: str, value: float, unit: str, conditions: dict[str, Any]) -> dict[str, Any]:
    name = subject.partition("@")[0]
    return {"node": node, "name": name, "subject": subject, "value": value, "unit": unit, "conditions": conditions}


def written(folder: Path, run: dict[str, Any]) -> Path:
    """Write a page."""
    page = folder / "report.html"
    page.write_text(html(run), encoding="utf-8")
    return page
