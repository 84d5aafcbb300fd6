"""nvidia-smi -q whose indentation was lost, or whose sections are missing or in other words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hwcheck.evidence import Evidence
from hwcheck.facts import Missing, Reason, Snapshot, gpu_at
from hwcheck.parse import take_snapshot
from hwcheck.parse.smi_sections import FLAT_LINE
from hwcheck.readers.recognise import Openers
from hwcheck.readers.segments import split_text
from tests.machines import as_q, hgx_h200

SICK = hgx_h200({1: {"remap_pending": "Yes", "reasons": {"hw", "brake"}, "dram_uncorrected": 2}}, count=3)
TEXT = as_q(SICK)
ONE = gpu_at("18:00.0")
WAYS: dict[str, Callable[[str], str]] = {
    "stripped": str.strip,
    "one blank for all": lambda line: line if line[:1] != " " else f" {line.strip()}",
    "one blank a level": lambda line: " " * ((len(line) - len(line.lstrip())) // 4) + line.strip(),
    "tabs": lambda line: "\t" * ((len(line) - len(line.lstrip())) // 4) + line.strip(),
}


def posted(text: str) -> tuple[Evidence, Snapshot]:
    """Read a text as it is posted: recognised, then parsed."""
    evidence = Evidence()
    split_text(text.splitlines(), "posted", evidence)
    return evidence, take_snapshot(evidence)


def values(snapshot: Snapshot) -> dict[tuple[str, str], Any]:
    """Return all values of GPUs."""
    return {
        (subject.id, name): fact.value
        for subject, facts in snapshot.facts.items()
        for (name, _), fact in facts.items()
        if subject.kind == "gpu"
    }


@pytest.mark.parametrize("way", WAYS)
def test_lost_indentation_changes_nothing(way: str) -> None:
    """A paste that was stripped is one output, and gives the same facts as the whole."""
    whole = values(posted(TEXT)[1])
    evidence, snapshot = posted("\n".join(map(WAYS[way], TEXT.splitlines())))
    assert [output.kind for output in evidence.outputs] == ["nvidia-smi.q"]
    assert values(snapshot) == whole
    assert len(whole) > 250
    assert not snapshot.gaps


def test_an_unknown_section_gives_its_values_to_nobody() -> None:
    """Without indentation, "Total" under a heading that nobody knows is not the total of the section before."""
    known = "    BAR1 Memory Usage"
    text = TEXT.replace(known, f"    Voltage\n        Total : 5 MiB\n{known}")
    _, snapshot = posted("\n".join(line.strip() for line in text.splitlines()))
    assert snapshot.get(ONE, "gpu.memory.total").value == 143771


def test_a_heading_that_nobody_knows_breaks_a_stripped_listing() -> None:
    """What comes after it is not understood, and what the listing does not hold is unknown."""
    text = TEXT.replace("    FB Memory Usage", "    Bildspeicher")
    _, snapshot = posted("\n".join(line.strip() for line in text.splitlines()))
    for name in ("gpu.memory.total", "gpu.remap.pending"):
        value = snapshot.get(ONE, name).value
        assert isinstance(value, Missing)
        assert value.reason is Reason.UNPARSABLE


def test_mig_devices_without_indentation_make_the_listing_unsafe() -> None:
    """Slices have sections of the GPU's names."""
    mode = "    MIG Mode"
    text = TEXT.replace(mode, f"    MIG Devices\n        Index : 0\n{mode}")
    _, snapshot = posted("\n".join(line.strip() for line in text.splitlines()))
    assert "MIG" in snapshot.gaps[0].missing.detail


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("PCI", "gpu.pcie.width"),
        ("FB Memory Usage", "gpu.memory.total"),
        ("ECC Errors", "gpu.ecc.volatile.dram_uncorrected"),
        ("Remapped Rows", "gpu.remap.pending"),
        ("Temperature", "gpu.temperature"),
        ("Clocks", "gpu.clocks.sm"),
        ("Clocks Event Reasons", "gpu.clocks.reason.hw_slowdown"),
        ("GPU Power Readings", "gpu.power.limit"),
    ],
)
@pytest.mark.parametrize("how", ["renamed", "left out"])
def test_a_section_that_every_driver_prints_is_missed(heading: str, name: str, how: str) -> None:
    """A full block without it does not pass in silence: its values are unknown, those of the other GPUs stay."""
    first, *rest = re.split(r"(?=^GPU 0)", TEXT, flags=re.MULTILINE)
    section = rf"^    {heading}\n(?:\s{{8,}}\S.*\n)+"
    if how == "renamed":
        rest[0] = rest[0].replace(f"    {heading}\n", f"    Abschnitt {heading}\n", 1)
    else:
        rest[0] = re.sub(section, "", rest[0], count=1, flags=re.MULTILINE)
    _, snapshot = posted(first + "".join(rest))
    value = snapshot.get(ONE, name).value
    assert isinstance(value, Missing)
    assert value.reason is Reason.UNPARSABLE
    assert snapshot.get(gpu_at("2a:00.0"), name).present


def test_a_section_that_reads_na_is_whole() -> None:
    """Under MIG the remapped rows are N/A: no gap."""
    section = r"^    Remapped Rows\n(?:\s{8,}\S.*\n)+"
    text = re.sub(section, "    Remapped Rows : N/A\n", TEXT, flags=re.MULTILINE)
    _, snapshot = posted(text)
    assert not snapshot.gaps
    assert snapshot.get(ONE, "gpu.remap.pending").value.reason is not Reason.UNPARSABLE


def test_a_gpu_of_which_nothing_is_understood_is_said() -> None:
    """A block that names a GPU and holds no line we know is no healthy GPU."""
    _, snapshot = posted(f"GPU {SICK.gpus[0].address}\n    Produktname : NVIDIA H200\n    Stromaufnahme : 70 W\n")
    assert "understood" in snapshot.gaps[0].missing.detail


def test_no_other_tools_first_line_is_taken_for_a_line_of_the_listing() -> None:
    """A line that begins another output ends the listing before it, indented or not."""
    openers, flat = Openers(), re.compile(rf"\s?(?:{FLAT_LINE})")
    taken = {
        line
        for path in Path(__file__).parent.glob("*/*.txt")
        for line in path.read_text(encoding="utf-8").splitlines()
        if flat.match(line) and (spec := openers.other(line)) is not None and spec.kind != "nvidia-smi.q"
    }
    assert taken == set()
