"""The previous snapshot of a node."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from hwcheck.facts import NODE, Facet, Fact, Missing, Reason, Snapshot, Subject
from hwcheck.history import State
from hwcheck.places import state_home

KEPT = ("evidence.taken", "kernel.cmdline", "sysctl.max_map_count", "gpu.pcie.replays", "gpu.temperature")


def snapshot(node: str = "gpu-1", boot: str = "boot-1") -> Snapshot:
    """Make a snapshot with values of all types, and a gap."""
    made = Snapshot(node)
    gpu = Subject("gpu", "0000:18:00.0")
    made.put(NODE, "evidence.boot_id", Fact(boot))
    made.put(NODE, "evidence.taken", Fact(1000.5))
    made.put(NODE, "kernel.cmdline", Fact(("a", "b")))
    made.put(NODE, "sysctl.values", Fact({"vm.x": "1"}))
    made.put(NODE, "sysctl.max_map_count", Fact(7), Facet.NEXT_BOOT)
    made.put(gpu, "gpu.pcie.replays", Fact(3))
    made.put(gpu, "gpu.temperature", Fact(Missing(Reason.FAILED, "ERR!")))
    return made


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    """Values with their types and facets; neither gaps nor what nothing compares."""
    state = State(KEPT, tmp_path / "nodes")
    state.keep(snapshot())
    before = state.previous(snapshot())
    assert before is not None
    gpu = Subject("gpu", "0000:18:00.0")
    assert before.value("gpu.pcie.replays", gpu) == 3
    assert before.value("kernel.cmdline") == ("a", "b")
    assert before.value("evidence.taken") == 1000.5
    assert before.get(NODE, "sysctl.max_map_count", Facet.NEXT_BOOT).value == 7
    assert not before.get(gpu, "gpu.temperature").present
    assert before.value("sysctl.values") is None


@pytest.mark.parametrize("now", [snapshot(boot="boot-2"), snapshot(node="gpu-2"), Snapshot("gpu-1"), snapshot(node="")])
def test_another_boot_or_node_has_no_previous(now: Snapshot, tmp_path: Path) -> None:
    """Counters begin anew with each boot."""
    state = State(KEPT, tmp_path)
    state.keep(snapshot())
    assert state.previous(now) is None


@pytest.mark.parametrize("node", ["../../etc/passwd", ".hidden", "a/b", "n" * 300, "gpu 1\n", "gpu-1"])
def test_names_of_nodes_lead_nowhere_else(node: str, tmp_path: Path) -> None:
    """One file each, in the folder, for the owner alone."""
    state = State(KEPT, tmp_path / "nodes")
    state.keep(snapshot(node))
    (file,) = tmp_path.rglob("*.json")
    assert file.parent == tmp_path / "nodes"
    assert not file.name.startswith(".")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert state.previous(snapshot(node)) is not None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format": "hwcheck.state/9"}', "[" * 100_000,
     '{"format": "hwcheck.state/1", "node": "gpu-1", "boot_id": "boot-1", "facts": [1]}'],
)  # fmt: skip
def test_a_file_that_is_not_understood_is_none(text: str, tmp_path: Path) -> None:
    """And the next reading replaces it."""
    state = State(KEPT, tmp_path)
    (tmp_path / "gpu-1.json").write_text(text)
    assert state.previous(snapshot()) is None
    state.keep(snapshot())
    assert state.previous(snapshot()) is not None


def test_facts_of_another_version_are_left_out(tmp_path: Path) -> None:
    """Names that are gone, types that have changed."""
    state = State(KEPT, tmp_path)
    state.keep(snapshot())
    kept = json.loads((tmp_path / "gpu-1.json").read_text())
    kept["facts"] += [["node", "", "no.such.fact", "running", 1], ["node", "", "kernel.cmdline", "running", 5]]
    (tmp_path / "gpu-1.json").write_text(json.dumps(kept))
    before = state.previous(snapshot())
    assert before is not None
    assert before.value("kernel.cmdline") == ("a", "b")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The caller says so and goes on."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        State(KEPT, tmp_path / "file").keep(snapshot())


def test_the_place_is_that_of_the_desktop_standard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_STATE_HOME where it is absolute, else below the home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_home() == tmp_path / "hwcheck"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_home() == Path.home() / ".local" / "state" / "hwcheck"
