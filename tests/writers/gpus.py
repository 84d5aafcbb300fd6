"""A node with GPUs: the lab's NVML below its root."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hwcheck.lab.nvml.attributes import write_state
from tests.writers.conftest import Node

GPU, UUID = "0000:18:00.0", "GPU-5a1e0000-0000-4000-8000-000000000000"
OTHER = "0000:2a:00.0"
DAEMON = "/usr/lib/systemd/system/nvidia-persistenced.service"


def gpu(address: str, uuid: str, **more: Any) -> dict[str, Any]:
    """Return what the lab's NVML knows of an idle H200."""
    return {
        "pci_bus_id": f"0000{address.upper()}", "uuid": uuid, "persistence": 1, "power_limit": 650000,
        "power_default": 700000, "power_min": 200000, "power_max": 700000, "clock_sm": 345, "clock_max_sm": 1980,
        "clock_memory": 3201, "clock_max_memory": 3201, "supported_sm_clocks": [1980, 1965, 1500, 345],
        "supported_memory_clocks": [3201, 1593], "event_reasons": "0x1", **more,
    }  # fmt: skip


class Gpus:
    """A node with GPUs; ``state`` is what its NVML says."""

    def __init__(self, node: Node, library: Path) -> None:
        self.node = node
        folder = node.root / "usr/lib64"
        folder.mkdir(parents=True)
        shutil.copy(library / "libnvidia-ml.so.1", folder)
        self.state = folder / "nvml-state"
        self.put()
        node.program("systemctl")
        node.program("nvidia-smi")
        node.put(DAEMON, "[Service]\nExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode\n")

    def put(self, **more: Any) -> None:
        """Write the state, the first GPU with more attributes."""
        other = gpu(OTHER, UUID.replace("5a1e0000", "5a1e0001"))
        write_state(self.state, {"driver_version": "580.105.08", "gpus": [gpu(GPU, UUID, **more), other]})

    def get(self, name: str, index: int = 0) -> str:
        """Return an attribute of a GPU."""
        file = self.state / f"gpu{index}" / name
        return file.read_text(encoding="ascii").strip() if file.exists() else ""
