"""nvidia-smi -q, XML, CSV and the NVML log: what each does with gaps, odd spellings, cuts and garbage."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Fact, Missing, Reason, Snapshot, gpu_at, gpu_index
from hwcheck.parse import take_snapshot
from tests.machines import RENDERERS, as_nvml, as_q, as_xml, hgx_h200

ONE, TWO = gpu_at("18:00.0"), gpu_at("2a:00.0")
GAPS = {
    "[N/A]": Reason.ABSENT,
    "N/A": Reason.ABSENT,
    "[Not Supported]": Reason.ABSENT,
    "Requested functionality has been deprecated": Reason.ABSENT,
    "Insufficient Permissions": Reason.DENIED,
    "[Insufficient Permissions]": Reason.DENIED,
    "[Unknown Error]": Reason.FAILED,
    "Unknown Error": Reason.FAILED,
    "ERR!": Reason.FAILED,
    "[GPU requires reset]": Reason.FAILED,
    "GPU is lost": Reason.FAILED,
    "banana": Reason.UNPARSABLE,
}


def read(kind: str, text: str, command: str = "") -> Snapshot:
    """Parse one output."""
    return take_snapshot(Evidence("", [Output(kind, text.split("\n"), file="posted", command=command)]))


def temperatures(snapshot: Snapshot) -> dict[str, Any]:
    """Return the temperature facts by GPU, gaps as their reason."""
    return {
        gpu.id: fact.value.reason if isinstance(fact.value, Missing) else fact.value
        for gpu, fact in snapshot.with_fact("gpu.temperature")
    }


def fact(snapshot: Snapshot, name: str) -> Fact:
    """Return a fact of the first GPU."""
    return snapshot.get(ONE, name)


@pytest.mark.parametrize(("text", "reason"), GAPS.items())
@pytest.mark.parametrize("kind", ["nvidia-smi.q", "nvidia-smi.xml", "nvidia-smi.csv"])
def test_a_gap_is_told_by_its_word(kind: str, text: str, reason: Reason) -> None:
    """Absent, denied, failed or not understood: never a number, and the GPU beside is read."""
    machine = hgx_h200({0: {"temperature": text}}, count=2)
    raw = RENDERERS[kind](machine).replace(f"{text} C", text)
    assert temperatures(read(kind, raw)) == {ONE.id: reason, TWO.id: 31}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("NVML_ERROR_NOT_SUPPORTED", Reason.ABSENT),
        ("NVML_ERROR_NO_PERMISSION", Reason.DENIED),
        ("NVML_ERROR_TIMEOUT", Reason.TIMEOUT),
        ("NVML_ERROR_GPU_IS_LOST", Reason.FAILED),
        ("NVML_ERROR_RESET_REQUIRED", Reason.FAILED),
        ("NVML_ERROR_OF_THE_FUTURE", Reason.FAILED),
    ],
)
def test_an_error_of_nvml_is_told_by_its_name(error: str, reason: Reason) -> None:
    """Each call has its own answer."""
    rows = [json.loads(line) for line in as_nvml(hgx_h200(count=2)).splitlines()]
    for row in rows:
        if row.get("call") == "nvmlDeviceGetTemperature" and row["device"] == 0:
            del row["value"]
            row["error"] = error
    assert temperatures(read("nvml", "\n".join(map(json.dumps, rows)))) == {ONE.id: reason, TWO.id: 31}


@pytest.mark.parametrize("kind", ["nvidia-smi.q", "nvidia-smi.xml", "nvidia-smi.csv"])
def test_a_device_that_fails_to_answer_has_an_access_error(kind: str) -> None:
    """A value that the device failed to give is a fact of its own, whatever value it was."""
    snapshot = read(kind, RENDERERS[kind](hgx_h200({0: {"fabric_status": "[Unknown Error]"}}, count=2)))
    assert fact(snapshot, "gpu.access_error").value == "Unknown Error"
    assert not snapshot.get(TWO, "gpu.access_error").present


@pytest.mark.parametrize("kind", RENDERERS)
def test_every_fact_names_its_line(kind: str) -> None:
    """The excerpt is the line that stands there."""
    text = RENDERERS[kind](hgx_h200(count=2))
    lines = text.split("\n")
    for facts in read(kind, text).facts.values():
        for (name, _), one in facts.items():
            if one.origin is not None and one.origin.line and not name.startswith("evidence."):
                assert one.origin.excerpt == lines[one.origin.line - 1].strip()[:200]


@pytest.mark.parametrize("kind", RENDERERS)
def test_a_text_cut_anywhere_invents_nothing(kind: str) -> None:
    """A prefix of an output gives values of the whole one only; what is gone is unknown or not there, never another."""
    text = RENDERERS[kind](hgx_h200(count=2))
    whole = read(kind, text)
    chance = random.Random(kind)  # noqa: S311 - a repeatable sample
    for _ in range(60):
        cut = text[: chance.randrange(len(text))]
        last = cut.count("\n") + 1
        for subject, facts in read(kind, cut).facts.items():
            if subject not in whole.facts:
                assert subject in {gpu_index(0), gpu_index(1)}  # cut before the address
                continue
            for (name, facet), one in facts.items():
                if name.startswith("evidence.") or not one.present or name in {"gpu.listed_count", "gpu.index"}:
                    continue
                if one.origin is not None and one.origin.line == last:
                    continue  # the very line that breaks off
                assert one.value == whole.get(subject, name, facet).value, (name, len(cut))


@pytest.mark.parametrize("kind", ["nvidia-smi.q", "nvidia-smi.xml"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_listing_that_ends_early_says_so(kind: str, part: float) -> None:
    """What the rest would have held is unknown, not absent."""
    text = RENDERERS[kind](hgx_h200(count=4))
    snapshot = read(kind, text[: int(len(text) * part)])
    assert snapshot.gaps
    assert all(gap.missing.reason is Reason.UNPARSABLE for gap in snapshot.gaps)


@pytest.mark.parametrize("kind", RENDERERS)
@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_error_that_escapes(kind: str, seed: int) -> None:
    """Characters changed anywhere cost values, never the run."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable sample
    text = list(RENDERERS[kind](hgx_h200(count=1)))
    for _ in range(60):
        text[chance.randrange(len(text))] = chance.choice('|:.9AX<>/"{}[] N%\n\t-e,&;')
    read(kind, "".join(text))


@pytest.mark.parametrize("kind", RENDERERS)
@pytest.mark.parametrize(
    "text", ["", "\n" * 50, "x" * 65_536, "9" * 65_536, ": " * 30_000, "<" * 10_000, "," * 65_536, '{"call": ' * 5_000]
)
def test_garbage_gives_no_gpu(kind: str, text: str) -> None:
    """Nothing is made of nothing."""
    assert read(kind, text).subjects("gpu") == []


# --- nvidia-smi -q

INDENTED = "    Fabric\n        State          : Completed\n        Status         : Success"


def test_a_piece_without_a_gpu_line_is_of_an_unnamed_gpu() -> None:
    """A piece cut with grep belongs to some GPU; a second such piece to another one."""
    snapshot = read("nvidia-smi.q", f"{INDENTED}\n{INDENTED}")
    assert [gpu.id for gpu in snapshot.subjects("gpu")] == ["", "block 2"]
    assert [one.value for _, one in snapshot.with_fact("gpu.fabric.state")] == ["Completed", "Completed"]


def test_a_number_that_lost_its_unit_is_cut_off() -> None:
    """8155 may be the beginning of 81559 MiB."""
    text = as_q(hgx_h200(count=1)).replace("143771 MiB", "14377")
    assert not fact(read("nvidia-smi.q", text), "gpu.memory.total").present


def test_the_order_of_all_gpus_is_their_index() -> None:
    """A whole listing tells nvidia-smi's indices; one of a single GPU of eight does not."""
    assert [one.value for _, one in read("nvidia-smi.q", as_q(hgx_h200(count=1))).with_fact("gpu.index")] == [0]
    one_of_eight = as_q(hgx_h200(count=1)).replace("Attached GPUs                             : 1", "Attached GPUs : 8")
    assert read("nvidia-smi.q", one_of_eight).get(ONE, "gpu.index").value.reason is Reason.NOT_COLLECTED


def test_fewer_gpus_than_attached_is_told() -> None:
    """A listing of three that says four are attached lacks one."""
    text = as_q(hgx_h200(count=3)).replace(f"{'Attached GPUs'.ljust(42)}: 3", f"{'Attached GPUs'.ljust(42)}: 4")
    snapshot = read("nvidia-smi.q", text)
    assert (snapshot.value("gpu.attached_count"), snapshot.value("gpu.listed_count")) == (4, 3)
    assert "only 3 are listed" in snapshot.gaps[0].missing.detail


@pytest.mark.parametrize("count", ["-1", "99999", "eight", "", "8.0", "\u0663"])
def test_a_count_that_is_none_is_not_understood(count: str) -> None:
    """A count decides whether GPUs are missing; garbage must not."""
    snapshot = read("nvidia-smi.q", f"Attached GPUs                             : {count}")
    assert not snapshot.get(NODE, "gpu.attached_count").present


# --- XML


def test_an_entity_in_xml_is_refused() -> None:
    """The real documents have none; a bomb is made of them."""
    text = (
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa">]>\n<nvidia_smi_log><gpu id="00000000:18:00.0"/></nvidia_smi_log>'
    )
    snapshot = read("nvidia-smi.xml", text)
    assert snapshot.subjects("gpu") == []
    assert "refused" in snapshot.gaps[0].missing.detail


def test_xml_nested_without_end_is_refused() -> None:
    """Depth is bounded."""
    text = "<nvidia_smi_log>" + "<gpu>" + "<a>" * 5000
    assert "deep" in read("nvidia-smi.xml", text).gaps[0].missing.detail


def test_a_section_without_values_is_absent_as_a_whole() -> None:
    """Under MIG the section of remapped rows reads N/A, with nothing in it."""
    text = as_xml(hgx_h200(count=1))
    begin, end = text.index("<remapped_rows>"), text.index("</remapped_rows>")
    snapshot = read("nvidia-smi.xml", text[:begin] + "<remapped_rows>N/A" + text[end:])
    assert fact(snapshot, "gpu.remap.pending").value.reason is Reason.ABSENT


def test_processes_are_listed() -> None:
    """A GPU without processes has an empty list, not none."""
    text = as_xml(hgx_h200(count=1))
    assert fact(read("nvidia-smi.xml", text), "gpu.processes").value == ()
    process = "<process_info><pid>7</pid><type>C</type><process_name>train</process_name></process_info>"
    busy = f"<processes>{process}</processes>"
    begin, end = text.index("<processes"), text.rindex("</gpu>")
    snapshot = read("nvidia-smi.xml", text[:begin] + busy + text[end:])
    assert fact(snapshot, "gpu.processes").value == ({"pid": "7", "type": "C", "name": "train"},)


# --- CSV


def test_a_row_of_another_length_is_cut_off() -> None:
    """It cannot be told which value is missing."""
    snapshot = read("nvidia-smi.csv", "index, name, temperature.gpu\n0, NVIDIA H200, 31\n1, NVIDIA H2")
    assert temperatures(snapshot) == {"GPU0": 31}
    assert "line 3 has 2 fields" in snapshot.gaps[0].missing.detail


def test_without_a_header_the_command_names_the_columns() -> None:
    """``noheader`` is readable where the command is in sight, and only there."""
    command = "nvidia-smi --query-gpu=index,temperature.gpu --format=csv,noheader,nounits"
    assert temperatures(read("nvidia-smi.csv", "0, 31\n1, 44", command)) == {"GPU0": 31, "GPU1": 44}
    assert read("nvidia-smi.csv", "0, 31\n1, 44").gaps
    assert temperatures(read("nvidia-smi.csv", "0, 31\n1, 44")) == {}


def test_units_of_a_header_count() -> None:
    """With nounits, the header says what the numbers are."""
    text = "index, memory.total [MiB], power.limit [W]\n0, 143771, 700.00"
    snapshot = read("nvidia-smi.csv", text)
    assert snapshot.get(gpu_index(0), "gpu.memory.total").value == 143771
    assert snapshot.get(gpu_index(0), "gpu.power.limit").value == pytest.approx(700.0)


def test_a_header_in_the_middle_begins_anew() -> None:
    """Two tables in one paste are two tables."""
    text = "index, temperature.gpu\n0, 31\nindex, pstate, temperature.gpu\n0, P0, 60"
    assert temperatures(read("nvidia-smi.csv", text)) == {"GPU0": 60}


# --- the NVML log


@pytest.mark.parametrize(
    "line",
    ["", "{", "null", "[]", '{"call": 5}', '{"call": "x"}', '{"call": "x", "device": "0", "value": 1}', "[" * 90_000,
     '{"call": "nvmlDeviceGetTemperature", "device": 0, "args": 7, "value": 1}'],
)  # fmt: skip
def test_a_line_that_is_no_record_costs_itself_only(line: str) -> None:
    """Lines before and after are read, or the log is refused as one of another version."""
    rows = as_nvml(hgx_h200(count=1)).splitlines()
    snapshot = read("nvml", "\n".join([*rows, line]))
    assert temperatures(snapshot) == {ONE.id: 31} or snapshot.gaps


@pytest.mark.parametrize("value", [None, "31", True, 31.5, [], {}, 10**400, -(10**30)])
def test_an_answer_of_another_type_is_not_understood(value: Any) -> None:
    """NVML answers temperatures as integers."""
    rows = [json.loads(line) for line in as_nvml(hgx_h200(count=1)).splitlines()]
    for row in rows:
        if row.get("call") == "nvmlDeviceGetTemperature":
            row["value"] = value
    found = temperatures(read("nvml", "\n".join(map(json.dumps, rows))))
    assert found in ({ONE.id: Reason.UNPARSABLE}, {ONE.id: value}) or not isinstance(value, int)


def test_a_log_of_another_version_is_refused() -> None:
    """A format of the future is not guessed."""
    snapshot = read(
        "nvml", '{"format": "hwcheck.nvml/2"}\n{"call": "nvmlDeviceGetCount_v2", "device": null, "value": 8}'
    )
    assert snapshot.gaps
    assert not snapshot.get(NODE, "gpu.attached_count").present
