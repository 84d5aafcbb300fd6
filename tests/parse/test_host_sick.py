"""Outputs about the host, cut off, garbled, hostile; and recognised by the reader without help."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.parse import FORMATS, take_snapshot
from hwcheck.readers.segments import split_text

HERE = Path(__file__).parent
FOLDERS = (
    "lspci", "iommu_groups", "lsmod", "ulimit", "sysctl", "proc_cmdline", "lscpu", "numactl", "systemctl_status",
    "systemctl_units", "systemctl_is", "dpkg", "rpm", "modinfo", "nvidia_version", "nv_fabricmanager_version",
    "nvidia_imex_version", "nvidia_errors", "fabric_manager_start", "detect_virt", "product_name", "whoami", "imex_ctl",
    "imex_log", "chronyc_tracking", "chronyc_sources", "chronyc_activity", "ptp4l", "pmc",
)  # fmt: skip
STORIES = [path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.json"))]
IDS = [f"{path.parent.name}/{path.stem}" for path in STORIES]
KINDS = sorted({json.loads(path.read_text())["kind"] for path in STORIES})
ONLY_BY_COMMAND = ("systemctl.is", "systemd-detect-virt", "dmi.product_name", "whoami")


def story(path: Path) -> tuple[str, str, list[str]]:
    """Return kind, command and lines of a pair of files."""
    head = json.loads(path.read_text(encoding="utf-8"))
    return head["kind"], head["command"], path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


def read(kind: str, lines: list[str], command: str = "") -> Snapshot:
    """Parse one output alone."""
    return take_snapshot(Evidence(outputs=[Output(kind, lines, command=command)]))


@pytest.mark.parametrize("path", STORIES, ids=IDS)
def test_a_text_cut_anywhere_parses(path: Path) -> None:
    """Every prefix of a text parses, by lines and by characters of its last line."""
    kind, command, lines = story(path)
    for count in range(len(lines)):
        read(kind, lines[:count], command)
        read(kind, [*lines[:count], lines[count][: len(lines[count]) // 2]], command)


@pytest.mark.parametrize("path", STORIES, ids=IDS)
def test_random_characters_never_escape_as_an_error(path: Path) -> None:
    """A text with random characters put into it parses without an error."""
    kind, command, lines = story(path)
    text = "\n".join(lines) or " "
    chance = random.Random(11)  # noqa: S311 - repeatable noise, no secret
    for _ in range(60):
        noisy = list(text)
        for _ in range(10):
            noisy[chance.randrange(len(noisy))] = chance.choice("|:.9AX N/%\n\t-e[]+(,\x07é")
        read(kind, "".join(noisy).split("\n"), command)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "lines",
    [[], [""], ["="] * 3, ["9" * 60_000], ["a " * 30_000], ["node 0 cpus: " + "1," * 30_000], [" " * 60_000 + "x"]],
    ids=["empty", "blank", "marks", "digits", "words", "list", "blanks"],
)
def test_garbage_gives_no_device_and_no_error(kind: str, lines: list[str]) -> None:
    """Garbage names no GPU, function, unit or clock."""
    snapshot = read(kind, lines)
    assert not [subject for what in ("gpu", "pci", "unit", "clock") for subject in snapshot.subjects(what)]


@pytest.mark.parametrize("path", STORIES, ids=IDS)
def test_a_text_is_recognised_behind_its_prompt(path: Path) -> None:
    """The reader gives the text behind its shell prompt to this format, and to no other."""
    kind, command, lines = story(path)
    evidence = Evidence()
    split_text([f"$ {command}", *lines] if command else lines, path.name, evidence)
    assert {output.kind for output in evidence.outputs} <= {kind}
    if kind not in ONLY_BY_COMMAND or lines:
        assert evidence.outputs


@pytest.mark.parametrize("kind", [kind for kind in KINDS if FORMATS[kind].opens])
def test_recognition_is_quick_on_long_lines(kind: str) -> None:
    """No pattern runs away on 64 KiB of anything."""
    spec = FORMATS[kind]
    patterns = [pattern for pattern in (re.compile(spec.opens or ""), spec.continues, spec.ends) if pattern]
    start = time.perf_counter()
    for text in (" " * 65_536, "a" * 65_536, "a " * 32_768, "1." * 32_768, "port 1: " * 8_000, "0" * 65_536):
        for pattern in patterns:
            pattern.match(text)
    assert time.perf_counter() - start < 0.5
