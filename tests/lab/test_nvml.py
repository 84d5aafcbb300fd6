"""The lab's NVML: its structs against NVIDIA's header, an unmodified pynvml on it, setters and faults."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib import resources, util
from pathlib import Path
from typing import Any

import pytest

from hwcheck.lab.compiler import BuildError
from hwcheck.lab.nvml import build as builder
from hwcheck.lab.nvml.attributes import GPU_ATTRIBUTES, NODE_ATTRIBUTES, write_state
from hwcheck.lab.nvml.build import build
from hwcheck.sources import nvml_calls
from tests.lab.nvml_state import state_of
from tests.machines import hgx_h200

FAKE = (resources.files(builder.__package__) / "fake.c").read_text(encoding="utf-8")
CUDA = (resources.files("hwcheck.lab.cuda") / "link.c").read_text(encoding="utf-8")
STRUCTS = {
    "PciInfo": "nvmlPciInfo_t", "Memory_v2": "nvmlMemory_v2_t", "BAR1Memory": "nvmlBAR1Memory_t",
    "Utilization": "nvmlUtilization_t", "EccSramErrorStatus_v1": "nvmlEccSramErrorStatus_v1_t",
    "RowRemapperHistogramValues": "nvmlRowRemapperHistogramValues_t",
    "MarginTemperature_v1": "nvmlMarginTemperature_v1_t",
    "GpuFabricInfo_v2": "nvmlGpuFabricInfo_v2_t",
    "PlatformInfo_v2": "nvmlPlatformInfo_v2_t", "C2cModeInfo_v1": "nvmlC2cModeInfo_v1_t",
    "PowerProfiles_v1": "nvmlWorkloadPowerProfileCurrentProfiles_v1_t", "FieldValue": "nvmlFieldValue_t",
    "ProcessInfo_v3": "nvmlProcessInfo_t", "PowerValue_v2": "nvmlPowerValue_v2_t",
}  # fmt: skip
NEWER = {
    "RepairStatus_v1": "nvmlRepairStatus_v1_t", "UnrepairableMemory_v1": "nvmlUnrepairableMemoryStatus_v1_t",
    "DeviceAddressingMode_v1": "nvmlDeviceAddressingMode_v1_t", "GpuFabricInfo_v3": "nvmlGpuFabricInfo_v3_t",
}  # fmt: skip
"""Structs that only the header of CUDA 13 has."""
ASKED = {
    "nvmlDeviceGetPciInfo": ("nvmlPciInfo_t",),
    "nvmlDeviceGetPlatformInfo": ("nvmlPlatformInfo_v2_t",),
    "nvmlDeviceGetUtilizationRates": ("nvmlUtilization_t",),
    "nvmlDeviceGetMemoryInfo_v2": ("nvmlMemory_v2_t",),
    "nvmlDeviceGetBAR1MemoryInfo": ("nvmlBAR1Memory_t",),
    "nvmlDeviceGetSramEccErrorStatus": ("nvmlEccSramErrorStatus_v1_t",),
    "nvmlDeviceGetRowRemapperHistogram": ("nvmlRowRemapperHistogramValues_t",),
    "nvmlDeviceGetMarginTemperature": ("nvmlMarginTemperature_v1_t",),
    "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles": ("nvmlWorkloadPowerProfileCurrentProfiles_v1_t",),
    "nvmlDeviceGetGpuFabricInfoV": ("nvmlGpuFabricInfo_v3_t", "nvmlGpuFabricInfo_v2_t"),
    "nvmlDeviceGetC2cModeInfoV": ("nvmlC2cModeInfo_v1_t",),
    "nvmlDeviceGetAddressingMode": ("nvmlDeviceAddressingMode_v1_t",),
    "nvmlDeviceGetRepairStatus": ("nvmlRepairStatus_v1_t",),
    "nvmlDeviceGetUnrepairableMemoryFlag_v1": ("nvmlUnrepairableMemoryStatus_v1_t",),
}
"""Call of the node program that fills a struct in → the header's struct for each of its forms."""
C_TYPES = {"I": "unsigned", "i": "int", "Q": "unsigned long long", "B": "unsigned char"}


def headers() -> list[Path]:
    """Return the nvml.h of the installed PyPI packages (CUDA 12 and 13)."""
    spec = util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(file for place in places for file in Path(place).rglob("nvml.h"))


def compiles(header: Path, text: str, tmp_path: Path) -> str:
    """Compile C against a header; returns what the compiler says against it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "layout.c"
    source.write_text(f'#include <stddef.h>\n#include "{header}"\n{text}\nint main(void) {{ return 0; }}\n')
    done = subprocess.run([compiler, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False)
    return done.stderr


def same_place(ours: str, theirs: str, field: str) -> str:
    """Assert in C that a field stands at the same place in both structs."""
    return f'_Static_assert(offsetof({ours}, {field}) == offsetof({theirs}, {field}), "{theirs}.{field}");'


def member(field: str) -> tuple[str, str]:
    """Turn a field of the node program's table into a C declaration and its name."""
    name, _, kind = field.partition(":")
    count = f"[{kind[:-1]}]" if kind[:-1] else ""
    return f"{C_TYPES.get(kind[-1], 'char')} {name}{count};", name


def rows() -> list[tuple[str, str, list[str]]]:
    """Return the calls of the node program that fill a struct in: name, version, fields."""
    found = []
    for line in nvml_calls.CALLS.strip().splitlines():
        _, call, form, *fields = line.split()
        if form.startswith("{"):
            found.append((call.partition("=")[0], form[1:], fields[:-1]))
    return found


@pytest.mark.parametrize("header", headers() or [pytest.param(None, marks=pytest.mark.skip("no nvml.h"))], ids=str)
class TestAgainstTheHeader:
    """Layouts and numbers against NVIDIA's own header."""

    def test_structs_of_the_library_have_the_header_s_layout(self, header: Path, tmp_path: Path) -> None:
        """Each struct of the lab's library has size and offsets of NVIDIA's."""
        ours = (resources.files(builder.__package__) / "structs.h").read_text(encoding="utf-8")
        known = header.read_text(encoding="utf-8", errors="replace")
        checks = []
        for name, theirs in {**STRUCTS, **NEWER}.items():
            if theirs not in known:
                assert name in NEWER
                continue
            checks.append(f'_Static_assert(sizeof({name}) == sizeof({theirs}), "{name}");')
            body = re.search(rf"typedef struct \{{((?:(?!typedef).)*?)\}} {name};", ours, re.DOTALL)
            assert body, name
            checks += [same_place(name, theirs, field) for field in re.findall(r"(\w+)(?:\[\d+\])?\s*[,;]", body[1])]
        assert compiles(header, ours + "\n".join(checks), tmp_path) == ""

    def test_layouts_of_the_node_program_are_the_header_s(self, header: Path, tmp_path: Path) -> None:
        """Each struct that the node program asks for has size, offsets and version of NVIDIA's."""
        known = header.read_text(encoding="utf-8", errors="replace")
        forms = {call: list(types) for call, types in ASKED.items()}
        text = []
        for index, (call, version, fields) in enumerate(rows()):
            theirs = forms[call].pop(0)
            if theirs not in known:
                assert theirs in NEWER.values()
                continue
            members = [member(field) for field in fields]
            head = "unsigned version; " if version else ""
            text.append(f"typedef struct {{ {head}{' '.join(line for line, _ in members)} }} row{index};")
            text.append(f'_Static_assert(sizeof(row{index}) == sizeof({theirs}), "{call}");')
            text += [same_place(f"row{index}", theirs, name) for _, name in members]
            if version:
                macro, number = theirs.removesuffix("_t"), f"(sizeof(row{index}) | {version}u << 24)"
                text.append(f'#ifdef {macro}\n_Static_assert({macro} == {number}, "{macro}");\n#endif')
        assert [call for call, left in forms.items() if left] == []
        assert compiles(header, "\n".join(text), tmp_path) == ""

    def test_constants_are_the_header_s(self, header: Path, tmp_path: Path) -> None:
        """Constants, return codes and field ids are NVIDIA's; ids that moved are those of an old or of a new driver."""
        moved = dict(line.split() for line in nvml_calls.MOVED.strip().splitlines())
        text = []
        for name, value in (line.split() for line in nvml_calls.CONSTANTS.strip().splitlines()):
            text.append(f'_Static_assert({name} == {value}, "{name}");')
        for line in (nvml_calls.FIELDS + nvml_calls.LINK_FIELDS).split("\n"):
            _, name, number = line.split() if line else ("", "", "")
            number = number.partition("/")[0]
            if name:
                either = f"{name} == {number}" + (f" || {name} == {moved[name]}" if name in moved else "")
                text.append(f'_Static_assert({either}, "{name}");')
        known = header.read_text(encoding="utf-8", errors="replace")
        for code, word in enumerate(nvml_calls.ERRORS.split()):
            name = f"NVML_ERROR_{word}" if code else "NVML_SUCCESS"
            if name in known:
                text.append(f'_Static_assert({name} == {code}, "{name}");')
        assert compiles(header, "\n".join(text), tmp_path) == ""

    def test_functions_that_are_asked_are_declared(self, header: Path) -> None:
        """Each function that the node program asks for stands in a header, under the name by which it is loaded."""
        known = header.read_text(encoding="utf-8", errors="replace")
        newest = header == headers()[0] and len(headers()) > 1  # nvidia/cu13 before nvidia/nvml_dev
        if not newest:
            pytest.skip("functions of newer drivers are not in this header")
        symbols = {
            symbol
            for line in nvml_calls.CALLS.strip().splitlines()
            for symbol in line.split()[1].partition("(")[0].partition("=")[2].split("|")
            or [line.split()[1].partition("(")[0]]
        }
        assert {symbol for symbol in symbols if symbol and f" {symbol}(" not in known} == set()


def test_files_of_the_state_stand_in_the_table() -> None:
    """Every attribute that the library reads is described, and every one described is read."""
    texts = set(re.findall(r'"([a-z][a-z0-9_]+)"', FAKE)) - {"faults", "aggregate", "volatile", "default"}
    texts = texts - {"contexts"} | set(re.findall(r'"nvml/gpu%d/(\w+)"', CUDA))
    ecc = {f"ecc_{age}_{name}" for age in ("volatile", "aggregate") for name in
           ("sram_corrected", "sram_parity", "sram_secded", "dram_corrected", "dram_uncorrected")}  # fmt: skip
    parts = {name.split("_", 2)[2] for name in ecc}
    assert (texts - parts) | ecc == set(GPU_ATTRIBUTES) | set(NODE_ATTRIBUTES)


def test_every_function_that_pynvml_knows_is_there() -> None:
    """A client finds every name that pynvml asks for: a function of the lab or a stub."""
    pynvml = pytest.importorskip("pynvml")
    asked = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"', Path(pynvml.__file__).read_text(encoding="utf-8")))
    names = set((resources.files(builder.__package__) / "names.txt").read_text(encoding="utf-8").split())
    assert asked - names == set()


@pytest.mark.usefixtures("nvml_library")
def test_library_is_built_once(tmp_path: Path) -> None:
    """The second set-up finds the library of the first; the name is what clients load."""
    first = build(tmp_path)
    before = first.stat().st_mtime_ns
    assert build(tmp_path) == first
    assert first.stat().st_mtime_ns == before
    assert first.name == "libnvidia-ml.so.1"


def test_no_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler the set-up says so, and leaves nothing that looks like a library."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="no C compiler"):
        build(tmp_path / "cache")
    assert not list(tmp_path.rglob("*.so*"))


def test_state_knows_no_other_attribute(tmp_path: Path) -> None:
    """A misspelt attribute is refused, and a state written over another leaves nothing of it."""
    with pytest.raises(KeyError, match="persistance"):
        write_state(tmp_path, {"gpus": [{"persistance": 1}]})
    write_state(tmp_path, {"gpus": [{"name": "A", "lost": 1}, {"name": "B"}]})
    write_state(tmp_path, {"gpus": [{"name": "C"}]})
    assert sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*")) == ["gpu0", "gpu0/name"]


class Lab:
    """A node's state, and an unmodified pynvml on it in a process of its own."""

    def __init__(self, state: Path, library: Path) -> None:
        self.state = state
        self.environment = os.environ | {"HWCHECK_LAB_NVML": str(state), "LD_LIBRARY_PATH": str(library)}
        write_state(state, state_of(hgx_h200(count=2)))

    def fault(self, name: str, text: str = "1") -> None:
        """Put a fault file."""
        (self.state / name).parent.mkdir(parents=True, exist_ok=True)
        (self.state / name).write_text(text)

    def run(self, body: str, **options: Any) -> Any:
        """Run Python with pynvml started and ``g`` the first GPU; returns what the body puts into ``out``."""
        program = (
            "import json\nfrom pynvml import *\nnvmlInit()\ng = nvmlDeviceGetHandleByIndex(0)\nout = None\n"
            "def error(function, *args):\n try:\n  function(*args)\n except NVMLError as e:\n  return e.value\n"
            f"{body}\nprint(json.dumps(out))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], env=self.environment, capture_output=True, text=True, check=True,
            timeout=20, **options,
        )  # fmt: skip
        return json.loads(done.stdout)


@pytest.fixture
def lab(tmp_path: Path, nvml_library: Path) -> Lab:
    """A lab node with two GPUs."""
    pytest.importorskip("pynvml")
    return Lab(tmp_path / "state", nvml_library)


def test_pynvml_reads_the_state(lab: Lab) -> None:
    """An unmodified pynvml sees the GPU that the files describe."""
    out = lab.run(
        "m = nvmlDeviceGetMemoryInfo(g, version=nvmlMemory_v2)\n"
        "f = c_nvmlGpuFabricInfo_v3_t(); nvmlDeviceGetGpuFabricInfoV(g, byref(f))\n"
        "v = nvmlDeviceGetFieldValues(g, [(NVML_FI_DEV_NVLINK_GET_SPEED, 17), NVML_FI_DEV_MEMORY_TEMP])\n"
        "out = [nvmlDeviceGetName(g), nvmlDeviceGetCount(), nvmlDeviceGetPciInfo(g).busId, m.total, m.reserved,\n"
        " nvmlDeviceGetNvLinkState(g, 17), nvmlDeviceGetRemappedRows(g), f.state, f.cliqueId,\n"
        " v[0].value.uiVal, v[1].value.uiVal, nvmlDeviceGetPowerManagementLimitConstraints(g)]"
    )
    assert out == [
        "NVIDIA H200", 2, "00000000:18:00.0", 143771 << 20, 614 << 20, 1, [0, 0, 0, 0], 3, 0, 26562, 36,
        [200000, 700000],
    ]  # fmt: skip


def test_what_the_hardware_lacks_is_not_supported(lab: Lab) -> None:
    """A function without state, and one of another file's absence, answer NOT_SUPPORTED."""
    assert lab.run("out = [error(nvmlDeviceGetFanSpeed, g), error(nvmlDeviceGetNumaNodeId, g)]") == [3, 3]


def test_setters_keep_what_they_set(lab: Lab) -> None:
    """Persistence, clock locks and power limit are kept, read back, and undone."""
    if os.geteuid() != 0:
        pytest.skip("setters are root's")
    out = lab.run(
        "sm = lambda: nvmlDeviceGetClockInfo(g, NVML_CLOCK_SM)\n"
        "idle = sm(); nvmlDeviceSetGpuLockedClocks(g, 1500, 1980); locked = sm(); nvmlDeviceResetGpuLockedClocks(g)\n"
        "nvmlDeviceSetPersistenceMode(g, 0); nvmlDeviceSetPowerManagementLimit(g, 500000)\n"
        "out = [idle, locked, sm(), nvmlDeviceGetPersistenceMode(g), nvmlDeviceGetPowerManagementLimit(g),\n"
        " nvmlDeviceGetEnforcedPowerLimit(g)]"
    )
    assert out == [345, 1500, 345, 0, 500000, 500000]
    assert not (lab.state / "gpu0/locked_sm_clocks").exists()


@pytest.mark.parametrize("call", [
    "nvmlDeviceSetGpuLockedClocks, g, 1980, 1500", "nvmlDeviceSetGpuLockedClocks, g, 100, 1980",
    "nvmlDeviceSetGpuLockedClocks, g, 1500, 2500", "nvmlDeviceSetMemoryLockedClocks, g, 1600, 3201",
    "nvmlDeviceSetPowerManagementLimit, g, 100000", "nvmlDeviceSetPowerManagementLimit, g, 900000",
    "nvmlDeviceSetPersistenceMode, g, 2",
])  # fmt: skip
def test_setters_refuse_what_the_gpu_cannot(lab: Lab, call: str) -> None:
    """A clock that is not offered or a limit out of bounds is an invalid argument, and changes nothing."""
    if os.geteuid() != 0:
        pytest.skip("setters are root's")
    before = {file: file.read_text() for file in lab.state.rglob("*") if file.is_file()}
    assert lab.run(f"out = error({call})") == 2
    assert {file: file.read_text() for file in lab.state.rglob("*") if file.is_file()} == before


def test_setters_are_root_s(lab: Lab) -> None:
    """Another user may read and not set."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    body = (
        "import os; os.setuid(65534)\n"
        "out = [error(nvmlDeviceSetPersistenceMode, g, 0), error(nvmlDeviceSetGpuLockedClocks, g, 1500, 1980),\n"
        " error(nvmlDeviceSetPowerManagementLimit, g, 500000)]"
    )
    assert lab.run(body) == [4, 4, 4]


def test_faults_are_files(lab: Lab) -> None:
    """A lost GPU, one that needs a reset, and an error of one call answer as NVML does; the other GPU is well."""
    reading = "out = [error(nvmlDeviceGetName, g), error(nvmlDeviceGetTemperature, g, 0)]"
    lab.fault("gpu0/needs_reset")
    assert lab.run(reading) == [None, 16]
    lab.fault("gpu0/lost")
    assert lab.run(reading) == [15, 15]
    (lab.state / "gpu0/lost").unlink()
    (lab.state / "gpu0/needs_reset").unlink()
    lab.fault("gpu0/faults/nvmlDeviceGetTemperature", "NVML_ERROR_UNKNOWN")
    other = "h = nvmlDeviceGetHandleByIndex(1)\nout = [error(nvmlDeviceGetTemperature, x, 0) for x in (g, h)]"
    assert lab.run(other) == [999, None]
    (lab.state / "gpu0/faults/nvmlDeviceGetTemperature").unlink()
    (lab.state / "gpu0/temperature").write_text("!NVML_ERROR_NO_PERMISSION")
    assert lab.run(other) == [4, None]


@pytest.mark.parametrize("place", ["hang", "gpu0/hang", "gpu0/faults/nvmlDeviceGetName"])
def test_hangs_do_not_return(lab: Lab, place: str) -> None:
    """A hang of the node, of a GPU or of one call never returns."""
    lab.fault(place, "hang")
    began = time.monotonic()
    program = "from pynvml import *\nnvmlInit(); nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(0))"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", program],
            env=lab.environment, timeout=1.5, check=False,
        )  # fmt: skip
    assert time.monotonic() - began < 10
