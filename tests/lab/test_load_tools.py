"""Load tools of lab nodes: there where asked for, read by the parsers of the real ones, worse where the node is."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hwcheck.evidence import Evidence
from hwcheck.facts import Snapshot
from hwcheck.lab import nodes
from hwcheck.lab.actor.main import LOAD_TOOLS
from hwcheck.parse import take_snapshot
from tests.lab.lab_node import evidence_from

OWN = ("cpu-memory", "jitter", "hbm", "host-copy", "peers", "latency", "disk", "p2pbandwidth")
H2D, P2P = "nvbandwidth.host_to_device_memcpy_ce", "nvbandwidth.device_to_device_memcpy_write_ce"


@pytest.fixture(scope="module", name="pair")
def _pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[nodes.Node, nodes.Node]]:
    home = tmp_path_factory.mktemp("lab")
    made = [nodes.up(home, name, "hgx-h200", [], load_tools=tuple(LOAD_TOOLS)) for name in ("one", "two")]
    if made[0][1]:
        pytest.skip(made[0][1])
    yield made[0][0], made[1][0]
    for node, _ in made:
        nodes.down(home, node)


def measured(node: nodes.Node) -> tuple[dict[str, Any], Snapshot]:
    """Run the tools of one node as tier load does; returns measurement → value, and everything."""
    evidence: Evidence = evidence_from(node, "load", 120.0, tuple(f"load-{name}" for name in OWN))
    snapshot = take_snapshot(evidence)
    found = {}
    for subject in snapshot.subjects("measurement"):
        for fact in ("result.bandwidth", "result.busbw"):
            if (value := snapshot.value(fact, subject)) is not None:
                found[subject.id] = value
    return found, snapshot


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def perftest(pair: tuple[nodes.Node, nodes.Node], *words: str) -> str:
    """Run a server on one node and its client on the other; returns what the client printed."""
    command = [words[0], "-p", str(free_port()), "-F", *words[1:]]
    places = [{**os.environ, **node.environment()} for node in pair]
    tools = [str(node.folder / "bin" / words[0]) for node in pair]
    with subprocess.Popen([tools[0], *command[1:]], env=places[0], stdout=subprocess.PIPE) as server:
        done = subprocess.run(
            [tools[1], *command[1:], "127.0.0.1"],
            env=places[1],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        server.communicate(timeout=30)
    assert server.returncode == done.returncode, done.stderr
    return done.stdout + done.stderr


def last_number(text: str, column: int) -> float:
    """Return a number of the table's row."""
    return float(text.strip().splitlines()[-2].split()[column])


def test_node_has_no_load_tool_unless_it_was_made_with_it(tmp_path: Path) -> None:
    """Most nodes lack them; the name is remembered over a reboot."""
    node, _ = nodes.up(tmp_path, "bare", "hgx-h100", [])
    assert {entry.name for entry in (node.folder / "bin").iterdir()} & set(LOAD_TOOLS) == set()
    nodes.down(tmp_path, node)
    node, _ = nodes.up(tmp_path, "some", "hgx-h100", [], load_tools=("dcgmi",))
    nodes.reboot(nodes.load(tmp_path, "some"), user_space=False)
    assert {entry.name for entry in (node.folder / "bin").iterdir()} & set(LOAD_TOOLS) == {"dcgmi"}
    nodes.down(tmp_path, node)


def test_tools_are_read_by_the_parsers_of_the_real_ones(pair: tuple[nodes.Node, nodes.Node]) -> None:
    """A healthy H200 node gives nvbandwidth's and nccl-tests' public figures, and passes DCGM's tests."""
    found, snapshot = measured(pair[0])
    assert found[H2D] == pytest.approx(55.4, rel=0.03)
    assert found[P2P] == pytest.approx(396, rel=0.03)
    assert found["nccl.all_reduce"] == pytest.approx(478, rel=0.03)
    tests = {test["name"]: test["outcome"] for test in snapshot.value("dcgm.tests")}
    assert set(tests.values()) == {"pass"}
    assert {"PCIe", "GPU Memory"} <= set(tests)


def test_tools_show_what_is_wrong_with_the_node(pair: tuple[nodes.Node, nodes.Node]) -> None:
    """A narrow link shows in nvbandwidth and DCGM, links that are down between GPUs and in the ring of NCCL."""
    node = pair[0]
    for fault in ("gpu-link-x8", "nvlinks-dead"):
        nodes.break_node(node, fault)
    try:
        found, snapshot = measured(node)
    finally:
        nodes.mend(node)
    assert found[H2D] == pytest.approx(55.4 / 2, rel=0.03)
    assert found[P2P] == pytest.approx(396 * 16 / 18, rel=0.03)
    assert found["nccl.all_reduce"] == pytest.approx(366 * 16 / 18, rel=0.05)
    assert [test["gpus"] for test in snapshot.value("dcgm.tests") if test["outcome"] == "fail"] == ["2"]


@pytest.mark.parametrize(
    ("fault", "options", "rate"),
    [
        ("", (), 392), ("", ("--use_cuda=0",), 392), ("acs-on", (), 392), ("acs-on", ("--use_cuda=0",), 118),
        ("nic-link-x8:0", (), 229), ("port-slow:0", (), 196), ("mrrs-512:0", (), 275),
    ],
)  # fmt: skip
def test_pair_reaches_what_the_worse_end_can(
    fault: str, options: tuple[str, ...], rate: float, pair: tuple[nodes.Node, nodes.Node]
) -> None:
    """Over a real port two nodes measure each other; a fault of either end shows, ACS only with memory of a GPU."""
    if fault:
        nodes.break_node(pair[0], fault)
    try:
        text = perftest(pair, "ib_write_bw", "-d", "mlx5_0", "--report_gbits", *options)
    finally:
        nodes.mend(pair[0])
    assert last_number(text, 3) == pytest.approx(rate, rel=0.03)


def test_latency_of_a_pair_warms_up_and_settles(pair: tuple[nodes.Node, nodes.Node]) -> None:
    """The first messages are slow; the typical one is not, unless interrupts go to the far socket."""
    text = perftest(pair, "ib_send_lat", "-d", "mlx5_2", "-U", "-n", "100")
    samples = [float(row.split(", ")[1]) for row in text.splitlines() if row[:1].isdigit()]
    assert len(samples) == 100
    assert samples[0] > 5 * samples[50]
    assert last_number(text, 4) == pytest.approx(1.28, rel=0.03)
    nodes.break_node(pair[1], "irqs-far:2")
    try:
        assert last_number(perftest(pair, "ib_send_lat", "-d", "mlx5_2", "-n", "100"), 4) > 2
    finally:
        nodes.mend(pair[1])


def test_port_that_is_down_is_refused(pair: tuple[nodes.Node, nodes.Node]) -> None:
    """A tool on a port that is down ends with perftest's words."""
    node = pair[0]
    nodes.break_node(node, "port-down:0")
    try:
        done = subprocess.run(
            [node.folder / "bin/ib_write_bw", "-d", "mlx5_0"], env={**os.environ, **node.environment()},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    finally:
        nodes.mend(node)
    assert done.returncode == 1
    assert "Port number 1 state is Down" in done.stderr
