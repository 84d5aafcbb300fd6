"""Evidence that was written reads as what it was."""

from __future__ import annotations

import errno
import stat
import tarfile
from pathlib import Path

import pytest

from hwcheck.errors import UsageError
from hwcheck.evidence_dir import Node, Source, folder_name, keeper
from hwcheck.facts import Reason
from hwcheck.readers import read_paths

NODE = Node(
    "gpu-1",
    (
        Source("proc-cmdline", "raw/proc-cmdline", b"quiet\n", "ok", seconds=0.5, command="cmdline"),
        Source("ibstat", "", b"", "absent", "not installed"),
        Source("dpkg", "raw/dpkg", b"", "ok"),
        Source("lspci", "raw/lspci", b"half", "timeout", "no answer in 10 s"),
    ),
    "2026-01-01T00:00:00+00:00",
    simulated=True,
    broken=(("the node's stream", "ended before its end"),),
)
DEAD = Node("gpu-2", unreachable="connection refused", advice="Start sshd.")


@pytest.mark.parametrize("name", ["evidence", "bundle.tar.gz", "bundle.tgz"])
def test_what_was_written_is_read_again(name: str, tmp_path: Path) -> None:
    """Texts, how each source ended, what broke off, and the node that nobody could reach."""
    place = tmp_path / name
    with keeper(place) as kept:
        kept.keep(NODE)
        kept.keep(DEAD)
    alive, dead = sorted(read_paths([str(place)]), key=lambda evidence: evidence.node)
    assert (alive.node, alive.simulated, alive.broken) == (
        "gpu-1",
        True,
        [("the node's stream", "ended before its end")],
    )
    assert [(o.kind, o.lines, o.reason, o.detail, o.seconds, o.command, o.file) for o in alive.outputs] == [
        ("proc-cmdline", ["quiet"], None, "", 0.5, "cmdline", "raw/proc-cmdline"),
        ("ibstat", [], Reason.ABSENT, "not installed", 0.0, "", "ibstat"),
        ("dpkg", [], None, "", 0.0, "", "raw/dpkg"),
        ("lspci", ["half"], Reason.TIMEOUT, "no answer in 10 s", 0.0, "", "raw/lspci"),
    ]
    assert (dead.node, dead.unreachable, dead.advice) == ("gpu-2", "connection refused", "Start sshd.")


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """Files 0600, folders 0700, whatever the umask."""
    for name in ("evidence", "bundle.tar.gz"):
        with keeper(tmp_path / name) as kept:
            kept.keep(NODE)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert {name: mode for name, mode in modes.items() if mode not in (0o600, 0o700)} == {}
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        assert {(member.mode, member.uid, member.uname) for member in archive} == {(0o600, 0, "")}


@pytest.mark.parametrize("name", ["evidence", "bundle.tar.gz"])
def test_an_interruption_leaves_nothing_half(name: str, tmp_path: Path) -> None:
    """A bundle appears whole or not at all; a folder has the nodes that were whole."""

    def interrupted() -> None:
        with keeper(tmp_path / name) as kept:
            kept.keep(NODE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == (["evidence"] if name == "evidence" else [])
    assert not list(tmp_path.rglob(".begun*"))


@pytest.mark.parametrize("name", ["evidence", "bundle.tar.gz", "none/evidence"])
def test_nothing_is_overwritten(name: str, tmp_path: Path) -> None:
    """Evidence that is there already stays; a parent that is not there is not made."""
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "old").write_text("")
    (tmp_path / "bundle.tar.gz").write_text("")
    with pytest.raises(UsageError):
        keeper(tmp_path / name)


def test_names_of_nodes_are_no_paths() -> None:
    """Not outside, not hidden, no two the same."""
    taken: set[str] = set()
    names = [folder_name(name, taken) for name in ("gpu-1", "gpu-1", "../../etc", "a/b", "", ".x", "n" * 300)]
    assert names == ["gpu-1", "gpu-1_2", "_.._etc", "a_b", "node", "x", "n" * 100]


def test_a_bundle_that_came_meanwhile_is_kept(tmp_path: Path) -> None:
    """Of two runs with one place the second is told; neither evidence is lost to the other, nothing begun is left."""
    place = tmp_path / "bundle.tgz"
    second = keeper(place)
    with keeper(place) as first:
        first.keep(NODE)
    before = place.read_bytes()
    with pytest.raises(UsageError, match="has come meanwhile"), second:
        second.keep(DEAD)
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


def test_a_full_disk_leaves_nothing_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the last bytes do not fit."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "close", full)
    with pytest.raises(OSError, match="No space left"), keeper(tmp_path / "bundle.tgz") as kept:
        kept.keep(NODE)
    assert list(tmp_path.iterdir()) == []
