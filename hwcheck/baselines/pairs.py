"""
Which nodes are measured against each other, and when: pairs on one rail, round by round.

A rail is one adapter position: the ports that sit at the same PCI address of two nodes. In each round every node has at
most one partner (the rounds of a tournament), and only some rounds are played: two partners for each node are enough to
tell which of two ends is slow. No node is in two measurements at once, and of a failure domain (a leaf switch, a rack)
at most one pair is under load at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hwcheck.baselines.ports import HOST, Ends, Port

RDMA_TESTS = ("rdma.write", "rdma.latency")
TESTS = (*RDMA_TESTS, "ucx", "ucx.latency", "tcp")
"""All tests between two nodes."""
TCP_TESTS = ("tcp",)
PARTNERS = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """
    One measurement between two nodes.

    Attributes:
        test: ``rdma.write``, ``rdma.latency``, ``ucx``, ``ucx.latency`` or ``tcp``.
        client, server: names of the nodes; the client sends.
        client_port, server_port: the two ends.
        rate: Gb/s that the link should have: the most that any port of this rail has; 0 where none tells.
    """

    test: str
    client: str
    server: str
    client_port: Port
    server_port: Port
    rate: float

    @property
    def on(self) -> str:
        """What a measurement of it is called: ``gpu-001/mlx5_0>gpu-002/mlx5_0``."""
        return f"{self.client}{self.client_port.suffix}>{self.server}{self.server_port.suffix}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A port that is not measured, and why."""

    node: str
    port: str
    why: str


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Waves of pairs that may run at once, one wave after the other; and what is left out."""

    waves: tuple[tuple[Pair, ...], ...]
    skipped: tuple[Skipped, ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs, in order."""
        return tuple(pair for wave in self.waves for pair in wave)


def plan_pairs(
    nodes: Iterable[Ends], tests: tuple[str, ...] = (), partners: int = PARTNERS, *, gpu: bool = False
) -> PairPlan:
    """
    Plan the measurements between nodes.

    Args:
        nodes: what can be measured, in the order of the inventory.
        tests: see :class:`Pair`; () for RDMA bandwidth and latency where there are RDMA ports, else TCP.
        partners: different partners that each node should have; more where their number is odd.
        gpu: keep only rails with a GPU beside both ports, for buffers in GPU memory.

    Returns:
        The plan; each port that cannot be measured is told with the reason.
    """
    rails: dict[tuple[str, str], list[tuple[Ends, Port]]] = defaultdict(list)
    skipped: list[Skipped] = []
    for node in nodes:
        ports = [port for port in node.ports if _wanted(port, tests, has_rdma=node.has_rdma)]
        if not ports:
            skipped.append(Skipped(node.name, "", "it has no port that these tests are for"))
        for port in ports:
            why = port.down or ("no GPU is known near it" if gpu and port.gpu is None and port.kind != HOST else "")
            if why:
                skipped.append(Skipped(node.name, port.name, why))
            else:
                rails[port.rail, port.kind].append((node, port))
    waves: list[tuple[Pair, ...]] = []
    for (rail, kind), ends in sorted(rails.items()):
        if len(ends) < 2:
            node, port = ends[0]
            where = f"no other node has an active {kind} port at {rail}" if kind != HOST else "no other node"
            skipped.append(Skipped(node.name, port.name, where))
            continue
        for pairs in _rounds(ends, tests, partners):
            waves += _waves(pairs, {node.name: node.domain for node, _ in ends})
    return PairPlan(tuple(waves), tuple(skipped))


def _wanted(port: Port, tests: tuple[str, ...], *, has_rdma: bool) -> bool:
    """Tell whether a port is one that the tests are for; without a wish, RDMA where there is any."""
    if not tests:
        return (port.kind != HOST) is has_rdma
    over_host = any(not test.startswith("rdma") for test in tests)
    over_rdma = any(test.startswith("rdma") for test in tests)
    return over_host if port.kind == HOST else over_rdma


def _tests_of(port: Port, tests: tuple[str, ...]) -> tuple[str, ...]:
    if not tests:
        return TCP_TESTS if port.kind == HOST else RDMA_TESTS
    return tuple(test for test in tests if test.startswith("rdma") is (port.kind != HOST))


def _rounds(ends: list[tuple[Ends, Port]], tests: tuple[str, ...], partners: int) -> Iterator[list[Pair]]:
    """Give the pairs of each round and test, until every node of the rail has its partners."""
    rate = max(port.rate for _, port in ends)
    met = dict.fromkeys((node.name for node, _ in ends), 0)
    for couples in tournament(len(ends)):
        if min(met.values()) >= partners:
            return
        for one, other in couples:
            met[ends[one][0].name] += 1
            met[ends[other][0].name] += 1
        for test in _tests_of(ends[0][1], tests):
            yield [
                Pair(test, ends[one][0].name, ends[other][0].name, ends[one][1], ends[other][1], rate)
                for one, other in couples
            ]


def tournament(count: int) -> Iterator[list[tuple[int, int]]]:
    """
    Pair numbers below ``count`` so that any two meet once, one round after the other.

    The first stays and the others move around it by a place each round; with an odd number one rests. The first of a
    couple is the client: the one that has been it less often.
    """
    turns = [0] * count
    ring = [*range(count), *([-1] if count % 2 else [])]
    last = len(ring) - 1
    for number in range(last):
        turned = [ring[0], *(ring[1 + (place + number) % last] for place in range(last))]
        couples = []
        for place in range(len(ring) // 2):
            two = turned[place], turned[last - place]
            if -1 not in two:
                client, server = sorted(two, key=lambda one: turns[one])
                turns[client] += 1
                couples.append((client, server))
        yield couples


def _waves(pairs: list[Pair], domains: dict[str, str]) -> list[tuple[Pair, ...]]:
    """Split a round so that a failure domain has one pair at a time; nodes without a domain are free."""
    waves: list[tuple[list[Pair], set[str]]] = []
    for pair in pairs:
        taken = {domains[pair.client], domains[pair.server]} - {""}
        for members, busy in waves:
            if not taken & busy:
                members.append(pair)
                busy.update(taken)
                break
        else:
            waves.append(([pair], taken))
    return [tuple(members) for members, _ in waves]
