"""Measurements between nodes: the real program on this machine, and transports whose nodes go away."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hwcheck.baselines.pairs import PairPlan, Skipped, plan_pairs
from hwcheck.baselines.ports import HOST, INFINIBAND, Ends, Port
from hwcheck.errors import TransportError
from hwcheck.parse import take_snapshot
from hwcheck.transports import local
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.pair_request import Manner, PairRequest
from hwcheck.transports.pairs import measure_pairs
from hwcheck.transports.request import Request
from hwcheck.transports.target import LOCAL, Target

BASE = 23100 + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
FAST = Manner(seconds=1.5, streams=2, first_port=BASE, ports=20, setup=10.0, slack=8.0)
TARGETS = {name: Target(name, address="127.0.0.1", connection=LOCAL) for name in "abc"}
HELLO = b"HWC1 hello ok 0 10 - -\nhost=gpu-1"
END = b"HWC1 end ok 0 0 - -\n"
PERFTEST = (Path(__file__).parents[1] / "parse/perftest/between_nodes_latency.txt").read_text()


def frame(kind: str, payload: bytes, status: str = "ok") -> bytes:
    """Make a frame."""
    return b"HWC1 %s %s 5 %d - -\n" % (kind.encode(), status.encode(), len(payload)) + payload


LISTENING = frame("hwcheck.pair", json.dumps({"port": 4711, "address": "10.0.0.2", "rate": 400.0}).encode())
FIGURE = frame("hwcheck.load", b'{"test": "tcp", "on": "a>b", "value": 9.4, "unit": "Gb/s", "samples": [9.4], '
                               b'"conditions": {"client": "a", "server": "b", "rail": "host"}}\n')  # fmt: skip


class Nodes:
    """A transport whose nodes play a part: what they send, and then end, hang or go away."""

    def __init__(self, **parts: tuple[bytes, str]) -> None:
        self._parts = parts
        self.orders: list[dict[str, Any]] = []
        self.open = 0

    def collect(self, _: Target, request: Request, last: float, cancel: Cancel) -> Conversation:
        """Play the part of the role that is asked for."""
        assert isinstance(request, PairRequest)
        self.orders.append(dict(request.order))
        text, then = self._parts[request.order["role"]]
        if then == "unreachable":
            raise TransportError("no connection")
        talk = Conversation(b"", heard=request.heard)
        ended = threading.Event()
        self.open += 1
        try:
            with cancel.closing(ended.set):
                talk.take(HELLO + text + (END if then == "ends" else b""))
                if then == "hangs":
                    ended.wait(max(0.0, last - time.monotonic()))
                elif then != "ends":
                    time.sleep(0.3)
        finally:
            self.open -= 1
        talk.finish(None)
        return talk


def plan(*names: str, tests: tuple[str, ...] = ("tcp",)) -> PairPlan:
    """Plan pairs of nodes that have nothing but an address."""
    return plan_pairs([Ends(name, ports=(Port(HOST, HOST),)) for name in names], tests)


def facts(outcome: Outcome) -> dict[str, tuple[float | None, str]]:
    """Return what a node has of each measurement: figure, and why there is none."""
    snapshot = take_snapshot(evidence_of(outcome))
    found = {}
    for subject in snapshot.subjects("measurement"):
        value = snapshot.value("result.line_rate", subject) or snapshot.value("result.latency", subject)
        found[subject.id] = (value, (snapshot.value("result.conditions", subject) or {}).get("error", ""))
    return found


def play(nodes: Nodes, manner: Manner | None = None) -> dict[str, tuple[float | None, str]]:
    """Measure a and b by such a transport; both must be told the same."""
    told = {name: facts(outcome) for name, outcome in measure_pairs(plan("a", "b"), TARGETS, nodes.collect,
                                                                    manner or FAST).items()}  # fmt: skip
    assert told["a"] == told["b"]
    assert nodes.open == 0
    return told["a"]


def test_the_client_is_told_where_the_server_listens() -> None:
    """By what the server says of itself; its figure is given to both nodes."""
    nodes = Nodes(serve=(LISTENING, "ends"), call=(FIGURE, "ends"))
    assert play(nodes) == {"hwcheck.tcp@a>b": (9.4, "")}
    serve, call = nodes.orders
    assert (serve["role"], call["role"], call["address"], call["port"]) == ("serve", "call", "10.0.0.2", 4711)
    assert call["other"] == {"rate": 400.0}
    assert serve["token"] == call["token"]


@pytest.mark.parametrize(("serve", "call", "why"), [
    ((b"", "unreachable"), (b"", "ends"), "b (server) did not listen: no connection"),
    ((b"", "dies"), (b"", "ends"), "b (server) did not listen: ended before its end"),
    ((frame("hwcheck.load", b"no port is free", "failed"), "ends"), (b"", "ends"),
     "b (server) did not listen: failed"),
    ((b"", "hangs"), (b"", "ends"), "b (server) did not listen within 0.5 s"),
    ((LISTENING, "dies"), (b"", "hangs"), "b (server) vanished: ended before its end"),
    ((LISTENING, "hangs"), (b"", "unreachable"), "a (client) vanished: no connection"),
    ((LISTENING, "hangs"), (b"", "dies"), "a (client) vanished: ended before its end"),
])  # fmt: skip
def test_who_went_away_is_told_by_name(
    serve: tuple[bytes, str], call: tuple[bytes, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the other end is ended."""
    for module in ("pairs", "pair_end"):
        monkeypatch.setattr(f"hwcheck.transports.{module}.COURTESY", 0.3)
    manner = Manner(setup=0.5, slack=2.0, seconds=0.1)
    assert play(Nodes(serve=serve, call=call), manner) == {"hwcheck.tcp@a>b": (None, why)}


def test_two_ends_that_hang_are_ended_in_time() -> None:
    """By the controller, whatever the nodes do."""
    began = time.monotonic()
    found = play(Nodes(serve=(LISTENING, "hangs"), call=(b"", "hangs")), Manner(setup=0.5, slack=0.5, seconds=0.1))
    assert time.monotonic() - began < 6
    assert [why.partition(":")[0] for _, why in found.values()] == ["a (client) vanished"]


def test_a_node_that_has_gone_is_not_waited_for_again() -> None:
    """Its other pairs say so at once."""
    nodes = Nodes(serve=(b"", "unreachable"), call=(b"", "ends"))
    outcomes = measure_pairs(plan("a", "b", "c"), TARGETS, nodes.collect, FAST)
    whys = {subject: why for outcome in outcomes.values() for subject, (_, why) in facts(outcome).items()}
    assert len(whys) == 3
    assert len(nodes.orders) == len({order["on"].partition(">")[2] for order in nodes.orders})
    assert all("did not listen" in why or "had gone before: no connection" in why for why in whys.values())


def test_what_the_plan_leaves_out_is_told_to_the_node() -> None:
    """As something that is not there, which is no fault."""
    some = PairPlan((), (Skipped("a", "mlx5_0/1", "its state is Down"),))
    (answer,) = measure_pairs(some, TARGETS, Nodes().collect, FAST)["a"].answers
    assert (answer.status, answer.detail) == ("absent", "between nodes: mlx5_0/1: its state is Down")


def test_an_interrupt_ends_both_ends() -> None:
    """Nothing is waited for."""
    nodes = Nodes(serve=(LISTENING, "hangs"), call=(b"", "hangs"))
    began = time.monotonic()

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_pairs(plan("a", "b"), TARGETS, nodes.collect, FAST, say=stop)
    assert time.monotonic() - began < 3
    assert nodes.open == 0


# ----------------------------------------------------------------------------------- the real program, both ends here


def ports_in_use() -> list[int]:
    """Return the ports of the range on which somebody listens."""
    found = []
    for port in range(FAST.first_port, FAST.first_port + FAST.ports):
        with socket.socket() as one:
            one.settimeout(0.2)
            found += [port] if one.connect_ex(("127.0.0.1", port)) == 0 else []
    return found


def test_tcp_is_measured_for_real_and_the_port_is_free_again() -> None:
    """Bandwidth, latency, and the first message against the rest; a port that is taken is passed over."""
    with socket.create_server(("127.0.0.1", FAST.first_port)):
        outcomes = measure_pairs(plan("a", "b"), TARGETS, local.collect, FAST)
        found = facts(outcomes["a"])
        assert found == facts(outcomes["b"])
        assert {subject: value is not None and value > 0 for subject, (value, _) in found.items()} == {
            "hwcheck.tcp@a>b": True, "hwcheck.tcp.latency@a>b": True, "hwcheck.warmup@a>b": True,
        }  # fmt: skip
        assert ports_in_use() == [FAST.first_port]
    snapshot = take_snapshot(evidence_of(outcomes["a"]))
    (warmup,) = [subject for subject in snapshot.subjects("measurement") if subject.id.startswith("hwcheck.warmup")]
    conditions = snapshot.value("result.conditions", warmup)
    assert conditions["ratio"] == pytest.approx(conditions["first_us"] / conditions["steady_us"], rel=1e-3)
    assert conditions["transport"] == "tcp"


def test_no_free_port_is_told() -> None:
    """With the range that was tried."""
    with socket.create_server(("127.0.0.1", BASE + 60)) as taken:
        manner = Manner(seconds=0.5, first_port=BASE + 60, ports=1, setup=5.0, slack=5.0)
        found = facts(measure_pairs(plan("a", "b"), TARGETS, local.collect, manner)["a"])
        assert taken.fileno() > 0
    why = f"b (server) did not listen: WireError: no port is free from {BASE + 60} to {BASE + 60}"
    assert found == {"hwcheck.tcp@a>b": (None, why)}


SERVER = """#!{python}
import socket, sys, os
words = sys.argv[1:]
port = int(words[words.index("-p") + 1])
print(open({table!r}).read() if not words[-1][0].isdigit() or "." in words[-1] else "")
if "." in words[-1]:
    socket.create_connection((words[-1], port)).close()
else:
    {then}
    server = socket.create_server(("", port))
    server.accept()
"""


def shim(folder: Path, then: str = "pass") -> None:
    """Put an ib_send_lat that is a server and a client over a real port."""
    table = folder / "table"
    table.write_text("\n".join(PERFTEST.splitlines()[1:]))
    file = folder / "ib_send_lat"
    file.write_text(SERVER.format(python=sys.executable, table=str(table), then=then))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def rdma() -> PairPlan:
    """Plan two nodes with an InfiniBand port each."""
    port = Port(INFINIBAND, "0000:1b:00.0/1", "mlx5_0", 1, address="0000:1b:00.0", rate=400.0)
    return plan_pairs([Ends(name, ports=(port,)) for name in "ab"], ("rdma.latency",))


def test_perftest_runs_as_server_and_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is kept for both nodes, each end's with its role, and gives the latency and the first message."""
    shim(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    outcomes = measure_pairs(rdma(), TARGETS, local.collect, FAST)
    assert facts(outcomes["a"]) == facts(outcomes["b"]) == {
        "hwcheck.rdma.latency@a/mlx5_0>b/mlx5_0": (1.25, ""), "hwcheck.warmup@a/mlx5_0>b/mlx5_0": (12.5, ""),
    }  # fmt: skip
    roles = {name: [json.loads(answer.payload.split(b"\n")[0])["role"] for answer in outcome.answers]
             for name, outcome in outcomes.items()}  # fmt: skip
    assert roles == {"a": ["call"], "b": ["serve", "heard"]}
    assert ports_in_use() == []


def test_a_tool_that_one_end_lacks_is_told_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is no fault of either node."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for outcome in measure_pairs(rdma(), TARGETS, local.collect, FAST).values():
        (answer,) = outcome.answers
        assert (answer.kind, answer.status, answer.detail) == (
            "perftest", "absent", "on b: ib_send_lat (package perftest)",
        )  # fmt: skip


def test_a_server_that_dies_leaves_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the reason why there is no figure."""
    shim(tmp_path, then='sys.exit("ibv_open_device failed")')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = facts(measure_pairs(rdma(), TARGETS, local.collect, FAST)["a"])
    assert list(found.values()) == [(None, "b (server) did not listen: ibv_open_device failed")]
