"""Lab nodes in tree form: healthy ones are healthy, their parts agree, and a reboot does what a reboot does."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hwcheck.errors import UsageError
from hwcheck.facts import NODE, Snapshot
from hwcheck.findings import Status
from hwcheck.lab import nodes, smi
from hwcheck.lab.platforms import PLATFORMS, build
from hwcheck.lab.tree import render
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from tests.lab.lab_node import evidence_from

BAD = (Status.FAIL, Status.WARN, Status.UNKNOWN)
CAPTURES = {"hgx-h100": "h100-node-580.xml", "hgx-b200": "b200-node-580.xml", "gb200": "gb200-node-580.xml"}
NO_CAPTURE = {"hgx-h200": "hgx-h100"}
"""There is no XML of an H200; its driver prints the tags that it prints of an H100."""


def made(home: Path, platform: str = "hgx-h200", *faults: str) -> nodes.Node:
    """Make a node."""
    return nodes.up(home, "node-1", platform, list(faults))[0]


def facts(node: nodes.Node) -> Snapshot:
    """Read a node and take its facts, without the GPUs."""
    return take_snapshot(evidence_from(node, off=("nvml",)))


@pytest.mark.parametrize("tier", ["quick", "deep"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_healthy_node_is_healthy(tmp_path: Path, platform: str, tier: str, root: Path) -> None:
    """A healthy node of each platform warns of nothing, fails in nothing and tells all, with a site layer or none."""
    evidence = evidence_from(made(tmp_path, platform), tier)
    assert evidence.simulated
    for sites in ([], [root / "inventories/lab/site.yaml"]):
        verdict = Pipeline(ProfileSet(sites)).judge(evidence)
        assert verdict.platform == platform
        assert [f"{f.check} {f.subject} {f.message}" for f in verdict.findings if f.status in BAD] == []
        passed = {f.family for f in verdict.findings if f.status is Status.PASS}
        assert passed >= {"gpu", "hbm", "nvlink", "fabric", "pcie", "rdma", "time", "numa", "cpu", "memory", "kernel"}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_healthy_without_a_compiler(tmp_path: Path, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no library can be built nvidia-smi carries the GPUs, and says the same of them."""
    with_library = evidence_from(made(tmp_path / "a", platform))
    monkeypatch.setenv("PATH", "/nowhere")
    node, lacks = nodes.up(tmp_path / "b", "node-1", platform, [])
    monkeypatch.undo()
    assert "compiler" in lacks
    evidence = evidence_from(node)
    assert any(output.kind == "nvidia-smi.xml" for output in evidence.outputs)
    verdict = Pipeline(ProfileSet()).judge(evidence)
    assert [f.message for f in verdict.findings if f.status in BAD] == []
    if any(output.kind == "nvml" and output.reason is None for output in with_library.outputs):
        one, other = take_snapshot(with_library), take_snapshot(evidence)
        for gpu in one.subjects("gpu"):
            for name in ("gpu.uuid", "gpu.memory.total", "gpu.pcie.width", "gpu.clocks.sm", "gpu.fabric.state"):
                assert one.value(name, gpu) == other.value(name, gpu), name


@pytest.mark.parametrize("platform", PLATFORMS)
def test_links_of_a_tree_lead_somewhere(platform: str) -> None:
    """Each relative link ends at a file or folder of the tree, as those of sysfs do."""
    tree = render(build(platform, "n"))
    folders = {"/".join(path.split("/")[:depth]) for path in tree for depth in range(2, path.count("/") + 1)}
    for path, entry in tree.items():
        target = getattr(entry, "target", "/")
        if target.startswith("/") or "/drivers/" in target:
            continue
        at = path.rpartition("/")[0].split("/")
        for part in target.split("/"):
            at = at[:-1] if part == ".." else [*at, part]
        assert "/".join(at) in folders or "/".join(at) in tree, f"{path} -> {target}"


def test_identifiers_are_those_of_the_node(tmp_path: Path) -> None:
    """Two nodes share no identifier, and the same name gives the same ones again."""
    one, other, again = (build("gb200", name) for name in ("a", "b", "a"))
    assert one.gpus[0].state["uuid"] == again.gpus[0].state["uuid"] != other.gpus[0].state["uuid"]
    assert len({gpu.state["serial"] for machine in (one, other) for gpu in machine.gpus}) == 8
    assert made(tmp_path).machine().nics[0].guid == build("hgx-h200", "node-1").nics[0].guid


@pytest.mark.shared
@pytest.mark.parametrize("platform", PLATFORMS)
def test_xml_has_the_tags_of_a_real_capture(platform: str, shared: Path) -> None:
    """What nvidia-smi -q -x prints of a lab node has the tags of the real tool, at the same places."""
    file = shared / "evidence/nvidia-smi-q-xml" / CAPTURES[NO_CAPTURE.get(platform, platform)]
    captured = ET.parse(file)  # noqa: S314 - a file of the collection
    printed = ET.fromstring(smi.query_xml(build(platform, "n")))  # noqa: S314 - our own
    assert tags(printed) == tags(captured.getroot())
    assert [gpu.tag for gpu in printed] == [element.tag for element in captured.getroot()]


def tags(element: ET.Element, path: str = "") -> set[str]:
    """Return the paths of all tags."""
    here = f"{path}/{element.tag}"
    return {here}.union(*(tags(child, here) for child in element))


@pytest.mark.shared
def test_infiniband_has_the_files_of_a_real_node(shared: Path) -> None:
    """Each attribute that the lab shows of a port is one that the real driver has."""
    text = (shared / "evidence/sysfs-infiniband/h100-8xcx7-bf3-bond.txt").read_text(encoding="utf-8")
    real = set(re.findall(r"infiniband/mlx5_0/(\S+):", text))
    shown = {
        path.partition("/infiniband/mlx5_0/")[2]
        for path in render(build("hgx-h200", "n"))
        if "/infiniband/mlx5_0/" in path
    }
    of_ports = {path for path in shown if path.startswith("ports/1/") and "gid" not in path and "lid" not in path}
    assert of_ports - real == set()


def test_tools_print_what_the_files_say(tmp_path: Path) -> None:
    """A tool on PATH knows the state that files and NVML show; one that is asked for more says what it knows."""
    node = made(tmp_path, "hgx-h200", "port-down:3", "scheduler-down")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        tool = node.folder / "bin" / words[0]
        return subprocess.run([tool, *words[1:]], capture_output=True, text=True, check=False)

    assert "ibs3 (Down)" in run("ibdev2netdev").stdout
    assert re.search(r"Id=slurmd.service\nLoadState=loaded\nActiveState=failed", run("systemctl", "show").stdout)
    assert (node.root / "sys/class/infiniband/mlx5_3/ports/1/state").read_text(encoding="ascii") == "1: DOWN\n"
    refused = run("nvidia-smi", "-ac", "3201,1200")
    assert refused.returncode == 2
    assert "-q -x" in refused.stderr


def test_reboot_drops_what_is_volatile_and_applies_what_is_written(tmp_path: Path) -> None:
    """A parameter set by hand is gone; a drop-in, an argument and a unit's limit that were written count."""
    node = made(tmp_path, "hgx-h200", "governor-powersave", "memlock-64k", "power-cap")
    root = node.root
    before = facts(node)
    (root / "proc/sys/vm/swappiness").write_text("77\n", encoding="ascii")
    (root / "etc/sysctl.d/99-site.conf").write_text("net.core.somaxconn = 65535\n", encoding="ascii")
    grub = root / "boot/grub/grub.cfg"
    grub.write_text(grub.read_text(encoding="ascii").replace("iommu=pt", "iommu=pt isolcpus=4"), encoding="ascii")
    (root / "etc/systemd/system/slurmd.service.d/50-low.conf").unlink()
    governor = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
    (root / "etc/tmpfiles.d").mkdir()
    (root / "etc/tmpfiles.d/90-x.conf").write_text(f"w {governor} - - - - performance\n", encoding="ascii")
    assert nodes.reboot(node) == ["power-cap"]
    after = facts(node)
    assert (
        after.value("sysctl.values", NODE)["vm.swappiness"],
        after.value("sysctl.values", NODE)["net.core.somaxconn"],
    ) == ("10", "65535")
    assert "isolcpus=4" in after.value("kernel.cmdline", NODE)
    assert after.value("cpu.governor", NODE) == "performance"
    assert (root / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii") != before.value("kernel.boot_id", NODE)
    verdict = Pipeline(ProfileSet(), only=["limits"]).judge(evidence_from(node))
    assert [f.message for f in verdict.findings if f.status in BAD] == []


def test_reboot_loads_the_module_that_is_on_disk(tmp_path: Path) -> None:
    """After a reboot the driver is that of the module file, in all places that tell it; aspm follows its argument."""
    node = made(tmp_path, "hgx-h200", "stale-module", "aspm-on")
    cfg = node.root / "boot/grub/grub.cfg"
    cfg.write_text(
        cfg.read_text(encoding="ascii").replace("iommu=pt", "iommu=pt pcie_aspm.policy=performance"), encoding="ascii"
    )
    nodes.reboot(node)
    root = node.root
    assert (root / "sys/module/nvidia/version").read_text(encoding="ascii") == "580.95.05\n"
    assert (node.folder / "nvml/driver_version").read_text(encoding="ascii") == "580.95.05\n"
    assert "[performance]" in (root / "sys/module/pcie_aspm/parameters/policy").read_text(encoding="ascii")
    verdict = Pipeline(ProfileSet(), only=["pcie"]).judge(evidence_from(node))
    assert [f.message for f in verdict.findings if f.status in BAD] == []


def test_break_writes_only_what_the_fault_changes(tmp_path: Path) -> None:
    """What was written to a node stays when it is broken, and goes when it is mended."""
    node = made(tmp_path)
    (node.root / "etc/sysctl.d/99-site.conf").write_text("vm.swappiness = 1\n", encoding="ascii")
    assert nodes.break_node(node, "port-slow:1") == [
        f"/sys/{node.machine().path_of(node.machine().nics[1].address)}/{name}"
        for name in ("infiniband/mlx5_1/ports/1/rate", "net/ibs1/speed")
    ]
    assert (node.root / "etc/sysctl.d/99-site.conf").exists()
    with pytest.raises(UsageError, match="already"):
        nodes.break_node(node, "port-slow:1")
    nodes.break_node(node, "gpu-missing")
    assert nodes.mend(node) == ["port-slow:1", "gpu-missing"]
    assert not (node.root / "etc/sysctl.d/99-site.conf").exists()
    fresh = nodes.up(tmp_path / "other", "node-1", "hgx-h200", [])[0]
    assert contents(node.root) == contents(fresh.root)


def contents(folder: Path) -> dict[str, bytes | str]:
    """Return everything below a folder."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else b""
        for path in sorted(folder.rglob("*"))
    }


def test_reading_a_node_changes_nothing(tmp_path: Path) -> None:
    """Collecting leaves every file of the node, its tools and its NVML as they were."""
    node = made(tmp_path, "hgx-h100")
    before = contents(node.folder)
    evidence_from(node, "deep")
    assert contents(node.folder) == before


def test_down_leaves_nothing(tmp_path: Path) -> None:
    """The last node takes the built library with it; a folder that is not the lab's is never touched."""
    home = tmp_path / "lab"
    one, two = (nodes.up(home, name, "gb200", [])[0] for name in ("a", "b"))
    stranger = home / "mine"
    stranger.mkdir()
    (stranger / "state.json").write_text(json.dumps({"format": "something else"}), encoding="utf-8")
    assert stat.S_IMODE(one.folder.stat().st_mode) == 0o700
    assert [node.name for node in nodes.nodes(home)] == ["a", "b"]
    nodes.down(home, one)
    nodes.down(home, nodes.load(home, "b"))
    assert [path.name for path in home.iterdir()] == ["mine"]
    with pytest.raises(UsageError, match="lab up makes one"):
        nodes.load(home, two.name)


@pytest.mark.parametrize(
    ("name", "platform", "faults", "says"),
    [
        ("../up", "hgx-h200", [], "no host name"),
        ("x", "hgx-h300", [], "it has hgx-h200"),
        ("x", "hgx-h200", ["imex-down"], "only on gb200"),
        ("x", "gb200", ["gpu-lost:5"], "no part with number 5"),
    ],
)  # fmt: skip
def test_wrong_wishes_are_told_and_leave_nothing(
    tmp_path: Path, name: str, platform: str, faults: list[str], says: str
) -> None:
    """What cannot be made is said in a sentence, before anything is written."""
    with pytest.raises(UsageError, match=says):
        nodes.up(tmp_path / "lab", name, platform, faults)
    assert not (tmp_path / "lab").exists()
