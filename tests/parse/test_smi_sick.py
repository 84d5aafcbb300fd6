"""The table, link lists and the topology matrix of nvidia-smi, cut off and garbled."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Missing, Reason, Snapshot, gpu_at, gpu_index
from hwcheck.parse import FORMATS, take_snapshot
from hwcheck.readers.segments import split_text

HERE = Path(__file__).parent
KINDS = {
    "nvidia-smi.table": "smi_table",
    "nvidia-smi.gpu-lines": "smi_lines",
    "nvidia-smi.topo": "topo",
    "nvidia-smi.version": "smi_version",
}
STORIES = [(kind, path) for kind, folder in KINDS.items() for path in sorted((HERE / folder).glob("*.txt"))]


def read(kind: str, lines: list[str], command: str = "") -> Snapshot:
    """Parse one output alone."""
    return take_snapshot(Evidence(outputs=[Output(kind, lines, command=command)]))


def text_of(story: str) -> list[str]:
    """Lines of a story of this folder."""
    return (HERE / f"{story}.txt").read_text(encoding="utf-8").splitlines()


def gaps(snapshot: Snapshot) -> list[str]:
    """Say what a snapshot lacks."""
    return [gap.missing.detail for gap in snapshot.gaps]


@pytest.mark.parametrize(("kind", "path"), STORIES, ids=lambda value: getattr(value, "stem", str(value)))
def test_a_text_cut_anywhere_parses_and_names_no_other_gpu(kind: str, path: Path) -> None:
    """Every prefix of a text parses, and is of no GPU that the whole text does not name."""
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = read(kind, lines)
    for count in range(len(lines)):
        snapshot = read(kind, lines[:count])
        for subject in snapshot.facts:
            assert subject in whole.facts


@pytest.mark.parametrize(("kind", "path"), STORIES, ids=lambda value: getattr(value, "stem", str(value)))
def test_a_text_is_recognised_without_its_command(kind: str, path: Path) -> None:
    """The reader knows each of these texts by its lines, and leaves none of them over."""
    evidence = Evidence()
    split_text(path.read_text(encoding="utf-8").splitlines(), path.name, evidence)
    assert [output.kind for output in evidence.outputs] == [kind]
    assert not evidence.leftovers


@pytest.mark.parametrize("kind", sorted(FORMATS.keys() & {*KINDS, "nvidia-smi.help", "nvidia-smi.dmon"}))
@pytest.mark.parametrize(
    "lines",
    [[], [""], ["|" * 300], ["GPU" * 100], ["\t"] * 3, ["| " + "9" * 60_000 + " |"], ["GPU0 " + "X " * 30_000]],
    ids=["empty", "blank", "bars", "words", "tabs", "digits", "cells"],
)
def test_garbage_gives_no_facts(kind: str, lines: list[str]) -> None:
    """Garbage is no GPU and no error that escapes."""
    snapshot = read(kind, lines)
    assert not snapshot.subjects("gpu")


def test_a_table_without_its_last_border_is_cut_off() -> None:
    """The names a table gives are unknown where it does not hold them."""
    lines = text_of("smi_table/one_gpu_answers_with_errors")
    assert gaps(read("nvidia-smi.table", lines[:-1])) == ["the table ends without its closing border"]


def test_a_block_with_one_line_is_cut_off_even_without_a_header() -> None:
    """The temperature of a GPU whose second line is missing was asked and not told."""
    snapshot = read("nvidia-smi.table", text_of("smi_table/row_without_header")[:1])
    fact = snapshot.get(gpu_at("0000:61:00.0"), "gpu.temperature")
    assert isinstance(fact.value, Missing)
    assert fact.value.reason is Reason.UNPARSABLE


def test_something_else_than_a_table_is_said() -> None:
    """Where the command was nvidia-smi and no table came, the table's facts are unknown."""
    snapshot = read("nvidia-smi.table", ["Segmentation fault (core dumped)"], command="nvidia-smi")
    assert "something else" in gaps(snapshot)[0]


def test_a_last_gpu_with_fewer_links_is_cut_off() -> None:
    """Links of a listing that ends early are not understood, not few."""
    lines = text_of("smi_lines/nvlink_one_link_down")
    snapshot = read("nvidia-smi.gpu-lines", lines[:-1])
    fact = snapshot.get(gpu_index(1), "nvlink.active_count")
    assert isinstance(fact.value, Missing)
    assert fact.value.reason is Reason.UNPARSABLE
    assert snapshot.gaps


def test_a_matrix_with_a_short_gpu_row_is_no_matrix() -> None:
    """A GPU row that lacks cells makes the matrix unknown."""
    lines = text_of("topo/tabs_with_nics")
    snapshot = read("nvidia-smi.topo", [*lines[:2], "GPU1\tNV18"])
    fact = snapshot.get(NODE, "topo.matrix")
    assert isinstance(fact.value, Missing)
    assert fact.value.reason is Reason.UNPARSABLE
    assert "GPU1" in fact.value.detail
