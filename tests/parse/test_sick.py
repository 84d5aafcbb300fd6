"""Every format on sick input: cut off, garbled, hostile, endless. Nothing raises, runs away or invents a device."""

from __future__ import annotations

import io
import json
import random
import re
import time
from pathlib import Path

import pytest

from hwcheck.evidence import Evidence
from hwcheck.lines import lines
from hwcheck.parse import FORMATS
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers.segments import split_text
from tests.parse.test_pairs import CASES, parse

IDS = [f"{case.parent.name}/{case.stem}" for case in CASES]
CUTS = 60
DEVICES = ("gpu", "pci", "unit", "clock", "disk", "mount", "nic", "numa")
MARKS = "|:.9AX N/%\n\t-e[]+(,=!\\\"'{\x00\x07é"
GARBAGE = {
    "empty": "", "blank": "\n\n", "marks": "=\n" * 3, "bars": "|" * 300, "denied": "!denied", "digits": "9" * 60_000,
    "words": "a " * 30_000, "list": "0-," * 20_000, "blanks": " " * 60_000 + "x",
    "table": "| " + "9" * 60_000 + " |", "cells": "GPU0 " + "X " * 30_000, "json": '{"a":' * 20_000,
}  # fmt: skip
HOSTILE = (
    *GARBAGE.values(), "\x00\x01\x7f", "A: " + ":" * 65_000, "CA '" + "x" * 65_000, "port 1 ==> " * 5_000, "[" * 5_000,
    '"' * 65_000, "#" + " " * 65_000, "Device 0: " + " " * 65_000, "STREAM_COPY_" + "9" * 65_000, "U " * 30_000,
)  # fmt: skip
ENDLESS = (
    *GARBAGE.values(), "1." * 32_768, "port 1: " * 8_000, "/a" * 32_768, "md0 : " * 8_000, "1 1 1:1 / / rw " * 4_000,
)  # fmt: skip


def story(case: Path) -> tuple[str, str, list[str]]:
    """Return kind, command and lines of a pair of files."""
    head = json.loads(case.read_text(encoding="utf-8"))
    return head["kind"], head.get("command", ""), case.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_text_cut_anywhere_parses(case: Path) -> None:
    """A text that ends between or within any of its lines parses."""
    kind, command, text = story(case)
    for count in range(0, len(text), 1 + len(text) // CUTS):
        parse(kind, "\n".join(text[:count]), command)
        parse(kind, "\n".join([*text[:count], text[count][: len(text[count]) // 2]]), command)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_random_characters_never_escape_as_an_error(case: Path) -> None:
    """A text with random characters put into it, or its lines in another order, parses without an error."""
    kind, command, text = story(case)
    chance = random.Random(case.stem)  # noqa: S311 - the same noise in every run
    for _ in range(30):
        noisy = list("\n".join(text) or " ")
        for _ in range(10):
            noisy[chance.randrange(len(noisy))] = chance.choice(MARKS)
        parse(kind, "".join(noisy), command)
    parse(kind, "\n".join(chance.sample(text, len(text))), command)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_hostile_lines_are_survived(case: Path) -> None:
    """Long, binary and endless lines at any place of a text raise nothing."""
    kind, command, text = story(case)
    chance = random.Random(case.stem)  # noqa: S311 - the same places in every run
    for line in HOSTILE:
        text.insert(chance.randrange(len(text) + 1), line)
    parse(kind, "\n".join(text), command)


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_garbage_names_no_device(kind: str, text: str) -> None:
    """Garbage names no GPU, PCI function, unit, clock, disk, mount, adapter or NUMA node."""
    snapshot = parse(kind, text)
    assert not [subject for what in DEVICES for subject in snapshot.subjects(what)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_text_behind_its_prompt_is_given_to_no_other_format(case: Path) -> None:
    """The reader gives a text behind its shell prompt to its own format; to none, if only a command can tell it."""
    kind, command, text = story(case)
    evidence = Evidence()
    split_text([f"$ {command}", *text] if command else text, case.name, evidence)
    assert {output.kind for output in evidence.outputs} <= {kind}
    opens = FORMATS[kind].opens or "(?!)"
    if text and any(re.match(opens, line) for line in text):
        assert evidence.outputs


@pytest.mark.parametrize("kind", sorted(kind for kind in FORMATS if FORMATS[kind].opens))
def test_recognition_is_quick_on_long_lines(kind: str) -> None:
    """No pattern runs away on 64 KiB of anything."""
    spec = FORMATS[kind]
    patterns = [pattern for pattern in (re.compile(spec.opens or ""), spec.continues, spec.ends) if pattern]
    start = time.process_time()
    for text in ENDLESS:
        for pattern in patterns:
            pattern.match(text)
    assert time.process_time() - start < 1.0


def test_a_garbled_list_of_offline_cpus_is_a_gap() -> None:
    """Whether CPUs are offline cannot be told then, and no check breaks on it."""
    garbled = (
        "$ lscpu\nArchitecture: x86_64\nCPU(s): 96\nOff-line CPU(s) list: 96-1\ufffd91\n"
        "Thread(s) per core: 1\nCore(s) per socket: 48\nSocket(s): 2\n"
    )
    (evidence,) = split_text(lines(io.BytesIO(garbled.encode())), "paste", Evidence())
    verdict = Pipeline(ProfileSet()).judge(evidence)
    (finding,) = [finding for finding in verdict.findings if finding.check == "cpu.topology"]
    assert str(finding.status) == "unknown"
