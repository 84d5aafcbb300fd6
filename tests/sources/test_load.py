"""The tier that measures: what each source tells, what it leaves, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hwcheck.facts import NODE, Subject
from hwcheck.sources import capture, load_before, load_binding, load_disk, load_figures, load_witness, program
from hwcheck.sources.source import LOAD, Context, Source
from hwcheck.transports import request
from hwcheck.transports.request import Request
from tests.sources.load_library import build
from tests.sources.node_program import ask, snapshot

LATENCIES = {"launch": 5, "launch.tail": 5, "copy.small": 3, "copy.small.tail": 3}
FIRST, SECOND = "0000:18:00.0", "0000:2a:00.0"


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment in which CUDA is a stand-in with two GPUs."""
    return {"LD_LIBRARY_PATH": str(build(tmp_path_factory.mktemp("cuda")))}


def lines(source: str, environment: dict[str, str], deadline: float = 50.0) -> list[dict[str, Any]]:
    """Run one source of the tier and return what it said, without what only says that it begins."""
    (frame,) = frames(source, environment, deadline)
    assert frame.status == "ok", frame.detail
    return [row for row in map(json.loads, frame.text.splitlines()) if "begins" not in row]


def frames(source: str, environment: dict[str, str], deadline: float = 50.0) -> list[Any]:
    """Run one source of the tier; its frame."""
    found = ask(Request(tier="load", only=(source,), deadline=deadline), environment)
    return [frame for kind, frame in found.items() if kind not in ("hello", "beat", "end")]


def told(rows: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the figures by test and place."""
    return {(row["test"], row["on"]): row["value"] for row in rows if "value" in row}


@pytest.mark.parametrize(
    ("source", "figures"),
    [
        ("load-hbm", {("hbm.copy", FIRST): 4000, ("hbm.copy", SECOND): 4000}),
        ("load-host-copy", {(test, on): rate for test, rate in (("h2d", 55), ("d2h", 54)) for on in (FIRST, SECOND)}),
        ("load-peers", {("p2p", f"{FIRST}>{SECOND}"): 395, ("p2p", f"{SECOND}>{FIRST}"): 390}),
        ("load-latency", {(test, on): us for test, us in LATENCIES.items() for on in (FIRST, SECOND)}),
    ],
)
def test_each_gpu_is_measured_and_everything_given_back(
    source: str, figures: dict[tuple[str, str], float], cuda: dict[str, str], tmp_path: Path
) -> None:
    """The figure is what the events say, every repeat is told, and no allocation outlives its context."""
    log = tmp_path / "log"
    rows = lines(source, cuda | {"FAKE_CUDA_LOG": str(log)})
    assert told(rows) == pytest.approx(figures, rel=1e-3)
    for row in rows:
        assert row["conditions"]["samples"] == len(row["samples"]) >= 5
        assert row["conditions"]["unwatched"].startswith("libnvidia-ml.so.1")
    assert set(log.read_text().split("\n")) == {"left 0", ""}


def test_a_byte_that_is_read_and_written_counts_twice_and_it_is_said(cuda: dict[str, str]) -> None:
    """Nobody has to guess what the figure of HBM is made of."""
    assert {row["conditions"]["counts"] for row in lines("load-hbm", cuda)} == {"read+write"}
    assert {row["conditions"]["counts"] for row in lines("load-host-copy", cuda)} == {"one-way"}


def test_the_spectrum_shows_the_rare_slow_launch(cuda: dict[str, str]) -> None:
    """One launch in a thousand takes 90 us: the median does not know, the end of the spectrum and the series do."""
    row = next(row for row in lines("load-latency", cuda) if row["test"] == "launch")
    conditions = row["conditions"]
    assert (row["value"], conditions["p50"], conditions["max"]) == (5.0, 5.0, 90.0)
    assert conditions["series"].count(90.0) == 10
    assert conditions["host_p50"] > 0
    assert "interrupts" in conditions


def test_a_gpu_that_fails_does_not_keep_the_others_from_their_figures(cuda: dict[str, str]) -> None:
    """CUDA's own word for it stands in place of the figure."""
    rows = lines("load-hbm", cuda | {"FAKE_CUDA": "ecc"})
    assert told(rows) == {("hbm.copy", FIRST): 4000}
    assert rows[1] == {
        "test": "hbm.copy", "on": SECOND, "error": "cuCtxCreate_v2: CUDA_ERROR_ECC_UNCORRECTABLE (214)",
    }  # fmt: skip


def test_a_gpu_that_hangs_is_told_by_what_it_began(cuda: dict[str, str]) -> None:
    """What was measured before stands; the one that never ended is unknown, and the source a timeout."""
    (frame,) = frames("load-hbm", cuda | {"FAKE_CUDA": "hang"}, deadline=2.0)
    seen = snapshot(frame)
    assert frame.status == "timeout"
    assert seen.value("result.bandwidth", Subject("measurement", f"hwcheck.hbm.copy@{FIRST}")) == 4000
    error = seen.value("result.conditions", Subject("measurement", f"hwcheck.hbm.copy@{SECOND}"))["error"]
    assert error.startswith("began and did not end: no answer in")


def test_a_time_of_zero_is_no_figure(cuda: dict[str, str]) -> None:
    """A copy that took no time did not happen."""
    rows = lines("load-host-copy", cuda | {"FAKE_CUDA": "no-time"})
    assert told(rows) == {}
    assert all(row["error"].startswith("no figure") for row in rows)


def test_cuda_that_does_not_start_is_said(cuda: dict[str, str]) -> None:
    """In the words that all checks know."""
    (frame,) = frames("load-peers", cuda | {"FAKE_CUDA": "init"})
    assert "system not yet initialized" in snapshot(frame).value("cuda.init_error", NODE)


def test_no_cuda_library_is_absent() -> None:
    """A node without GPUs has nothing to measure there."""
    (frame,) = frames("load-hbm", {"LD_LIBRARY_PATH": ""})
    assert (frame.status, frame.detail.partition(":")[0]) == ("absent", "libcuda.so.1")


def test_a_gpu_with_little_room_is_measured_with_smaller_buffers(cuda: dict[str, str]) -> None:
    """Memory that a daemon keeps costs no figure."""
    row = lines("load-hbm", cuda | {"FAKE_CUDA": "little-memory"})[0]
    assert row["conditions"]["size"] == 128 << 20
    assert row["value"] == pytest.approx(4000, rel=1e-3)


def test_peers_that_do_not_reach_each_other_are_not_measured(cuda: dict[str, str]) -> None:
    """And those that the driver refuses although it said yes are told as an error."""
    assert lines("load-peers", cuda | {"FAKE_CUDA": "no-peers"}) == []
    refused = lines("load-peers", cuda | {"FAKE_CUDA": "peer-refused"})
    assert [row["error"] for row in refused] == ["cuCtxEnablePeerAccess: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED (217)"] * 2


def test_memory_of_the_cpus_and_jitter_are_measured_here() -> None:
    """Real figures of this machine: their shape, since it is nobody's reference."""
    (memory, *_) = lines("load-cpu-memory", {})
    assert memory["test"] == "cpu.memory"
    assert memory["value"] > 0.1
    assert memory["conditions"]["counts"] == "read+write"
    assert memory["conditions"]["threads"] >= 1
    (jitter,) = lines("load-jitter", {})
    conditions = jitter["conditions"]
    assert conditions["p50"] <= conditions["p99"] <= conditions["p999"] <= conditions["max"]
    assert len(conditions["series"]) <= load_figures.SERIES


FIO = """#!{python}
import json, sys
assert "--direct=1" in sys.argv
print("fio: a note in front")
clat = {{"mean": 80000.0, "max": 900000, "percentile": {{"50.000000": 78000, "99.000000": 120000}}}}
side = {{"bw_bytes": 6200000000, "clat_ns": clat}}
print(json.dumps({{"jobs": [{{"error": 0, "read": side, "write": side}}]}}))
"""


def test_the_disk_is_measured_by_fio_where_it_is_installed(tmp_path: Path) -> None:
    """Figures of its JSON; the file is gone afterwards."""
    tool = tmp_path / "fio"
    tool.write_text(FIO.format(python=sys.executable))
    tool.chmod(0o755)
    before = set(Path("/var/tmp").iterdir())  # noqa: S108 - what the source must leave as it was
    rows = lines("load-disk", {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert set(Path("/var/tmp").iterdir()) <= before  # noqa: S108 - as above
    assert {row["test"]: (row["value"], row["unit"]) for row in rows} == {
        "disk.read": (6.2, "GB/s"), "disk.write": (6.2, "GB/s"), "disk.latency": (80.0, "us"),
    }  # fmt: skip
    assert rows[2]["conditions"]["p99"] == 120.0


@pytest.mark.parametrize(
    ("run", "words"), [({"error": 28}, "error 28 (No space left"), ({"error": 0, "read": {}}, "has no 'bw_bytes'")]
)
def test_what_fio_says_instead_of_a_figure_is_told(run: dict[str, Any], words: str) -> None:
    """Its error by the system's words, or what its answer lacks."""
    with pytest.raises(load_figures.FigureError, match=re.escape(words)):
        load_disk._figure(run, "read", "GB/s")


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("load-disk", "package fio"),
        ("load-nvbandwidth", "NVIDIA/nvbandwidth"),
        ("load-nccl", "NVIDIA/nccl-tests"),
        ("load-dcgm", "datacenter-gpu-manager"),
        ("load-p2pbandwidth", "NVIDIA/cuda-samples"),
    ],
)
def test_a_tool_that_is_missing_is_absent_with_what_would_bring_it(source: str, word: str, tmp_path: Path) -> None:
    """Nobody has to look the package up."""
    (frame,) = frames(source, {"PATH": str(tmp_path)})
    assert frame.status == "absent"
    assert word in frame.detail


def test_a_tool_of_others_keeps_its_format_and_its_last_words(tmp_path: Path) -> None:
    """What it prints is read by the parser of that tool, also where it ends with an error."""
    tool = tmp_path / "nvbandwidth"
    tool.write_text(
        "#!/bin/sh\necho 'Running host_to_device_memcpy_ce.'\necho 'SUM host_to_device_memcpy_ce 55'\nexit 3\n"
    )
    tool.chmod(0o755)
    (frame,) = frames("load-nvbandwidth", {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (frame.kind, frame.status, frame.detail) == ("nvbandwidth", "ok", "exit status 3")
    seen = snapshot(frame).value("result.bandwidth", Subject("measurement", "nvbandwidth.host_to_device_memcpy_ce"))
    assert seen == 55


def test_what_measures_is_sent_with_no_other_tier() -> None:
    """A node that is only looked at compiles none of it, and is owed none of it."""
    quick, load = Request(), Request(tier="load")
    assert len(request._blob(load=False)) < 0.9 * len(request._blob(load=True))
    assert not any(kind == "hwcheck.load" for kind in (quick.owed(()) + Request(tier="deep").owed(())))
    assert load.owed(())["hwcheck.load"] == 7
    assert "nvml" not in load.owed(())


def test_sources_of_the_tier_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None begins before the one before it has ended; one that finds no time left is a timeout and not begun."""
    monkeypatch.setattr(program, "_SETTLE", 0.05)
    log = tmp_path / "log"

    def busy(context: Context) -> bytes:  # noqa: ARG001 - all asks take it
        for word in ("begins", "ends"):
            with log.open("a") as file:
                file.write(f"{word} ")
            time.sleep(0.1)
        return b"x"

    reader, writer = os.pipe()
    sources = [Source(f"s{i}", "hwcheck.load", busy, child=True, tier=LOAD) for i in range(4)]
    program._one_by_one(sources, Context(), writer, time.monotonic() + 0.62)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    assert set(log.read_text().split()[::2]) == {"begins"}
    assert set(log.read_text().split()[1:4:2]) == {"ends"}
    assert text.count(b" ok ") >= 2
    assert b"timeout" in text


@pytest.fixture
def controller(cuda: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A controller that measures this machine, where a copy never ends; and a mark on all processes of it."""
    mark = f"load-test-{os.getpid()}-{time.monotonic_ns()}"
    code = (
        "from hwcheck.transports import local\n"
        "from hwcheck.transports.fan_out import FanOut, Limits\n"
        "from hwcheck.transports.request import Request\n"
        "from hwcheck.transports.target import LOCAL, Target\n"
        "asked = Request(tier='load', only=('load-cpu-memory', 'load-hbm'), deadline=300)\n"
        "list(FanOut([Target('here', connection=LOCAL)], local.collect, asked, Limits(1, 300)))\n"
    )
    environment = os.environ | cuda | {"FAKE_CUDA": "endless", "HWCHECK_TEST_MARK": mark}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    yield process, mark
    process.kill()
    process.wait()


def marked(mark: str) -> set[int]:
    """Return the processes that have a mark in their environment."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def test_a_load_ends_when_the_controller_is_killed(controller: tuple[subprocess.Popen[bytes], str]) -> None:
    """Two seconds after SIGKILL nothing of it runs on the node, processes that copy memory included."""
    process, mark = controller
    end = time.monotonic() + 20
    while len(marked(mark)) < 4 and time.monotonic() < end:  # controller, program, source, its first child
        time.sleep(0.05)
    assert len(marked(mark)) >= 4
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 2
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == set()


def test_children_end_with_a_program_that_is_killed_itself(cuda: dict[str, str]) -> None:
    """The kernel ends a source whose program had no time to."""
    mark = f"load-test-{os.getpid()}-{time.monotonic_ns()}"
    environment = os.environ | cuda | {"FAKE_CUDA": "endless", "HWCHECK_TEST_MARK": mark}
    asked = Request(tier="load", only=("load-hbm",), deadline=300)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdin is not None
    process.stdin.write(asked.program())
    process.stdin.close()
    end = time.monotonic() + 20
    while len(marked(mark)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)  # the source has asked the kernel by then
    process.kill()
    process.wait()
    end = time.monotonic() + 2
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    if process.stdout is not None:
        process.stdout.close()
    assert left == set()


def nvml(answers: dict[tuple[str, tuple[str, ...]], Any], processes: list[dict[int, str] | None]) -> Any:
    """Make an NVML for witnesses that knows one GPU; who is on it changes from question to question."""
    return SimpleNamespace(
        why="",
        device=lambda address: address,
        ask=lambda _, name, args=(): answers.get((name, args)),
        processes=lambda _: processes.pop(0),
    )


def test_a_witness_tells_the_worst_of_what_it_saw() -> None:
    """Lowest clocks, everything that held them, whoever came, errors that were added."""
    clock = ("ClockInfo", ("NVML_CLOCK_SM",))
    errors = ("TotalEccErrors", load_witness._ERRORS)
    answers: dict[tuple[str, tuple[str, ...]], Any] = {
        clock: 1980, ("MaxClockInfo", ("NVML_CLOCK_SM",)): 1980, errors: 2, ("CurrentClocksEventReasons", ()): 0x1,
        ("RemappedRows", ()): {"corrRows": 0, "uncRows": 1}, ("CurrPcieLinkWidth", ()): 16,
    }  # fmt: skip
    witness = load_witness.GpuWitness(nvml(answers, [{}, {4242: "python3"}]), [FIRST])
    witness.look()
    answers |= {clock: 1200, ("CurrentClocksEventReasons", ()): 0x40, ("CurrPcieLinkWidth", ()): 8, errors: 5}
    witness.look()
    answers[clock] = 1980
    seen = witness.told()
    assert (seen["sm_clock"], seen["sm_clock_max"], seen["pcie_width"], seen["looks"]) == (1200, 1980, 8, 2)
    assert seen["throttled"] == ["hw_thermal"]
    assert seen["strangers"] == ["4242 python3"]
    assert (seen["ecc_errors"], seen["remapped_rows"]) == (3, 0)
    assert "memory_clock" not in seen


def test_a_list_of_processes_that_cannot_be_had_is_left_out() -> None:
    """An empty list would say that nobody was there."""
    assert "strangers" not in load_witness.GpuWitness(nvml({}, [None, None]), [FIRST]).told()


def test_lines_of_the_kernel_log_count_from_the_beginning_of_the_window(tmp_path: Path) -> None:
    """An Xid of yesterday is not this measurement's."""
    (tmp_path / "dev").mkdir()
    log = tmp_path / "dev/kmsg"
    log.write_text("6,1,100,-;NVRM: Xid (PCI:0000:18:00): 31, old\n")
    witness = load_witness.NodeWitness(Context(str(tmp_path)))
    with log.open("a") as file:
        file.write("6,2,200,-;NVRM: Xid (PCI:0000:18:00): 94, new\n6,3,300,-;usb: something else\n")
    assert witness.told()["xids"] == ["6,2,200,-;NVRM: Xid (PCI:0000:18:00): 94, new"]


def process(root: Path, pid: int, name: str, state: str) -> None:
    """Make a process of a node."""
    (root / f"proc/{pid}").mkdir(parents=True, exist_ok=True)
    (root / f"proc/{pid}/stat").write_text(f"{pid} ({name}) {state} 1 {pid} {pid} 0\n")


def test_a_program_that_never_sleeps_is_named(tmp_path: Path) -> None:
    """One that ran each time holds a CPU; those that sleep do not, whatever their names look like."""
    process(tmp_path, 1, "systemd", "S")
    process(tmp_path, 5200, "osqueryd", "R")
    process(tmp_path, 5300, "a) R 1", "S")
    assert load_before.host_before(str(tmp_path), 0.01)["runaways"] == ["5200 osqueryd"]


def test_a_log_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    """No log is no clean log."""
    seen = load_witness.NodeWitness(Context(str(tmp_path))).told()
    assert "xids" not in seen
    assert "log_unread" in seen


def numa_tree(root: Path, cpulist: str, node: str = "0") -> Context:
    """Make the files that say where a GPU is."""
    device, folder = root / f"sys/bus/pci/devices/{FIRST}", root / f"sys/devices/system/node/node{node}"
    device.mkdir(parents=True)
    folder.mkdir(parents=True)
    (device / "numa_node").write_text(f"{node}\n")
    (folder / "cpulist").write_text(f"{cpulist}\n")
    return Context(str(root))


@pytest.mark.parametrize(
    ("cpulist", "seen"),
    [
        ("0-1", {"numa_node": 0, "numa_bound": True}),
        ("60000-60001", {"numa_node": 0, "numa_unknown": "NUMA node 0 has no CPU that is online"}),
    ],
)
def test_a_measurement_is_bound_to_the_numa_node_of_its_gpu(cpulist: str, seen: dict[str, Any], tmp_path: Path) -> None:
    """Bound, or it is said why that could not even be tried."""
    context, before = numa_tree(tmp_path, cpulist), os.sched_getaffinity(0)
    try:
        told = load_binding.bind(context, load_binding.numa_node(context, FIRST))
    finally:
        load_binding.release(before)
    assert {key: told.get(key) for key in seen} == seen
    assert os.sched_getaffinity(0) == before


def test_cpus_that_the_kernel_refuses_are_no_binding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cpuset that leaves the node's CPUs out: the figure will not count."""

    def refuse(*_: Any) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    told = load_binding.bind(numa_tree(tmp_path, "0-1"), 0)
    assert (told["numa_bound"], told["numa_refused"]) == (False, "Invalid argument")


def test_a_device_without_a_numa_node_is_not_bound(tmp_path: Path) -> None:
    """-1 is what many guests say."""
    context = Context(str(tmp_path))
    assert "tells no NUMA node" in load_binding.bind(context, load_binding.numa_node(context, FIRST))["numa_unknown"]


def test_figures_of_samples() -> None:
    """Median, spread by MAD in percent, percentiles by rank; a thinned series keeps each spike."""
    assert load_figures.median([3.0, 1.0, 2.0, 10.0]) == 2.5
    assert load_figures.spread([90.0, 100.0, 110.0]) == pytest.approx(10)
    assert load_figures.percentile([1, 2, 3, 4], 0.5) == 2
    assert load_figures.percentile([1, 2, 3, 4], 1.0) == 4
    assert load_figures.series([1.0] * 500 + [99.0] + [1.0] * 499, 10).count(99.0) == 1
    with pytest.raises(load_figures.FigureError):
        load_figures.figure("h2d", FIRST, "GB/s", [55.0, float("nan")], {})


def test_a_command_in_place_of_a_call_is_known_by_its_first_line() -> None:
    """Also where it has the format of the call."""
    child = capture.Child(Source("x", "nvbandwidth", lambda _: b""), 1, 0, 0.0)
    child.chunks = [b"!kind nvbandwidth\nRunning\n"]
    assert capture._is_tool(child)
    assert capture._answer(child) == ("nvbandwidth", b"Running\n")
