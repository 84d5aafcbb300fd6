"""Storage sources: drives, mounts, space, arrays, from small trees and this machine's own mounts."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from hwcheck.facts import Facet, Subject
from hwcheck.sources.source import Absent, Context
from hwcheck.sources.storage import SOURCES
from tests.sources.tree import asked, facts_of, output_of, plant

ROOT = Subject("mount", "/")
MOUNTS = """\
30 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw
31 30 8:3 / /with\\040blank rw - xfs /dev/sda3 rw
32 30 8:2 /x /again rw - ext4 /dev/sda2 rw
33 30 0:40 / /nfs rw - nfs4 nas:/x rw
34 30 0:41 / /snap/core ro - squashfs /dev/loop0 ro
35 30 8:9 / /var/lib/kubelet/pods/1/v rw - ext4 /dev/sdb rw
36 30 8:10 / /not/there rw - ext4 /dev/sdc rw
nonsense
"""


def test_space_is_asked_once_of_each_local_file_system(tmp_path: Path) -> None:
    """Network mounts, images, mounts of containers and second mounts are left out; a path that is gone too."""
    context = plant(tmp_path, {"/proc/self/mountinfo": MOUNTS, "/with blank/x": ""})
    text = asked(SOURCES, "space")(context).decode()
    assert re.findall(r"^/dev/\S+", text, re.MULTILINE) == ["/dev/sda2", "/dev/sda3"] * 2
    snapshot = facts_of(output_of(SOURCES, "space", context))
    assert {subject.id for subject in snapshot.subjects("mount")} == {"/", "/with blank"}


def test_network_file_systems_are_asked_apart(tmp_path: Path) -> None:
    """They may hang: only the deep tier asks them, in a child of its own."""
    context = plant(tmp_path, {"/proc/self/mountinfo": MOUNTS, "/nfs/x": ""})
    assert asked(SOURCES, "space-network")(context).count(b"nas:/x") == 2
    (source,) = (source for source in SOURCES if source.id == "space-network")
    assert (source.tier, source.child) == ("deep", True)


def test_this_machine_has_space() -> None:
    """The root of a real machine is read as df reads it."""
    state = os.statvfs("/")
    used = state.f_blocks - state.f_bfree
    told = facts_of(output_of(SOURCES, "space", Context())).value("storage.space.used", ROOT)
    assert abs(told - 100 * used / (used + state.f_bavail)) < 3


def test_mounts_and_what_the_next_boot_wants(tmp_path: Path) -> None:
    """Both facets of one mount."""
    files: dict[str, str | bytes] = {"/proc/self/mountinfo": MOUNTS, "/etc/fstab": "/dev/sda2 / ext4 ro 0 1\n"}
    context = plant(tmp_path, files)
    snapshot = facts_of(output_of(SOURCES, "mountinfo", context), output_of(SOURCES, "fstab", context))
    assert snapshot.get(ROOT, "storage.mount.read_only").value is False
    assert snapshot.get(ROOT, "storage.mount.read_only", Facet.NEXT_BOOT).value is True


def test_passwords_of_mounts_stay_on_the_node(tmp_path: Path) -> None:
    """Options that hold a secret are taken out before anything is sent."""
    line = "//nas/x /x cifs user=joe,password=hunter2,secretfile=/k 0 0\nmon:/ /c ceph name=a,secret=QUJD== 0 0\n"
    text = asked(SOURCES, "fstab")(plant(tmp_path, {"/etc/fstab": line}))
    assert b"hunter2" not in text
    assert b"QUJD" not in text
    assert b"user=joe" in text


def test_two_mounts_on_one_path_are_the_upper_one(tmp_path: Path) -> None:
    """What lies below cannot be seen, and is no contradiction."""
    text = "1 0 8:1 / / ro - ext4 /dev/sda1 ro\n2 1 8:2 / / rw - xfs /dev/sda2 rw\n"
    snapshot = facts_of(output_of(SOURCES, "mountinfo", plant(tmp_path, {"/proc/self/mountinfo": text})))
    assert snapshot.value("storage.mount.type", ROOT) == "xfs"
    assert snapshot.changes == []


def drives(tmp_path: Path, **more: str) -> Context:
    """Make one NVMe drive."""
    base = "/sys/class/nvme/nvme0/"
    return plant(tmp_path, {f"{base}model": "X\n", f"{base}state": "live\n", "/dev/nvme0": "", **more})


def test_health_is_a_read_of_the_health_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only command sent is Get Log Page, page 2, of 512 bytes, and for the whole controller."""
    asked_for: list[bytes] = []

    def answer(_fd: int, request: int, command: bytearray, _mutate: bool) -> int:  # noqa: FBT001 - as fcntl has it
        assert request == 0xC0484E41
        asked_for.append(bytes(command))
        return 0

    monkeypatch.setattr("fcntl.ioctl", answer)
    snapshot = facts_of(output_of(SOURCES, "nvme-health", drives(tmp_path)))
    (command,) = asked_for
    assert len(command) == 72
    assert command[0] == 2
    assert command[4:8] == b"\xff" * 4
    assert int.from_bytes(command[36:40], "little") == 512
    assert int.from_bytes(command[40:44], "little") == 127 << 16 | 2
    assert snapshot.value("storage.smart.warning", Subject("disk", "nvme0")) == 0


@pytest.mark.parametrize(("answer", "words"), [(OSError(5, "Input/output error"), "Input/output"), (0x2002, "0x2002")])
def test_a_drive_that_answers_with_an_error_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    """An error of one drive is its own; nothing is taken for healthy."""

    def ioctl(*_: object) -> int:
        if isinstance(answer, OSError):
            raise answer
        return int(answer)

    monkeypatch.setattr("fcntl.ioctl", ioctl)
    output = output_of(SOURCES, "nvme-health", drives(tmp_path))
    assert words in output.lines[0]
    fact = facts_of(output).get(Subject("disk", "nvme0"), "storage.smart.warning")
    assert fact.value.reason == "failed"


def test_drives_without_a_device_node_are_not_asked(tmp_path: Path) -> None:
    """A container shows the host's sysfs and not its /dev."""
    root = drives(tmp_path)
    shutil.rmtree(tmp_path / "dev")
    with pytest.raises(Absent):
        output_of(SOURCES, "nvme-health", root)


def test_nodes_without_drives_arrays_or_mounts_are_absent(tmp_path: Path) -> None:
    """Nothing to read is no failure."""
    for source in SOURCES:
        with pytest.raises(Absent):
            source.ask(Context(root=str(tmp_path)))


def test_hostile_mounts_are_bounded(tmp_path: Path) -> None:
    """A machine with very many mounts costs a bounded number of questions; names with escapes stay names."""
    rows = "".join(f"{n} 1 8:{n} / /d{n}\\012evil rw - ext4 /dev/x rw\n" for n in range(3000))
    context = plant(tmp_path, {"/proc/self/mountinfo": rows, **{f"/d{n}\nevil/x": "" for n in range(300)}})
    text = asked(SOURCES, "space")(context)
    assert text.count(b"/dev/x") <= 2 * 200
    assert not [line for line in text.split(b"\n") if line.startswith(b"evil")]
