"""The rule that outranks all others: "could not tell" is never "fine". A property over all checks and all sources."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Fact, Missing, Reason, Snapshot, Subject
from hwcheck.findings import Status
from hwcheck.parse import FORMATS, take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from tests.machines import RENDERERS, hgx_h200
from tests.parse.test_pairs import CASES, parse

PIPELINE = Pipeline(ProfileSet())
ASKED = [reason for reason in Reason if reason.asked]
SICK = {1: {"fabric_status": "Unknown Error", "remap_pending": "Yes", "width": 8, "gen": 3, "tlimit": 0,
            "reasons": {"hw", "brake", "sw_thermal"}, "recovery": "Reset", "persistence": "Disabled"}}  # fmt: skip


def passes(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Judge a copy and return (check, subject) of everything that passes, what was read aside."""
    verdict = PIPELINE.judge_snapshot(copy.deepcopy(snapshot))
    return {(f.check, f.subject.id) for f in verdict.findings if f.status is Status.PASS and f.check != "evidence.read"}


def without(snapshot: Snapshot, subject: Subject, key: tuple[str, str], missing: Missing) -> Snapshot:
    """Return the snapshot with one value gone."""
    bare = copy.copy(snapshot)
    bare.facts = {other: dict(facts) for other, facts in snapshot.facts.items()}
    bare.facts[subject][key] = Fact(missing, snapshot.facts[subject][key].origin)  # type: ignore[index]
    return bare


def snapshots() -> Iterator[tuple[str, Snapshot]]:
    """All single outputs of the parser cases, and whole machines, healthy and sick."""
    for case in CASES:
        data = json.loads(case.read_text())
        yield (
            f"{case.parent.name}/{case.stem}",
            parse(data["kind"], case.with_suffix(".txt").read_text(), data.get("command", "")),
        )
    for name, machine in {"healthy": hgx_h200(count=2), "sick": hgx_h200(SICK, count=2)}.items():
        for kind, render in RENDERERS.items():
            yield f"{name}/{kind}", parse(kind, render(machine))


STORIES = dict(snapshots())


@pytest.mark.parametrize("story", STORIES)
def test_a_value_that_is_gone_makes_no_new_pass(story: str) -> None:
    """Turning any one value into a gap that was asked for never turns another answer into a pass."""
    snapshot = STORIES[story]
    before = passes(snapshot)
    rng = random.Random(story)  # noqa: S311 - a repeatable sample
    # the name and ids of one broken GPU may be gone: its neighbours still tell the platform
    apart = ("evidence.", "gpu.name", "gpu.pci.", "platform.")
    keys = [(s, k) for s, facts in snapshot.facts.items() for k in facts if not k[0].startswith(apart)]
    for subject, key in rng.sample(keys, min(len(keys), 40)):
        after = passes(without(snapshot, subject, key, Missing(rng.choice(ASKED), "test")))
        assert after <= before, f"{subject} {key[0]} gone: new passes {after - before}"


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_a_source_that_tells_nothing_passes_nothing(kind: str, reason: Reason) -> None:
    """A source that is absent, denied, late, garbled or never asked gives no pass at all."""
    evidence = Evidence("node", [Output(kind, [], file=kind, reason=reason, detail="test")], collected=True)
    verdict = PIPELINE.judge(evidence)
    assert [f.check for f in verdict.findings if f.status is Status.PASS] == []


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}/{case.stem}" for case in CASES])
def test_a_truncated_output_passes_only_on_values_that_stand_in_it(case: Path) -> None:
    """
    A pass over an output cut off anywhere rests on values that are those of the whole output.

    Only a value in the very line where the text breaks off is let go: ``12`` cut from ``12.5`` cannot be told from 12
    where the format has no unit and no end.
    """
    data = json.loads(case.read_text())
    text = case.with_suffix(".txt").read_text()
    whole = parse(data["kind"], text, data.get("command", ""))
    rng = random.Random(str(case.name))  # noqa: S311 - a repeatable sample
    for _ in range(8):
        cut = text[: rng.randrange(len(text) + 1)]
        snapshot = parse(data["kind"], cut, data.get("command", ""))
        for check, subject in passes(snapshot) - passes(whole):
            for name in needs(check):
                for about, fact in snapshot.with_fact(name):
                    known = whole.get(about, name)
                    if not fact.present or (fact.origin and fact.origin.line >= cut.count("\n") + 1):
                        continue
                    assert stands_in(fact.value, known.value), f"at {len(cut)}: {check} {subject} {name}={fact.value!r}"


def stands_in(value: Any, whole: Any) -> bool:
    """Tell whether a value is the whole output's, or, for a list of records, only records that stand in it too."""
    if isinstance(value, tuple) and isinstance(whole, tuple):
        return all(record in whole for record in value)
    return bool(value == whole)


def needs(check: str) -> list[str]:
    """Return the names of the facts a check rests on."""
    found = next((c for c in PIPELINE._judge("base").checks if c.id == check), None)
    return [] if found is None else [n if isinstance(n, str) else n.name for n in found.needs] + list(found.any_of)


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_garbage_passes_nothing(kind: str) -> None:
    """Random bytes taken for an output of a source give no pass and no traceback."""
    rng = random.Random(kind)  # noqa: S311 - a repeatable sample
    text = "\n".join("".join(chr(rng.randrange(32, 0x250)) for _ in range(rng.randrange(90))) for _ in range(40))
    assert passes(parse(kind, text)) == set()


def test_a_whole_machine_with_a_dead_source_says_so() -> None:
    """When nvidia-smi never returns, the node is unknown, and names the source."""
    evidence = Evidence(
        "n1", [Output("nvidia-smi.xml", reason=Reason.TIMEOUT, detail="no answer in 20 s")], collected=True
    )
    verdict = PIPELINE.judge(evidence)
    assert verdict.verdict == "unknown"
    told = next(f for f in verdict.findings if f.check == "evidence.complete")
    assert "nvidia-smi -q -x: timeout" in told.message


def test_take_snapshot_never_raises_for_an_unknown_kind() -> None:
    """A manifest may name a source this version does not know; it is read past."""
    assert take_snapshot(Evidence("n", [Output("of-the-future", ["x"])])).facts
