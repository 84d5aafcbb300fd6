"""``hwcheck baseline record``, ``compare`` and ``list``: whose figures become a bound, and what is set beside what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli.main import main
from hwcheck.store import Store
from tests.cli.answering import home

Capture = pytest.CaptureFixture[str]
COHORT = "hgx-h200, driver 570, BIOS 1, kernel 6.8"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a state folder of its own."""
    monkeypatch.setenv("COLUMNS", "200")
    return home(tmp_path, monkeypatch)


def run_json(
    figures: dict[str, list[Any]], test: str = "hbm.copy", unit: str = "GB/s", cohort: str = COHORT, hour: int = 10,
    failing: tuple[str, ...] = (), **conditions: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return a run: node → a figure for each of its GPUs."""
    nodes = [
        {"name": name, "platform": "hgx-h200", "confidence": "name", "verdict": "fail" if name in failing else "pass",
         "simulated": False, "coverage": {}, "about": {"cohort": cohort, "boot_id": "b"}}
        for name in figures
    ]  # fmt: skip
    measured = [
        {"node": name, "name": f"hwcheck.{test}", "subject": f"hwcheck.{test}@0000:{bus:02x}:00.0", "value": value,
         "unit": unit, "conditions": {"samples": 9, **conditions}}
        for name, values in figures.items()
        for bus, value in enumerate(values)
    ]  # fmt: skip
    return {
        "schema": "hwcheck.run/1", "tool": "hwcheck", "profile": {"name": "auto", "hash": "0" * 16}, "verdict": "pass",
        "started": f"2026-12-01T{hour:02}:00:00+00:00", "kind": "baseline", "run": f"20261201-{hour:02}0000-{test}",
        "nodes": nodes, "findings": [], "incidents": [], "measurements": measured,
    }  # fmt: skip


def posted(tmp_path: Path, name: str, run: dict[str, Any]) -> str:
    """Write a run; returns its path."""
    path = tmp_path / name
    path.write_text(json.dumps(run), encoding="utf-8")
    return str(path)


def fleet(middle: float, nodes: int = 4, **more: Any) -> dict[str, Any]:
    """Return a run of nodes that are alike."""
    return run_json({f"n{n}": [middle + n, middle - n, middle] for n in range(nodes)}, **more)


def pinned(state: Path) -> dict[str, Any]:
    """Return the bounds of the cohort."""
    told: dict[str, Any] = json.loads((state / "references.json").read_text())["cohorts"].get(COHORT, {})
    return told


def record(*words: str) -> int:
    """Pin."""
    return main(["baseline", "record", *words])


def test_bounds_are_pinned_for_a_cohort(tmp_path: Path, state: Path) -> None:
    """With their unit, and of how many parts and nodes they are."""
    assert record(posted(tmp_path, "a.json", fleet(4000.0))) == 0
    bound = pinned(state)["hbm.copy"]
    assert (bound["median"], bound["count"], bound["nodes"], bound["unit"]) == (4000.0, 12, 4, "GB/s")
    assert 3700 < bound["value"] < 3900
    assert (state / "references.json").stat().st_mode & 0o777 == 0o600


def test_the_figures_of_the_store_are_taken_where_no_run_is_named(state: Path) -> None:
    """All of them."""
    Store.open("").keep(fleet(4000.0))
    assert record() == 0
    assert pinned(state)["hbm.copy"]["count"] == 12


@pytest.mark.parametrize(("run", "why"), [
    (run_json({"n1": [3000.0] * 8}), "one node is slow as a whole"),
    (run_json({"n1": [3000.0] * 8, "n2": [4000.0] * 8}), "two nodes differ"),
    (run_json({f"n{n}": [1000.0] * 3 for n in range(4)}), "all are below the floor of the platform"),
    (fleet(4000.0, failing=("n0", "n1")), "half of the nodes fail"),
    (fleet(32000.0, unit="Gb/s"), "another unit"),
    (fleet(4000.0, throttled=["hw_thermal"]), "figures that do not count"),
    (run_json({f"n{n}": [float("nan"), None, "4000"] for n in range(4)}), "no numbers"),
    (fleet(4000.0, test="nothing"), "a test of nobody's"), (fleet(4000.0, nodes=2), "too few"),
], ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "")  # fmt: skip
def test_nodes_that_are_no_measure_pin_nothing(
    run: dict[str, Any], why: str, tmp_path: Path, state: Path, capsys: Capture
) -> None:
    """3, and the file stays as it was."""
    assert record(posted(tmp_path, "a.json", run)) == 3, why
    assert "Nothing is pinned" in capsys.readouterr().out
    assert not (state / "references.json").exists()


def test_a_part_counts_once_by_its_newest_figure(tmp_path: Path, state: Path) -> None:
    """In whichever order the runs are named: a node that was measured often is not more of the fleet."""
    new, old = (
        posted(tmp_path, f"{hour}.json", fleet(middle, hour=hour)) for hour, middle in ((12, 4000.0), (9, 3900.0))
    )
    for words in ((new, old), (old, new)):
        assert record(*words) == 0
        assert (pinned(state)["hbm.copy"]["median"], pinned(state)["hbm.copy"]["count"]) == (4000.0, 12)


def test_what_is_not_pinned_anew_keeps_its_bound(tmp_path: Path, state: Path) -> None:
    """Another test of the same cohort, and another cohort."""
    other = "hgx-b200, driver 580, BIOS 1, kernel 6.8"
    for name, run in (("a", fleet(4000.0)), ("b", fleet(50.0, test="h2d")), ("c", fleet(6000.0, cohort=other))):
        assert record(posted(tmp_path, f"{name}.json", run)) == 0
    assert set(pinned(state)) == {"hbm.copy", "h2d"}
    assert set(json.loads((state / "references.json").read_text())["cohorts"]) == {COHORT, other}


def test_a_new_file_has_nothing_of_the_usual_one(tmp_path: Path) -> None:
    """Whoever names a file wants the bounds of these runs."""
    assert record(posted(tmp_path, "a.json", fleet(4000.0))) == 0
    fresh = tmp_path / "deep/er/fresh.json"
    assert record(posted(tmp_path, "b.json", fleet(50.0, test="h2d")), "--references", str(fresh)) == 0
    assert set(json.loads(fresh.read_text())["cohorts"][COHORT]) == {"h2d"}


def test_a_cohort_cannot_write_to_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    """Its name is made of what nodes say."""
    assert record(posted(tmp_path, "a.json", fleet(4000.0, cohort="hgx-h200, driver \x1b[2J\u202e, [red]x"))) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\u202e" not in told


@pytest.mark.parametrize(("bound", "words"), [
    ({"value": float("nan"), "median": 1.0, "count": 8, "unit": "GB/s"}, "is damaged"),
    ({"value": 1.0, "median": 1.0, "count": "many", "unit": "GB/s"}, "is damaged"),
    ({"value": 1.0, "median": 1.0, "count": 8, "unit": "Gb/s"}, "is in Gb/s, not in GB/s"),
    ({"value": 1.0, "median": 1.0, "count": 8}, "is in None, not in GB/s"), ("4000", "is damaged"),
])  # fmt: skip
def test_a_damaged_file_of_bounds_is_refused(bound: Any, words: str, tmp_path: Path, capsys: Capture) -> None:
    """2, by every deed that reads it, and it is not written over."""
    path = tmp_path / "references.json"
    path.write_text(json.dumps({"schema": "hwcheck.references/1", "cohorts": {COHORT: {"hbm.copy": bound}}}))
    run = posted(tmp_path, "a.json", fleet(4000.0))
    before = path.read_text()
    for deed in (["record", run], ["compare", run], ["list"]):
        assert main(["baseline", *deed, "--references", str(path)]) == 2
        assert words in capsys.readouterr().err
    assert path.read_text() == before


def compared(capsys: Capture, *words: str) -> dict[str, Any]:
    """Return the rows of a comparison, by node and subject."""
    capsys.readouterr()
    assert main(["baseline", "compare", *words, "--format", "json"]) == 0
    return {f"{row['node']} {row['subject']}": row for row in json.loads(capsys.readouterr().out)}


def test_figures_are_set_beside_the_cohort_and_an_earlier_run(tmp_path: Path, capsys: Capture) -> None:
    """A figure that is not had any more is a row without a value, and never left out."""
    new = posted(tmp_path, "new.json", run_json({"n1": [4000.0], "n9": [4000.0]}))
    old = posted(tmp_path, "old.json", run_json({"n1": [5000.0, 5000.0], "n2": [1.0]}))
    assert record(posted(tmp_path, "a.json", fleet(3200.0))) == 0
    rows = compared(capsys, new, "--with", old)
    assert rows["n1 hwcheck.hbm.copy@0000:00:00.0"]["change"] == pytest.approx(-0.2)
    assert rows["n1 hwcheck.hbm.copy@0000:00:00.0"]["of_median"] == pytest.approx(0.25)
    assert rows["n9 hwcheck.hbm.copy@0000:00:00.0"]["earlier"] is None
    gone = {name for name, row in rows.items() if row["value"] is None}
    assert gone == {"n1 hwcheck.hbm.copy@0000:01:00.0", "n2 hwcheck.hbm.copy@0000:00:00.0"}
    assert main(["baseline", "compare", new, "--with", old]) == 0
    assert capsys.readouterr().out.count("not measured") == 2


def test_figures_of_two_units_are_not_compared(tmp_path: Path, capsys: Capture) -> None:
    """A change by a factor of eight would be none."""
    new, old = (
        posted(tmp_path, unit[:2], run_json({"n1": [400.0]}, test="tcp", unit=unit)) for unit in ("Gb/s", "GB/s")
    )
    (row,) = [row for row in compared(capsys, new, "--with", old).values() if row["value"]]
    assert (row["earlier"], row["change"]) == (None, None)


def test_hostile_texts_of_a_run_stay_texts(tmp_path: Path, capsys: Capture) -> None:
    """No markup, no escape: a run is a file from anywhere."""
    run = run_json({"n1[/red]\x1b[2J": [4000.0, None, float("nan")]}, unit="GB/s [/b]\x1b]0;x\x07")
    assert main(["baseline", "compare", posted(tmp_path, "a.json", run)]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "[/red]" in told
    assert "[/b]" in told


@pytest.mark.parametrize("platform", ["", "hgx-h200", "hgx-b200", "gb200", "h100-pcie"])
def test_every_test_is_listed_for_every_platform(platform: str, capsys: Capture) -> None:
    """With the source that measures it."""
    assert main(["baseline", "list", *(["--profile", platform] if platform else [])]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in ("hbm.copy", "load-hbm", "copy.small.tail", "disk.latency", "tcp"))
    assert main(["baseline", "list", "--profile", "nothing"]) == 2
