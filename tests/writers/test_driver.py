"""Reload of the driver and reset of GPUs: services around it, holders named, half-way failures put right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hwcheck.writers import driver, gpu_clocks
from tests.writers.conftest import Node
from tests.writers.gpus import GPU, OTHER, Gpus

SYSTEMCTL = """
unit=$(echo "$*" | sed 's/.* //')
case "$1" in
show) [ -e $ROOT/units/$unit ] && echo ActiveState=active || echo ActiveState=inactive ;;
stop) rm -f $ROOT/units/$unit ;;
start) [ -e $ROOT/broken/$unit ] && { echo "$unit failed" >&2; exit 1; }; touch $ROOT/units/$unit
       [ $unit != nvidia-fabricmanager.service ] || for g in 0 1; do
         echo 3 > $ROOT/usr/lib64/nvml-state/gpu$g/fabric_state; done ;;
esac"""
MODPROBE = """
if [ "$1" = -r ]; then shift; [ ! -e $ROOT/busy ] || { echo "modprobe: FATAL: Module nvidia is in use." >&2; exit 1; }
  for m in "$@"; do rm -rf $ROOT/sys/module/$m; done
else [ ! -e $ROOT/no-$1 ] || { echo "modprobe: ERROR: could not insert '$1'" >&2; exit 1; }
  mkdir -p $ROOT/sys/module/$1
fi"""
FABRIC: dict[str, Any] = {
    "fabric_state": 3, "fabric_status": 0, "fabric_clique": 0, "fabric_health": "0x0", "fabric_summary": 1,
    "fabric_cluster": "00000000-0000-0000-0000-000000000000",
}  # fmt: skip
STARTED = ["nvidia-persistenced.service", "nvidia-fabricmanager.service", "nvidia-dcgm.service"]


@pytest.fixture
def gpus(node: Node, nvml_library: Path, monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """Return a node with two GPUs in a fabric, their modules and services."""
    made = Gpus(node, nvml_library)
    made.put(**FABRIC)
    monkeypatch.setattr(driver, "_PAUSE", 0.01)
    for name in STARTED:
        node.put(f"/units/{name}", "")
    for name in ("nvidia_uvm", "nvidia_peermem", "nvidia"):
        (node.root / "sys/module" / name).mkdir(parents=True)
    for address in (GPU, OTHER):
        node.put(f"/sys/bus/pci/devices/{address}/vendor", "0x10de\n")
        node.put(f"/sys/bus/pci/devices/{address}/class", "0x030200\n")
    node.program("systemctl", SYSTEMCTL)
    node.program("modprobe", MODPROBE)
    return made


def act(node: Node, do: str, target: str = "", **more: Any) -> dict[str, Any]:
    """Carry out one act."""
    return node.stage("act", acts=[{"do": do, "target": target, "disturbs": "node"}], **more)


def told(node: Node) -> list[str]:
    """Return what was run, but for questions."""
    return [call for call in node.calls() if " show " not in call]


def opened(node: Node, pid: int, name: str) -> Path:
    """Let a process have a GPU open."""
    node.put(f"/proc/{pid}/comm", name + "\n")
    folder = node.root / f"proc/{pid}/fd"
    folder.mkdir()
    (folder / "7").symlink_to("/dev/nvidia0")
    return folder.parent


def test_the_driver_is_reloaded_between_its_services(gpus: Gpus) -> None:
    """Users stop first and start last; modules that were loaded come back in the other order; locks are forgotten."""
    gpus.node.put(gpu_clocks.FILE, "{}")
    assert act(gpus.node, "reload_driver", "nvidia")["ok"]
    assert told(gpus.node) == [
        *(f"systemctl stop {name}" for name in reversed(STARTED)),
        "modprobe -r nvidia_peermem nvidia_uvm nvidia",
        "modprobe nvidia", "modprobe nvidia_uvm", "modprobe nvidia_peermem",
        *(f"systemctl start {name}" for name in STARTED),
    ]  # fmt: skip
    assert gpus.node.text(gpu_clocks.FILE) is None


def test_a_driver_in_use_is_not_touched(gpus: Gpus) -> None:
    """Work is named before anything stops; monitoring that no service of ours is, after it, and all start again."""
    worker = opened(gpus.node, 4711, "python3")
    done = act(gpus.node, "reload_driver", idle={"skip": True})
    assert not done["ok"]
    assert "4711 python3 has /dev/nvidia0 open" in done["why"]
    assert told(gpus.node) == []
    shutil.rmtree(worker)
    opened(gpus.node, 4712, "gpud")
    done = act(gpus.node, "reload_driver", run="r2")
    assert "nothing was done" in done["why"]
    assert "4712 gpud" in done["why"]
    assert [call for call in told(gpus.node) if "stop" not in call] == [f"systemctl start {name}" for name in STARTED]


@pytest.mark.parametrize(
    ("file", "why"),
    [("busy", "Module nvidia is in use"), ("no-nvidia_uvm", "not loaded: nvidia_uvm"),
     ("broken/nvidia-dcgm.service", "nvidia-dcgm.service failed")],
)  # fmt: skip
def test_what_fails_half_way_is_said_and_the_rest_goes_on(gpus: Gpus, file: str, why: str) -> None:
    """Whatever went wrong, modules are loaded and services started as far as they can be."""
    gpus.node.put("/" + file, "")
    done = act(gpus.node, "reload_driver")
    assert not done["ok"]
    assert why in done["why"]
    running = {path.name for path in (gpus.node.root / "units").iterdir()}
    assert running == {name for name in STARTED if not file.endswith(name)}
    assert (gpus.node.root / "sys/module/nvidia").exists()


def test_a_driver_that_is_not_loaded_is_not_reloaded(gpus: Gpus) -> None:
    """Nor is one that is not NVIDIA's."""
    assert not act(gpus.node, "reload_driver", "amdgpu")["ok"]
    (gpus.node.root / "sys/module/nvidia").rmdir()
    done = act(gpus.node, "reload_driver", run="r2")
    assert "not loaded" in done["why"]
    assert told(gpus.node) == []


@pytest.mark.parametrize(
    ("target", "switches", "expected"),
    [("", False, "--gpu-reset"), ("all", False, "--gpu-reset"), (OTHER, False, f"--gpu-reset -i {OTHER}"),
     (OTHER, True, "--gpu-reset")],
)  # fmt: skip
def test_a_reset_has_its_true_scope(gpus: Gpus, target: str, switches: bool, expected: str) -> None:  # noqa: FBT001 - a case
    """Where NVSwitches tie the GPUs together a single one is not reset; the fabric is waited for."""
    if switches:
        gpus.node.put("/sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n")
        gpus.node.put("/sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n")
    gpus.put(**{**FABRIC, "fabric_state": 2})
    assert act(gpus.node, "reset_gpu", target)["ok"]
    assert told(gpus.node) == [
        *(f"systemctl stop {name}" for name in reversed(STARTED)),
        f"nvidia-smi {expected}",
        *(f"systemctl start {name}" for name in STARTED),
    ]  # fmt: skip


def test_a_reset_that_fails_is_said(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """By nvidia-smi, by a GPU that is not there, by a fabric that never completes."""
    assert "no GPU '0000:99:00.0'" in act(gpus.node, "reset_gpu", "0000:99:00.0")["why"]
    gpus.node.program("nvidia-smi", 'echo "GPU 00000000:18:00.0 is currently in use" >&2; exit 1')
    assert "currently in use" in act(gpus.node, "reset_gpu", run="r2")["why"]
    gpus.node.program("nvidia-smi", "exec sleep 60")
    monkeypatch.setattr(driver, "_RESET", 0.3)
    assert "took more than 0.3 s" in act(gpus.node, "reset_gpu", run="r3")["why"]
    monkeypatch.setattr(driver, "_RESET", 60)
    monkeypatch.setattr(driver, "FABRIC_SECONDS", 0.05)
    gpus.node.program("nvidia-smi")
    gpus.node.program("systemctl", SYSTEMCTL.replace("echo 3", "echo 2"))
    gpus.put(**{**FABRIC, "fabric_state": 2})
    assert f"not in the NVLink fabric after 0.05 s: {GPU}" in act(gpus.node, "reset_gpu", run="r4")["why"]


def test_a_restart_of_the_fabric_manager_is_a_reset_of_the_board(gpus: Gpus) -> None:
    """Whatever the plan says that it disturbs, the node must be idle."""
    opened(gpus.node, 4711, "python3")
    acts = [{"do": "restart", "target": "nvidia-fabricmanager.service", "disturbs": "nothing"}]
    assert "not idle" in gpus.node.stage("act", acts=acts)["why"]
    gpus.node.put("/usr/lib/systemd/system/nvidia-fabricmanager.service", "[Service]\nExecStart=/usr/bin/x\n")
    one = {"id": "fm", "mechanism": "unit_property", "key": "nvidia-fabricmanager.service LimitNOFILE", "value": "1024",
           "restart": "nvidia-fabricmanager.service", "disturbs": "nothing"}  # fmt: skip
    assert gpus.node.stage("check", one)["acts"][0]["disturbs"] == "board"
    assert "not idle" in gpus.node.stage("prepare", one)["why"]
