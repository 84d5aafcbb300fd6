"""Every parser against its (raw output, expected facts) pairs: a case is two files, no Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Missing, Snapshot, Subject
from hwcheck.parse import FORMATS, take_snapshot
from tests.machines import RENDERERS

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*/*.json"))


def parse(kind: str, text: str, command: str = "") -> Snapshot:
    """Parse one output, fed to the format's digest where it has one."""
    output = Output(kind, text.splitlines(), file="posted", command=command)
    spec = FORMATS[kind]
    if spec.digest is not None:
        output.digest = spec.digest()
        for number, line in enumerate(output.lines, 1):
            output.digest.feed(line, number)
        output.count, output.lines = len(output.lines), []
    return take_snapshot(Evidence("", [output]))


def seen(value: Any) -> Any:
    """Put a value into the form JSON can hold."""
    if isinstance(value, Missing):
        return {"missing": str(value.reason)}
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}/{case.stem}" for case in CASES])
def test_output_gives_its_facts(case: Path) -> None:
    """A raw output of a tool gives exactly the facts that stand beside it."""
    expected = json.loads(case.read_text())
    snapshot = parse(expected["kind"], case.with_suffix(".txt").read_text(), expected.get("command", ""))
    got: dict[tuple[str, str, str], Any] = {
        (subject.kind, subject.id, name): seen(fact.value)
        for subject, facts in snapshot.facts.items()
        for (name, _), fact in facts.items()
    }
    wanted = {(kind, subject, name): value for kind, subject, name, value in expected["facts"]}
    names = {name for _, _, name in wanted}
    relevant = got if not expected.get("only") else {key: value for key, value in got.items() if key[2] in names}
    assert {key: relevant.get(key, "no such fact") for key in wanted} == wanted
    if expected.get("only"):
        assert relevant == wanted
    if "cut_off" in expected:
        assert bool(snapshot.gaps) is bool(expected["cut_off"])


def test_every_format_has_a_case_or_is_quiet() -> None:
    """A format that gives facts is shown by at least one pair of files."""
    shown = {json.loads(case.read_text())["kind"] for case in CASES} | set(RENDERERS)
    assert sorted(kind for kind, spec in FORMATS.items() if spec.gives and kind not in shown) == []


def test_a_format_never_sees_the_node_of_another() -> None:
    """An output without a host name makes a snapshot without one."""
    assert parse("nvidia-smi.q", "Attached GPUs : 1").node == ""
    assert Subject("node", "") == NODE
