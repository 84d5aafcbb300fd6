"""A fault that the node's own files have cured is told as cured, and any other is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hwcheck.cli.main import main
from hwcheck.lab import nodes
from hwcheck.lab.cures import cured
from hwcheck.lab.nodes import Node


def made(home: Path, *faults: str) -> Node:
    """Make a node in tree form."""
    node, _ = nodes.up(home, "lab-1", "hgx-h200", list(faults))
    return node


def ours(node: Node, path: str, text: str) -> None:
    """Put a file on the node's disk, as a remedy does."""
    target = node.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def update_grub(node: Node) -> None:
    """Let the node make its boot loader's entries anew."""
    subprocess.run(["update-grub"], check=True, capture_output=True, env={**os.environ, **node.environment()})


def test_a_fault_that_nobody_has_touched_is_there(tmp_path: Path) -> None:
    """Now and after a reboot, whatever it shows in: registers, attributes, units, limits, NVML."""
    node = made(tmp_path, "mrrs-512", "governor-powersave", "memlock-64k", "login-memlock", "persistence-off")
    assert cured(node) == []
    assert nodes.reboot(node) == []
    assert cured(node) == []


def test_a_kernel_argument_cures_at_the_next_boot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not when it is written: the kernel that runs has not read it; the verb says both."""
    node = made(tmp_path, "aspm-on", "login-memlock")
    line = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX pcie_aspm.policy=performance"\n'
    ours(node, "etc/default/grub.d/90-hwcheck.cfg", line)
    update_grub(node)
    assert cured(node) == []
    assert main(["lab", "--dir", str(tmp_path), "reboot", "lab-1"]) == 0
    assert "lab-1 has booted; cured by its own files: aspm-on; still there: login-memlock" in capsys.readouterr().out
    assert main(["lab", "--dir", str(tmp_path), "list"]) == 0
    assert "boot 2  aspm-on (cured), login-memlock" in capsys.readouterr().out


def test_what_is_taken_back_shows_again(tmp_path: Path) -> None:
    """The fault stayed in the model."""
    node = made(tmp_path, "aspm-on")
    file = node.root / "etc/default/grub.d/90-hwcheck.cfg"
    ours(
        node,
        "etc/default/grub.d/90-hwcheck.cfg",
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX pcie_aspm.policy=performance"',
    )
    update_grub(node)
    nodes.reboot(node)
    assert cured(node) == ["aspm-on"]
    file.unlink()
    update_grub(node)
    nodes.reboot(node)
    assert cured(node) == []


def test_a_running_value_that_was_set_right_counts_as_cured_until_the_reboot(tmp_path: Path) -> None:
    """One of many that is still wrong is enough for the fault to be there."""
    node = made(tmp_path, "governor-powersave")
    policies = sorted(node.root.glob("sys/devices/system/cpu/cpufreq/policy*"))
    for policy in policies:
        (policy / "scaling_governor").write_text("performance\n", encoding="utf-8")
        if (policy / "energy_performance_preference").exists():
            (policy / "energy_performance_preference").write_text("performance\n", encoding="utf-8")
    assert cured(node) == ["governor-powersave"]
    (policies[-1] / "scaling_governor").write_text("powersave\n", encoding="utf-8")
    assert cured(node) == []


def test_a_value_of_nvml_that_was_set_right_counts_as_cured(tmp_path: Path) -> None:
    """On every GPU: persistence mode is on, while the daemon's unit still says otherwise for its next start."""
    node = made(tmp_path, "persistence-off")
    modes = sorted((node.folder / "nvml").glob("gpu*/persistence"))
    assert len(modes) == 8
    for mode in modes:
        mode.write_text("1\n", encoding="utf-8")
    assert cured(node) == ["persistence-off"]
