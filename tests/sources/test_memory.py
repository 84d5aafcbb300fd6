"""Memory sources: meminfo and the counters of the memory controllers, from small trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.facts import NODE, Missing
from hwcheck.sources.memory import SOURCES
from hwcheck.sources.source import Absent, Context
from tests.sources.tree import asked, facts_of, output_of, plant

MC = "/sys/devices/system/edac/mc/"


def controller(number: int, corrected: str, uncorrected: str, part: str = "dimm") -> dict[str, str | bytes]:
    """Make a memory controller with one module."""
    base = f"{MC}mc{number}/"
    return {
        f"{base}mc_name": "skx_edac\n",
        f"{base}seconds_since_reset": "90000\n",
        f"{base}ce_count": f"{corrected}\n",
        f"{base}ue_count": f"{uncorrected}\n",
        f"{base}{part}0/dimm_label": "",
        f"{base}{part}0/dimm_location": "channel 1 slot 0 \n",
        f"{base}{part}0/dimm_ce_count": f"{corrected}\n",
        f"{base}{part}0/dimm_ue_count": f"{uncorrected}\n",
    }


@pytest.mark.parametrize("part", ["dimm", "rank"])
def test_controllers_add_up_and_the_module_is_named_by_its_place(tmp_path: Path, part: str) -> None:
    """A module without a label is named by controller and slot."""
    context = plant(tmp_path, controller(0, "0", "0", part) | controller(1, "12", "1", part))
    snapshot = facts_of(output_of(SOURCES, "sysfs-edac", context))
    assert (snapshot.value("memory.edac.corrected"), snapshot.value("memory.edac.uncorrected")) == (12, 1)
    assert snapshot.value("memory.edac.modules") == (
        {"name": f"mc1 {part}0 channel 1 slot 0", "corrected": 12, "uncorrected": 1},
    )


def test_garbage_in_one_counter_takes_the_sum(tmp_path: Path) -> None:
    """A sum over a part of the controllers would be a pass on what is not there."""
    context = plant(tmp_path, controller(0, "0", "0") | controller(1, "-3", "many"))
    snapshot = facts_of(output_of(SOURCES, "sysfs-edac", context))
    for name in ("memory.edac.corrected", "memory.edac.uncorrected"):
        value = snapshot.get(NODE, name).value
        assert isinstance(value, Missing)
        assert value.reason == "unparsable"


def test_machines_without_counters_are_absent(tmp_path: Path) -> None:
    """No EDAC driver is no gap that anybody asked for."""
    (tmp_path / "sys/devices/system/edac/mc").mkdir(parents=True)
    for name in ("sysfs-edac", "proc-meminfo"):
        with pytest.raises(Absent):
            asked(SOURCES, name)(Context(root=str(tmp_path)))


def test_meminfo_is_read(tmp_path: Path) -> None:
    """Totals in MiB, what is out of use in KiB."""
    context = plant(tmp_path, {"/proc/meminfo": "MemTotal: 4096 kB\nHardwareCorrupted: 4 kB\nMemTotal: x kB\n"})
    snapshot = facts_of(output_of(SOURCES, "proc-meminfo", context))
    assert (snapshot.value("memory.total"), snapshot.value("memory.corrupted")) == (4, 4)
