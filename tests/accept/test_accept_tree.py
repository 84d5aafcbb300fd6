"""An acceptance of one lab node in tree form: what stands when something goes wrong on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli import accept_report, accepting, certifying, measuring
from hwcheck.cli.main import main
from hwcheck.errors import StoreError, TransportError
from hwcheck.lab import nodes
from hwcheck.lab.faults import catalogue
from hwcheck.lab.nodes import Node
from hwcheck.store import Store
from hwcheck.transports.outcome import Outcome

pytestmark = pytest.mark.lab
Capture = pytest.CaptureFixture[str]
OLD = b"an old certificate"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Return a healthy node."""
    catalogue()
    made, _ = nodes.up(tmp_path_factory.mktemp("lab"), "t-1", "hgx-h200", [])
    return made


@pytest.fixture
def out(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for certificates, with one of an earlier run in it; hwcheck finds the node's tools."""
    for key, value in node.environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HWCHECK_STORE", raising=False)
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("t-1", "another"):
        (folder / f"{name}.cert.json").write_bytes(OLD)
    yield folder
    assert (folder / "another.cert.json").read_bytes() == OLD, "a node that is not of this run"


def accept(node: Node, out: Path, *words: str) -> int:
    """Accept the node."""
    options = ["--live-root", str(node.root), "--test", "load-hbm", "--yes", "-q", "-o", str(out)]
    return main(["accept", *options, *words])


def resume(name: str) -> int:
    """Go on with an acceptance."""
    return main(["accept", "--resume", name])


def last(out: Path) -> str:
    """Return the name of the only acceptance."""
    (found,) = (out.parent / "state/hwcheck/accept").glob("*/accept.json")
    return found.parent.name


def run_of(place: Path) -> dict[str, Any]:
    """Read the run in a folder."""
    told: dict[str, Any] = json.loads((place / "run.json").read_text(encoding="utf-8"))
    return told


def broken(*_: Any, **__: Any) -> Any:
    """Stand for a disk that is full."""
    raise OSError(28, "No space left on device", "disk")


def test_a_healthy_node_is_certified_and_its_end_is_told_again(node: Node, out: Path, capsys: Capture) -> None:
    """--resume of one that has ended reads no node and signs nothing anew."""
    assert accept(node, out) == 0
    first = (out / "t-1.cert.json").read_bytes()
    assert first != OLD
    capsys.readouterr()
    assert resume(last(out)) == 0
    told = capsys.readouterr()
    assert "has ended" in told.err
    assert str(out / "report.html") in told.out
    assert (out / "t-1.cert.json").read_bytes() == first
    assert [kept.name for kept in Store.open("").runs()] == [last(out)]


def test_a_node_that_vanishes_under_load_keeps_no_certificate(
    node: Node, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a new one, nor one of an earlier run in the same folder."""
    whole = measuring.read_nodes

    def read(arguments: Any, tier: str, nodes: Any = (), only: Any = ()) -> list[Outcome]:
        found = whole(
            arguments, "quick" if tier == measuring.LOAD else tier, nodes, () if tier == measuring.LOAD else only
        )
        lost = [Outcome(one.target, error=TransportError("connection reset")) for one in found]
        return lost if tier == measuring.LOAD else found

    monkeypatch.setattr(measuring, "read_nodes", read)
    assert accept(node, out) == 3
    assert not (out / "t-1.cert.json").exists()
    told = capsys.readouterr().out
    assert "unknown evidence.measured: it was not measured: it did not answer under load: connection reset" in told
    assert "its certificate of an earlier run is withdrawn" in told
    assert run_of(out)["verdict"] == "unknown"


def test_failing_tests_of_the_site_are_in_the_way(node: Node, out: Path, tmp_path: Path, capsys: Capture) -> None:
    """On this machine too, where testinfra calls the node local."""
    (tmp_path / "test_site.py").write_text("def test_mount(host): assert False\n")
    assert accept(node, out, "--suite", str(tmp_path / "test_site.py")) == 1
    assert "fail evidence.site_tests: 1 of the site's tests fail: test_mount[local]" in capsys.readouterr().out
    assert not (out / "t-1.cert.json").exists()


def test_files_that_cannot_be_written_where_wanted_lie_beside_the_acceptance(
    node: Node, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured for an hour is not lost with a full disk; the exit code says that something is amiss."""
    whole = certifying.write_whole

    def write(place: Path, data: bytes, mode: int) -> None:
        if place.parent == out:
            broken()
        whole(place, data, mode)

    monkeypatch.setattr(certifying, "write_whole", write)
    monkeypatch.setattr(accept_report, "write_whole", write)
    assert accept(node, out) == 3
    own = out.parent / "state/hwcheck/accept" / last(out) / "result"
    assert {path.name for path in own.iterdir()} == {"run.json", "report.html", "t-1.cert.json", "t-1.cert.html"}
    assert not (out / "t-1.cert.json").exists()
    assert f"certificates: {own}" in capsys.readouterr().out
    assert [kept.name for kept in Store.open("").runs()] == [last(out)]


def test_a_full_disk_leaves_an_acceptance_that_goes_on(
    node: Node, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept of the half; once there is room the same acceptance ends well."""
    with monkeypatch.context() as full:
        full.setattr(accepting, "write_files", broken)
        assert accept(node, out) == 2
    assert f"--resume {last(out)}" in capsys.readouterr().err
    assert Store.open("").runs() == []
    assert not (out / "t-1.cert.json").exists()
    assert resume(last(out)) == 0
    assert (out / "t-1.cert.json").exists()
    assert [kept.name for kept in Store.open("").runs()] == [last(out)]


def test_a_run_that_the_store_does_not_take_is_kept_at_the_next_call(
    node: Node, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate stands, the exit code says that something is amiss, and nothing is measured anew."""

    def refuse(*_: Any) -> str:
        raise StoreError("the store is of a newer hwcheck")

    with monkeypatch.context() as newer:
        newer.setattr(Store, "keep", refuse)
        assert accept(node, out) == 3
    assert (out / "t-1.cert.json").read_bytes() != OLD
    assert resume(last(out)) == 0
    assert [kept.name for kept in Store.open("").runs()] == [last(out)]


def test_evidence_that_cannot_be_kept_is_said(
    node: Node, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate whose evidence nobody has is not all right."""
    monkeypatch.setattr(accepting, "FolderKeeper", broken)
    assert accept(node, out) == 3
    assert "the evidence is not kept: disk: No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("words", [
    ("--test", "load-hmb"), ("--after", "gpu 1 2"), ("--wave", "some"), ("--references", "/none.json"),
    ("--suite", "/none.py"), ("--site", "/none.yaml"), ("--profile", "hgx-h2oo"), ("--waivers", "/none.yaml"),
    ("--key", "/none.pem"), ("--store", "ftp://store"), ("-o", "/proc/none"), ("--drain", "'"), ("--only", "gpu"),
])  # fmt: skip
def test_a_slip_of_the_pen_is_told_before_any_node_is_asked(words: tuple[str, str], node: Node, out: Path) -> None:
    """And leaves no acceptance behind, and the old certificate where it is."""
    assert accept(node, out, *words) == 2
    assert not (out.parent / "state/hwcheck/accept").exists()
    assert (out / "t-1.cert.json").read_bytes() == OLD


def test_without_consent_nothing_is_loaded(node: Node, out: Path, capsys: Capture) -> None:
    """Where nobody can be asked."""
    assert main(["accept", "--live-root", str(node.root), "-o", str(out), "-q"]) == 2
    assert "--yes says that this is wanted" in capsys.readouterr().err
    assert (out / "t-1.cert.json").read_bytes() == OLD


def test_after_a_swap_a_node_without_an_earlier_acceptance_is_told_at_once(
    node: Node, out: Path, capsys: Capture
) -> None:
    """Before anything is changed or measured; and so is a GPU that is not there."""
    assert accept(node, out, "--after", "gpu2") == 2
    assert "t-1: it has no earlier acceptance in the store" in capsys.readouterr().err
    assert accept(node, out, "--no-fix") == 0
    assert accept(node, out, "--after", "gpu9") == 2
    assert "t-1: there is no gpu9 here" in capsys.readouterr().err
    assert accept(node, out, "--after", "gpu2") == 0
    carried = [one for one in run_of(out)["measurements"] if "carried_from" in one["conditions"]]
    assert len(carried) == 7
