"""One GPU under several names becomes one GPU; two GPUs never become one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot, gpu_at
from hwcheck.parse import take_snapshot
from tests.machines import RENDERERS, Machine, as_csv, as_q, hgx_h200

ZERO = "GPU-00000000-0000-0000-0000-000000000000"
HOPPER = hgx_h200(count=3)
ADDRESSES = ["0000:18:00.0", "0000:2a:00.0", "0000:3a:00.0"]


def gpu_list(machine: Machine) -> str:
    """Print as ``nvidia-smi -L`` does: index, name and UUID, no address."""
    return "\n".join(f"GPU {gpu.index}: NVIDIA H200 (UUID: {gpu.uuid})" for gpu in machine.gpus)


def csv(columns: str, *rows: str) -> tuple[str, str]:
    """Return a CSV output."""
    return "nvidia-smi.csv", "\n".join((columns, *rows))


def snapshot(*outputs: tuple[str, str]) -> Snapshot:
    """Parse outputs of one node."""
    return take_snapshot(
        Evidence("", [Output(kind, text.splitlines(), file=str(n)) for n, (kind, text) in enumerate(outputs)])
    )


def names(*outputs: tuple[str, str]) -> list[str]:
    """Return the names of the GPUs in some outputs."""
    return sorted(gpu.id for gpu in snapshot(*outputs).subjects("gpu"))


XID = "[  812.5] NVRM: Xid (PCI:0000:2A:00): 79, pid=77, name=train, GPU has fallen off the bus."


def test_index_uuid_and_address_are_joined() -> None:
    """A list with UUIDs, a table with indices and a listing with addresses speak of the same three GPUs."""
    table = csv("index, temperature.gpu", *(f"{n}, {40 + n}" for n in range(3)))
    outputs = [("nvidia-smi.q", as_q(HOPPER)), ("nvidia-smi.gpu-lines", gpu_list(HOPPER)), table]
    assert names(*outputs) == ADDRESSES
    assert snapshot(*outputs).value("gpu.temperature", gpu_at(ADDRESSES[2])) == 42


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_the_outputs_does_not_matter(seed: int) -> None:
    """Whichever was posted first, the GPUs are the same."""
    outputs = [(kind, render(HOPPER)) for kind, render in RENDERERS.items()]
    outputs += [
        ("nvidia-smi.gpu-lines", gpu_list(HOPPER)),
        csv("uuid, pstate", *(f"{g.uuid}, P0" for g in HOPPER.gpus)),
    ]
    random.Random(seed).shuffle(outputs)  # noqa: S311 - repeatable
    assert names(*outputs) == ADDRESSES


def test_a_join_by_two_steps() -> None:
    """Index to UUID in one output, UUID to address in another: three names, one GPU."""
    outputs = [
        csv("index, temperature.gpu", "1, 41"),
        ("nvidia-smi.gpu-lines", f"GPU 1: NVIDIA H200 (UUID: {HOPPER.gpus[1].uuid})"),
        csv("uuid, pci.bus_id", f"{HOPPER.gpus[1].uuid}, 00000000:2A:00.0"),
    ]
    (gpu,) = snapshot(*outputs).subjects("gpu")
    assert (gpu.id, snapshot(*outputs).value("gpu.temperature", gpu)) == ("0000:2a:00.0", 41)


@pytest.mark.parametrize("address", ["00000000:2A:00.0", "0000:2a:00.0"])
def test_all_spellings_of_an_address_are_one_gpu(address: str) -> None:
    """The kernel log has no function, NVML eight digits of domain."""
    assert names(("kernel.log", XID), csv("pci.bus_id, pstate", f"{address}, P0")) in ([ADDRESSES[1]], ["0000:2a:00.0"])


def test_an_all_zero_uuid_joins_nothing() -> None:
    """Redacted captures give every GPU the same UUID."""
    outputs = [
        csv("pci.bus_id, uuid", f"00000000:18:00.0, {ZERO}"),
        csv("pci.bus_id, uuid", f"00000000:2A:00.0, {ZERO}"),
        ("nvidia-smi.gpu-lines", f"GPU 0: NVIDIA H200 (UUID: {ZERO})"),
    ]
    assert {"0000:18:00.0", "0000:2a:00.0"} <= set(names(*outputs))


def test_a_uuid_shown_twice_in_one_output_joins_nothing() -> None:
    """Two rows of one output are two GPUs, whatever they share."""
    rows = ("00000000:18:00.0, GPU-same", "00000000:2A:00.0, GPU-same")
    assert names(csv("pci.bus_id, uuid", *rows)) == ADDRESSES[:2]


def test_two_addresses_are_never_one_gpu() -> None:
    """Not even where two outputs agree in UUID and index: that is another node, or an edited paste."""
    one, two = (csv("index, pci.bus_id, uuid", f"0, 00000000:{bus}:00.0, GPU-x") for bus in ("18", "2A"))
    assert names(one, two) == ADDRESSES[:2]


def test_a_serial_number_never_joins() -> None:
    """The two GPUs of a GB200 board share one."""
    one = csv("index, serial", "0, 1650000000001")
    two = csv("pci.bus_id, serial", "00000000:2A:00.0, 1650000000001")
    assert len(names(one, two)) == 2


def test_two_listings_of_one_node_are_the_same_gpus() -> None:
    """Idle and under load: the later reading holds."""
    warm = hgx_h200({1: {"temperature": 77}}, count=3)
    both = snapshot(("nvidia-smi.q", as_q(HOPPER)), ("nvidia-smi.q", as_q(warm)))
    assert {gpu.id for gpu in both.subjects("gpu")} == set(ADDRESSES)
    assert both.value("gpu.temperature", gpu_at(ADDRESSES[1])) == 77


def test_rows_of_one_gpu_are_readings_of_it() -> None:
    """``nvidia-smi -l`` prints a GPU again and again; the last row holds."""
    loop = csv("index, pci.bus_id, temperature.gpu", "0, 00000000:18:00.0, 31", "0, 00000000:18:00.0, 64")
    (gpu,) = snapshot(loop).subjects("gpu")
    assert snapshot(loop).value("gpu.temperature", gpu) == 64


def test_one_address_under_two_indices_is_told() -> None:
    """An edited listing or one of two nodes is not believed for the second row."""
    mixed = csv("index, pci.bus_id, temperature.gpu", "0, 00000000:18:00.0, 31", "1, 00000000:18:00.0, 64")
    read = snapshot(mixed)
    assert [gpu.id for gpu in read.subjects("gpu")] == ["0000:18:00.0"]
    assert read.value("gpu.duplicates") == ("0000:18:00.0",)
    assert read.value("gpu.temperature", read.subjects("gpu")[0]) == 31


def test_an_error_survives_the_join() -> None:
    """A GPU that answered with an error under its UUID is broken under its address."""
    outputs = [
        csv("uuid, temperature.gpu", f"{HOPPER.gpus[1].uuid}, [GPU requires reset]"),
        ("nvidia-smi.csv", as_csv(HOPPER)),
    ]
    read = snapshot(*outputs)
    temperatures: dict[str, Any] = {gpu.id: read.value("gpu.temperature", gpu) for gpu in read.subjects("gpu")}
    assert temperatures == {ADDRESSES[0]: 31, ADDRESSES[1]: None, ADDRESSES[2]: 31}
