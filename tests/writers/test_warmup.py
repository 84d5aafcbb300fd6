"""Warm-up between peers: several nodes in one machine, with programs of our own on PATH in place of perftest."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from hwcheck.writers.warmup import run, samples
from hwcheck.writers.warmup.tournament import meetings
from tests.writers.perftest import LATENCIES, program


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return what puts programs on a PATH of their own, where nothing else is."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("hwcheck.writers.warmup.programs._PATH", "")

    def put(*names: str, text: str = program(sys.executable)) -> Path:
        for name in names:
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(stat.S_IRWXU)
        return folder

    return put


def free_port() -> int:
    """Return the first of some ports that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return min(int(probe.getsockname()[1]), 60000)


PEERS = [{"name": f"n{number}", "address": f"127.0.0.{number + 1}"} for number in range(4)]


def request(name: str, port: int, **more: Any) -> dict[str, Any]:
    """Return the request of one node."""
    return {
        "peers": PEERS, "name": name, "methods": ["send_lat"], "iterations": 100, "gid_index": None, "port": port,
        "round_timeout": 8.0, "rate": 1000.0, **more,
    }  # fmt: skip


NODE = """
import json, os, sys
sys.path.insert(0, os.environ.pop("HERE"))
from hwcheck.writers.warmup import programs, run
programs._PATH = ""
print(json.dumps(run.answer(json.loads(sys.argv[1]))))
"""


def node(asked: dict[str, Any], **environment: str) -> dict[str, Any]:
    """Let one node do its part in a process of its own."""
    import json  # noqa: PLC0415 - beside its use

    address = next(peer["address"] for peer in asked["peers"] if peer["name"] == asked["name"])
    done = subprocess.run(
        [sys.executable, "-c", NODE, json.dumps(asked)], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "HERE": str(Path(__file__).parents[2]), "ADDRESS": address, **environment},
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def together(asked: list[dict[str, Any]], **environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Let several nodes do their parts at once."""
    with ThreadPoolExecutor(len(asked)) as pool:
        told = pool.map(lambda one: node(one, **environment.get(one["name"], {})), asked)
        return dict(zip([one["name"] for one in asked], told, strict=True))


@pytest.mark.parametrize("count", [2, 3, 4, 7, 16, 31])
def test_any_two_peers_meet_once(count: int) -> None:
    """In each round a peer has one partner at most, that partner has it, and one of the two serves."""
    peers = [f"n{number}" for number in range(count)]
    plans = {name: meetings(peers, name) for name in peers}
    rounds = count - 1 if count % 2 == 0 else count
    assert {len(plan) for plan in plans.values()} == {rounds}
    met = []
    for number in range(rounds):
        for name in peers:
            meeting = plans[name][number]
            if meeting.partner is None:
                assert not meeting.serves
                continue
            other = plans[meeting.partner][number]
            assert other.partner == name
            assert other.serves != meeting.serves
            met.append(frozenset((name, meeting.partner)))
    assert sorted(map(sorted, met)) == sorted(2 * [sorted(pair) for pair in combinations(peers, 2)])


def test_samples_are_those_that_were_printed_in_order() -> None:
    """The unsorted block is read, the sorted one after it is not; a cut line ends it."""
    assert samples.of_send_lat("head\n" + LATENCIES + "#, usec\n1, 2.0\n2, 2.1\n") == [41.5, 2.1, 2.0, 2.2]
    assert samples.of_send_lat("#, usec\n1, 41.5\n2, 2.") == [41.5, 2.0]
    assert samples.of_send_lat("#, cycles\n1, 41.5\n") == []
    assert samples.of_ping("64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=1.50 ms\n") == [1500.0]


def test_the_first_sample_stands_against_the_median_of_the_rest() -> None:
    """Of too few samples nothing is said."""
    told = samples.comparison([40.0, 2.0, 1.0, 4.0])
    assert (told["first"], told["steady"], told["ratio"]) == (40.0, 2.0, 20.0)
    assert samples.comparison([40.0, 2.0])["first"] is None


def test_four_nodes_warm_each_other(programs: Callable[..., Path]) -> None:
    """Each of six pairs is warmed by both methods, each end says so, and the client has the samples."""
    programs("ib_send_lat", "rping")
    port = free_port()
    told = together([request(peer["name"], port, methods=["rping", "send_lat"]) for peer in PEERS])
    assert all(one["ok"] for one in told.values()), told
    pairs = [(name, pair["peer"], pair["method"]) for name, one in told.items() for pair in one["pairs"]]
    assert len(pairs) == len(set(pairs)) == 4 * 3 * 2
    measured = [one for node in told.values() for one in node["measurements"] if one["method"] == "send_lat"]
    assert len(measured) == 6
    assert {(one["first"], one["steady"]) for one in measured} == {(41.5, 2.1)}


def test_a_program_that_is_missing_is_told(programs: Callable[..., Path]) -> None:
    """Without the program nobody waits for anybody, and it is told for every pair; the path has not failed by that."""
    programs()
    port = free_port()
    begun = time.monotonic()
    told = together([request(peer["name"], port, peers=PEERS[:2]) for peer in PEERS[:2]])
    assert time.monotonic() - begun < 6
    for one in told.values():
        assert (one["ok"], one["missing"]) == (True, ["ib_send_lat"])
        assert [pair["status"] for pair in one["pairs"]] == ["missing"]
        assert "not installed on" in one["pairs"][0]["why"]


def test_a_peer_that_does_not_come_is_a_failed_pair(programs: Callable[..., Path]) -> None:
    """Those that are there warm each other; the missing one is named, after its time and not for ever."""
    programs("ib_send_lat")
    port = free_port()
    begun = time.monotonic()
    told = together([request(peer["name"], port, round_timeout=8.0) for peer in PEERS[:3]])
    assert time.monotonic() - begun < 50
    for name, one in told.items():
        failed = {pair["peer"] for pair in one["pairs"] if pair["status"] == "failed"}
        assert failed == {"n3"}, name
        assert not one["ok"]
        assert "n3" in one["why"]


@pytest.mark.parametrize("manner", ["deaf", "stays"])
def test_no_server_is_left_behind(programs: Callable[..., Path], manner: str) -> None:
    """A server that never listens, or does not end, is ended with its group; the port is free afterwards."""
    folder = programs("ib_send_lat")
    port = free_port()
    peers = {"FAKE": manner}
    told = together(
        [request(peer["name"], port, round_timeout=3.0, peers=PEERS[:2]) for peer in PEERS[:2]], n0=peers, n1=peers
    )
    assert {one["ok"] for one in told.values()} == {manner == "stays"}, told
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in lines if str(folder).encode() in line]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port + 1))


def test_neighbours_are_asked_without_a_program(programs: Callable[..., Path]) -> None:
    """Where ping is not installed one datagram makes the kernel look; that nothing was measured is said."""
    programs()
    told = run.answer(request("n0", free_port(), methods=["neighbour"]))
    assert told["ok"]
    assert {pair["status"] for pair in told["pairs"]} == {"warmed"}
    assert "nothing measured" in told["pairs"][0]["why"]
    assert told["measurements"] == []


def test_ping_is_measured(programs: Callable[..., Path]) -> None:
    """Round trips of ping are samples; a peer that does not answer has failed."""
    text = '#!/bin/sh\nfor n in 1 2 3; do echo "64 bytes from x: icmp_seq=$n ttl=64 time=0.$n ms"; done\n'
    folder = programs("ping", text=text)
    told = run.answer(request("n0", free_port(), methods=["neighbour"]))
    assert [one["first"] for one in told["measurements"]] == [100.0] * 3
    (folder / "ping").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    told = run.answer(request("n0", free_port(), methods=["neighbour"]))
    assert not told["ok"]
    assert "did not answer" in told["why"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"peers": [{"name": "n0", "address": "$(reboot)"}]}, "no IP address"),
        ({"peers": [*PEERS, {"name": "n9", "address": "127.0.0.1"}]}, "stands twice"),
        ({"name": "other"}, "none of the peers"),
        ({"methods": ["sh"]}, "no method sh"),
        ({"iterations": 1}, "iterations"),
        ({"port": 22}, "port"),
        ({"rate": 0}, "rate"),
    ],
)
def test_what_is_not_understood_is_refused(change: dict[str, Any], why: str) -> None:
    """A request that makes no sense is refused with a sentence, before anything is sent."""
    told = run.answer({**request("n0", 18515), **change})
    assert not told["ok"]
    assert why in told["why"]


def test_nothing_asked_is_nothing_done() -> None:
    """Without peers or methods, and in check mode, nobody is met."""
    changes: list[dict[str, Any]] = [{"peers": []}, {"methods": []}, {"check": True}]
    for change in changes:
        told = run.answer({**request("n0", 18515), **change})
        assert (told["ok"], told["pairs"]) == (True, [])
