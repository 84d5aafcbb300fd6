"""How the parts of a node hang together."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hwcheck.facts import NODE, Fact, Snapshot, Subject, gpu_at, gpu_index
from hwcheck.lab import nodes
from hwcheck.parse import take_snapshot
from hwcheck.topology import topology
from tests.lab.lab_node import evidence_from

GPU, NIC = "0000:18:00.0", "0000:19:00.0"


def put(made: Snapshot, subject: Subject, **facts: object) -> None:
    """Put facts; __ in a name stands for the dot."""
    for name, value in facts.items():
        made.put(subject, name.replace("__", "."), Fact(value))


def bridge(address: str, port: str, parent: str) -> dict[str, object]:
    """Record a port as the parser of sysfs does."""
    return {"address": address, "port": port, "parent": parent, "speed": 32.0, "width": 16}


def node() -> Snapshot:
    """Make a GPU and an adapter below one switch, on NUMA node 1."""
    made = Snapshot("gpu-001")
    bridges = (
        bridge("0000:15:01.0", "Root Port", ""),
        bridge("0000:16:00.0", "Upstream Port", "0000:15:01.0"),
        bridge("0000:17:00.0", "Downstream Port", "0000:16:00.0"),
        bridge("0000:17:01.0", "Downstream Port", "0000:16:00.0"),
        bridge("0000:77:01.0", "Root Port", ""),
    )
    put(made, NODE, pci__bridges=bridges)
    for address, above, kind in (
        (GPU, "0000:17:00.0", "3D controller"),
        (NIC, "0000:17:01.0", "Infiniband controller"),
    ):
        put(made, Subject("pci", address), pci__numa_node=1, pci__upstream={"address": above}, pci__class=kind)
    put(made, Subject("pci", NIC), pci__link__width=8, pci__link__width_max=16, pci__link__speed=32.0)
    links = tuple({"link": number, "active": number != 5, "speed": 26.562} for number in range(18))
    put(made, gpu_at(GPU), gpu__index=0, nvlink__links=links, nvlink__active_count=17)
    put(made, Subject("nic", "mlx5_0"), rdma__device__pci=NIC)
    put(made, Subject("netdev", "ibs0"), net__bus=NIC)
    put(made, Subject("numa", "1"), numa__cpus=64)
    put(made, Subject("numa", "2"), numa__cpus=0)
    return made


def test_parts_have_their_place() -> None:
    """A part knows its port and NUMA node, an adapter its interfaces and link, a GPU its NVLinks."""
    gpu, nic = topology(node())["parts"]
    expected = {
        "id": GPU, "kind": "gpu", "address": GPU, "also": [], "numa": 1, "parent": "0000:17:00.0", "link": None,
        "nvlinks": [17, 18],
    }  # fmt: skip
    assert expected == gpu
    expected = {
        "id": "mlx5_0", "kind": "nic", "address": NIC, "also": ["ibs0"], "numa": 1, "parent": "0000:17:01.0",
        "link": [8, 16, 32.0],
    }  # fmt: skip
    assert expected == nic


def test_only_ports_above_parts_are_told() -> None:
    """Ports on the way from a part to its root port are there, others are not; memory without CPUs is no NUMA node."""
    told = topology(node())
    kinds = {port["id"]: (port["kind"], port["parent"]) for port in told["ports"]}
    expected = {
        "0000:15:01.0": ("root", ""),
        "0000:16:00.0": ("up", "0000:15:01.0"),
        "0000:17:00.0": ("down", "0000:16:00.0"),
        "0000:17:01.0": ("down", "0000:16:00.0"),
    }
    assert expected == kinds
    assert [{"id": 1, "cpus": 64}] == told["numa"]


def test_ports_in_a_circle_end() -> None:
    """Ports that claim to be above each other are told once each."""
    made = node()
    put(
        made,
        NODE,
        pci__bridges=(bridge("0000:17:00.0", "Root Port", "0000:16:00.0"), bridge("0000:16:00.0", "", "0000:17:00.0")),
    )
    assert ["0000:16:00.0", "0000:17:00.0"] == [port["id"] for port in topology(made)["ports"]]


def test_no_numa_node_is_unknown() -> None:
    """-1, which firmware gives when it knows none, is no NUMA node."""
    made = node()
    put(made, Subject("pci", GPU), pci__numa_node=-1)
    assert topology(made)["parts"][0]["numa"] is None


def test_nothing_told_is_nothing() -> None:
    """Without evidence there are no parts, and no error."""
    assert {"numa": [], "ports": [], "parts": [], "matrix": None} == topology(Snapshot())


def test_matrix_speaks_of_the_parts() -> None:
    """Rows and columns of topo -m are named as findings name the parts."""
    made = Snapshot()
    put(made, gpu_at(GPU), gpu__index=0)
    put(made, gpu_index(1), topo__numa_affinity="1")
    cells = {"GPU0": {"GPU0": "X", "GPU1": "NV18", "NIC0": "PIX"}, "GPU1": {"GPU0": "NV18", "GPU1": "X", "NIC0": "SYS"}}
    cells["NIC0"] = {"GPU0": "PIX", "GPU1": "SYS", "NIC0": "X"}
    put(made, NODE, topo__matrix={"gpus": ("GPU0", "GPU1"), "nics": {"NIC0": "mlx5_0"}, "cells": cells})
    told = topology(made)
    assert {"of": [GPU, "GPU1", "mlx5_0"], "rows": ["X NV18 PIX", "NV18 X SYS", "PIX SYS X"]} == told["matrix"]
    assert [None, 1] == [part["numa"] for part in told["parts"]]


@pytest.mark.parametrize(("platform", "gpus", "switches"), [("hgx-h200", 8, 4), ("gb200", 4, 0)])
def test_a_whole_node_costs_little(tmp_path: Path, platform: str, gpus: int, switches: int) -> None:
    """Of a whole node every GPU and adapter has a place; it takes well under a millisecond and a few kB."""
    made, _ = nodes.up(tmp_path, "gpu-001", platform, [])
    snapshot = take_snapshot(evidence_from(made))
    told = topology(snapshot)
    kinds = [part["kind"] for part in told["parts"]]
    assert (gpus, gpus, switches) == (kinds.count("gpu"), kinds.count("nic"), kinds.count("nvswitch"))
    assert all(part["parent"] and part["numa"] is not None for part in told["parts"])
    assert len(json.dumps(told)) < 8000
    best = min(_seconds(snapshot) for _ in range(20))
    assert best < 0.001


def _seconds(snapshot: Snapshot) -> float:
    start = time.perf_counter()
    topology(snapshot)
    return time.perf_counter() - start
