"""One machine in four formats gives equal facts where they overlap."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.facts import Snapshot
from hwcheck.parse.gpu_table import GPU_FACTS
from hwcheck.readers import read_paths
from tests.machines import RENDERERS, hgx_h200
from tests.parse.test_pairs import parse, seen

FAULTY: dict[int, dict[str, Any]] = {
    0: {"remap_pending": "Yes", "remap_uncorrected": 1, "banks": (3071, 1, 0, 0, 0), "dram_uncorrected": 2},
    3: {"reasons": {"hw", "brake"}, "sm": 345, "recovery": "Drain and Reset", "persistence": "Disabled"},
    5: {"width": 8, "gen": 3, "replays": 4211, "rollovers": 1, "limit": 500.0},
    7: {
        "fabric_state": "In Progress",
        "fabric_status": "N/A",
        "mig": "Enabled",
        "tlimit": -1,
        "temperature": 88,
        "sram_parity": 3,
    },
}
MACHINES = {"healthy": hgx_h200(), "faulty": hgx_h200(FAULTY), "one GPU": hgx_h200(count=1)}


def facts_of(snapshot: Snapshot) -> dict[tuple[str, str], Any]:
    """Return all facts of GPUs and driver, with their values."""
    return {
        (subject.id, name): seen(fact.value)
        for subject, facts in snapshot.facts.items()
        for (name, _), fact in facts.items()
        if not name.startswith("evidence.")
    }


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_one_machine_gives_equal_facts_in_all_formats(machine: Any) -> None:
    """What two formats both say of a machine is the same value under the same name."""
    read = {kind: facts_of(parse(kind, render(machine))) for kind, render in RENDERERS.items()}
    kinds = list(read)
    for index, one in enumerate(kinds):
        for other in kinds[index + 1 :]:
            common = read[one].keys() & read[other].keys()
            assert len(common) > 40 * len(machine.gpus), f"{one} and {other} hardly overlap"
            different = {
                key: (read[one][key], read[other][key]) for key in common if read[one][key] != read[other][key]
            }
            assert different == {}, f"{one} and {other}"


def test_every_row_of_the_table_is_read_by_some_format() -> None:
    """No row of the one table is dead: each is given by at least one rendered format or stands for another platform."""
    given = {
        name
        for render_kind, render in RENDERERS.items()
        for _, name in facts_of(parse(render_kind, render(hgx_h200())))
    }
    other_platforms = {
        "gpu.c2c.mode", "gpu.platform.chassis_serial", "gpu.platform.slot", "gpu.platform.tray",
        "gpu.platform.peer_type", "gpu.module_power.limit", "gpu.module_power.default", "gpu.reset_required",
        "gpu.drain_recommended",
        "gpu.fabric.health", "gpu.fabric.bandwidth", "gpu.fabric.route_recovery", "gpu.fabric.route_unhealthy",
        "gpu.fabric.access_recovery", "gpu.fabric.misconfigured", "gpu.clocks.application_graphics",
        "gpu.clocks.default_graphics", "gpu.temperature.memory_max",
    }  # fmt: skip
    assert {row.name for row in GPU_FACTS} - given - other_platforms == set()


@pytest.mark.shared
def test_a_real_capture_agrees_between_text_and_csv(shared: Any) -> None:
    """The -q text and the CSV of one real H200 capture agree in everything that does not change within a second."""
    (evidence,) = read_paths([str(shared / "evidence/nvidia-smi-captures/h200-590.48.01-idle-and-load.txt")])
    outputs = {kind: next(o for o in evidence.outputs if o.kind == kind) for kind in ("nvidia-smi.q", "nvidia-smi.csv")}
    text, table = (facts_of(parse(kind, output.text)) for kind, output in outputs.items())
    moving = ("draw", "utilization", "used", "free", "clocks.counter")
    common = {key for key in text.keys() & table.keys() if not any(word in key[1] for word in moving)}
    assert len(common) > 60
    assert {key: (text[key], table[key]) for key in common if text[key] != table[key]} == {}
