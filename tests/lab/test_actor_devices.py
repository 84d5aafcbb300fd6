"""Modules, GPUs, RoCE and interrupts of a lab node in tree form: their tools act, and what is volatile is lost."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hwcheck.lab import nodes, smi
from hwcheck.lab.platforms import PLATFORMS
from tests.lab.actor_bench import Bench

DRIVER = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
HOLDERS = ("nvidia-persistenced", "nvidia-fabricmanager", "nvidia-dcgm")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a lab, whose library and tools are built once."""
    return tmp_path_factory.mktemp("lab")


def test_the_driver_is_not_reloaded_under_its_users(home: Path) -> None:
    """In use it stays; without users it goes and comes, and the GPUs have forgotten what was set."""
    bench = Bench(home, "hgx-h200", "clock-lock", "power-cap:3", "compute-prohibited")
    refused = bench.run("modprobe", "-r", *DRIVER)
    assert refused.returncode == 1
    assert "Module nvidia is in use" in refused.stderr
    bench.run("modprobe", *reversed(DRIVER))
    bench.act("stop", *HOLDERS)
    assert bench.run("modprobe", "-r", *DRIVER).returncode == 0
    assert not (bench.root / "sys/module/nvidia").exists()
    assert bench.run("nvidia-smi", "-q", "-x").returncode == 9
    assert bench.run("modprobe", "nvidia").returncode == 0
    assert not (bench.node.folder / "nvml/gpu0/locked_sm_clocks").exists()
    assert (bench.nvml("gpu3/power_limit"), bench.nvml("gpu1/compute_mode")) == ("700000", "0")
    assert (bench.nvml("gpu0/persistence"), bench.nvml("gpu0/fabric_state")) == ("0", "2")
    bench.act("start", *HOLDERS)
    assert (bench.nvml("gpu0/persistence"), bench.nvml("gpu0/fabric_state")) == ("1", "3")


def test_a_load_takes_the_file_that_is_there(home: Path) -> None:
    """The version of a module is that of its file, in all places that tell it."""
    bench = Bench(home, "gb200", "stale-module")
    bench.act("stop", "nvidia-persistenced", "nvidia-dcgm")
    bench.run("modprobe", "-r", *DRIVER)
    bench.run("modprobe", "nvidia")
    assert bench.read("/sys/module/nvidia/version") == "580.95.05\n"
    assert bench.nvml("driver_version") == "580.95.05"
    assert "580.95.05" in bench.read("/proc/driver/nvidia/version")
    assert bench.run("modinfo", "-F", "version", "nvidia").stdout == "580.95.05\n"


def test_modules_load_at_boot_and_by_hand(home: Path) -> None:
    """What modules-load.d names is there after a boot; what nobody has is told, as is what a file forbids."""
    bench = Bench(home)
    assert bench.run("modinfo", "-F", "filename", "nvidia-peermem").stdout.strip().endswith("/nvidia-peermem.ko")
    missing = bench.run("modprobe", "nothing")
    assert (missing.returncode, "Module nothing not found in directory /lib/modules/" in missing.stderr) == (1, True)
    bench.write("/etc/modules-load.d/90-hwcheck.conf", "nvidia_peermem\n# no\nnothing\n")
    nodes.reboot(bench.node)
    assert "nvidia_peermem " in bench.read("/proc/modules")
    assert bench.read("/sys/module/nvidia_peermem/version") == bench.read("/sys/module/nvidia/version")
    assert bench.run("rmmod", "nvidia_peermem").returncode == 0
    bench.write("/etc/modprobe.d/no.conf", "install nvidia_peermem /bin/false\n")
    assert bench.run("modprobe", "nvidia_peermem").returncode == 1


def test_a_board_is_reset_as_a_whole(home: Path) -> None:
    """Not while somebody holds it, not in part; what waited for a reset is done."""
    bench = Bench(home, "hgx-h100", "remap-pending", "gpu-needs-reset")
    assert "currently in use" in bench.run("nvidia-smi", "--gpu-reset").stderr
    bench.act("stop", *HOLDERS)
    assert bench.run("nvidia-smi", "--gpu-reset", "-i", "0000:18:00.0").returncode == 1
    assert bench.run("nvidia-smi", "-r").returncode == 0
    assert (bench.nvml("gpu3/remap_pending"), bench.nvml("gpu2/recovery_action")) == ("0", "0")
    assert not (bench.node.folder / "nvml/gpu2/needs_reset").exists()
    tray = Bench(home, "gb200", "remap-pending")
    tray.act("stop", "nvidia-persistenced")
    address = tray.node.machine().gpus[3].address
    assert tray.run("nvidia-smi", "-r", "-i", address).returncode == 0
    assert tray.nvml("gpu3/remap_pending") == "0"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_nvidia_smi_prints_is_what_nvml_has(home: Path, platform: str) -> None:
    """Nothing set: as rendered; set by either, both say so."""
    bench = Bench(home, platform)
    assert bench.run("nvidia-smi", "-q", "-x").stdout == smi.query_xml(bench.node.machine())
    top = bench.nvml("gpu0/clock_max_sm")
    assert bench.run("nvidia-smi", "-i", bench.nvml("gpu1/uuid"), "-lgc", top).returncode == 0
    assert bench.run("nvidia-smi", "-pm", "0").returncode == 0
    assert bench.run("nvidia-smi", "-i", "0", "-pl", "100").returncode == 2
    text = bench.run("nvidia-smi", "-q", "-x").stdout
    assert text.count("<persistence_mode>Disabled</persistence_mode>") == len(bench.node.machine().gpus)
    assert text.count(f"<sm_clock>{top} MHz</sm_clock>") == len(bench.node.machine().gpus) + 1  # each maximum, one now
    assert bench.nvml("gpu1/locked_sm_clocks") == f"{top} {top}"


def test_dcb_tells_and_sets(home: Path) -> None:
    """As text and as JSON; the first DSCP entry switches to trust DSCP, the last that goes switches back."""
    bench = Bench(home, "hgx-h100", "no-pfc:0", "trust-pcp:0")
    device = bench.node.machine().nics[0].netdev
    trust = f"/sys/class/net/{device}/qos/trust"
    assert bench.run("dcb", "-N", "app", "show", "dev", device).stdout == "ethtype-prio 0:0 \n"
    assert bench.run("dcb", "pfc", "set", "dev", device, "prio-pfc", "all:off", "3:on").returncode == 0
    assert json.loads(bench.run("dcb", "-j", "pfc", "show", "dev", device).stdout)["prio_pfc"][3] is True
    assert "3 1" in bench.read(f"/sys/class/net/{device}/qos/pfc")
    assert bench.run("dcb", "app", "replace", "dev", device, "dscp-prio", "26:3", "48:6").returncode == 0
    assert bench.read(trust) == "dscp\n"
    assert json.loads(bench.run("dcb", "-j", "app", "show", "dev", device).stdout) == {"dscp_prio": [[26, 3], [48, 6]]}
    bench.run("dcb", "app", "del", "dev", device, "dscp-prio", "26:3", "48:6")
    assert bench.read(trust) == "pcp\n"
    assert "prio-tc" in bench.run("dcb", "ets", "show", "dev", device).stdout
    assert bench.run("dcb", "pfc", "show", "dev", "eno1").stderr == "Attribute read: Operation not supported\n"
    bench.run("modprobe", "-r", "mlx5_ib", "mlx5_core")
    bench.run("modprobe", "mlx5_ib")
    assert "3 0" in bench.read(f"/sys/class/net/{device}/qos/pfc")


def test_a_running_balancer_undoes_pins(home: Path) -> None:
    """Unless it was started with a ban of the driver or the interrupt."""
    bench = Bench(home)
    irq = min(bench.node.machine().nics[0].irqs)
    path, shown = f"/proc/irq/{irq}/smp_affinity_list", f"/proc/irq/{irq}/effective_affinity_list"
    before = bench.read(shown)
    bench.write(path, "8-11\n")
    assert bench.read(shown) == "8-11\n"
    bench.act("daemon-reload")
    assert bench.read(shown) == before
    bench.write("/etc/default/irqbalance", 'IRQBALANCE_ARGS="--banmod=mlx5_core"\n')
    bench.act("restart", "irqbalance")
    bench.write(path, "8-11\n")
    bench.act("daemon-reload")
    assert bench.read(shown) == "8-11\n"


def test_tools_start_quickly(home: Path) -> None:
    """What every reading of a node asks costs some milliseconds; the best of ten, since others work here too."""
    bench = Bench(home)
    best = 9.0
    for _ in range(10):
        begun = time.monotonic()
        bench.run("systemctl", "show", "slurmd", "nvidia-persistenced")
        best = min(best, time.monotonic() - begun)
    assert best < 0.06
