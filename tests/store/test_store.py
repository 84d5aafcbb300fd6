"""What is kept comes back, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool

from hwcheck.cli.main import main
from hwcheck.errors import StoreError
from hwcheck.lab import nodes
from hwcheck.report import json_run
from hwcheck.store import Record, Store
from hwcheck.store.tables import METADATA
from tests.store.runs import DAY, DOWN, GPU, HOUR, PASSED, START, WAIVER, XID, make_run, told

EXAMPLES = Path(nodes.__file__).parents[1] / "examples"
SCHEMA = json.loads((Path(json_run.__file__).parent / "run.schema.json").read_text(encoding="utf-8"))
SKIPPED = ("nvlink.active", GPU)


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """Run JSON of an example node with faults and incidents."""
    return judged("hgx-h200-faulty")


def judged(name: str) -> dict[str, Any]:
    """Judge an example node."""
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text, **_: printed.append(text))
        assert main(["check", "--evidence", str(EXAMPLES / name), "--format", "json"]) in (0, 1)
    run: dict[str, Any] = json.loads("".join(printed))
    return run


def whole(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings that are kept in full, without their numbers."""
    return [{**one, "id": 0} for one in run["findings"] if one["status"] not in ("pass", "skip")]


def test_a_run_comes_back(url: str, example: dict[str, Any]) -> None:
    """What is not well word for word, what passed or was skipped by name, incidents over the same findings."""
    store = Store.open(url)
    kept = store.load(store.keep(example))
    assert told(kept) == told(example)
    assert whole(kept) == whole(example)
    assert kept["nodes"] == example["nodes"]
    checks = [[run["findings"][item["lead"]]["check"] for item in run["incidents"]] for run in (kept, example)]
    assert checks[0] == checks[1] != []
    jsonschema.validate(kept, SCHEMA)


def test_a_run_that_streams_is_the_same(url: str, example: dict[str, Any]) -> None:
    """Node by node or in one piece, the record is one; incidents still lead to their findings."""
    healthy = judged("hgx-h200-healthy")
    record = Record(healthy)
    record.add(example)
    store = Store.open(url)
    kept = store.load(store.keep(record))
    assert told(kept) == sorted([*told(healthy), *told(example)])
    assert kept["verdict"] == "fail"
    assert [kept["findings"][one["lead"]]["node"] for one in kept["incidents"]] == ["gpu-017", "gpu-017"]
    jsonschema.validate(kept, SCHEMA)


def test_a_run_is_kept_once(url: str, example: dict[str, Any]) -> None:
    """However often it is given, with the name that follows from what it says."""
    store = Store.open(url)
    assert store.keep(example) == store.keep(example)
    name = store.runs()[0].name
    assert store.keep({**example, "run": name}) == name
    assert len(store.runs()) == 1


def test_two_runs_of_one_name_are_an_error(url: str) -> None:
    """The first stays, and the second does not wait for what will never be."""
    store = Store.open(url)
    store.keep(make_run(START, {"gpu-1": {XID: "fail"}}, "one"))
    with pytest.raises(StoreError, match="another run named one") as caught:
        store.keep(make_run(START, {"gpu-1": {XID: "pass"}}, "one"))
    assert told(store.load("one")) == [("gpu-1", *XID, "fail")]
    assert caught.value.aside == ""


def test_a_run_that_went_on_replaces_what_is_kept(url: str) -> None:
    """An accept that is resumed is one run, from the same beginning."""
    store = Store.open(url)
    store.keep(make_run(START, {"gpu-1": {XID: "fail"}}, "one", kind="accept", who="ops@head (pid 1)"))
    store.keep(make_run(START, {"gpu-1": {XID: "pass"}}, "one", kind="accept", who="ops@head (pid 2)"))
    assert [told(store.load(run.name)) for run in store.runs()] == [[("gpu-1", *XID, "pass")]]
    with pytest.raises(StoreError, match="another run named one"):
        store.keep(make_run(START + 1, {"gpu-1": {XID: "pass"}}, "one", kind="accept"))


def test_runs_are_listed(url: str) -> None:
    """The newest first, by kind and node."""
    store = Store.open(url)
    store.keep(make_run(START + HOUR, {"gpu-1": {XID: "pass"}}, "later", who="ops@head"))
    store.keep(make_run(START, {"gpu-2": {XID: "fail"}}, "earlier", kind="gate"))
    assert [run.name for run in store.runs()] == ["later", "earlier"]
    assert [run.name for run in store.runs(limit=1)] == ["later"]
    assert [run.name for run in store.runs("gate")] == ["earlier"]
    (run,) = store.runs(node="gpu-1")
    assert (run.kind, run.at, run.who, run.verdict, run.nodes) == ("check", START + HOUR, "ops@head", "pass", 1)
    with pytest.raises(StoreError, match="no run other is kept"):
        store.load("other")


def test_measurements_are_found(url: str) -> None:
    """By name, node and cohort, the newest first, with their conditions."""
    store = Store.open(url)
    for hour, value in enumerate((3890.5, 3777.25)):
        measured = {
            "node": "gpu-1", "name": "hbm.copy", "subject": GPU, "value": value, "unit": "GB/s",
            "conditions": {"samples": [1, 2]},
        }  # fmt: skip
        other = {**measured, "name": "h2d"}
        run = make_run(START + hour * HOUR, {"gpu-1": {}}, f"run-{hour}", measurements=[measured, other])
        store.keep(run)
    found = store.measurements("hbm.copy", "gpu-1", "hgx-h200")
    assert [(one.value, one.run, one.taken) for one in found] == [
        (3777.25, "run-1", START + HOUR),
        (3890.5, "run-0", START),
    ]
    assert found[0].conditions == {"samples": [1, 2]}
    assert len(store.measurements(limit=3)) == 3
    assert store.measurements(cohort="gb200") == []
    assert [one["name"] for one in store.load("run-0")["measurements"]] == ["hbm.copy", "h2d"]


def test_changes_journals_and_waivers_are_kept(url: str) -> None:
    """What an apply did, what was there before, and who accepted what."""
    change = {
        "node": "gpu-1", "check": "sysctl.swap", "subject": "", "mechanism": "sysctl", "key": "vm.swappiness",
        "from": None, "to": "1", "status": "changed", "why": "wanted",
    }  # fmt: skip
    run = make_run(START, {"gpu-1": {XID: "fail"}}, "one", kind="apply", changes=[change], waived={XID: "2026-12-24"})
    store = Store.open(url)
    store.keep(run, {"gpu-1": {"before": {"vm.swappiness": "60"}}})
    kept = store.load("one")
    assert kept["changes"] == [change]
    assert [one["waived"] for one in kept["findings"]] == [{**WAIVER, "expires": "2026-12-24"}]
    assert store.journals("one") == {"gpu-1": {"before": {"vm.swappiness": "60"}}}
    assert store.journals("other") == {}


def test_what_is_old_is_forgotten(url: str) -> None:
    """With what only it said; what others say as well stays."""
    store = Store.open(url)
    for day in range(4):
        nodes = {"gpu-1": {XID: "fail", PASSED: "pass", DOWN: "warn" if day else "unknown"}}
        store.keep(make_run(START + day * DAY, nodes, f"day-{day}"), {"gpu-1": [day]})
    before = {run.name: store.load(run.name) for run in store.runs()}
    assert store.forget(START + 2 * DAY) == 2
    assert {run.name: store.load(run.name) for run in store.runs()} == {
        name: before[name] for name in ("day-3", "day-2")
    }
    assert store.journals("day-2") == {"gpu-1": [2]}
    assert store.forget(START + 9 * DAY) == 2
    assert (store.runs(), store.history(), store.status()) == ([], [], [])


@pytest.mark.parametrize("name", ["gpu\0-1", "\ud800x", "é" * 5000, "gpu'; DROP TABLE hwcheck_run; --", ""])
def test_no_name_of_a_node_is_in_the_way(name: str, url: str) -> None:
    """NUL and half characters are spelled out, what is endless is shortened, nothing is run."""
    store = Store.open(url)
    kept = store.load(store.keep(make_run(START, {name: {(XID[0], name): "fail", PASSED: "pass"}})))
    assert [one["status"] for one in kept["findings"]] == ["fail", "pass"]
    assert len({one["name"] for one in kept["nodes"]} | {one["node"] for one in kept["findings"]}) == 1
    assert len(store.status()) == 1


def test_a_jump_of_the_clock_is_told_and_moves_no_run(url: str) -> None:
    """A run from the future counts from when it was kept; nodes' own clocks order nothing."""
    store = Store.open(url)
    ahead, now = START + 10_000 * DAY, START + DAY
    store.keep(make_run(START, {"gpu-1": {XID: "fail"}}, "first", about={"taken": now + 999 * DAY}))
    store.keep(make_run(ahead, {"gpu-1": {XID: "fail"}}, "ahead", ended=make_run(START, {})["started"]))
    kept = {run.name: run for run in store.runs()}
    assert list(kept) == ["ahead", "first"]
    assert kept["ahead"].at < START + 9999 * DAY
    assert "s after it was kept" in kept["ahead"].doubt
    assert f"it ended {ahead - START:.0f} s before it began" in kept["ahead"].doubt
    assert kept["first"].doubt == ""
    (spell,) = store.history()
    assert (spell.first.run, spell.last.run) == ("first", "ahead")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "hwcheck.run/9"}, "its schema is not"),
        ({"started": "yesterday"}, "'yesterday' is no time"),
        ({"started": "9999-12-31T23:59:59-23:00"}, "damaged"),
        ({"incidents": [{"lead": 9, "follows": [0], "text": "x"}]}, "damaged: KeyError: 9"),
        ({"nodes": [None]}, "damaged: TypeError"),
        ({"measurements": [{"node": "gpu-1", "name": "hbm.copy", "value": "fast"}]}, "damaged"),
        ({"changes": [{}]}, "damaged: KeyError: 'node'"),
        ({"findings": [{**make_run(START, {"x": {XID: "fail"}})["findings"][0]}]}, "no node of it"),
    ],
)
def test_what_is_no_run_is_not_kept(change: dict[str, Any], words: str, state: Path) -> None:
    """Nothing of it is recorded, and nothing waits."""
    store = Store.open()
    with pytest.raises(StoreError, match=words):
        store.keep({**make_run(START, {"gpu-1": {PASSED: "pass"}}), **change})
    assert store.runs() == []
    assert not (state / "unsent").exists()


def test_the_steps_make_the_tables_that_are_declared(url: str) -> None:
    """A change of one without the other would be seen first by a user."""
    store = Store.open(url)
    store.keep(make_run(START, {"gpu-1": {PASSED: "pass"}}))
    with create_engine(store.address.url, poolclass=NullPool).connect() as connection:
        there = inspect(connection)
        made = {name: {column["name"] for column in there.get_columns(name)} for name in there.get_table_names()}
    assert made == {table.name: set(table.columns.keys()) for table in METADATA.sorted_tables}


@pytest.mark.parametrize("damage", [{"folds": []}, {"fold_of": [0, 0]}, {"fold_of": None}, {"run": None}])
def test_a_damaged_record_is_refused(damage: dict[str, Any]) -> None:
    """A file from beside the store that was changed by hand."""
    record = Record(make_run(START, {"gpu-1": {PASSED: "pass"}})).to_json()
    assert Record.of(record).unfold()["findings"][0]["status"] == "pass"
    with pytest.raises(StoreError):
        Record.of({**record, **damage})
