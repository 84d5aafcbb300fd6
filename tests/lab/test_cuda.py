"""The lab's libcuda: what healthy platforms reach, which figures a fault moves, and what NVML shows meanwhile."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from hwcheck.lab import nodes
from hwcheck.lab.cuda.build import build
from hwcheck.lab.faults import FAULTS, catalogue, find
from hwcheck.lab.host.lab import HostLab, missing
from hwcheck.lab.platforms import PLATFORMS
from tests.lab.host_machine import login

CLIENT = Path(__file__).with_name("cuda_client.py")
OWN = ("h2d", "d2h", "hbm.copy", "p2p", "launch", "copy.small")
HEALTHY = {
    # GB/s: nvbandwidth on H100, H200, B300 and GB200; the p2pBandwidthLatencyTest diagonal of H100 (2.84 to 2.95 TB/s)
    "hgx-h100": {"h2d": 55.4, "d2h": 55.1, "hbm.copy": 2890, "p2p": 396},
    "hgx-h200": {"h2d": 55.4, "d2h": 55.1, "p2p": 396},
    "hgx-b200": {"h2d": 55.4, "p2p": 774},
    "gb200": {"h2d": 201, "d2h": 193, "hbm.copy": 6546, "p2p": 775},
}
MEASURED = [
    pytest.param(platform, name, marks=() if platform == "hgx-h200" else pytest.mark.slow, id=f"{platform}-{name}")
    for platform in PLATFORMS
    for name, fault in catalogue().items()
    if platform in fault.platforms and set(fault.figures) & set(OWN) and not name.startswith("cpus-")
]
NOTICED = 0.97
FUNCTIONS = """
    cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetPCIBusId cuDeviceGetAttribute
    cuDeviceCanAccessPeer cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxSetCurrent cuCtxSynchronize cuCtxEnablePeerAccess
    cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2
    cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync cuMemsetD8Async cuStreamCreate
    cuStreamDestroy_v2 cuStreamSynchronize cuEventCreate cuEventRecord cuEventQuery cuEventSynchronize
    cuEventElapsedTime cuEventDestroy_v2 cuModuleLoadData cuModuleUnload cuModuleGetFunction cuLaunchKernel
    cuGetErrorName
"""
WATCHER = """
import ctypes, json, os
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
gpu, device, context = c_void_p(), c_int(), c_void_p()
def ask(name, *words, kind=c_uint):
    value = kind()
    assert getattr(nvml, name)(gpu, *words, byref(value)) == 0, name
    return value.value
def look():
    pids, count = (ctypes.c_char * 24 * 8)(), c_uint(8)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu, byref(count), pids) == 0
    mine = [int.from_bytes(bytes(row)[:4], "little") for row in pids][: count.value] == [os.getpid()]
    reasons = ask("nvmlDeviceGetCurrentClocksEventReasons", kind=c_ulonglong)
    clocks = [ask("nvmlDeviceGetClockInfo", domain) for domain in (1, 2)]
    return [*clocks, reasons, ask("nvmlDeviceGetPowerUsage"), mine]
nvml.nvmlInit_v2(); nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(gpu))
seen = [look()]
assert cuda.cuInit(0) == cuda.cuDeviceGet(byref(device), 0) == cuda.cuCtxCreate_v2(byref(context), 0, device) == 0
seen.append(look())
assert cuda.cuCtxDestroy_v2(context) == 0
print(json.dumps([*seen, look()]))
"""


def run(node: nodes.Node, *words: str) -> str:
    """Run Python on a node in tree form; returns what it printed."""
    environment = {**os.environ, **node.environment()}
    command = [sys.executable, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(node: nodes.Node, how: str = "near") -> dict[str, dict[str, Any]]:
    """Measure a node in tree form."""
    found: dict[str, dict[str, Any]] = json.loads(run(node, str(CLIENT), str(node.root), how))
    return found


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, nodes.Node]]:
    home = tmp_path_factory.mktemp("lab")
    found = {}
    for platform in PLATFORMS:
        found[platform], lacks = nodes.up(home, f"node-{platform}", platform, [])
        if lacks:
            pytest.skip(lacks)
    yield found
    for node in found.values():
        nodes.down(home, node)


@pytest.fixture(scope="module", name="before")
def _before(made: dict[str, nodes.Node]) -> dict[str, dict[str, dict[str, Any]]]:
    return {platform: figures(node) for platform, node in made.items()}


def worse(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """Return the figures that are worse: a rate that is lower, a rare latency that is higher."""
    found = {name for name in ("h2d", "d2h", "hbm.copy", "p2p") if after[name] < NOTICED * before[name]}
    return found | {
        name for name in ("launch", "copy.small")
        if after[name][0] > before[name][0] / NOTICED or after[name][1] > 2 * before[name][1]
    }  # fmt: skip


def test_library_has_the_functions_of_the_load_tier_and_no_other(tmp_path: Path) -> None:
    """What the load tier may call is there; any other function is missing, as in an old driver."""
    library, placement = build(tmp_path)
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm")
    listed = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert {row.split()[2] for row in listed.splitlines()} == set(FUNCTIONS.split())
    assert not hasattr(ctypes.CDLL(str(placement)), "cuInit")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_healthy_platform_reaches_what_is_published(
    platform: str, before: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """Every GPU of a healthy node is within 3 % of the public figure, and no two nodes are quite alike."""
    for gpu in before[platform].values():
        assert {name: gpu[name] for name in HEALTHY[platform]} == pytest.approx(HEALTHY[platform], rel=0.03)
        assert 2 < gpu["launch"][0] < 3.2
        assert gpu["launch"][1] < 4 * gpu["launch"][0]
    rates = {gpu["h2d"] for gpu in before[platform].values()}
    assert len(rates) > 1


def test_noise_is_the_same_each_time(made: dict[str, nodes.Node], before: dict[str, dict[str, dict[str, Any]]]) -> None:
    """The same node gives the same figures, so that a test that fails does so again."""
    assert figures(made["hgx-h100"]) == before["hgx-h100"]


@pytest.mark.parametrize(("platform", "name"), MEASURED)
def test_fault_moves_its_figures_and_no_other(
    platform: str, name: str, made: dict[str, nodes.Node], before: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """A fault makes worse exactly what it declares, on the GPU that it breaks or on all where it breaks the node."""
    node = made[platform]
    nodes.break_node(node, name)
    try:
        after = figures(node)
    finally:
        nodes.mend(node)
    found = [worse(before[platform][address], after[address]) for address in before[platform]]
    assert set().union(*found) == set(FAULTS[name].figures) & set(OWN)
    assert sum(map(bool, found)) in (1, 2, len(found))
    assert not worse(before[platform][address := next(iter(after))], figures(node)[address])


def test_weak_link_is_seen_everywhere_after_the_load(made: dict[str, nodes.Node]) -> None:
    """A link that trains down under load is whole before it; then NVML, /sys and both ends' registers say 8 lanes."""
    node = made["hgx-h200"]
    nodes.break_node(node, "gpu-link-narrows")
    device = node.root / "sys/bus/pci/devices/0000:9a:00.0"
    ends = [device.resolve(), device.resolve().parent]
    try:
        assert [(end / "current_link_width").read_text() for end in ends] == ["16\n", "16\n"]
        figures(node)
        assert [(end / "current_link_width").read_text() for end in ends] == ["8\n", "8\n"]
        assert [(end / "config").read_bytes()[0x72:0x74] for end in ends] == [b"\x85\x00", b"\x85\x00"]
        assert (node.folder / "nvml/gpu4/pcie_width").read_text() == "8\n"
    finally:
        nodes.mend(node)


def test_buffer_of_the_other_socket_is_slower(
    made: dict[str, nodes.Node], before: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """Who runs on the far socket's CPUs copies slower from and to the host, and nothing else."""
    after = figures(made["hgx-h200"], "far")
    assert {frozenset(worse(before["hgx-h200"][gpu], after[gpu])) for gpu in after} == {frozenset(("h2d", "d2h"))}


def test_session_that_is_kept_on_one_socket_cannot_bind_to_the_other(made: dict[str, nodes.Node]) -> None:
    """Where a slice leaves a session the CPUs of one socket, the kernel refuses those of the other."""
    node = made["hgx-h200"]
    nodes.break_node(node, "cpus-confined")
    try:
        act = "import os\ntry: os.sched_setaffinity(0, {40})\nexcept OSError as error: print(error.strerror)\n"
        assert run(node, "-c", f"{act}print(len(os.sched_getaffinity(0)))") == "Invalid argument\n64\n"
        after = figures(node, "")
        assert [after[gpu]["h2d"] > 50 for gpu in after] == [True] * 4 + [False] * 4
    finally:
        nodes.mend(node)


@pytest.mark.parametrize(
    ("fault", "clocks", "reasons"),
    [
        ("", (1980, 3201), 0), ("clock-lock", (1200, 3201), 0), ("slow-hbm:0", (1980, 1593), 0),
        ("power-throttled:0", (1414, 3201), 4), ("power-brake", (990, 3201), 0x88),
    ],
)  # fmt: skip
def test_nvml_shows_the_load(fault: str, clocks: tuple[int, int], reasons: int, made: dict[str, nodes.Node]) -> None:
    """While a context is open clocks are those of load, up to locks and limits, and the process is listed."""
    node = made["hgx-h200"]
    if fault:
        nodes.break_node(node, fault)
    try:
        idle, loaded, after = json.loads(run(node, "-c", WATCHER))
    finally:
        nodes.mend(node)
    assert (tuple(loaded[:2]), loaded[2]) == (clocks, reasons)
    assert loaded[3] > 2 * idle[3] or fault
    assert (loaded[4], idle[4]) == (True, False)
    assert after == idle


def test_process_that_is_killed_leaves_no_load(made: dict[str, nodes.Node]) -> None:
    """A process that dies with its context open is busy no more: the kernel lets its lock go."""
    node = made["hgx-h200"]
    killed = (
        "import ctypes, os\ncuda, device, context = ctypes.CDLL('libcuda.so.1'), ctypes.c_int(), ctypes.c_void_p()\n"
        "cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0)\n"
        "cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)\n"
        "os._exit(0)\n"
    )
    run(node, "-c", killed)
    idle, loaded, _ = json.loads(run(node, "-c", WATCHER))
    assert idle[0] < loaded[0]
    assert loaded[4]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("driver-not-loaded", "cuInit: CUDA_ERROR_NO_DEVICE"),
        ("fabric-manager-down", "cuInit: CUDA_ERROR_SYSTEM_NOT_READY"),
        ("library-mismatch", "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ("compute-prohibited", "cuCtxCreate_v2: CUDA_ERROR_UNKNOWN"),
        ("gpu-needs-reset", "cuCtxCreate_v2: CUDA_ERROR_UNKNOWN"),
    ],
)  # fmt: skip
def test_broken_node_answers_with_cuda_s_error(fault: str, said: str, made: dict[str, nodes.Node]) -> None:
    """What keeps programs from starting on a real node keeps them from it here, with the error that CUDA gives."""
    node = made["hgx-h200"]
    nodes.break_node(node, fault)
    environment = {**os.environ, **node.environment()}
    try:
        done = subprocess.run(
            [sys.executable, str(CLIENT), str(node.root)], env=environment, capture_output=True, text=True, check=False
        )
    finally:
        nodes.mend(node)
    assert done.stderr == said + "\n"


def test_every_fault_of_performance_says_what_it_moves() -> None:
    """A fault that only a measurement shows declares which figures."""
    assert [name for name, fault in catalogue().items() if fault.load and not fault.figures] == []
    assert find("slow-hbm", "hgx-h200")[0].fix == "write"


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason="the lab's host form needs " + "; ".join(missing()))
def test_node_in_host_form_gives_the_same_figures(tmp_path: Path) -> None:
    """Over ssh, without any environment, the loader finds the library; CPUs that this machine lacks can be bound to."""
    lab = HostLab(tmp_path)
    node, lacks = nodes.up(tmp_path, "one", "hgx-h100", ["slow-hbm:1"])
    if lacks:
        pytest.skip(lacks)
    try:
        shutil.copy(CLIENT, node.root / "etc/client.py")
        tree = figures(node)
        assert lab.up(["one"]) == {}
        assert json.loads(login(lab, "one", "/usr/bin/python3 /etc/client.py / near")) == tree
        assert login(lab, "one", "nvidia-smi -q -x | grep -c '<sm_clock>345 MHz'") == "8\n"
    finally:
        lab.down()


def test_sources_are_whole() -> None:
    """Everything that is compiled is in the package."""
    names = {entry.name for entry in resources.files("hwcheck.lab.cuda").iterdir() if entry.name.endswith((".c", ".h"))}
    assert {"driver.c", "memory.c", "stream.c", "figures.c", "link.c", "node.c", "placement.c", "node.h"} <= names
