"""Outputs about CPU, memory, clocks and storage, cut off, garbled, hostile; and recognised by the reader."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from hwcheck.evidence import Evidence
from hwcheck.parse import FORMATS
from hwcheck.readers.segments import split_text
from tests.parse.test_host_sick import read, story

HERE = Path(__file__).parent
FOLDERS = (
    "sysfs_cpu", "proc_cpuinfo", "sysfs_node", "sysfs_mm", "irq_affinity", "tuned", "meminfo", "edac", "adjtimex",
    "sysfs_time", "phc_offset", "time_conf", "sysfs_nvme", "nvme_health_page", "nvme_smart_log", "mountinfo", "mounts",
    "fstab", "df", "mdstat",
)  # fmt: skip
STORIES = [path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.json"))]
IDS = [f"{path.parent.name}/{path.stem}" for path in STORIES]
KINDS = sorted({story(path)[0] for path in STORIES})
MARKS = "|:.9AX N/%\n\t-e[]+(,=!\\\x07é"


@pytest.mark.parametrize("path", STORIES, ids=IDS)
def test_a_text_cut_anywhere_parses(path: Path) -> None:
    """Every prefix of a text parses, by lines and within its last line."""
    kind, command, lines = story(path)
    for count in range(len(lines)):
        read(kind, lines[:count], command)
        read(kind, [*lines[:count], lines[count][: len(lines[count]) // 2]], command)


@pytest.mark.parametrize("path", STORIES, ids=IDS)
def test_random_characters_never_escape_as_an_error(path: Path) -> None:
    """A text with random characters put into it parses without an error."""
    kind, command, lines = story(path)
    chance = random.Random(5)  # noqa: S311 - repeatable noise, no secret
    for _ in range(60):
        noisy = list("\n".join(lines))
        for _ in range(10):
            noisy[chance.randrange(len(noisy))] = chance.choice(MARKS)
        read(kind, "".join(noisy).split("\n"), command)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    ["", "!denied", "9" * 60_000, "a " * 30_000, "=" * 60_000],
    ids=["empty", "denied", "digits", "words", "marks"],
)
def test_garbage_gives_no_subject(kind: str, text: str) -> None:
    """Garbage names no disk, mount, adapter, clock or NUMA node."""
    snapshot = read(kind, [text] * 3)
    assert not [one for what in ("disk", "mount", "nic", "clock", "numa") for one in snapshot.subjects(what)]


@pytest.mark.parametrize("path", [path for path in STORIES if FORMATS[story(path)[0]].opens], ids=str)
def test_a_text_is_recognised(path: Path) -> None:
    """The reader gives the text to this format, and to no other."""
    kind, command, lines = story(path)
    evidence = Evidence()
    split_text([f"$ {command}", *lines] if command else lines, path.name, evidence)
    assert {output.kind for output in evidence.outputs} == {kind}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if FORMATS[kind].opens])
def test_recognition_is_quick_on_long_lines(kind: str) -> None:
    """No pattern runs away on 64 KiB of anything."""
    spec = FORMATS[kind]
    patterns = [pattern for pattern in (re.compile(spec.opens or ""), spec.continues, spec.ends) if pattern]
    start = time.perf_counter()
    for text in (" " * 65_536, "a" * 65_536, "a " * 32_768, "/a" * 32_768, "md0 : " * 8_000, "1 1 1:1 / / rw " * 4000):
        for pattern in patterns:
            pattern.match(text)
        read(kind, [text])
    assert time.perf_counter() - start < 1.0
