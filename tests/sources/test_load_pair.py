"""One end of a measurement between nodes: command lines, and that it agrees with the warm-up of the writers."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.parse.pair import first_against_steady, raw_samples
from hwcheck.sources import load_pair_tools, load_port, load_wire
from hwcheck.sources.source import Absent
from hwcheck.writers.warmup import programs, samples

ORDER: dict[str, Any] = {
    "role": "call", "test": "rdma.write", "device": "mlx5_0", "number": 1, "port": 18515, "address": "10.0.0.2",
    "gid": None, "gpu": None, "dmabuf": True, "seconds": 5.0, "conditions": {"link_rate": 400.0},
}  # fmt: skip
RAW = " #bytes #iterations t_min[usec]\n#, usec\n1, 12.5\n2, 1.25\n3, 1.26\n4, 1.24\n 2 4 1.24\n"


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every program be where its name says."""
    monkeypatch.setattr(load_pair_tools, "path_of", lambda test: load_pair_tools._PROGRAMS[test][0])


def test_both_ends_of_perftest_have_the_same_options() -> None:
    """The client adds the server's address, and nothing else."""
    client = load_pair_tools.words(ORDER)
    assert " ".join(client) == ("ib_write_bw -d mlx5_0 -i 1 -p 18515 -F -q 4 -s 1048576 -D 5 --report_gbits 10.0.0.2")
    assert load_pair_tools.words({**ORDER, "role": "serve"}) == client[:-1]


def test_roce_names_its_gid() -> None:
    """Older versions of perftest take the first one, which is of RoCE v1."""
    assert "-x 3" in " ".join(load_pair_tools.words({**ORDER, "gid": 3}))


def test_latency_is_measured_as_the_warm_up_does_it() -> None:
    """Raw samples in the order they were sent."""
    own = load_pair_tools.words({**ORDER, "test": "rdma.latency", "gid": 3})
    request = {"iterations": 1000, "gid_index": 3}
    theirs = programs.words("send_lat", request, "mlx5_0", 18515, "10.0.0.2", serves=False)
    assert sorted([*theirs, "-i", "1"]) == sorted(own)


def test_raw_samples_mean_the_same_here_and_in_the_warm_up() -> None:
    """The first against the median of the others."""
    found = samples.comparison(samples.of_send_lat(RAW))
    told = first_against_steady(raw_samples(RAW.splitlines()))
    assert (told["first_us"], told["steady_us"]) == (found["first"], found["steady"]) == (12.5, 1.25)
    assert told["ratio"] == found["ratio"] == 10.0


def test_too_few_samples_are_no_comparison() -> None:
    """Nothing is said then."""
    assert first_against_steady([3.0, 1.0]) == {}


def test_gpu_memory_needs_a_perftest_with_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build without it is told, and nothing measured in host memory instead."""
    monkeypatch.setattr(load_pair_tools, "path_of", lambda _: "/bin/echo")
    with pytest.raises(Absent, match="perftest with CUDA: echo has no --use_cuda"):
        load_pair_tools.words({**ORDER, "gpu": 0})


def test_what_both_ends_tell_is_joined() -> None:
    """The busier host, all who use RDMA, and bound only where both are."""
    mine = {"state": "ACTIVE", "rate": 400.0, "busy": 1.0, "numa_bound": True, "rdma_users": ["1 a"]}
    other = {"state": "INIT", "rate": 200.0, "busy": 30.0, "numa_bound": False, "rdma_users": ["2 b"]}
    assert load_port.together(mine, other) == {
        "busy": 30.0, "numa_bound": False, "rdma_users": ["1 a", "2 b"], "client_state": "ACTIVE",
        "client_rate": 400.0, "server_state": "INIT", "server_rate": 200.0,
    }  # fmt: skip


def test_rates_leave_out_the_first_interval_and_what_came_after_the_end() -> None:
    """Windows open in the one, buffers run empty in the other."""
    points = [(0.0, 0), (0.25, 100_000_000), (0.5, 412_500_000), (0.75, 725_000_000), (9.0, 725_000_001)]
    assert load_wire._rates(points, 1.0) == [10.0, 10.0]


def test_next_to_nothing_is_no_rate() -> None:
    """A link over which nothing comes has no figure, not a figure of zero."""
    with pytest.raises(load_wire.WireError, match="next to nothing came"):
        load_wire._rates([(0.0, 0), (0.25, 1)], 1.0)
