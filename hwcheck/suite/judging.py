"""Judge the nodes of a test session, each once: as it is read, or as a run has said."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.errors import HwcheckError
from hwcheck.facts import NODE, Snapshot, Subject
from hwcheck.findings import Finding, Measurement, NodeVerdict, Status, Urgency
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.suite.reading import read
from hwcheck.transports.request import Request
from hwcheck.waivers import Waiver, load_waivers


class Bench:
    """
    Judges.

    Args:
        options: of pytest's command line, see :func:`hwcheck.suite.plugin.pytest_addoption`.
    """

    def __init__(self, options: Any) -> None:
        self._seen: dict[str, tuple[NodeVerdict, Snapshot | None]] = {}
        self._request = Request(tier=options.hwcheck_tier)
        try:
            self._run = None if options.hwcheck_run is None else _load(options.hwcheck_run)
            waivers = _waivers(options.hwcheck_waivers)
            self._pipeline = Pipeline(ProfileSet(options.hwcheck_site), options.hwcheck_profile, waivers=waivers)
        except (HwcheckError, OSError) as error:
            raise pytest.UsageError(str(error)) from error

    def verdict(self, host: Any) -> NodeVerdict:
        """Return what is said of a node."""
        return self._judged(host)[0]

    def snapshot(self, host: Any) -> Snapshot | None:
        """Return the facts of a node; None where it was not read."""
        return self._judged(host)[1]

    def _judged(self, host: Any) -> tuple[NodeVerdict, Snapshot | None]:
        key = str(host.backend.get_pytest_id())
        if key not in self._seen:
            self._seen[key] = self._of_run(host) if self._run is not None else self._of_node(host)
        return self._seen[key]

    def _of_node(self, host: Any) -> tuple[NodeVerdict, Snapshot | None]:
        evidence = read(host, self._request)
        if evidence.unreachable:
            return self._pipeline.judge(evidence), None
        snapshot = take_snapshot(evidence)
        return self._pipeline.judge_snapshot(snapshot), snapshot

    def _of_run(self, host: Any) -> tuple[NodeVerdict, None]:
        assert self._run is not None  # noqa: S101 - narrows the type; the caller has looked
        called, names = str(getattr(host.backend, "hostname", "")), [node["name"] for node in self._run["nodes"]]
        if called not in names:
            called = str(host.run("uname -n").stdout).strip()
        if called not in names:
            pytest.fail(f"the run has no node {called}; it has {', '.join(names[:8])}", pytrace=False)
        return _verdict(self._run, called), None


def demand_known(check: str) -> None:
    """Fail a test that names a check that does not exist: it could never fail otherwise."""
    known = {*RELATIONS, *(id for one in RELATIONS.values() for id in one.ids)}
    profiles = ProfileSet()
    if check not in known and not any(check in profiles.profile(name).checks for name in profiles.platforms):
        pytest.fail(f"there is no check {check}; hwcheck explain lists them", pytrace=False)


def _waivers(path: Path | None) -> list[Waiver]:
    if path is None:
        return []
    return load_waivers(path.read_text(encoding="utf-8"), str(path), dt.datetime.now(dt.UTC).date())


def _load(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{path}: {error}") from error
    if not isinstance(run, dict) or run.get("schema") != "hwcheck.run/1":
        raise pytest.UsageError(f"{path} is no run of hwcheck (schema hwcheck.run/1)")
    return run


def _verdict(run: dict[str, Any], name: str) -> NodeVerdict:
    node = next(one for one in run["nodes"] if one["name"] == name)
    findings = [
        Finding(
            one["check"], _subject(one), Status(one["status"]), one["message"],
            Urgency(one["urgency"]) if one["urgency"] else None, one["observed"], one["expected"], waived=one["waived"],
        )
        for one in run["findings"]
        if one["node"] == name
    ]  # fmt: skip
    measurements = [
        Measurement(one["name"], one["subject"], one["value"], one["unit"], one["conditions"])
        for one in run["measurements"]
        if one["node"] == name
    ]
    return NodeVerdict(
        name, node["platform"], node["confidence"], findings, measurements=measurements, simulated=node["simulated"],
    )  # fmt: skip


def _subject(told: dict[str, Any]) -> Subject:
    """Return a subject by its id; its kind is not in a run, and only measurements are asked for by it."""
    kind = "measurement" if told["check"].startswith("baseline.") else "part"
    return Subject(kind, told["subject"]) if told["subject"] else NODE
