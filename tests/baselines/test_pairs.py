"""Which nodes are measured against each other, and when; and whose fault a slow pair is."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from hwcheck.baselines.culprit import Blame, Met, blame, common_end
from hwcheck.baselines.pairs import PairPlan, plan_pairs, tournament
from hwcheck.baselines.ports import HOST, INFINIBAND, ROCE, Ends, Port, ends_of
from hwcheck.facts import NODE, Fact, Origin, Snapshot, Subject

OWN = Port(HOST, HOST)


def port(device: str = "mlx5_0", bus: str = "1b", rate: float = 400.0, kind: str = INFINIBAND, **more: object) -> Port:
    """Return a port at a bus."""
    address = f"0000:{bus}:00.0"
    return Port(kind, f"{address}/1", device, 1, address=address, rate=rate, **more)  # type: ignore[arg-type]


def node(name: str, *ports: Port, domain: str = "") -> Ends:
    """Return a node with these ports and its own address."""
    return Ends(name, domain, (*ports, OWN))


def ends(plan: PairPlan) -> list[list[str]]:
    """Return the waves of a plan as names of measurements."""
    return [[pair.on for pair in wave] for wave in plan.waves]


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 33])
def test_in_a_tournament_any_two_meet_once_and_nobody_twice_in_a_round(count: int) -> None:
    """The sides change, so that nobody is the client each time."""
    rounds = list(tournament(count))
    met = [tuple(sorted(couple)) for couples in rounds for couple in couples]
    assert sorted(met) == list(combinations(range(count), 2))
    for couples in rounds:
        assert len({one for couple in couples for one in couple}) == 2 * len(couples)
    clients = Counter(client for couples in rounds for client, _ in couples)
    assert count < 4 or len(clients) == count


@pytest.mark.parametrize("count", [3, 4, 5, 16])
def test_every_node_has_two_partners_and_is_in_one_measurement_at_a_time(count: int) -> None:
    """Two are enough to tell which end is slow; a node of an odd number may have three."""
    plan = plan_pairs([node(f"n{number}", port()) for number in range(count)], ("rdma.write",))
    partners: dict[str, set[str]] = {}
    for pair in plan.pairs:
        partners.setdefault(pair.client, set()).add(pair.server)
        partners.setdefault(pair.server, set()).add(pair.client)
    assert {len(some) for some in partners.values()} <= {2, 3}
    for wave in plan.waves:
        busy = [name for pair in wave for name in (pair.client, pair.server)]
        assert len(busy) == len(set(busy))


def test_rails_are_adapters_at_the_same_address() -> None:
    """Names of devices differ between nodes; an adapter that only one node has is left out with the reason."""
    one = node("a", port("mlx5_0", "1b"), port("mlx5_1", "4c"))
    other = node("b", port("mlx5_3", "1b"), port("mlx5_0", "9a"))
    plan = plan_pairs([one, other], ("rdma.write",))
    assert ends(plan) == [["a/mlx5_0>b/mlx5_3"]]
    assert [(skipped.node, skipped.port, skipped.why) for skipped in plan.skipped] == [
        ("a", "mlx5_1/1", "no other node has an active InfiniBand port at 0000:4c:00.0/1"),
        ("b", "mlx5_0/1", "no other node has an active InfiniBand port at 0000:9a:00.0/1"),
    ]


def test_infiniband_is_not_measured_against_roce() -> None:
    """The same adapter in two modes is no rail."""
    plan = plan_pairs([node("a", port()), node("b", port(kind=ROCE))])
    assert plan.waves == ()
    assert [skipped.why for skipped in plan.skipped] == [
        "no other node has an active InfiniBand port at 0000:1b:00.0/1",
        "no other node has an active RoCE port at 0000:1b:00.0/1",
    ]


def test_a_port_that_is_down_is_told_and_its_partner_measured_with_others() -> None:
    """No measurement begins that cannot end well."""
    nodes = [node("a", port()), node("b", port(down="its state is Down", rate=0)), node("c", port())]
    plan = plan_pairs(nodes, ("rdma.write",))
    assert ends(plan) == [["a/mlx5_0>c/mlx5_0"]]
    assert [(skipped.node, skipped.why) for skipped in plan.skipped] == [("b", "its state is Down")]


def test_the_link_should_run_at_the_best_rate_of_its_rail() -> None:
    """A port that came up at half the rate does not lower the bar for itself."""
    plan = plan_pairs([node("a", port(rate=200.0)), node("b", port(rate=400.0))])
    assert {pair.rate for pair in plan.pairs} == {400.0}


def test_of_a_failure_domain_one_pair_at_a_time_is_under_load() -> None:
    """Nodes of which nobody has said a domain are free."""
    leaf = [node(f"l{number}", port(), domain="leaf-1") for number in range(4)]
    free = [node(f"f{number}", port()) for number in range(4)]
    for wave in plan_pairs([*leaf, *free], ("rdma.write",)).waves:
        assert sum("l" in pair.client + pair.server for pair in wave) <= 1
    assert max(map(len, plan_pairs(free, ("rdma.write",)).waves)) == 2


def test_nodes_without_rdma_are_measured_by_tcp() -> None:
    """Without a wish the tests follow what the nodes have."""
    plan = plan_pairs([node("a"), node("b"), node("c", port())])
    assert [(pair.test, pair.on) for pair in plan.pairs] == [("tcp", "a>b")]
    assert [(skipped.node, skipped.why) for skipped in plan.skipped] == [
        ("c", "no other node has an active InfiniBand port at 0000:1b:00.0/1"),
    ]


def test_a_node_that_stands_alone_is_told() -> None:
    """One node has nobody to be measured against."""
    plan = plan_pairs([node("a")])
    assert plan.waves == ()
    assert [(skipped.node, skipped.why) for skipped in plan.skipped] == [("a", "no other node")]


def test_gpu_memory_needs_a_gpu_near_the_port() -> None:
    """Else the figure would be of another path."""
    plan = plan_pairs([node("a", port(gpu=0)), node("b", port())], ("rdma.write",), gpu=True)
    assert [(skipped.node, skipped.why) for skipped in plan.skipped] == [
        ("b", "no GPU is known near it"),
        ("a", "no other node has an active InfiniBand port at 0000:1b:00.0/1"),
    ]


def test_ports_come_from_the_facts_of_a_node() -> None:
    """Link layer, state, rate, the GID of RoCE v2 with IPv4, and the GPU under the same switch."""
    snapshot = Snapshot("a")
    facts = {
        ("port", "mlx5_0/1"): {
            "rdma.port.link_layer": "Ethernet", "rdma.port.state": "Active", "rdma.port.rate": 400.0,
            "rdma.port.netdev": "ens1", "rdma.port.gids": (
                {"index": 1, "gid": "fe80::1", "ip": "", "version": "v2", "netdev": "ens1"},
                {"index": 2, "gid": "::ffff:10.0.0.1", "ip": "10.0.0.1", "version": "v1", "netdev": "ens1"},
                {"index": 3, "gid": "::ffff:10.0.0.1", "ip": "10.0.0.1", "version": "v2", "netdev": "ens1"},
            ),
        },
        ("port", "mlx5_1/1"): {"rdma.port.link_layer": "InfiniBand", "rdma.port.state": "Init"},
        ("nic", "mlx5_0"): {"rdma.device.pci": "0000:1b:00.0"},
        ("gpu", "0000:18:00.0"): {"gpu.index": 0},
        ("gpu", "0000:2a:00.0"): {"gpu.index": 1},
        ("pci", "0000:1b:00.0"): {"pci.upstream": {"address": "0000:1a:01.0"}},
        ("pci", "0000:1a:01.0"): {"pci.upstream": {"address": "0000:19:00.0"}},
        ("pci", "0000:2a:00.0"): {"pci.upstream": {"address": "0000:1a:02.0"}},
        ("pci", "0000:1a:02.0"): {"pci.upstream": {"address": "0000:19:00.0"}},
    }  # fmt: skip
    for subject, values in facts.items():
        for name, value in values.items():
            snapshot.put(Subject(*subject), name, Fact(value, Origin("test")))
    assert NODE.id == ""
    assert ends_of(snapshot, "a", "leaf").ports == (
        Port(ROCE, "0000:1b:00.0/1", "mlx5_0", 1, "ens1", "0000:1b:00.0", 400.0, 3, 1),
        Port(INFINIBAND, "mlx5_1/1", "mlx5_1", 1, down="its state is Init"),
        OWN,
    )


@pytest.mark.parametrize(("slow", "well", "found"), [
    ("", "ab bc ca", []),
    ("ab bc", "ca cd da", [Blame("node", ("b",), ("a", "c"))]),
    ("ab", "bc cd da", [Blame("path", ("a", "b"))]),
    ("ab", "", [Blame("either", ("a", "b"))]),
    ("ab", "bc", [Blame("node", ("a",), ("b",))]),
    ("ab bc cd da", "", [Blame("either", tuple(two)) for two in ("ab", "ad", "bc", "cd")]),  # type: ignore[arg-type]
    ("ab bc de ef", "ac cd df", [Blame("node", ("b",), ("a", "c")), Blame("node", ("e",), ("d", "f"))]),
])  # fmt: skip
def test_partners_tell_whose_fault_a_slow_pair_is(slow: str, well: str, found: list[Blame]) -> None:
    """A node that is slow with all its partners, of which one is well with somebody else; a way; or either of two."""
    met = [Met(*two, slow=True) for two in slow.split()] + [Met(*two, slow=False) for two in well.split()]
    assert blame(met) == found


def test_an_end_whose_own_port_is_slow_needs_no_second_partner() -> None:
    """The port's rate says it."""
    assert blame([Met("a", "b", slow=True, marked="b")]) == [Blame("node", ("b",), ("a",))]


def test_pairs_of_one_node_tell_whose_they_are() -> None:
    """The node that is in all of them; a single pair does not tell."""
    assert common_end([("a", "b"), ("c", "a")]) == "a"
    assert common_end([("a", "b")]) == ""
    assert common_end([]) == ""
