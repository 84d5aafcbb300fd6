"""What stands on a node in the place of files that hwcheck writes: by other hands, of another kind, damaged."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
from typing import Any

import pytest

from hwcheck.writers import change, journal, sysctl
from tests.writers.conftest import Node, status

SWAP, MAPS = "/proc/sys/vm/swappiness", "/proc/sys/vm/max_map_count"


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": f"test.{key}", "mechanism": "sysctl", "key": key, "value": value, **more}


ONE = step("vm.swappiness", "10")


@pytest.fixture
def node(node: Node) -> Node:
    """Return a node with some parameters."""
    node.put(SWAP, "60\n")
    node.put(MAPS, "65530\n")
    return node


def put_bytes(node: Node, data: bytes) -> None:
    """Put bytes where our drop-in is."""
    node.put(sysctl.FILE, "")
    (node.root / sysctl.FILE.lstrip("/")).write_bytes(data)


def read_bytes(node: Node) -> bytes:
    """Return our drop-in."""
    return (node.root / sysctl.FILE.lstrip("/")).read_bytes()


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n"])
def test_lines_by_hand_keep_their_bytes_beside_ours_and_all_come_back(node: Node, end: bytes) -> None:
    """Of any encoding, with or without a line feed at the end; a line break of Unicode makes no second line."""
    by_hand = b"# caf\xe9\xe2\x80\xa8kernel.panic = 1\nvm.max_map_count = 9" + end
    put_bytes(node, by_hand)
    node.round_trip(ONE)
    assert (
        b"\n# caf\xe9\xe2\x80\xa8kernel.panic = 1\nvm.max_map_count = 9\n# hwcheck: test.vm.swappiness"
        in read_bytes(node)
    )


def test_a_file_in_which_nothing_is_to_be_changed_keeps_every_byte(node: Node) -> None:
    """The next boot is right by another file, only the running value is written."""
    node.put("/etc/sysctl.d/60-site.conf", "vm.swappiness = 10\n")
    put_bytes(node, b"\r\n# by hand\r\nvm.max_map_count=9")
    assert status(node.apply(ONE)) == [("changed", "")]
    assert read_bytes(node) == b"\r\n# by hand\r\nvm.max_map_count=9"


@pytest.mark.parametrize("what", ["folder", "pipe", "large"])
def test_what_is_no_file_of_settings_is_left(node: Node, what: str) -> None:
    """It could not be put back as it was; what does not need it is still changed."""
    target = node.root / sysctl.FILE.lstrip("/")
    target.parent.mkdir(parents=True)
    if what == "folder":
        target.mkdir()
    elif what == "pipe":
        os.mkfifo(target)
    else:
        target.write_bytes(b"#" * (change.CAP + 1))
    done = node.apply(ONE)
    assert [(one, "no regular file" in why or "4 MiB or more" in why) for one, why in status(done)] == [
        ("refused", True)
    ]
    assert what == "large" or not target.is_file()
    assert what != "large" or target.stat().st_size == change.CAP + 1
    assert node.text(SWAP) == "60\n"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_somebody_has_made_immutable_is_refused_beforehand(
    node: Node, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may not replace it either; the check says so, and nothing is begun."""
    put_bytes(node, b"# by hand\n")
    fixed = {"file": sysctl.FILE, "folder": sysctl.FILE.rpartition("/")[0]}[what]

    def flags(fd: int, request: int, _data: bytes) -> bytes:
        here = os.path.realpath(f"/proc/self/fd/{fd}") == os.path.realpath(node.root / fixed.lstrip("/"))
        assert request == 0x80086601
        return (0x80010 if here else 0x80000).to_bytes(4, sys.byteorder) + bytes(4)

    monkeypatch.setattr(fcntl, "ioctl", flags)
    for stage in ("check", "prepare"):
        assert status(node.stage(stage, ONE)) == [
            ("refused", f"{sysctl.FILE}: somebody has made {fixed} immutable (chattr +i)")
        ]
    assert read_bytes(node) == b"# by hand\n"


def test_a_file_that_cannot_be_written_is_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the path that the node knows, not by that of a temporary file."""

    def full(_fd: int, _data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert node.stage("prepare", ONE)["why"] == "ENOSPC: No space left on device (/run/hwcheck/lease.json)"


@pytest.mark.parametrize("value", ["1\x85kernel.panic = 1", "1\u2028kernel.panic = 1", "1\ud800", "1\x9b31m"])
def test_a_value_of_several_lines_or_without_an_encoding_is_refused(node: Node, value: str) -> None:
    """Whatever would read it as a second line, or obey it as an escape, never sees it."""
    assert "must be one line of text" in node.apply(step("vm.swappiness", value))["why"]


def cut_off(node: Node, text: str) -> None:
    """Damage the node's journal."""
    node.put(f"{journal.FOLDER}/r1.json", text)


def test_a_damaged_journal_is_made_up_for_by_the_controllers_copy(node: Node) -> None:
    """What a loss of power or a full disk has cut off does not keep a run from being undone."""
    before = node.tree()
    kept = node.apply(ONE)["journal"]
    whole = json.dumps(kept)
    headless = json.dumps({key: value for key, value in kept.items() if key != "changes"})
    for text in (whole[:100], "", headless):
        cut_off(node, text)
        assert "journal of run r1" in node.stage("undo")["why"]
        assert node.text(SWAP) == "10\n"
    assert node.stage("undo", journal=kept)["results"] == []
    assert node.tree() == before


@pytest.mark.parametrize("kept", [[], {"run": "r1"}, {"format": journal.FORMAT, "run": "other"}])
def test_a_copy_of_another_run_undoes_nothing(node: Node, kept: Any) -> None:
    """It is said, and the node stays as it is."""
    node.apply(ONE)
    assert "of another version" in node.stage("undo", journal=kept)["why"]
    assert node.text(SWAP) == "10\n"


def test_a_program_that_cannot_be_run_is_told_and_the_step_taken_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systemctl without its permission: no traceback, and the run is not torn off."""
    node.put("/usr/lib/systemd/system/x.service", "[Service]\n")
    node.program("systemctl")
    (node.bin / "systemctl").chmod(0o644)
    monkeypatch.setenv("PATH", str(node.bin))
    before = node.tree()
    done = node.apply({"id": "t", "mechanism": "unit_property", "key": "x.service LimitNOFILE", "value": "5"}, ONE)
    told = dict(zip(("unit", "sysctl"), status(done), strict=True))
    assert told["sysctl"] == ("changed", "")
    assert "systemctl cannot be run: EACCES" in told["unit"][1]
    node.stage("undo")
    assert node.tree() == before
