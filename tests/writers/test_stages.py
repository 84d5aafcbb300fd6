"""The stages of a run: lease, proof of idleness, journal, failure, resuming and undoing."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hwcheck.writers import journal, making, sysctl
from hwcheck.writers.place import Place, WriteError
from tests.writers.conftest import BOOT, Node, status

SWAP, MAPS, PAGES = "/proc/sys/vm/swappiness", "/proc/sys/vm/max_map_count", "/proc/sys/vm/nr_hugepages"
UNIT = "/usr/lib/systemd/system/x.service"


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": f"test.{key}", "mechanism": "sysctl", "key": key, "value": value, **more}


TWO = (step("vm.swappiness", "10"), step("vm.max_map_count", "262144"))


@pytest.fixture
def node(node: Node) -> Node:
    """Return a node with some parameters."""
    node.put(SWAP, "60\n")
    node.put(MAPS, "65530\n")
    node.put(PAGES, "0\n")
    return node


class Killed(BaseException):
    """The process ends here."""


def test_a_run_from_end_to_end(node: Node) -> None:
    """Predicted, changed, unchanged, undone."""
    assert node.round_trip(*TWO, count=2) == []


def test_another_run_is_told_who_holds_the_node(node: Node) -> None:
    """With the run and the holder by name; the same run goes on."""
    assert node.stage("prepare", *TWO)["ok"]
    other = node.stage("prepare", *TWO, run="r2")
    assert not other["ok"]
    assert "held by run r1 of me" in other["why"]
    assert "--resume r1" in other["why"]
    assert not node.stage("commit", *TWO, run="r2")["ok"]
    assert not node.stage("undo", run="r2")["ok"]
    assert node.apply(*TWO)["ok"]
    assert node.apply(*TWO, run="r2")["ok"]


def test_a_lease_ends_with_the_boot(node: Node) -> None:
    """What was prepared before a reboot is prepared again."""
    node.stage("prepare", *TWO)
    node.put(BOOT, "boot-2\n")
    done = node.stage("commit", *TWO)
    assert "prepare again" in done["why"]
    assert node.text(SWAP) == "60\n"
    assert node.apply(*TWO, run="r2")["ok"]


def test_a_node_that_works_is_not_disturbed(node: Node) -> None:
    """A process with a GPU open, and a job step; who disturbs nothing needs no idle node."""
    node.put("/proc/77/comm", "python\n")
    (node.root / "proc/77/fd").mkdir()
    (node.root / "proc/77/fd/3").symlink_to("/dev/nvidia0")
    node.put("/proc/88/cmdline", "slurmstepd: [12.0]\0")
    busy = step("vm.swappiness", "10", disturbs="gpu")
    done = node.apply(busy)
    assert not done["ok"]
    assert "77 python has /dev/nvidia0 open" in done["why"]
    assert "slurmstepd: [12.0]" in done["why"]
    assert node.text(SWAP) == "60\n"
    assert node.stage("check", busy)["workers"]
    assert node.apply(busy, run="r2", idle={"skip": True})["ok"]
    assert not node.stage("undo", run="r2")["ok"]
    assert node.stage("undo", run="r2", idle={"skip": True})["ok"]


def test_what_disturbs_nothing_needs_no_idle_node(node: Node) -> None:
    """A drop-in with its daemon-reload is written under a job."""
    node.put("/proc/88/cmdline", "slurmstepd: [12.0]\0")
    node.put(UNIT, "[Service]\n")
    node.program("systemctl")
    done = node.apply(
        {"id": "u", "mechanism": "unit_property", "key": "x.service LimitMEMLOCK", "value": "infinity"}
    )  # fmt: skip
    assert done["ok"], done


def test_a_node_that_becomes_busy_after_preparing_is_not_written(node: Node) -> None:
    """Idleness is proven again before the first write."""
    busy = step("vm.swappiness", "10", disturbs="gpu")
    assert node.stage("prepare", busy)["ok"]
    node.put("/proc/88/cmdline", "slurmstepd: [12.0]\0")
    assert "not idle" in node.stage("commit", busy)["why"]
    assert node.text(SWAP) == "60\n"


def test_a_plan_that_saw_another_value_is_stale(node: Node) -> None:
    """Only the step whose facts are old is left out."""
    done = node.apply(step("vm.swappiness", "10", seen={"running": "30", "next boot": None}), TWO[1])
    assert [one["status"] for one in done["results"]] == ["stale", "changed"]
    assert "the plan saw running 30" in done["results"][0]["why"]
    assert node.text(SWAP) == "60\n"


@pytest.mark.parametrize("text", ['{"format": "hwcheck.journal/9", "run": "r1"}', "not JSON", "[]", '{"run": "r2"}'])
def test_a_journal_of_another_version_is_left_alone(node: Node, text: str) -> None:
    """Nothing is changed or undone by what is not understood."""
    path = node.put(f"{journal.FOLDER}/r1.json", text)
    for stage in ("prepare", "commit", "undo"):
        done = node.stage(stage, *TWO)
        assert not done["ok"]
        assert "journal" in done["why"] or "lease" in done["why"]
    assert path.read_text(encoding="utf-8") == text
    assert node.text(SWAP) == "60\n"


def test_a_step_that_fails_is_taken_back_and_others_stay(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the file that both share only its own line goes; the undoing restores what was before both."""
    node.put(sysctl.FILE, "# by hand\nvm.nr_hugepages = 0\n")
    before = node.tree()
    plain = Place.set_value

    def refuse(self: Place, path: str, text: str) -> None:
        if path == MAPS:
            raise OSError(errno.EINVAL, "Invalid argument")
        plain(self, path, text)

    monkeypatch.setattr(Place, "set_value", refuse)
    done = node.apply(*TWO)
    assert not done["ok"]
    assert [one["status"] for one in done["results"]] == ["changed", "failed"]
    assert "EINVAL" in done["results"][1]["why"]
    text = node.text(sysctl.FILE) or ""
    assert "vm.swappiness = 10" in text
    assert "max_map_count" not in text
    assert "by hand" in text
    monkeypatch.setattr(Place, "set_value", plain)
    again = node.apply(*TWO)
    assert (again["ok"], node.text(MAPS)) == (True, "262144\n")
    assert "max_map_count" in (node.text(sysctl.FILE) or "")
    assert node.stage("undo")["results"] == []
    assert node.tree() == before


def test_what_has_no_effect_is_taken_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write succeeded and the value is as before: nothing stays for the next boot either."""
    before = node.tree()
    monkeypatch.setattr(Place, "set_value", lambda *_: None)
    done = node.apply(TWO[0])
    assert "was written and reads '60' instead of '10'" in status(done)[0][1]
    assert node.tree() == before


@pytest.mark.parametrize("number", sorted(making.REFUSALS))
def test_what_the_kernel_refuses_is_no_failure(node: Node, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Each of these errors has a sentence; the run is good, and nothing stays."""
    before = node.tree()

    def refuse(_self: Place, _path: str, _text: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Place, "set_value", refuse)
    done = node.apply(TWO[0])
    assert done["ok"]
    assert status(done)[0][0] == "refused"
    assert making.REFUSALS[number] in status(done)[0][1]
    assert node.tree() == before


def test_a_read_only_or_full_disk_is_refused_beforehand(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is refused with the reason; running values are not set without their file."""
    real = os.statvfs
    folder = str(node.root / "etc")

    def told(flag: int, free: int) -> Any:
        def statvfs(path: str) -> Any:
            found = real(path)
            if not str(path).startswith(folder):
                return found
            fields = list(found[:10])
            fields[4], fields[8] = free, flag
            return os.statvfs_result(fields)

        return statvfs

    monkeypatch.setattr(os, "statvfs", told(os.ST_RDONLY, 100))
    assert "read-only" in status(node.apply(TWO[0]))[0][1]
    monkeypatch.setattr(os, "statvfs", told(0, 0))
    assert "no space left" in status(node.apply(TWO[0], run="r2"))[0][1]
    assert node.text(SWAP) == "60\n"


def test_a_disk_that_fills_up_while_writing_leaves_the_old_file(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC in the middle: no temporary file stays, the old file is whole, the running value as before."""
    node.put(sysctl.FILE, "vm.nr_hugepages = 0\n")
    before = node.tree()
    plain = os.write

    def full(fd: int, data: Any) -> int:
        if b"swappiness" in bytes(data) and "sysctl.d" in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(fd, data)

    monkeypatch.setattr(os, "write", full)
    done = node.apply(TWO[0])
    assert not done["ok"]
    assert "ENOSPC" in status(done)[0][1]
    assert node.tree() == before


def test_without_a_journal_nothing_is_changed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk too full for the journal: refused, and the lease is given back."""
    plain = Place.replace

    def full(self: Place, path: str, *rest: Any) -> None:
        if path.startswith(journal.FOLDER):
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(self, path, *rest)

    monkeypatch.setattr(Place, "replace", full)
    done = node.apply(*TWO)
    assert "nothing more is changed: ENOSPC" in done["why"]
    monkeypatch.setattr(Place, "replace", plain)
    assert node.apply(*TWO, run="r2")["ok"]


def test_a_journal_that_cannot_be_kept_half_way_says_so(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full once values are written: the run is told as begun, keeps its lease, and is undone."""
    before = node.tree()
    plain = journal.save

    def full(place: Place, kept: dict[str, Any]) -> None:
        if kept["state"] == "done":
            raise WriteError("the journal cannot be written, so nothing more is changed: ENOSPC")
        plain(place, kept)

    monkeypatch.setattr(journal, "save", full)
    done = node.apply(*TWO)
    assert (done["ok"], done["begun"]) == (False, True)
    assert "broken off half way: the journal cannot be written" in done["why"]
    assert node.text(SWAP) == "10\n"
    assert "held by run r1" in node.stage("prepare", *TWO, run="r2")["why"]
    assert node.stage("undo")["results"] == []
    assert node.tree() == before


def test_a_run_killed_after_preparing_is_resumed_or_undone(node: Node) -> None:
    """Nothing was written; the same run prepares again and goes on, or takes nothing back."""
    before = node.tree()
    node.stage("prepare", *TWO)
    assert node.tree() == before
    assert node.stage("undo")["undone"] == len(node.stage("undo")["journal"]["changes"])
    assert node.tree() == before
    assert "taken back" in node.apply(*TWO)["why"]
    node.stage("prepare", *TWO, run="r2")
    assert node.apply(*TWO, run="r2")["ok"]


@pytest.mark.parametrize("moment", range(6))
@pytest.mark.parametrize("then", ["resume", "undo"])
def test_a_run_killed_while_writing_is_resumed_or_undone(
    node: Node, monkeypatch: pytest.MonkeyPatch, moment: int, then: str
) -> None:
    """At each replacement of a file and each write of a value; the journal says what there was."""
    before = node.tree()
    count = 0
    plain = {"replace": Place.replace, "set_value": Place.set_value}

    def counted(name: str) -> Any:
        def call(self: Place, *rest: Any) -> None:
            nonlocal count
            if count == moment:
                raise Killed
            count += 1
            plain[name](self, *rest)

        return call

    assert node.stage("prepare", *TWO)["ok"]
    for name in plain:
        monkeypatch.setattr(Place, name, counted(name))
    with contextlib.suppress(Killed):
        node.stage("commit", *TWO)
    monkeypatch.setattr(Place, "replace", plain["replace"])
    monkeypatch.setattr(Place, "set_value", plain["set_value"])
    if then == "resume":
        assert node.apply(*TWO)["ok"]
        assert (node.text(SWAP), node.text(MAPS)) == ("10\n", "262144\n")
    undone = node.stage("undo")
    assert (undone["ok"], undone["results"]) == (True, [])
    assert node.tree() == before


def test_what_somebody_else_changed_since_is_left(node: Node) -> None:
    """The rest is undone, and the exception named."""
    node.apply(*TWO)
    node.put(SWAP, "30\n")
    undone = node.stage("undo")
    assert [(one["target"], one["why"]) for one in undone["results"]] == [(SWAP, "changed since by somebody else")]
    assert (node.text(SWAP), node.text(MAPS), node.text(sysctl.FILE)) == ("30\n", "65530\n", None)


def test_what_a_later_run_changed_is_left_and_that_run_named(node: Node) -> None:
    """Taken back in the order of last to first, all is as before."""
    before = node.tree()
    node.apply(TWO[0])
    node.apply(step("vm.swappiness", "20"), run="r2")
    undone = node.stage("undo")
    assert {one["why"] for one in undone["results"]} == {"changed since by run r2; take that one back first"}
    assert node.text(SWAP) == "20\n"
    assert [node.stage("undo", run=run)["results"] for run in ("r2", "r1")] == [[], []]
    assert node.tree() == before


def test_what_changed_between_journal_and_write_is_not_overwritten(node: Node) -> None:
    """Somebody else was faster: the step fails, the others go on."""
    node.stage("prepare", *TWO)
    node.put(SWAP, "30\n")
    done = node.stage("commit", *TWO)
    assert [one["status"] for one in done["results"]] == ["failed", "changed"]
    assert node.text(SWAP) == "30\n"
    assert "swappiness" not in (node.text(sysctl.FILE) or "")


def test_mode_of_a_file_that_was_there_is_kept(node: Node) -> None:
    """A file of the site's making keeps its mode through change and undoing."""
    file = node.put(sysctl.FILE, "vm.nr_hugepages = 0\n", 0o600)
    node.apply(TWO[0])
    assert file.stat().st_mode & 0o777 == 0o600
    node.stage("undo")
    assert (file.stat().st_mode & 0o777, node.text(sysctl.FILE)) == (0o600, "vm.nr_hugepages = 0\n")


def test_a_link_in_place_of_our_file_is_somebody_elses(node: Node) -> None:
    """It is neither followed nor replaced."""
    target = node.put("/etc/site.conf", "")
    (node.root / "etc/sysctl.d").mkdir()
    (node.root / "etc/sysctl.d/90-hwcheck.conf").symlink_to(target)
    assert "symbolic link" in status(node.apply(TWO[0]))[0][1]


def test_a_key_is_retired_and_its_running_value_stays(node: Node) -> None:
    """What a profile no longer has: our line goes, only ours."""
    node.apply(*TWO)
    assert [one["key"] for one in node.stage("held")["held"]] == ["vm.max_map_count", "vm.swappiness"]
    done = node.apply(step("vm.swappiness", "absent"), step("vm.nr_hugepages", "absent"), run="r2")
    assert status(done) == [("changed", ""), ("right", "")]
    assert node.text(SWAP) == "10\n"
    assert [one["key"] for one in node.stage("held")["held"]] == ["vm.max_map_count"]
    node.apply(step("vm.max_map_count", "absent"), run="r3")
    assert node.text(sysctl.FILE) is None


def test_tuned_owns_a_parameter_where_it_has_the_last_word(node: Node) -> None:
    """With TuneD's default sysctl.d comes after the profile, and ours counts."""
    node.put("/etc/tuned/active_profile", "site\n")
    node.put("/etc/tuned/site/tuned.conf", "[sysctl]\nvm.swappiness=30\nvm.max_map_count=>100000\n")
    node.put("/etc/systemd/system/multi-user.target.wants/tuned.service", "")
    assert [one["status"] for one in node.stage("check", *TWO)["results"]] == ["would change"] * 2
    node.put("/etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n")
    told = node.stage("check", *TWO)["results"]
    assert [one["status"] for one in told] == ["refused", "would change"]
    assert "TuneD's profile site sets vm.swappiness to 30" in told[0]["why"]


def test_a_property_is_retired_with_its_folder(node: Node) -> None:
    """Units are read again."""
    node.put(UNIT, "[Service]\n")
    node.program("systemctl")
    key = {"id": "u", "mechanism": "unit_property", "key": "x.service LimitMEMLOCK"}
    node.apply({**key, "value": "infinity"})
    assert [one["key"] for one in node.stage("held")["held"]] == ["x.service LimitMEMLOCK"]
    node.calls()
    assert node.apply({**key, "value": "absent"}, run="r2")["changed"]
    assert node.calls() == ["systemctl daemon-reload"]
    assert not (node.root / "etc/systemd/system/x.service.d").exists()


def test_a_property_without_a_restart_counts_from_the_next_start(node: Node) -> None:
    """It is no failure that the running process keeps its limit; a second run is content."""
    node.put(UNIT, "[Service]\n")
    node.put("/proc/55/limits", "Limit  Soft  Hard  Units\nMax locked memory  65536  65536  bytes\n")
    node.program("systemctl", '[ "$1" = show ] && { echo LimitMEMLOCK=infinity; echo MainPID=55; }; exit 0')
    key = {"id": "u", "mechanism": "unit_property", "key": "x.service LimitMEMLOCK", "value": "infinity"}
    assert status(node.apply(key)) == [("changed", "counts from the next start of x.service")]
    again = node.apply(key, run="r2")
    assert (again["changed"], status(again)[0][0]) == (False, "right")
    failed = node.apply({**key, "restart": "x.service"}, run="r3")
    assert "without effect" in status(failed)[0][1]


def test_an_image_keeps_nothing_of_the_run(image: Node) -> None:
    """Next boot only; the journal is the caller's."""
    done = image.apply(*TWO)
    assert [one["status"] for one in done["results"]] == ["changed", "changed"]
    assert not (image.root / "var").exists()
    assert not (image.root / "run").exists()
    assert not (image.root / SWAP[1:]).exists()
    image.stage("undo", journal=done["journal"])
    assert image.text(sysctl.FILE) is None


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"stage": "destroy"}, "no stage"),
        ({"run": "../x"}, "no name of a run"),
        ({"steps": "all"}, "steps must be a list"),
        ({"steps": [{"mechanism": "sysctl", "key": "vm.swappiness", "value": True}]}, "quote words"),
        ({"steps": [{"mechanism": "sysctl", "key": "vm.swappiness", "value": "{{ x }}\n"}]}, "one line of text"),
    ],
)
def test_a_request_that_is_not_understood_is_refused(node: Node, asked: dict[str, Any], why: str) -> None:
    """Before anything is looked at."""
    told = {"stage": "prepare", "run": "r1", "steps": [], **asked}
    stage = told.pop("stage")
    done = node.stage(stage, **told)
    assert not done["ok"]
    assert why in done["why"]


def test_templates_are_only_text(node: Node) -> None:
    """What a template engine would evaluate is written or refused as it is."""
    done = node.apply(step("vm.swappiness", "{{ lookup('pipe', 'id') }}"))
    assert json.dumps(done).count("lookup") > 0
    assert "uid=" not in json.dumps(done)
