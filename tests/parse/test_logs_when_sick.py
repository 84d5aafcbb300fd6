"""Logs that are cut, forged, endless or empty: nothing breaks, nothing is invented, memory stays bounded."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Missing, Reason, Snapshot, gpu_at
from hwcheck.parse import FORMATS, take_snapshot
from hwcheck.parse.kernel_log import KernelLog
from hwcheck.parse.kernel_rules import INTEREST, event_of
from hwcheck.parse.log_groups import DEVICES, GROUPS_PER_DEVICE, Groups
from hwcheck.parse.log_meaning import asked_for
from hwcheck.parse.log_prefix import clock, split_prefix

HERE = Path(__file__).parent
STORIES = sorted([*(HERE / "kernel_log").glob("*.txt"), *(HERE / "fabric_manager_log").glob("*.txt")])


def kind_of(story: Path) -> str:
    """Return the format of a story by its folder."""
    return {"kernel_log": "kernel.log", "fabric_manager_log": "fabricmanager.log"}[story.parent.name]


def read(kind: str, lines: list[str], command: str = "", reason: Reason | None = None) -> Snapshot:
    """Parse lines of one log."""
    return take_snapshot(Evidence(outputs=[Output(kind, lines, command=command, reason=reason)]))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story.parent.name}/{story.stem}")
def test_a_log_cut_anywhere_is_read(story: Path) -> None:
    """Every beginning of a log, and a log of scrambled characters, is read without an error."""
    text = story.read_text()
    for end in range(0, len(text), 7):
        read(kind_of(story), text[:end].splitlines())
    letters = list(text)
    random.Random(7).shuffle(letters)  # noqa: S311 - the same garbage in each run
    read(kind_of(story), "".join(letters).splitlines())


def test_a_cut_xid_is_no_other_xid() -> None:
    """A line that ends within the number of an Xid never counts as the shorter number."""
    line = "NVRM: Xid (PCI:0009:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 12 (0x040848c2 0x00000008 0x0 0x0 0x0 0x0)"
    for end in range(len(line)):
        for record in read("kernel.log", [line[:end]]).value("xid.events", gpu_at("0009:01:00"), ()):
            assert record["code"] == 145
            assert record["link"] in (None, 12)
            assert record["words"] == () or record["words"][:2] == (0x040848C2, 0x8)


def test_an_empty_log_says_nothing() -> None:
    """An empty log gives no fact: a ring buffer in a container is empty too."""
    assert read("kernel.log", []).subjects("node") == [NODE]
    assert read("kernel.log", []).get(NODE, "kernel.log.xids").value == Missing(Reason.NOT_COLLECTED)


def test_a_refused_log_is_unknown_even_behind_a_grep() -> None:
    """An empty answer of a grep proves nothing when the kernel log was refused."""
    refused = Output("kernel.log", ["dmesg: read kernel buffer failed: Operation not permitted"])
    snapshot = take_snapshot(Evidence(outputs=[refused, Output("kernel.log", [], command="dmesg | grep -i xid")]))
    assert snapshot.get(NODE, "kernel.log.xids").value == Missing(Reason.DENIED, "Operation not permitted")


def test_a_log_that_was_not_read_whole_proves_nothing() -> None:
    """A boot log whose reading broke off does not prove that there was no Xid."""
    lines = (HERE / "kernel_log" / "boot.txt").read_text().splitlines()
    assert read("kernel.log", lines).value("kernel.log.window")["proves"] == ("kernel", "sxid", "xid")
    assert read("kernel.log", lines, reason=Reason.TIMEOUT).value("kernel.log.window")["proves"] == ()


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("dmesg | grep -i xid", {"xid", "sxid"}),
        ("sudo dmesg -T | grep Xid", {"xid", "sxid"}),
        ("dmesg | grep -iE 'nvrm|mlx5'", {"xid"}),
        ("dmesg | grep xid", set()),  # the driver writes Xid
        ("dmesg | grep -i xid | tail -3", set()),
        ("dmesg 2>/dev/null | grep -i xid", set()),
        ("dmesg | grep -iv xid", set()),
        ("journalctl -k -b -1 | grep -i xid", set()),
        ("dmesg", set()),
    ],
)
def test_what_an_empty_grep_proves(command: str, asked: set[str]) -> None:
    """Only a grep over the whole log that would have found an Xid proves its absence."""
    assert asked_for(command) == asked


def test_groups_are_bounded_and_the_rest_is_counted() -> None:
    """A log with a new error on each line is kept within bounds, and what does not fit is counted."""
    groups = Groups()
    for number in range(GROUPS_PER_DEVICE + 5):
        groups.add("gpu", (number,), "", number, "text")
    assert groups.dropped == 5
    for number in range(DEVICES + 10):
        groups.add(f"device {number}", (), "", number, "text")
    assert groups.dropped == 5 + 11  # one place was taken by the first device


def test_a_forged_flood_is_said() -> None:
    """A log that names thousands of GPUs says how many lines it did not keep."""
    lines = [f"NVRM: Xid (PCI:{number:04x}:01:00): 79, GPU has fallen off the bus." for number in range(1000)]
    snapshot = read("kernel.log", lines)
    assert len(snapshot.subjects("gpu")) == DEVICES
    assert snapshot.value("kernel.log.window")["truncated"] == 1000 - DEVICES
    assert snapshot.value("kernel.log.xids") == 1000


def test_hostile_lines_are_read_in_linear_time() -> None:
    """Lines of 64 KiB that repeat the beginning of every pattern are read at once."""
    beginnings = (
        "NVRM: Xid (PCI:",
        "mlx5_core 0000:1a:00.0: ",
        "[" * 9,
        "0x1 ",
        "EXT4-fs (a",
        "SXid (PCI:0",
        "I/O error ",
    )
    log = KernelLog()
    began = time.process_time()
    for number, start in enumerate(beginnings * 20, 1):
        log.feed(start * (65536 // len(start)), number)
    assert time.process_time() - began < 3


def test_any_line_is_taken_by_the_rules_or_left() -> None:
    """Random lines made of words of the rules never raise."""
    source = random.Random(11)  # noqa: S311 - the same lines in each run
    words = [
        *INTEREST.pattern.replace("\\", "").split("|"),
        "0000:1a:00.0",
        ":",
        "(",
        ")",
        "Xid",
        "\x00",
        "é",
        "99999999999",
    ]
    for _ in range(3000):
        line = " ".join(source.choices(words, k=source.randint(1, 12)))
        event_of(line)
        time_text, _ = split_prefix(line)
        clock(time_text)


def test_times_of_one_scale_compare() -> None:
    """All dated prefixes give the same second; uptime and times without a year are scales of their own."""
    assert (
        clock("Tue Mar  4 09:12:55 2025") == clock("2025-03-04T09:12:55,118220+00:00") == clock("Mar 04 2025 09:12:55")
    )
    assert (clock("731.25") or ("", 0))[0] == "uptime"
    assert (clock("Mar 04 09:12:55") or ("", 0))[0] == "yearless"
    assert clock("Feb 31 2025 09:12:55") is None
    assert clock("9" * 400) is None


def test_a_log_is_found_by_its_lines() -> None:
    """The lines of both logs are claimed by their own format, those of an IMEX log by neither."""
    imex = "[Mar 02 2026 09:14:00] [INFO] [tid 71] IMEX version 580.82.07 is running"
    for story in STORIES:
        first = story.read_text().splitlines()[0]
        claims = [kind for kind in ("kernel.log", "fabricmanager.log") if _claims(kind, first)]
        assert claims == [kind_of(story)]
    assert not _claims("kernel.log", imex)
    assert not _claims("fabricmanager.log", imex)


def _claims(kind: str, line: str) -> bool:
    return re.match(FORMATS[kind].opens or "", line) is not None
