"""What is only read and advised: versions of the driver stack, firmware, access control, placement."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from hwcheck.writers.advice.acs import control
from hwcheck.writers.advice.topics import TOPICS, answer

DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\nGCC version: 12\n"


class Node:
    """A node's files below a folder, and its programs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin = folder / "root", folder / "bin"
        self.bin.mkdir()
        self.put("/proc/cpuinfo", "flags\t\t: fpu\n")

    def put(self, path: str, text: str | bytes) -> None:
        """Write a file."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def program(self, name: str, text: str) -> None:
        """Install a program that prints a text."""
        (self.bin / name).write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n", encoding="utf-8")
        (self.bin / name).chmod(stat.S_IRWXU)

    def ask(self, topic: str, **versions: str) -> dict[str, Any]:
        """Ask for advice."""
        return answer({"topic": topic, "versions": versions, "root": str(self.root), "live_root": True})


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return an empty node whose programs are the first on PATH."""
    made = Node(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return made


def package(name: str, version: str, wish: str = "install") -> str:
    """Return a block of dpkg's status."""
    return f"Package: {name}\nStatus: {wish} ok installed\nVersion: {version}\nDescription: x\n y\n\n"


def driver_node(node: Node, loaded: str = DRIVER, on_disk: str = "570.124.06", wish: str = "hold") -> Node:
    """Give a node a whole driver stack."""
    node.put("/proc/driver/nvidia/version", loaded)
    node.program("modinfo", on_disk)
    node.put("/lib/modules/6.8.0-1/modules.dep", "")
    node.put("/lib/modules/6.8.0-2/modules.dep", "")
    node.put("/usr/lib/systemd/system/nvidia-fabricmanager.service", "")
    node.put(
        "/var/lib/dpkg/status",
        package("nvidia-driver-570-server", "570.124.06-0ubuntu1", wish)
        + package("nvidia-fabricmanager-570", "570.124.06-1", wish)
        + package("nvlsm", "2025.03.1", wish)
        + package("bash", "5.1"),
    )
    return node


def test_a_whole_stack_needs_nothing(node: Node) -> None:
    """Loaded, on disk and installed are one version, and held; what has versions of its own is no odd one out."""
    told = driver_node(node).ask("driver_stack", **{"nvidia-driver-570-server": "570.124.06"})
    assert (told["differs"], told["advice"], told["unknown"]) == (False, [], [])
    assert told["found"]["loaded"] == told["found"]["on_disk"] == "570.124.06"
    assert "bash" not in told["found"]["packages"]


def test_an_upgrade_that_nobody_finished_is_told(node: Node) -> None:
    """Loaded is not what is on disk, and packages are not held."""
    told = driver_node(node, on_disk="575.57.08", wish="install").ask("driver_stack")
    assert told["differs"] is True
    assert "loaded is 570.124.06, on disk is 575.57.08" in told["advice"][0]
    assert any("not held" in line and "nvlsm" in line for line in told["advice"])


def test_a_mixed_set_is_told(node: Node) -> None:
    """Two versions among packages of one set."""
    driver_node(node)
    node.put("/var/lib/dpkg/status", package("nvidia-driver-570", "570.1-1") + package("nvidia-imex-570", "570.2-1"))
    assert any("are no set" in line for line in node.ask("driver_stack")["advice"])


def test_an_upgrade_is_advised_step_by_step(node: Node) -> None:
    """Drain first, exact versions, every kernel, reboot, verify; in this order and with what the node has."""
    told = driver_node(node).ask(
        "driver_stack", **{"nvidia-driver-570-server": "575.57.08-0ubuntu1", "nvidia-fabricmanager-570": "575.57.08-1"}
    )
    steps = [line for line in told["advice"] if line.startswith("upgrade")]
    words = [
        "drain",
        "record",
        "stop nvidia-fabricmanager.service",
        "take the hold off",
        "apt-get install",
        "6.8.0-2",
        "reboot",
    ]
    assert [any(word in step for step in steps[place : place + 1]) for place, word in enumerate(words)] == [True] * 7
    assert "nvidia-driver-570-server=575.57.08-0ubuntu1" in steps[4]


def test_what_cannot_be_read_is_unknown_and_never_right(node: Node) -> None:
    """No modinfo and no driver: nothing differs as far as is known, which is not the same as fine."""
    driver_node(node)
    (node.bin / "modinfo").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (node.root / "proc/driver/nvidia/version").unlink()
    told = node.ask("driver_stack")
    assert told["differs"] is None
    assert len(told["unknown"]) == 2


def adapter(node: Node, flashed: str = "FW Version:            28.43.2566") -> Node:
    """Give a node one adapter."""
    node.put("/sys/devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0/fw_ver", "28.43.2566\n")
    node.put("/sys/devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0/board_id", "MT_0000000838\n")
    (node.root / "sys/devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0/device").symlink_to("../..")
    node.put("/sys/class/infiniband/.keep", "")
    (node.root / "sys/class/infiniband/mlx5_0").symlink_to("../../devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0")
    node.program("mstflint", f"Image type:            FS4\n{flashed}\nPSID:                  MT_0000000838")
    return node


def test_firmware_as_wanted(node: Node) -> None:
    """Running, flashed and wanted are one."""
    told = adapter(node).ask("nic_firmware", MT_0000000838="28.43.2566")
    assert (told["differs"], told["advice"], told["unknown"]) == (False, [], [])
    assert told["found"]["mlx5_0"]["address"] == "0000:18:00.0"


def test_flashed_and_not_running_needs_a_reset(node: Node) -> None:
    """The tool's first version is the flashed one; it counts after a reset."""
    told = adapter(node, "FW Version:            28.44.1036\nFW Version(Running):   28.43.2566").ask("nic_firmware")
    assert "runs 28.43.2566 and has 28.44.1036 flashed" in told["advice"][0]


def test_other_firmware_is_advised_never_burned(node: Node) -> None:
    """Steps name the board, one adapter at a time, and warn of the wrong image."""
    told = adapter(node).ask("nic_firmware", MT_0000000838="28.44.1036")
    assert [line.partition(":")[0] for line in told["advice"]] == [f"firmware, step {n} of 5" for n in range(1, 6)]
    assert "28.43.2566 to 28.44.1036" in told["advice"][2]
    assert "never --allow_psid_change" in told["advice"][2]


def test_a_board_without_a_wanted_version_is_unknown(node: Node) -> None:
    """A board that the site has not named is not fine."""
    told = adapter(node).ask("nic_firmware", MT_0000000999="28.44.1036")
    assert told["differs"] is None


def config(word: int) -> bytes:
    """Return a configuration space with one capability before ACS."""
    space = bytearray(4096)
    space[0x100:0x104] = (0x0001 | 0x150 << 20).to_bytes(4, "little")
    space[0x150:0x154] = 0x000D.to_bytes(4, "little")
    space[0x156:0x158] = word.to_bytes(2, "little")
    return bytes(space)


def switch(node: Node, word: int, device: str = "0x1021") -> Node:
    """Give a node a switch with a GPU and an adapter below it."""
    base = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
    for way, vendor, kind, number in (
        ("0000:17:00.0/0000:18:00.0", "0x15b3", "0x020700", device),
        ("0000:17:01.0/0000:19:00.0", "0x10de", "0x030200", "0x2335"),
    ):
        for name, text in (
            ("vendor", vendor),
            ("class", kind),
            ("device", number),
            ("numa_node", "0"),
            ("local_cpulist", "0-3"),
        ):
            node.put(f"{base}/{way}/{name}", text + "\n")
        node.put(f"{base}/{way.partition('/')[0]}/config", config(word))
    node.put("/sys/bus/pci/devices/.keep", "")
    for path in sorted(node.root.glob("sys/devices/**/0000:*")):
        link = node.root / "sys/bus/pci/devices" / path.name
        link.symlink_to(f"../../../{path.relative_to(node.root / 'sys')}")
    return node


def test_redirecting_ports_are_named_exactly(node: Node) -> None:
    """Only the ports between GPU and adapter, and the list to give to the role."""
    told = switch(node, 0x001D).ask("acs")
    assert told["found"]["redirecting"] == ["0000:17:00.0", "0000:17:01.0"]
    assert "pci=disable_acs_redir=0000:17:00.0;0000:17:01.0" in told["advice"][2]
    assert told["differs"] is True


def test_source_validation_alone_is_no_redirection(node: Node) -> None:
    """Bit 0 does not send traffic up."""
    assert switch(node, 0x0001).ask("acs")["differs"] is False


def test_a_guest_and_data_direct_adapters_are_left_alone(node: Node) -> None:
    """There zeroing would be a fault, or is the host's."""
    assert "rdma_topo" in switch(node, 0x001D, "0x1023").ask("acs")["advice"][0]
    node.put("/proc/cpuinfo", "flags\t\t: fpu hypervisor\n")
    told = node.ask("acs")
    assert "guest" in told["advice"][0]
    assert told["differs"] is None


def test_a_short_configuration_space_is_not_clear() -> None:
    """What others than root read has no capabilities; a port without ACS has nothing on."""
    assert "only root" in str(control(bytes(64)))
    assert control(bytes(4096)) == 0
    loop = bytearray(config(0x1C))
    loop[0x100:0x104] = (0x0001 | 0x100 << 20).to_bytes(4, "little")
    assert control(bytes(loop)) == 0


def test_placement_names_nodes_with_cpus(node: Node) -> None:
    """Memory of GPUs is a NUMA node without CPUs, and never in the mask."""
    switch(node, 0)
    for name, text in (("has_cpu", "0-1"), ("has_memory", "0-2,10"), ("online", "0-2,10")):
        node.put(f"/sys/devices/system/node/{name}", text + "\n")
    node.put("/proc/sys/kernel/hostname", "gpu-7.example\n")
    told = node.ask("placement")
    assert told["found"]["cpu_nodes"] == "0-1"
    assert "nodes 2,10 have no CPUs" in told["advice"][0]
    assert "NodeName=gpu-7 AutoDetect=nvml" in told["found"]["gres"]
    assert "Gres=gpu:1" in told["found"]["gres"]


def test_a_device_without_a_node_is_not_on_node_0(node: Node) -> None:
    """-1 is a fault of the firmware, or a guest."""
    switch(node, 0).put("/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0/numa_node", "-1\n")
    told = node.ask("placement")
    assert told["differs"] is None
    assert any("0000:19:00.0" in line for line in told["unknown"])


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_an_empty_node_is_never_fine(node: Node, topic: str) -> None:
    """Nothing there to read comes to no verdict, except where there is nothing to decide about."""
    told = node.ask(topic)
    assert told["differs"] is not True
    assert told["differs"] is None or topic == "acs" or not told["ok"]


@pytest.mark.parametrize("versions", [{"a": 28.4}, {"a": ""}, {"a": True}, ["a"]])
def test_versions_are_words(versions: Any) -> None:
    """A version that YAML took for a number is refused with a sentence."""
    told = answer({"topic": "nic_firmware", "versions": versions})
    assert not told["ok"]
    assert "versions" in told["why"]
