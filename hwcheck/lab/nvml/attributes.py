"""
What the lab's NVML knows of a node: one small file an attribute, written by the lab, read (and set) by ``fake.c``.

``driver_version`` and the other node attributes stand in the state folder itself, those of GPU 0 in ``gpu0/``. A file
that is not there is "not supported", as NVML says it of hardware without the feature; a file that begins with ``!``
holds an error, ``!NVML_ERROR_UNKNOWN`` or ``!999``.

Faults are files too: ``lost``, ``needs_reset``, ``hang``, ``hang_hard`` in a GPU's folder (the two latter also in the
state folder, for ``nvmlInit``), and ``faults/<function>`` in either, with the error, ``hang`` or ``hang_hard`` as text.

``contexts/`` in a GPU's folder has a file for each process with a context of the lab's CUDA library, locked by it: as
long as there is one, clocks, power and utilisation are those of a load, and the process is listed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Attribute:
    """One file: its name, the unit of its text, an example, and what it is."""

    name: str
    unit: str
    example: str
    text: str


def _table(rows: str) -> dict[str, Attribute]:
    found = {}
    for row in filter(str.strip, rows.splitlines()):
        name, unit, example, text = (part.strip() for part in row.split("|", 3))
        found[name] = Attribute(name, unit, example, text)
    return found


NODE_ATTRIBUTES = _table("""
driver_version          |        | 570.124.06 | driver version
nvml_version            |        | 12.570.124.06 | version of the NVML library
cuda_version            |        | 12080 | highest CUDA version: 1000 * major + 10 * minor
process_name            |        | 4711 /usr/bin/python3 train.py | one process a line: pid and command line
hang                    |        | 1 | nvmlInit never returns
hang_hard               | s      | 30 | as hang, deaf to signals, the pipe held by another group's process so long
""")

GPU_ATTRIBUTES = _table("""
pci_bus_id              |        | 00000000:18:00.0 | PCI address, 8 digits of domain, upper case
pci_device_id           | hex    | 0x233510DE | device and vendor
pci_subsystem_id        | hex    | 0x18BE10DE | subsystem
minor                   |        | 0 | N of /dev/nvidiaN
uuid                    |        | GPU-5a1e0000-0000-4000-8000-000000000000 | UUID
serial                  |        | 1650000000000 | board serial number
name                    |        | NVIDIA H200 | product name
architecture            | enum   | 9 | 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell
part_number             |        | 695-2G520-0280-001 | board part number
vbios                   |        | 96.00.A5.00.03 | VBIOS version
inforom                 |        | G520.0280.02.02 | InfoROM image version
gsp_firmware            |        | 570.124.06 | GSP firmware version
module_id               |        | 1 | place on the baseboard
numa_node               |        | 2 | NUMA node of the GPU's memory (Grace only)
platform_chassis_serial |        | 1850000000001 | NVL72: chassis serial number
platform_slot           |        | 3 | NVL72: slot in the chassis
platform_tray           |        | 1 | NVL72: compute tray
platform_host           |        | 1 | NVL72: node in the slot
platform_peer_type      | enum   | 1 | NVL72: kind of NVLink peer
platform_module         |        | 1 | NVL72: module
persistence             | 0/1    | 1 | persistence mode; settable
addressing_mode         | enum   | 0 | 0 none, 1 HMM, 2 ATS
virtualization_mode     | enum   | 0 | 0 none, 1 pass-through
compute_mode            | enum   | 0 | 0 default, 2 prohibited, 3 exclusive process
mig_mode                | 0/1    | 0 | MIG mode now
mig_pending             | 0/1    | 0 | MIG mode after a reset
performance_state       |        | 0 | 0 is P0
utilization             | %      | 0 | share of time a kernel ran
recovery_action         | enum   | 0 | 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset
reset_required          | 0/1    | 0 | older drivers: reset required
drain_recommended       | 0/1    | 0 | older drivers: drain and reset recommended
memory_total            | B      | 150754820096 | frame buffer
memory_reserved         | B      | 643825664 | frame buffer kept by driver and firmware
memory_used             | B      | 0 | frame buffer in use
bar1_total              | B      | 274877906944 | BAR1 aperture
memory_bus_width        | bit    | 6144 | width of the memory bus
ecc_mode                | 0/1    | 1 | ECC mode now
ecc_pending             | 0/1    | 1 | ECC mode after a reset
ecc_volatile_sram_corrected    | | 0 | SRAM errors corrected since driver load
ecc_volatile_sram_parity       | | 0 | SRAM parity errors since driver load
ecc_volatile_sram_secded       | | 0 | SRAM SEC-DED errors since driver load
ecc_volatile_dram_corrected    | | 0 | HBM errors corrected since driver load
ecc_volatile_dram_uncorrected  | | 0 | HBM errors not corrected since driver load
ecc_aggregate_sram_corrected   | | 0 | the same in the life of the board
ecc_aggregate_sram_parity      | | 0 | the same in the life of the board
ecc_aggregate_sram_secded      | | 0 | the same in the life of the board
ecc_aggregate_dram_corrected   | | 0 | the same in the life of the board
ecc_aggregate_dram_uncorrected | | 0 | the same in the life of the board
ecc_sram_threshold      | 0/1    | 0 | SRAM errors are over the limit
repair_channel_pending  | 0/1    | 0 | HBM channel repair waits for a reset
repair_tpc_pending      | 0/1    | 0 | TPC repair waits for a reset
unrepairable            | 0/1    | 0 | spare memory is used up
remap_corrected         |        | 0 | rows remapped for corrected errors
remap_uncorrected       |        | 0 | rows remapped for uncorrected errors
remap_pending           | 0/1    | 0 | a remap waits for a reset
remap_failure           | 0/1    | 0 | a remap failed
remap_banks             |        | 3072 0 0 0 0 | banks with max, high, partial, low, no spare rows
temperature             | C      | 31 | GPU
temperature_margin      | C      | 55 | T.Limit: distance to slowdown
temperature_memory      | C      | 36 | HBM
temperature_memory_max  | C      | 95 | highest operating temperature of the HBM (A100)
power_draw              | mW     | 78210 | average of a second
power_limit             | mW     | 700000 | limit asked for; settable
power_enforced          | mW     | 700000 | limit in force; follows power_limit where the file is missing
power_default           | mW     | 700000 | limit at start
power_min               | mW     | 200000 | lowest limit
power_max               | mW     | 700000 | highest limit
module_power_limit      | mW     | 1200000 | Grace module: limit in force
module_power_default    | mW     | 1200000 | Grace module: limit at start
power_profiles          | mask   | 0 0 0 | workload power profiles supported, requested, enforced: three numbers
clock_sm                | MHz    | 345 | SM and graphics clock where nothing is locked
clock_memory            | MHz    | 3201 | memory clock where nothing is locked
clock_max_sm            | MHz    | 1980 | highest SM and graphics clock
clock_max_memory        | MHz    | 3201 | highest memory clock
clock_application       | MHz    | 1980 | application clock (before R590)
clock_application_default | MHz  | 1980 | application clock at start (before R590)
supported_sm_clocks     | MHz    | 1980 1965 345 | clocks that may be asked for, highest first
supported_memory_clocks | MHz    | 3201 1593 | clocks that may be asked for, highest first
locked_sm_clocks        | MHz    | 1980 1980 | least and most of a lock; settable, no file is no lock
locked_memory_clocks    | MHz    | 3201 3201 | least and most of a lock; settable, no file is no lock
event_reasons           | hex    | 0x1 | clock event reasons
counter_sw_power_cap    | ns     | 0 | time held by the power limit
counter_sw_thermal      | ns     | 0 | time slowed by the driver for heat
counter_hw_thermal      | ns     | 0 | time slowed by hardware for heat
counter_hw_power_brake  | ns     | 0 | time slowed by the power brake
pcie_gen                |        | 5 | PCIe generation now
pcie_gen_max            |        | 5 | highest of GPU and slot
pcie_gen_device_max     |        | 5 | highest of the GPU
pcie_width              |        | 16 | lanes now
pcie_width_max          |        | 16 | most lanes
pcie_replays            |        | 0 | replays since reset
pcie_rollovers          |        | 0 | overflows of the replay counter
nvlink_states           |        | 1 1 1 1 | one number a link: 1 up, 0 down
nvlink_speed            | MB/s   | 26562 | speed of a link that is up
nvlink_replay           |        | 0 0 0 0 | replay errors of each link (Hopper)
nvlink_recovery         |        | 0 0 0 0 | recovery errors of each link (Hopper)
nvlink_crc              |        | 0 0 0 0 | CRC errors of each link (Hopper)
nvlink_rx_errors        |        | 0 0 0 0 | receive errors of each link (Blackwell)
nvlink_recovery_ok      |        | 0 0 0 0 | successful recoveries of each link (Blackwell)
nvlink_recovery_failed  |        | 0 0 0 0 | failed recoveries of each link (Blackwell)
nvlink_effective_errors |        | 0 0 0 0 | errors beyond FEC of each link (Blackwell)
c2c_mode                | 0/1    | 1 | NVLink-C2C is on (Grace)
c2c_states              |        | 1 1 1 1 1 | one number a C2C link: 1 up
c2c_speed               | MB/s   | 44712 | speed of a C2C link
fabric_state            | enum   | 3 | 0 not supported, 1 not started, 2 in progress, 3 completed
fabric_status           | code   | 0 | NVML return code of the registration
fabric_clique           |        | 0 | clique
fabric_cluster          |        | 00000000-0000-0000-0000-000000000000 | cluster UUID
fabric_health           | hex    | 0x0 | health mask
fabric_summary          | enum   | 0 | 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity
processes               |        | 4711 4712 | pids of compute processes, beside those that the lab's CUDA library adds
retrains                |        | 8 5 | lanes and generation that the PCIe link has left when a context is opened
lost                    |        | 1 | every call answers GPU_IS_LOST
needs_reset             |        | 1 | every call but those of identity answers RESET_REQUIRED
hang                    |        | 1 | every call never returns
hang_hard               | s      | 30 | as hang, deaf to signals, the pipe held by another group's process so long
""")


def write_state(folder: Path, machine: dict[str, Any]) -> None:
    """
    Write the state of a node.

    Args:
        folder: state folder; made where it is missing. Attributes that ``machine`` does not have are taken away.
        machine: node attribute → value, and ``gpus``: a dictionary of attributes for each GPU. Lists are joined by
            blanks.

    Raises:
        KeyError: an attribute that is in neither table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    node = {name: value for name, value in machine.items() if name != "gpus"}
    _write(folder, node, NODE_ATTRIBUTES)
    gpus = machine.get("gpus", ())
    for index, attributes in enumerate(gpus):
        gpu = folder / f"gpu{index}"
        gpu.mkdir(exist_ok=True)
        _write(gpu, attributes, GPU_ATTRIBUTES)
    for old in folder.glob("gpu[0-9]*"):
        if int(old.name[3:]) >= len(gpus):
            shutil.rmtree(old)


def change_state(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Write what differs between two states, and nothing else: what was set on the node meanwhile stays."""
    had, gpus = before.get("gpus", []), after.get("gpus", [])
    if len(had) != len(gpus):
        write_state(folder, after)
        return
    for place, table, old, new in [
        (folder, NODE_ATTRIBUTES, before, after),
        *((folder / f"gpu{number}", GPU_ATTRIBUTES, *pair) for number, pair in enumerate(zip(had, gpus, strict=True))),
    ]:
        names = [name for name in table if old.get(name) != new.get(name)]
        _write(place, {name: new[name] for name in names if name in new}, {name: table[name] for name in names})


def _write(folder: Path, values: dict[str, Any], table: dict[str, Attribute]) -> None:
    for name in values.keys() - table.keys():
        raise KeyError(name)
    for name in table:
        if name in values:
            value = values[name]
            text = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            if _text(folder / name) != text + "\n":
                (folder / name).write_text(text + "\n", encoding="utf-8")
        else:
            (folder / name).unlink(missing_ok=True)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None
