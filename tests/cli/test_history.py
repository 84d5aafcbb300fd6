"""``hwcheck history``, ``status``, ``store`` and ``check --store`` as a user meets them."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hwcheck.apply.run_folder import RunFolder
from hwcheck.cli.main import main
from hwcheck.errors import StoreError
from hwcheck.history import State
from hwcheck.store import Store
from tests.machines import as_q, hgx_h200
from tests.store.runs import DAY, DOWN, PASSED, XID, make_run

Capture = pytest.CaptureFixture[str]
NOW = time.time() - 60
HEALTHY, FAILING = as_q(hgx_h200()), as_q(hgx_h200({1: {"persistence": "Disabled"}}))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of state, empty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HWCHECK_STORE", raising=False)
    return tmp_path / "state" / "hwcheck"


@pytest.fixture
def posted(tmp_path: Path) -> str:
    """Evidence of a node."""
    path = tmp_path / "posted.txt"
    path.write_text(FAILING, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> int:
    """Run a verb; argparse's own exit counts as an exit code."""
    try:
        return main(list(arguments))
    except SystemExit as error:
        return int(error.code or 0)


def printed(capsys: Capture) -> Any:
    """Return what was printed as JSON."""
    return json.loads(capsys.readouterr().out)


def keep(day: int, nodes: dict[str, Any], name: str = "", **more: Any) -> None:
    """Keep a run of some days ago."""
    Store.open().keep(make_run(NOW - day * DAY, nodes, name, **more))


def test_a_check_is_kept_where_that_is_asked_for(posted: str, state: Path, capsys: Capture) -> None:
    """Not by itself; the report and the exit code are the same."""
    code = run("check", "--evidence", posted)
    plain = capsys.readouterr().out
    assert not (state / "store.sqlite").exists()
    assert run("check", "--evidence", posted, "--store") == code
    assert capsys.readouterr().out == plain
    assert run("store", "list") == 0
    assert "  check     " in capsys.readouterr().out
    (kept,) = Store.open().runs()
    loaded = Store.open().load(kept.name)
    assert loaded["who"] == kept.who != ""
    assert kept.ended is not None
    assert "gpu.persistence" in {one["check"] for one in loaded["findings"] if one["status"] != "pass"}


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "junit"])
def test_every_form_is_kept_whole(form: str, posted: str) -> None:
    """Whatever is printed meanwhile, the run is the same."""
    run("check", "--evidence", posted, "--format", form, "--store")
    (kept,) = Store.open().runs()
    counts = Store.open().load(kept.name)["nodes"][0]["coverage"]
    assert sum(counts.values()) == len(Store.open().load(kept.name)["findings"]) > 50


def test_the_environment_names_the_store(posted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HWCHECK_STORE each check is kept there; ``none`` on the command line keeps nothing."""
    monkeypatch.setenv("HWCHECK_STORE", str(tmp_path / "ours.sqlite"))
    run("check", "--evidence", posted)
    assert len(Store.open(str(tmp_path / "ours.sqlite")).runs()) == 1
    run("check", "--evidence", posted, "--store", "none")
    run("check", "--evidence", posted, "--store", str(tmp_path / "other.sqlite"))
    assert len(Store.open(str(tmp_path / "ours.sqlite")).runs()) == 1
    assert len(Store.open(str(tmp_path / "other.sqlite")).runs()) == 1


def test_this_machine_is_kept_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live form, with the node's name."""
    monkeypatch.setattr(State, "keep", lambda *_: None)
    assert run("check", "--store", "-q", "--only", "process") in (0, 1, 3)
    (state,) = Store.open().status()
    assert state.node == os.uname().nodename


def test_a_store_that_fails_does_not_change_the_verdict(posted: str, state: Path, capsys: Capture) -> None:
    """The run waits beside it, and that is said."""
    code = run("check", "--evidence", posted)
    capsys.readouterr()
    assert run("check", "--evidence", posted, "--store", "postgresql:///x?host=/nonexistent") == code
    told = capsys.readouterr()
    (waits,) = (state / "unsent").rglob("*.json")
    assert str(waits) in told.err
    assert "gpu.persistence" in told.out
    assert run("store", "import", str(waits)) == 0
    assert [one.state for one in Store.open().status()] == ["failing" if code == 1 else "ok"]


def test_a_run_that_is_lost_is_an_error(posted: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Neither kept nor put aside: exit 2, though the report was printed."""
    monkeypatch.setattr(Store, "keep", lambda *_: (_ for _ in ()).throw(StoreError("full, and nor can it be kept")))
    assert run("check", "--evidence", posted, "--store") == 2
    told = capsys.readouterr()
    assert "nor can it be kept" in told.err
    assert "gpu.persistence" in told.out


def test_what_names_no_store_stops_before_anything(posted: str, capsys: Capture) -> None:
    """Nothing is judged."""
    assert run("check", "--evidence", posted, "--store", "mysql://host/db") == 2
    told = capsys.readouterr()
    assert "a store is SQLite or PostgreSQL" in told.err
    assert told.out == ""


def test_history_says_since_when_and_what_changed(capsys: Capture) -> None:
    """What is the same on several nodes is one entry."""
    old, new = {"versions": {"driver": "570.1"}}, {"versions": {"driver": "570.2"}, "boot_id": "boot-2"}
    nodes = [f"gpu-{number}" for number in range(1, 4)]
    keep(3, {node: {XID: "pass"} for node in nodes}, "good", about=old)
    keep(2, {node: {XID: "fail"} for node in nodes}, "bad", about=new)
    keep(1, {node: {XID: "fail"} for node in nodes}, "worse", about=new)
    keep(0, {"gpu-1": {XID: "pass"}, "gpu-2": {XID: "fail"}, "gpu-3": {XID: "fail"}}, "now", about=new)
    assert run("history") == 0
    out = capsys.readouterr().out
    assert out.count("FAIL") == 2
    assert "FAIL     gpu-[2-3]  xid.79 on 0000:18:00.0\n" in out
    assert "(bad), in 3 runs, last in" in out
    assert "changed in between: it was booted; driver 570.1 -> 570.2\n" in out
    assert "before: pass in" in out
    assert out.index("gpu-[2-3]") < out.index("gpu-1")
    assert "(now): pass" in out
    assert run("history", "gpu-[1-2]", "xid", "--lasting", "--format", "json") == 0
    (spell,) = printed(capsys)["spells"]
    assert (spell["node"], spell["first"]["run"], spell["before"]["run"], spell["ended"]) == (
        "gpu-2", "bad", "good", None,
    )  # fmt: skip
    assert {"what": "driver", "where": "", "before": "570.1", "after": "570.2", "run": ""} in spell["causes"]


def applied(home: Path, begun: float, value: str) -> RunFolder:
    """Write down a run of apply as it is after its end."""
    plan = {"tool": "hwcheck 0.1", "profile": {"name": "auto", "hash": "0" * 16}, "nodes": []}
    with pytest.MonkeyPatch.context() as patch:
        then = time.gmtime(begun)
        patch.setattr("hwcheck.apply.run_folder.time.gmtime", lambda: then)
        folder = RunFolder.new(home, {}, plan, "ops@head (pid 1)")
    step = {
        "id": "sysctl.swap", "subject": "", "mechanism": "sysctl", "key": "vm.swappiness", "value": value,
        "before": {"running": "60"}, "status": "changed", "why": "",
    }  # fmt: skip
    folder.record["results"] = {"gpu-1": [step, {**step, "key": "vm.other", "status": "skipped"}]}
    folder.write("journal/gpu-1.json", {"changes": [value]})
    folder.end("done")
    return folder


def test_what_was_applied_meanwhile_is_kept_with_the_next_run(posted: str, state: Path, capsys: Capture) -> None:
    """With its journals, once, and anew when it was taken back; not what is older than the store."""
    keep(3, {"gpu-1": {XID: "pass"}})
    applied(state / "runs", NOW - 9 * DAY, "0")
    folder = applied(state / "runs", NOW - 2 * DAY, "1")
    damaged = applied(state / "runs", NOW - 2 * DAY, "2")
    (damaged.path / "plan.json").write_text("{", encoding="utf-8")
    keep(1, {"gpu-1": {XID: "fail"}})
    for _ in range(2):
        run("check", "--evidence", posted, "--store")
    (kept,) = Store.open().runs("apply")
    assert (kept.name, kept.who, kept.verdict) == (folder.name, "ops@head (pid 1)", "pass")
    assert Store.open().journals(folder.name) == {"gpu-1": {"changes": ["1"]}}
    capsys.readouterr()
    run("history", "gpu-1", "xid")
    assert f"changed in between: sysctl vm.swappiness 60 -> 1 (run {folder.name})\n" in capsys.readouterr().out
    folder.set_state(["gpu-1"], "failed")
    os.utime(folder.path / "run.json", (time.time() + 5, time.time() + 5))
    run("check", "--evidence", posted, "--store")
    assert [one.verdict for one in Store.open().runs("apply")] == ["fail"]


def test_history_says_what_it_does_not_know(capsys: Capture) -> None:
    """A first run that fails already; a run that could not tell; a node of which there is no run."""
    keep(2, {"gpu-1": {XID: "fail"}}, "first", waived={XID: "2999-01-01"})
    keep(1, {"gpu-1": {XID: "unknown"}}, "dark")
    run("history", "-", "xid.79")
    out = capsys.readouterr().out
    assert "waived until 2999-01-01 by ops" in out
    assert "since at least" in out
    assert "not told since: unknown in" in out
    assert "changed in between" not in out
    assert run("history", "--since", "1h") == 0
    assert "Nothing that failed" in capsys.readouterr().out
    assert run("history", "gpu-9") == 2
    assert "no run of gpu-9 is kept" in capsys.readouterr().err
    assert run("history", "--since", "soon") == 2


def test_status_sorts_the_fleet(state: Path, capsys: Capture) -> None:
    """Failing, unknown, waived, stale and drained, each as a node set; a fail decides the exit code."""
    nodes = {f"gpu-{number:02}": {PASSED: "pass"} for number in range(1, 9)}
    keep(0, {**nodes, "gpu-09": {XID: "fail"}, "gpu-10": {XID: "fail", DOWN: "fail"}, "gpu-11": {XID: "unknown"}})
    soon = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 3 * DAY))
    keep(0, {"gpu-12": {DOWN: "fail"}}, waived={DOWN: soon})
    keep(0, {"gpu-13": {DOWN: "fail"}}, waived={DOWN: "2026-01-01"})
    keep(5, {"gpu-14": {PASSED: "pass"}})
    folder = state / "runs" / "20261201-120000-abcd"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"drained": ["gpu-10"]}), encoding="utf-8")
    (state / "runs" / "damaged").mkdir()
    (state / "runs" / "damaged" / "run.json").write_text("{", encoding="utf-8")
    assert run("status") == 1
    out = capsys.readouterr().out
    rows = {words[0]: (int(words[1]), words[2]) for words in map(str.split, out.partition("\n\n")[0].splitlines())}
    assert rows == {
        "ok": (9, "gpu-[01-08,12]"), "failing": (3, "gpu-[09-10,13]"), "unknown": (1, "gpu-11"), "stale": (1, "gpu-14"),
        "drained": (1, "gpu-10"),
    }  # fmt: skip
    assert "  xid.79  gpu-[09-10]\n" in out
    assert f"gpu-12  until {soon} (3 days left), ops: a spare is ordered" in out
    assert "gpu-13  until 2026-01-01 (EXPIRED, counts again)" in out
    assert "gpu-10  by run 20261201-120000-abcd" in out
    assert "5 days ago" in out
    run("status", "--format", "json")
    told = printed(capsys)
    assert (told["failing"], told["drained"], told["stale"]) == (
        "gpu-[09-10,13]", {"gpu-10": "20261201-120000-abcd"}, "gpu-14",
    )  # fmt: skip
    assert [one["days_left"] for one in told["waived"]][1] == 3


@pytest.mark.parametrize(
    ("nodes", "days", "code"),
    [({"a": {PASSED: "pass"}}, 0, 0), ({"a": {XID: "unknown"}}, 0, 3), ({"a": {PASSED: "pass"}}, 2, 3), ({}, 0, 0)],
)
def test_status_ends_as_every_verb(nodes: dict[str, Any], days: int, code: int, capsys: Capture) -> None:
    """0 where all is well, 3 where something is unknown or was not looked at for long."""
    if nodes:
        keep(days, nodes)
    assert run("status") == code
    assert ("No run is kept in" in capsys.readouterr().out) == (not nodes)
    assert run("status", "--stale", "9d") == (code if days == 0 else 0)


def test_runs_are_imported_shown_and_forgotten(
    posted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """What another machine printed; once, however often."""
    run("check", "--evidence", posted, "--format", "json")
    text = capsys.readouterr().out
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert run("store", "import", str(path), "-") == 0
    (kept,) = Store.open().runs()
    capsys.readouterr()
    assert run("store", "show", kept.name) == 0
    assert printed(capsys)["verdict"] == json.loads(text)["verdict"]
    assert run("store", "forget", "--older", "1d") == 0
    assert capsys.readouterr().out == "0 runs forgotten\n"
    assert run("store", "forget", "--older", "0m") == 0
    assert capsys.readouterr().out == "1 run forgotten\n"
    assert run("store", "show", kept.name) == 2
    assert run("store", "path") == 0
    assert capsys.readouterr().out.endswith("store.sqlite\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[]", "is no run of hwcheck"),
        ('{"schema": "hwcheck.run/1"}', "is no run of hwcheck"),
        (json.dumps({**make_run(NOW, {"a": {XID: "fail"}}), "verdict": "fine"}), "verdict"),
    ],
)
def test_what_is_no_run_is_not_imported(text: str, words: str, tmp_path: Path, capsys: Capture) -> None:
    """And nothing that stands beside it on the command line is."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(make_run(NOW, {"a": {XID: "fail"}})), encoding="utf-8")
    bad.write_text(text, encoding="utf-8")
    assert run("store", "import", str(good), str(bad)) == 2
    assert words in capsys.readouterr().err
    assert Store.open().runs() == []


def test_names_of_nodes_do_not_reach_the_terminal_as_they_are(capsys: Capture) -> None:
    """Escapes are spelled out."""
    keep(0, {"gpu\x1b[31m": {("xid.79", "\x1b]0;x"): "fail"}})
    for verb in ("history", "status"):
        run(verb)
        assert "\x1b" not in capsys.readouterr().out
