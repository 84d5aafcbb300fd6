"""GPUs read by the node program: through the lab's NVML, through nvidia-smi, and through a stand-in for CUDA."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hwcheck.facts import NODE, Missing, Reason, Snapshot, gpu_at, gpu_index
from hwcheck.lab.nvml.attributes import write_state
from hwcheck.parse.gpu_table import GPU_FACTS, NVML_FACTS
from hwcheck.sources import nvml_calls
from hwcheck.sources.nvml import Nvml
from hwcheck.sources.nvml_log import log
from hwcheck.transports.request import Request
from tests.lab.nvml_state import state_of
from tests.machines import Machine, as_xml, hgx_h200
from tests.parse.test_four_formats import FAULTY, facts_of
from tests.parse.test_pairs import parse
from tests.sources.node_program import Frame, ask, snapshot

NVML = Request(only=("nvml",))
Live = Callable[..., dict[str, Frame]]


class Node:
    """A lab node: change its state, then read it."""

    def __init__(self, state: Path, library: Path) -> None:
        self.state = state
        self.environment = {"HWCHECK_LAB_NVML": str(state), "LD_LIBRARY_PATH": str(library)}

    def become(self, machine: Machine, **changes: Any) -> None:
        """Write a machine's state; ``changes`` are attributes of its first GPU, None takes one away."""
        told = state_of(machine)
        told["gpus"][0] |= changes
        told["gpus"][0] = {name: value for name, value in told["gpus"][0].items() if value is not None}
        write_state(self.state, told)

    def fault(self, name: str, text: str = "1") -> None:
        """Put a fault file."""
        (self.state / name).parent.mkdir(parents=True, exist_ok=True)
        (self.state / name).write_text(text)

    def read(self, request: Request = NVML, **options: Any) -> dict[str, Frame]:
        """Run the node program."""
        return ask(request, self.environment, **options)

    def facts(self, request: Request = NVML) -> Snapshot:
        """Run the node program and parse what it says of NVML."""
        return snapshot(self.read(request)["nvml"])


@pytest.fixture
def node(tmp_path: Path, nvml_library: Path) -> Node:
    """A healthy HGX H200."""
    made = Node(tmp_path / "state", nvml_library)
    made.become(hgx_h200())
    return made


def python39() -> str:
    """Find a Python 3.9 that starts; a name on PATH may be a launcher without one behind it."""
    found = shutil.which("python3.9")
    if found and subprocess.run([found, "-c", "import ctypes"], capture_output=True, check=False).returncode == 0:
        return found
    pytest.skip("no Python 3.9 here")


@pytest.mark.parametrize("machine", [hgx_h200(), hgx_h200(FAULTY)], ids=["healthy", "faulty"])
def test_live_facts_are_those_of_nvidia_smi(node: Node, machine: Machine) -> None:
    """What a live reading through NVML and the XML of nvidia-smi both say of a machine is the same."""
    machine.driver = "590.48.01"
    node.become(machine)
    live, printed = facts_of(node.facts()), facts_of(parse("nvidia-smi.xml", as_xml(machine)))
    common = live.keys() & printed.keys()
    assert len(common) > 70 * len(machine.gpus)
    assert {key: (live[key], printed[key]) for key in common if live[key] != printed[key]} == {}
    only_printed = {name for _, name in printed.keys() - live.keys()}
    assert only_printed == {"gpu.gpu_part_number", "gpu.driver_model", "gpu.pcie.gen_host_max", "gpu.retired.pending"}


def test_every_call_of_the_table_is_asked() -> None:
    """Each row of the one table that names an NVML call finds it in what the node program asks."""
    node_calls = Nvml(SimpleNamespace())
    asked = {(call[1], call[3]) for call in node_calls.calls}
    asked |= {("nvmlDeviceGetFieldValues", field[4]) for field in node_calls.fields}
    rows = {(row.nvml.call, row.nvml.args) for row in (*GPU_FACTS, *NVML_FACTS) if row.nvml is not None}
    assert sorted(rows - asked) == []


def test_links_bus_width_and_processes_are_read(node: Node) -> None:
    """A link that is down, its errors, the memory bus and a process without its arguments become facts."""
    states = [1] * 18
    states[4] = 0
    node.become(
        hgx_h200(), nvlink_states=states, nvlink_crc=[0] * 17 + [3], processes="4711", memory_bus_width=6144
    )  # fmt: skip
    node.fault("process_name", "4711 /opt/venv/bin/python3 train.py --token=abc\n")
    frames = node.read()
    assert "abc" not in frames["nvml"].text
    seen = snapshot(frames["nvml"])
    gpu = gpu_at("0000:18:00.0")
    links = seen.value("nvlink.links", gpu)
    assert links[4] == {"link": 4, "active": False, "speed": None}
    assert links[5] == {"link": 5, "active": True, "speed": 26.562}
    assert seen.value("nvlink.active_count", gpu) == 17
    assert {"link": 17, "counter": "CRC Errors", "value": 3} in seen.value("nvlink.errors", gpu)
    assert seen.value("hbm.bus_width", gpu) == 6144
    assert seen.value("gpu.processes", gpu) == ({"pid": "4711", "type": "C", "name": "/opt/venv/bin/python3"},)
    assert seen.value("driver.nvml_version") == "12.570.124.06"


def test_grace_blackwell_tells_of_c2c_and_rack(node: Node) -> None:
    """C2C links, place in the rack, the GPU's own NUMA node, module power and power profiles become facts."""
    node.become(
        hgx_h200(count=1), c2c_mode=1, c2c_states=[1, 1, 1, 0, 1], c2c_speed=44712, numa_node=2, architecture=10,
        platform_chassis_serial="1850000000001", platform_slot=3, platform_tray=1, platform_host=1,
        platform_peer_type=1, platform_module=1, module_power_limit=1200000, module_power_default=1200000,
        power_profiles="7 2 2", fabric_summary=1, fabric_health="0x552A", fabric_clique=7,
        fabric_cluster="5d0c4f3e-0001-4000-8000-00000000000a", nvlink_replay=None, nvlink_recovery=None,
        nvlink_crc=None, nvlink_rx_errors=[0] * 18, nvlink_recovery_failed=[0] * 17 + [1], nvlink_speed=50000,
    )  # fmt: skip
    seen, gpu = node.facts(), gpu_at("0000:18:00.0")
    wanted = {
        "gpu.c2c.mode": True, "topo.gpu_numa": 2, "gpu.platform.chassis_serial": "1850000000001",
        "gpu.platform.slot": 3, "gpu.platform.tray": 1, "gpu.module_power.limit": 1200.0,
        "gpu.module_power.default": 1200.0, "gpu.architecture": "Blackwell", "gpu.fabric.health": "Healthy",
        "gpu.power_profile.requested": ("MAX_Q",),
        "gpu.power_profile.enforced": ("MAX_Q",), "gpu.fabric.bandwidth": "Full", "gpu.fabric.route_unhealthy": False,
        "gpu.fabric.cluster": "5d0c4f3e-0001-4000-8000-00000000000a", "gpu.fabric.clique": 7,
    }  # fmt: skip
    assert {name: seen.value(name, gpu) for name in wanted} == wanted
    assert [link["active"] for link in seen.value("c2c.links", gpu)] == [True, True, True, False, True]
    assert seen.value("c2c.links", gpu)[0]["speed"] == 44.712
    errors = seen.value("nvlink.errors", gpu)
    counted = {record["counter"]: record["value"] for record in errors if record["link"] == 17}
    assert counted == {"Rx Errors": 0, "Link recovery failed events": 1}


def test_what_a_gpu_does_not_have_is_absent(node: Node) -> None:
    """A card without NVLink, C2C and fabric has these absent, not zero, not failed and not unknown."""
    node.become(
        hgx_h200(count=1), nvlink_states=None, fabric_state=0, fabric_status=0, fabric_summary=0, remap_banks=None
    )
    seen, gpu = node.facts(), gpu_at("0000:18:00.0")
    names = ("nvlink.links", "nvlink.active_count", "c2c.links", "gpu.fabric.state", "gpu.fabric.status",
             "gpu.fabric.cluster", "gpu.remap.banks.max", "topo.gpu_numa", "gpu.platform.slot")  # fmt: skip
    assert {seen.get(gpu, name).value.reason for name in names} == {Reason.ABSENT}
    assert seen.gaps == []


def test_a_gpu_that_hangs_leaves_the_others_known(node: Node) -> None:
    """With GPU 3 hanging, GPUs 0 to 2 are read whole, and GPUs 3 to 7 are unknown for want of an answer in time."""
    node.fault("gpu3/faults/nvmlDeviceGetRemappedRows", "hang")
    began = time.monotonic()
    frame = node.read(Request(only=("nvml",), deadline=1.5))["nvml"]
    assert frame.status == "timeout"
    assert time.monotonic() - began < 8
    seen = snapshot(frame)
    whole, hung, behind = gpu_at("0000:2a:00.0"), gpu_at("0000:5d:00.0"), gpu_index(6)
    assert seen.value("gpu.remap.pending", whole) is False
    assert seen.get(whole, "gpu.retired.pending").value.reason is Reason.NOT_COLLECTED
    assert seen.value("gpu.name", hung) == "NVIDIA H200"
    assert seen.get(hung, "gpu.remap.pending").value.reason is Reason.TIMEOUT
    assert seen.get(behind, "gpu.temperature").value.reason is Reason.TIMEOUT
    assert len(seen.subjects("gpu")) == 8


@pytest.mark.parametrize("how", ["hang", "hang_hard"])
def test_nvml_that_never_starts_is_a_timeout(node: Node, how: str) -> None:
    """NVML that hangs at its start, even deaf to signals and holding the pipe, delays nothing beyond the deadline."""
    node.fault(how, "3")
    began = time.monotonic()
    frames = node.read(Request(only=("nvml", "proc-cmdline"), deadline=1.0))
    assert time.monotonic() - began < 5
    assert frames["nvml"].status == "timeout"
    assert frames["proc-cmdline"].status == "ok"
    assert snapshot(frames["nvml"]).get(NODE, "driver.version").value.reason is Reason.TIMEOUT


def test_a_gpu_that_cannot_be_opened_is_said(node: Node) -> None:
    """A lost GPU has its error in nvidia-smi's words; nothing of it is known, and the others are whole."""
    node.fault("gpu5/faults/nvmlDeviceGetHandleByIndex_v2", "NVML_ERROR_GPU_IS_LOST")
    seen = node.facts()
    assert seen.value("gpu.handle_error", gpu_index(5)) == "GPU is lost"
    assert seen.get(gpu_index(5), "gpu.temperature").value.reason.asked
    assert seen.value("gpu.temperature", gpu_at("0000:18:00.0")) == 31
    assert seen.get(gpu_at("0000:18:00.0"), "gpu.retired.pending").value.reason is Reason.NOT_COLLECTED


def test_a_gpu_that_needs_a_reset_is_said(node: Node) -> None:
    """A GPU that answers RESET_REQUIRED keeps its identity and has an access error."""
    node.fault("gpu0/needs_reset")
    seen, gpu = node.facts(), gpu_at("0000:18:00.0")
    assert seen.value("gpu.serial", gpu) == "1650000000000"
    assert seen.value("gpu.access_error", gpu) == "GPU requires reset"
    assert seen.get(gpu, "gpu.ecc.mode").value.reason is Reason.FAILED


@pytest.mark.parametrize(("error", "name"), [
    ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", "driver.nvml_mismatch"),
    ("NVML_ERROR_DRIVER_NOT_LOADED", "driver.unreachable"), ("NVML_ERROR_UNKNOWN", "driver.unreachable"),
])  # fmt: skip
def test_nvml_that_does_not_start_is_said(node: Node, error: str, name: str) -> None:
    """An error of nvmlInit is told under the name that nvidia-smi's message has, and all of the GPUs is unknown."""
    node.fault("faults/nvmlInit_v2", error)
    seen = node.facts()
    assert seen.value(name)
    assert seen.get(NODE, "driver.version").value.reason.asked


def test_queries_can_be_switched_off(node: Node) -> None:
    """A group or a call that is switched off is not asked, even where it would hang."""
    node.fault("gpu0/faults/nvmlDeviceGetNvLinkState", "hang")
    node.fault("gpu0/faults/nvmlDeviceGetRemappedRows", "hang")
    off = ("nvml.nvlink", "nvmlDeviceGetRemappedRows")
    frame = node.read(Request(only=("nvml",), off=off, deadline=5.0))["nvml"]
    assert frame.status == "ok"
    seen, gpu = snapshot(frame), gpu_at("0000:18:00.0")
    assert seen.get(gpu, "nvlink.links").value.reason is Reason.NOT_COLLECTED
    assert seen.get(gpu, "gpu.remap.pending").value.reason is Reason.NOT_COLLECTED
    assert seen.value("gpu.remap.banks.max", gpu) == 3072


@pytest.mark.parametrize(("driver", "seen_as"), [
    ("590.48.01", 7), ("580.95.05", 7), ("575.57.08", 7), ("580.65.06", 7), ("580.70.01", None), ("570.124.06", None),
])  # fmt: skip
def test_field_ids_are_those_of_the_driver(node: Node, driver: str, seen_as: int | None) -> None:
    """Ids that moved within R580 are asked as the driver has them, and not at all where nobody knows."""
    machine = hgx_h200({0: {"counters": {"power": 5, "sw_thermal": 7, "hw_thermal": 8, "brake": 9}}}, count=1)
    machine.driver = driver
    node.become(machine)
    seen, gpu = node.facts(), gpu_at("0000:18:00.0")
    assert seen.value("gpu.clocks.counter.sw_thermal", gpu) == seen_as
    assert seen.value("gpu.clocks.counter.sw_power_cap", gpu) == 5


def test_reading_changes_nothing(node: Node) -> None:
    """Names, contents and times of all files of the state are as before."""

    def state() -> dict[Path, tuple[int, bytes]]:
        return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in node.state.rglob("*") if file.is_file()}

    before = state()
    node.read()
    assert state() == before


def test_the_oldest_python_reads_alike(node: Node) -> None:
    """Python 3.9 writes the same log."""
    assert node.read(python=python39())["nvml"].text == node.read()["nvml"].text


def shim(folder: Path, body: str) -> None:
    """Put an nvidia-smi on PATH."""
    folder.mkdir(exist_ok=True)
    (folder / "nvidia-smi").write_text("#!/bin/sh\n" + body)
    (folder / "nvidia-smi").chmod(0o755)


def test_nvidia_smi_answers_where_there_is_no_library(tmp_path: Path) -> None:
    """Without libnvidia-ml the same question goes to nvidia-smi -q -x, and the frame says which format it is."""
    (tmp_path / "machine.xml").write_text(as_xml(hgx_h200(count=2)))
    shim(tmp_path / "bin", f'[ "$*" = "-q -x" ] && cat {tmp_path}/machine.xml\n')
    frames = ask(NVML, {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": ""})
    assert "nvml" not in frames
    assert frames["nvidia-smi.xml"].status == "ok"
    assert snapshot(frames["nvidia-smi.xml"]).value("gpu.listed_count") == 2


def test_nvidia_smi_that_fails_is_a_failure(tmp_path: Path) -> None:
    """The words of an nvidia-smi that ends with an error are kept, and nothing is known."""
    shim(tmp_path / "bin", "echo No devices were found; exit 6\n")
    frame = ask(NVML, {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": ""})["nvidia-smi.xml"]
    assert "No devices were found" in frame.text
    assert snapshot(frame).value("driver.no_devices")
    assert snapshot(frame).get(NODE, "driver.version").value.reason.asked


@pytest.mark.parametrize("library", [b"", b"not a library" * 200])
def test_a_node_without_both_is_absent(tmp_path: Path, library: bytes) -> None:
    """A node with neither library nor nvidia-smi has no NVML; a library that cannot be loaded is said."""
    (tmp_path / "lib").mkdir()
    if library:
        (tmp_path / "lib/libnvidia-ml.so.1").write_bytes(library)
    frame = ask(NVML, {"PATH": "/nonexistent", "LD_LIBRARY_PATH": str(tmp_path / "lib")})["nvml"]
    assert frame.status == "absent"
    assert frame.text == ""
    assert frame.detail.startswith("libnvidia-ml.so.1: ")
    assert frame.detail.endswith("and no nvidia-smi")
    assert ("not found" in frame.detail) == (not library)


def library_of(answers: dict[str, Callable[..., int]]) -> SimpleNamespace:
    """Make a library of Python functions."""
    return SimpleNamespace(**answers)


def test_a_driver_without_a_newer_form_is_asked_in_the_older_one() -> None:
    """Where the driver refuses version 3 of the fabric info, version 2 is logged, and only that."""
    import ctypes  # noqa: PLC0415 - only this test fills memory in

    versions = []

    def fabric(_: Any, buffer: Any) -> int:
        version = ctypes.c_uint.from_buffer(buffer).value
        versions.append(version >> 24)
        return 25 if version >> 24 == 3 else 0

    def count(buffer: Any) -> int:
        ctypes.c_uint.from_buffer(buffer).value = 1
        return 0

    library = library_of({
        "nvmlInit_v2": lambda: 0, "nvmlDeviceGetCount_v2": count, "nvmlDeviceGetHandleByIndex_v2": lambda *_: 0,
        "nvmlDeviceGetGpuFabricInfoV": fabric,
    })  # fmt: skip
    rows = [json.loads(line) for line in log(Nvml(library))]
    told = [row for row in rows if row.get("call") == "nvmlDeviceGetGpuFabricInfoV"]
    assert versions == [3, 2]
    assert len(told) == 1
    assert "healthSummary" not in told[0]["value"]
    assert {row["error"] for row in rows if "error" in row} == {"NVML_ERROR_FUNCTION_NOT_FOUND"}


def test_texts_of_the_driver_are_valid_json() -> None:
    """Quotes, backslashes, control characters and broken UTF-8 in a name do not break the log."""

    def name(_: Any, buffer: Any, size: int) -> int:
        text = b'a"b\\c\x1b[31m\n\xff'
        buffer.raw = text.ljust(size, b"\0")
        return 0

    def count(buffer: Any) -> int:
        buffer.raw = b"\1".ljust(len(buffer), b"\0")
        return 0

    library = library_of({
        "nvmlInit_v2": lambda: 0, "nvmlDeviceGetCount_v2": count, "nvmlDeviceGetHandleByIndex_v2": lambda *_: 0,
        "nvmlDeviceGetName": name,
    })  # fmt: skip
    rows = [json.loads(line) for line in log(Nvml(library))]
    (told,) = (row["value"] for row in rows if row.get("call") == "nvmlDeviceGetName")
    assert told == 'a"b\\c\x1b[31m\n\ufffd'


def test_table_of_calls_is_sound() -> None:
    """Every constant that a call names is known, and no field stands twice."""
    nvml = Nvml(SimpleNamespace())
    assert {arg for call in nvml.calls for arg in call[3]} <= nvml.constants.keys()
    names = [row.split()[1] for row in (nvml_calls.FIELDS + nvml_calls.LINK_FIELDS).split("\n") if row]
    assert len(names) == len({*names})


CUDA = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef unsigned u;
static u n = 2;
static int want(const char *name) {
    const char *v = getenv("FAKE_CUDA");
    return v && !strcmp(v, name);
}
static int context;
u cuInit(u flags) { return want("init") ? 802 : 0; }
u cuDeviceGetCount(int *c) { *c = n; return 0; }
u cuDeviceGet(int *d, int i) { *d = i; return 0; }
u cuDeviceGetPCIBusId(char *t, int l, int d) { strcpy(t, d ? "0000:2A:00.0" : "0000:18:00.0"); return 0; }
u cuCtxCreate_v2(void **c, u f, int d) {
    context = d;
    if (d && want("hang")) pause();
    return d && want("ecc") ? 214 : 0;
}
u cuCtxDestroy_v2(void *c) { return 0; }
u cuModuleLoadData(void **m, const char *t) { return 0; }
u cuModuleGetFunction(void **f, void *m, const char *name) { return strcmp(name, "square_plus_index") ? 500 : 0; }
u cuMemAlloc_v2(unsigned long long *p, size_t s) { *p = (unsigned long long)malloc(s); return 0; }
u cuMemFree_v2(unsigned long long p) { free((void *)p); return 0; }
u cuMemcpyHtoD_v2(unsigned long long p, void *h, size_t s) { memcpy((void *)p, h, s); return 0; }
u cuMemcpyDtoH_v2(void *h, unsigned long long p, size_t s) { memcpy(h, (void *)p, s); return 0; }
u cuCtxSynchronize(void) { return 0; }
u cuLaunchKernel(void *f, u gx, u gy, u gz, u bx, u by, u bz, u sm, void *st, void **args, void **x) {
    u *data = *(u **)args[0], count = *(u *)args[1];
    for (u i = 0; i < count && i < gx * bx; i++) data[i] = data[i] * data[i] + i;
    if (context && want("wrong")) data[17] ^= 4;
    return 0;
}
u cuGetErrorName(u code, const char **t) {
    *t = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR_ECC_UNCORRECTABLE";
    return 0;
}
"""


@pytest.fixture(scope="module")
def cuda_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a stand-in for libcuda.so.1 that computes on the CPU."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "cuda.c").write_text(CUDA)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "libcuda.so.1", "cuda.c"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("fault", "second"), [
    ("", "ok"), ("ecc", "cuCtxCreate_v2: CUDA_ERROR_ECC_UNCORRECTABLE (214)"),
    ("wrong", "wrong result: element 17 is "),
])  # fmt: skip
def test_a_first_kernel_is_run_on_each_gpu(cuda_library: Path, fault: str, second: str) -> None:
    """The kernel's result is compared; an error or a wrong number is told of the GPU it happened on."""
    environment = {"LD_LIBRARY_PATH": str(cuda_library), "FAKE_CUDA": fault}
    seen = snapshot(ask(Request(tier="deep", only=("cuda-sanity",)), environment)["cuda.sanity"])
    assert seen.value("sanity.cuda", gpu_at("0000:18:00.0")) == "ok"
    assert seen.value("sanity.cuda", gpu_at("0000:2a:00.0")).startswith(second)


def test_a_kernel_that_hangs_is_a_timeout(cuda_library: Path) -> None:
    """The GPU before the one that hangs keeps its result."""
    environment = {"LD_LIBRARY_PATH": str(cuda_library), "FAKE_CUDA": "hang"}
    frame = ask(Request(tier="deep", only=("cuda-sanity",), deadline=1.5), environment)["cuda.sanity"]
    assert frame.status == "timeout"
    seen = snapshot(frame)
    assert seen.value("sanity.cuda", gpu_at("0000:18:00.0")) == "ok"
    missing = seen.get(gpu_at("0000:2a:00.0"), "sanity.cuda").value
    assert isinstance(missing, Missing)
    assert missing.reason is Reason.TIMEOUT


def test_cuda_that_does_not_start_is_said(cuda_library: Path) -> None:
    """Error 802 is told in the words that the check of the fabric manager knows."""
    environment = {"LD_LIBRARY_PATH": str(cuda_library), "FAKE_CUDA": "init"}
    seen = snapshot(ask(Request(tier="deep", only=("cuda-sanity",)), environment)["cuda.sanity"])
    assert "system not yet initialized" in seen.value("cuda.init_error")


def test_no_cuda_library_is_absent() -> None:
    """A node without libcuda has no first kernel to run."""
    frame = ask(Request(tier="deep", only=("cuda-sanity",)), {"LD_LIBRARY_PATH": ""})["cuda.sanity"]
    assert frame.status == "absent"


def test_quick_reading_runs_no_kernel() -> None:
    """The kernel is deep reading only."""
    assert "cuda.sanity" not in ask(Request(only=("cuda-sanity",)), {})
