"""
Metrics for the textfile collector of node_exporter.

===========================================  ===========================================================
metric                                       value
===========================================  ===========================================================
``hwcheck_run_info``                         1; labels say what ran
``hwcheck_run_timestamp_seconds``            when it began: ``time() - hwcheck_run_timestamp_seconds`` is its age
``hwcheck_run_verdict``                      1 for the verdict, 0 for the other two
``hwcheck_node_verdict``                     the same for each node
``hwcheck_node_evidence_timestamp_seconds``  when the node's evidence was taken
``hwcheck_findings``                         number of findings by family, status, urgency and waiver
``hwcheck_measurement``                      what was measured, in the unit of the label
===========================================  ===========================================================

Source: the text format of Prometheus, exposition version 0.0.4.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hwcheck.report.sheet import visible

_HELP = {
    "hwcheck_run_info": "What ran; always 1.",
    "hwcheck_run_timestamp_seconds": "When the run began, seconds since 1970.",
    "hwcheck_run_verdict": "1 for the verdict of the run.",
    "hwcheck_node_verdict": "1 for the verdict of the node.",
    "hwcheck_node_evidence_timestamp_seconds": "When the evidence of the node was taken, seconds since 1970.",
    "hwcheck_findings": "Number of findings.",
    "hwcheck_measurement": "Measured value, in the unit that the label names.",
}
_VERDICTS = ("pass", "unknown", "fail")  # each worse than the one before

Row = tuple[str, dict[str, str], float]


def render_prometheus(run: dict[str, Any]) -> str:
    """
    Write a run as metrics, each series once: a file that has one twice is refused as a whole.

    Args:
        run: of schema ``hwcheck.run/1``.

    Returns:
        text in the exposition format.
    """
    series: dict[tuple[str, str], float] = {}
    for name, labels, value in _rows(run):
        series[name, ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())] = value
    lines: list[str] = []
    for metric, text in _HELP.items():
        found = [(labels, value) for (name, labels), value in series.items() if name == metric]
        if found:
            lines += [f"# HELP {metric} {text}", f"# TYPE {metric} gauge"]
            lines += [f"{metric}{labels and f'{{{labels}}}'} {_number(value)}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _rows(run: dict[str, Any]) -> Iterator[Row]:
    head = {"run": run.get("run", ""), "kind": run.get("kind", "check"), "tool": run["tool"]}
    profile = {"profile": run["profile"]["name"], "profile_hash": run["profile"]["hash"]}
    yield "hwcheck_run_info", {**head, **profile}, 1
    yield "hwcheck_run_timestamp_seconds", {}, dt.datetime.fromisoformat(run["started"]).timestamp()
    for word in _VERDICTS:
        yield "hwcheck_run_verdict", {"verdict": word}, word == run["verdict"]
    yield from _nodes(run["nodes"])
    counts = Counter(
        (row["node"], row["check"].partition(".")[0], row["status"], row["urgency"] or "", row["waived"] is not None)
        for row in run["findings"]
    )
    for (node, family, status, urgency, waived), count in counts.items():
        labels = {"node": node, "family": family, "status": status, "urgency": urgency, "waived": str(waived).lower()}
        yield "hwcheck_findings", labels, count
    for row in run["measurements"]:
        yield "hwcheck_measurement", {key: row[key] for key in ("node", "name", "subject", "unit")}, row["value"]


def _nodes(nodes: list[dict[str, Any]]) -> Iterator[Row]:
    """Say verdicts; of two nodes with one name the worse counts."""
    worst: dict[str, str] = {}
    for node in nodes:
        name = node["name"]
        worst[name] = max(worst.get(name, "pass"), node["verdict"], key=_VERDICTS.index)
    for node in nodes:
        labels = {"node": node["name"], "platform": node["platform"], "simulated": str(node["simulated"]).lower()}
        for word in _VERDICTS:
            yield "hwcheck_node_verdict", {**labels, "verdict": word}, word == worst[node["name"]]
        if node["about"].get("taken"):
            yield "hwcheck_node_evidence_timestamp_seconds", {"node": node["name"]}, node["about"]["taken"]


def _escaped(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
