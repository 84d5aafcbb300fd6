"""Two nodes of a lab are measured against each other, over their own sshd: TCP for real, perftest by its shim."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.baselines.pairs import PairPlan, plan_pairs
from hwcheck.baselines.ports import ends_of
from hwcheck.cli.main import main
from hwcheck.engine import Judge
from hwcheck.facts import Snapshot
from hwcheck.findings import Status
from hwcheck.lab.host.lab import HostLab, missing
from hwcheck.parse import take_snapshot
from hwcheck.profiles import ProfileSet
from hwcheck.transports.fan_out import FanOut, Limits
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.inventory import Query, read_inventory
from hwcheck.transports.pair_request import Manner
from hwcheck.transports.pairs import measure_pairs
from hwcheck.transports.request import Request
from hwcheck.transports.ssh_openssh import OpensshTransport
from hwcheck.transports.ssh_paramiko import ParamikoTransport
from hwcheck.transports.target import Target
from hwcheck.transports.variables import target_of
from tests.lab.host_machine import login

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason="; ".join(missing()))]
OWN = Manner(seconds=1.5, streams=2)
LISTENERS = "cat /proc/self/net/tcp /proc/self/net/tcp6 | awk '$4 == \"0A\"' | wc -l"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLab]:
    """Return a lab of three nodes with perftest, one of them with a port at half its rate."""
    home = tmp_path_factory.mktemp("pairs") / "lab"
    tools = ["--tool", "ib_write_bw", "--tool", "ib_send_lat"]
    words = ["lab", "--dir", str(home), "up", "--form", "host", *tools]
    assert main([*words, "-n", "2"]) == 0
    assert main([*words, "--name", "slow", "--fault", "port-slow"]) == 0
    yield HostLab(home)
    HostLab(home).down()


def targets_of(lab: HostLab) -> dict[str, Target]:
    """Return the nodes of its inventory."""
    hosts = read_inventory(Query((str(lab.inventory),), "", ()))
    return {name: target_of(name, variables, Target("")) for name, variables in hosts.items()}


def read(targets: dict[str, Target]) -> dict[str, Snapshot]:
    """Read the nodes by the quick tier."""
    outcomes = FanOut(targets.values(), ParamikoTransport().collect, Request(), Limits())
    return {outcome.name: take_snapshot(evidence_of(outcome)) for outcome in outcomes}


def test_a_slow_port_is_found_by_its_partners(lab: HostLab) -> None:
    """Each pair with it is below the rate of its rail, the others are well; the first message is told."""
    targets = targets_of(lab)
    snapshots = read(targets)
    slow = next(subject.id for subject, fact in snapshots["slow-1"].with_fact("rdma.port.rate") if fact.value != 400.0)
    plan = plan_pairs([ends_of(snapshot, name) for name, snapshot in sorted(snapshots.items())])
    rail = next(pair.client_port.rail for pair in plan.pairs if pair.client_port.name == slow)
    plan = PairPlan(tuple(wave for wave in plan.waves if wave[0].client_port.rail == rail), ())
    outcomes = measure_pairs(plan, targets, ParamikoTransport().collect, OWN)
    judge = Judge(ProfileSet().profile("hgx-h200"))
    said: dict[str, set[tuple[str, Status]]] = {}
    for name, outcome in outcomes.items():
        found = judge.findings(take_snapshot(evidence_of(outcome)))
        said[name] = {(one.subject.id.partition("@")[0], one.status) for one in found if one.check == "baseline.pair"}
    told = {("hwcheck.rdma.latency", Status.SKIP), ("hwcheck.warmup", Status.SKIP)}
    assert said == {
        "slow-1": {("hwcheck.rdma.write", Status.FAIL), *told},
        "lab-1": {("hwcheck.rdma.write", Status.WARN), ("hwcheck.rdma.write", Status.PASS), *told},
        "lab-2": {("hwcheck.rdma.write", Status.WARN), ("hwcheck.rdma.write", Status.PASS), *told},
    }  # fmt: skip


def test_two_nodes_measure_tcp_for_real(lab: HostLab) -> None:
    """By either SSH client; nobody listens any more afterwards."""
    targets = {name: target for name, target in targets_of(lab).items() if name != "slow-1"}
    plan = plan_pairs([ends_of(snapshot, name) for name, snapshot in read(targets).items()], ("tcp",))
    transport = OpensshTransport()
    try:
        for collect in (transport.collect, ParamikoTransport().collect):
            for outcome in measure_pairs(plan, targets, collect, OWN).values():
                snapshot = take_snapshot(evidence_of(outcome))
                (tcp,) = [one for one in snapshot.subjects("measurement") if one.id.startswith("hwcheck.tcp@")]
                assert snapshot.value("result.line_rate", tcp) > 0.1
                assert snapshot.value("result.conditions", tcp)["client"] in targets
    finally:
        transport.close()
    assert [login(lab, name, LISTENERS).strip() for name in targets] == ["0", "0"]


CONTROLLER = """
import sys
from tests.lab.test_pairs import *
lab = HostLab(Path(sys.argv[1]))
targets = {name: target for name, target in targets_of(lab).items() if name != "slow-1"}
plan = plan_pairs([ends_of(snapshot, name) for name, snapshot in read(targets).items()], ("tcp",))
transport = OpensshTransport() if sys.argv[2] == "openssh" else ParamikoTransport()
measure_pairs(plan, targets, transport.collect, Manner(seconds=60.0))
"""


@pytest.mark.parametrize("client", ["paramiko", "openssh"])
def test_nothing_runs_on_after_the_controller_was_killed(lab: HostLab, client: str) -> None:
    """Two seconds after its SIGKILL nobody listens on the nodes."""
    words = [sys.executable, "-c", CONTROLLER, str(lab.home), client]
    root = Path(__file__).parents[2]
    with subprocess.Popen(words, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}) as controller:
        end = time.monotonic() + 60
        while login(lab, "lab-1", LISTENERS).strip() == "0" and time.monotonic() < end:
            time.sleep(0.2)
        assert login(lab, "lab-1", LISTENERS).strip() == "1"
        os.kill(controller.pid, signal.SIGKILL)
    time.sleep(2)
    assert login(lab, "lab-1", LISTENERS).strip() == "0"
