"""Where the devices of a platform sit: PCI functions, the ports above them, and in which PCI domain."""

from __future__ import annotations

from typing import Any

from hwcheck.lab.devices import DOWNSTREAM, ROOT_PORT, UPSTREAM, Function


def hgx(told: dict[str, Any], functions: dict[str, Function]) -> list[str]:
    """Put a GPU and an adapter below a switch of its own for each bus; NVSwitches and a drive on ports of their own."""
    places = []
    half = len(told["buses"]) // 2
    for index, bus in enumerate(told["buses"]):
        numa = int(index >= half)
        root, up = f"0000:{bus - 3:02x}:01.0", f"0000:{bus - 2:02x}:00.0"
        _port(functions, root, "8086:352a", "", ROOT_PORT, numa)
        _port(functions, up, "1000:c030", root, UPSTREAM, numa)
        for slot, below in enumerate((f"0000:{bus:02x}:00.0", f"0000:{bus + 1:02x}:00.0")):
            down = f"0000:{bus - 1:02x}:{slot:02x}.0"
            _port(functions, down, "1000:c030", up, DOWNSTREAM, numa)
            functions[below] = _gpu_function(told, down, numa) if not slot else _nic_function(down, numa)
        places.append(f"0000:{bus:02x}:00.0")
    for index in range(told["switches"]):
        root = f"0000:02:{index + 1:02x}.0"
        _port(functions, root, "8086:352a", "", ROOT_PORT, 0)
        functions[f"0000:{index + 5:02x}:00.0"] = Function(
            "", "068000", told["switch_ids"], root, "10de:1796", "nvidia-nvswitch" if not told.get("nvlink5") else "",
            width=2, width_max=2, speed=4, speed_max=4,
        )  # fmt: skip
    _drive(functions, "0000:70:01.0", "0000:71:00.0", "8086:352a")
    return _named(functions, places)


def tray(told: dict[str, Any], functions: dict[str, Function]) -> list[str]:
    """Put each GPU and each adapter on a root port in a PCI domain of its own, as Grace does."""
    places = []
    for index, domain in enumerate(told["buses"]):
        root, below = f"{domain:04x}:00:00.0", f"{domain:04x}:01:00.0"
        _port(functions, root, "10de:22b8", "", ROOT_PORT, index // 2)
        functions[below] = _gpu_function(told, root, index // 2)
        places.append(below)
    for index, domain in enumerate(told["nic_domains"]):
        root = f"{domain:04x}:00:00.0"
        _port(functions, root, "10de:22b1", "", ROOT_PORT, index // 2)
        functions[f"{domain:04x}:03:00.0"] = _nic_function(root, index // 2)
    _drive(functions, "0004:00:00.0", "0004:01:00.0", "10de:22b1")
    return _named(functions, places)


def _named(functions: dict[str, Function], places: list[str]) -> list[str]:
    for address, function in functions.items():
        function.address = address
    return places


def _port(functions: dict[str, Function], address: str, ids: str, above: str, port: int, numa: int) -> None:
    acs = None if port == UPSTREAM else 0
    functions[address] = Function(address, "060400", ids, above, ids, "pcieport", port, numa, acs=acs)


def _gpu_function(told: dict[str, Any], above: str, numa: int) -> Function:
    device, subsystem = (int(told["gpu"][key], 16) for key in ("pci_device_id", "pci_subsystem_id"))
    return Function(
        "", "030200", f"10de:{device >> 16:04x}", above, f"10de:{subsystem >> 16:04x}", "nvidia", numa=numa,
        aspm_possible=0, group_type="identity",
    )  # fmt: skip


def _nic_function(above: str, numa: int) -> Function:
    return Function("", "020700", "15b3:1021", above, "15b3:0041", "mlx5_core", numa=numa, group_type="identity")


def _drive(functions: dict[str, Function], root: str, address: str, ids: str) -> None:
    _port(functions, root, ids, "", ROOT_PORT, 0)
    functions[root].width = functions[root].width_max = 4
    functions[address] = Function(
        "", "010802", "144d:a80a", root, "144d:a801", "nvme", width=4, width_max=4, speed=4, speed_max=4,
        read_request=512, group_type="identity",
    )  # fmt: skip
