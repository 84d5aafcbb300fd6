"""A real Slurm of eight lab nodes: it drains exactly the broken one, and leaves what is an operator's alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.lab import nodes
from tests.gate.certified import certified
from tests.gate.cluster import Cluster, lacks

pytestmark = [pytest.mark.lab, pytest.mark.slow]

NODES = [f"n{number}" for number in range(1, 9)]


@pytest.fixture(scope="module", name="cluster")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if missing := lacks():
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("slurm")
    made = {name: nodes.up(folder / "lab", name, "hgx-h200", [])[0] for name in NODES}
    cluster = Cluster(folder / "c", {name: certified(node, folder / "papers" / name) for name, node in made.items()})
    cluster.folder.mkdir()
    try:
        cluster.start()
        cluster.wait(lambda: [state for state, _ in cluster.states().values()] == ["IDLE"] * len(NODES))
        cluster.wait(lambda: all(list(one.state.glob("gate-*.json")) for one in cluster.nodes.values()))
        yield cluster
    finally:
        cluster.stop()
        for node in made.values():
            nodes.down(folder / "lab", node)


def not_idle(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Return the nodes that take no jobs, with their reasons."""
    return {name: told for name, told in cluster.states().items() if told[0] not in ("IDLE", "ALLOCATED", "MIXED")}


def is_drained(cluster: Cluster, node: str, reason: str) -> bool:
    """Tell whether a node is drained with a reason that begins like this."""
    state, why = cluster.states()[node]
    return "DRAIN" in state and why.startswith(reason)


def test_slurm_drains_exactly_the_broken_node(cluster: Cluster) -> None:
    """
    The broken node is drained with its reason and comes back when it is mended; an operator's drain is never touched.

    Node 3 breaks, node 5 was drained by an operator and breaks too. Both are mended: 3 takes jobs again, 5 does not.
    """
    assert not_idle(cluster) == {}
    assert cluster.run("scontrol", "update", "NodeName=n5", "State=DRAIN", "Reason=new cable").returncode == 0
    for name in ("n3", "n5"):
        nodes.break_node(cluster.nodes[name].node, "numa-balancing")
    cluster.wait(lambda: is_drained(cluster, "n3", "hwcheck: sysctl.numa_balancing is 1"))
    assert cluster.nodes["n5"].gate().code == 1
    assert set(not_idle(cluster)) == {"n3", "n5"}
    assert is_drained(cluster, "n5", "new cable")
    refused = cluster.run("srun", "--immediate=2", "-w", "n3", "true")
    assert refused.returncode != 0

    for name in ("n3", "n5"):
        nodes.mend(cluster.nodes[name].node)
    cluster.wait(lambda: set(not_idle(cluster)) == {"n5"})
    assert is_drained(cluster, "n5", "new cable")
    assert cluster.run("srun", "-w", "n3", "echo", "runs").stdout == "runs\n"


def test_prolog_lets_no_job_onto_a_broken_node(cluster: Cluster, tmp_path: Path) -> None:
    """A job that is sent to a node which has just broken does not run there."""
    cluster.wait(lambda: "n7" not in not_idle(cluster))
    ran = tmp_path / "ran"
    assert cluster.run("srun", "-w", "n7", "touch", str(ran)).returncode == 0
    ran.unlink()
    nodes.break_node(cluster.nodes["n7"].node, "numa-balancing")
    said = cluster.run("srun", "--immediate=5", "-w", "n7", "touch", str(ran))
    assert (said.returncode != 0, ran.exists()) == (True, False), (said, cluster.states())
    cluster.wait(lambda: "n7" in not_idle(cluster))
    nodes.mend(cluster.nodes["n7"].node)
