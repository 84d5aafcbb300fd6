"""CPU sources: small trees of sysfs and procfs read as on a node, down to the facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.facts import NODE, Facet, Missing, Snapshot, Subject
from hwcheck.sources import read as reading
from hwcheck.sources.processor import SOURCES
from hwcheck.sources.source import Absent, Context, Denied
from tests.sources.tree import asked, facts_of, output_of, plant

CPU = "/sys/devices/system/cpu/"
IB = "/sys/class/infiniband/"


def frequency(count: int, governor: str, preference: str) -> dict[str, str | bytes]:
    """Make the policies of a machine with intel_pstate."""
    files: dict[str, str | bytes] = {
        f"{CPU}present": f"0-{count - 1}\n",
        f"{CPU}online": f"0-{count - 1}\n",
        f"{CPU}cpufreq/policy0/scaling_driver": "intel_pstate\n",
        f"{CPU}cpufreq/policy0/cpuinfo_max_freq": "3800000\n",
    }
    for number in range(count):
        files[f"{CPU}cpufreq/policy{number}/scaling_governor"] = f"{governor}\n"
        files[f"{CPU}cpufreq/policy{number}/energy_performance_preference"] = f"{preference}\n"
    return files


def sockets(*lists: str) -> dict[str, str | bytes]:
    """Make the topology of the first CPU of each socket, and of one more that must not be needed."""
    files: dict[str, str | bytes] = {}
    for number, cpus in enumerate(lists):
        first = cpus.partition("-")[0]
        files[f"{CPU}cpu{first}/topology/physical_package_id"] = f"{number}\n"
        files[f"{CPU}cpu{first}/topology/package_cpus_list"] = f"{cpus}\n"
        files[f"{CPU}cpu{first}/topology/thread_siblings_list"] = f"{first}\n"
    return files


def cpu(context: Context) -> Snapshot:
    """Read the CPU tree."""
    return facts_of(output_of(SOURCES, "sysfs-cpu", context))


def test_a_machine_of_two_sockets_is_counted(tmp_path: Path) -> None:
    """Sockets and cores come from one CPU a socket, the governor from all policies."""
    files = frequency(12, "performance", "performance") | sockets("0-5", "6-11")
    del files[f"{CPU}cpufreq/policy11/energy_performance_preference"]
    snapshot = cpu(plant(tmp_path, files))
    values = {name: snapshot.value(name) for name in ("cpu.count", "cpu.sockets", "cpu.cores_per_socket")}
    assert values == {"cpu.count": 12, "cpu.sockets": 2, "cpu.cores_per_socket": 6}
    assert (snapshot.value("cpu.governor"), snapshot.value("cpu.epp")) == ("performance", "performance")
    assert snapshot.value("cpu.frequency.max") == 3800


def test_one_policy_of_many_is_seen(tmp_path: Path) -> None:
    """A governor that differs on the last policy only is not lost."""
    files = frequency(12, "performance", "performance")
    files[f"{CPU}cpufreq/policy11/scaling_governor"] = "powersave\n"
    assert cpu(plant(tmp_path, files)).value("cpu.governor") == "performance, powersave"


@pytest.mark.parametrize(
    ("driver", "preference", "effective"),
    [
        ("intel_pstate", "performance", "performance"),
        ("amd-pstate-epp", "performance", "performance"),
        ("intel_pstate", "balance_power", None),
        ("acpi-cpufreq", "performance", None),
    ],
)
def test_powersave_with_preference_performance_acts_like_performance(
    tmp_path: Path, driver: str, preference: str, effective: str | None
) -> None:
    """Only where the CPU chooses its frequency itself, the preference decides what the governor comes to."""
    files = frequency(2, "powersave", preference) | {f"{CPU}cpufreq/policy0/scaling_driver": driver}
    fact = cpu(plant(tmp_path, files)).get(NODE, "cpu.governor", Facet.EFFECTIVE)
    assert (fact.value if fact.present else None) == effective


def test_a_guest_without_frequency_control_has_no_governor(tmp_path: Path) -> None:
    """No cpufreq folder is no gap."""
    snapshot = cpu(plant(tmp_path, {f"{CPU}present": "0-1\n", f"{CPU}online": "0-1\n"}))
    assert not snapshot.get(NODE, "cpu.governor").present
    assert snapshot.gaps == []


def test_no_tree_at_all_is_absent(tmp_path: Path) -> None:
    """Sources of a node without these files say that there are none."""
    for name in ("sysfs-cpu", "proc-cpuinfo", "sysfs-node", "irq-affinity", "tuned"):
        with pytest.raises(Absent):
            asked(SOURCES, name)(Context(root=str(tmp_path)))


def test_a_denied_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A governor that may not be read is denied, not absent."""
    context, real = plant(tmp_path, frequency(1, "performance", "performance")), reading.read

    def guarded(path: str, cap: int = reading.CAP) -> bytes:
        if path.endswith("scaling_governor"):
            raise Denied(path)
        return real(path, cap)

    monkeypatch.setattr(reading, "read", guarded)
    value = cpu(context).get(NODE, "cpu.governor").value
    assert isinstance(value, Missing)
    assert value.reason == "denied"


def test_hostile_values_stay_one_line(tmp_path: Path) -> None:
    """Line breaks, escapes and sizes in a value make no second line and no second fact."""
    files = frequency(1, "performance\n/sys/devices/system/cpu/smt/control: off\x1b[2J", "p" * 100_000)
    text = asked(SOURCES, "sysfs-cpu")(plant(tmp_path, files))
    assert not any(line.startswith(b"/sys/devices/system/cpu/smt") for line in text.split(b"\n"))
    snapshot = cpu(Context(root=str(tmp_path)))
    assert snapshot.value("cpu.smt") is None
    assert len(snapshot.value("cpu.epp")) <= 40


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    """A link to itself is an answer like any other."""
    context = plant(tmp_path, {f"{CPU}present": "0\n", f"{CPU}online": "-> online"})
    assert b"online: !" in asked(SOURCES, "sysfs-cpu")(context)


def test_only_the_first_cpu_of_cpuinfo_is_read(tmp_path: Path) -> None:
    """The other 255 say the same."""
    block = "processor\t: {}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\n\n"
    context = plant(tmp_path, {"/proc/cpuinfo": "".join(block.format(number) for number in range(256))})
    assert asked(SOURCES, "proc-cpuinfo")(context).count(b"processor") == 1
    assert facts_of(output_of(SOURCES, "proc-cpuinfo", context)).value("cpu.model") == "Xeon"


def test_nodes_read_as_numactl_does(tmp_path: Path) -> None:
    """A node without CPUs is GPU memory, with its size."""
    base, meminfo = "/sys/devices/system/node/", "Node 0 MemTotal:  2048 kB\nNode 0 MemFree: 1024 kB\n"
    files: dict[str, str | bytes] = {f"{base}online": "0-1\n"}
    for number, cpus in enumerate(("0-3\n", "\n")):
        files |= {f"{base}node{number}/cpulist": cpus, f"{base}node{number}/meminfo": meminfo}
        files[f"{base}node{number}/distance"] = "10 80\n" if number == 0 else "80 10\n"
    snapshot = facts_of(output_of(SOURCES, "sysfs-node", plant(tmp_path, files)))
    assert [snapshot.value("numa.cpus", Subject("numa", node)) for node in "01"] == [4, 0]
    assert snapshot.value("numa.size", Subject("numa", "1")) == 2
    assert snapshot.value("numa.distances") == ((10, 80), (80, 10))


def test_pages_of_another_root_have_no_page_size(tmp_path: Path) -> None:
    """The page size is that of the running kernel, which an image does not have."""
    context = plant(tmp_path, {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"})
    snapshot = facts_of(output_of(SOURCES, "sysfs-mm", context))
    assert snapshot.value("memory.thp") == "always"
    assert snapshot.value("memory.page_size") is None


def adapter(name: str, near: str, irqs: dict[int, str]) -> dict[str, str | bytes]:
    """Make an RDMA device with interrupts."""
    files: dict[str, str | bytes] = {f"{IB}{name}/device/local_cpulist": f"{near}\n"}
    for number, cpus in irqs.items():
        files[f"{IB}{name}/device/msi_irqs/{number}"] = "msix\n"
        files[f"/proc/irq/{number}/effective_affinity_list"] = f"{cpus}\n"
    return files


def test_interrupts_are_counted_by_device(tmp_path: Path) -> None:
    """Numbers come from the device, places from /proc/irq; one without a place is not counted."""
    files = adapter("mlx5_0", "0-3", {40: "0", 41: "2-3", 42: "9"}) | adapter("mlx5_1", "4-7", {50: "4", 51: ""})
    snapshot = facts_of(output_of(SOURCES, "irq-affinity", plant(tmp_path, files)))
    assert snapshot.value("rdma.device.irqs", Subject("nic", "mlx5_0"))["near"] == 2
    assert snapshot.value("rdma.device.irqs", Subject("nic", "mlx5_1"))["total"] == 1


def test_a_flood_of_interrupts_is_bounded(tmp_path: Path) -> None:
    """A machine with very many interrupts costs a bounded number of reads."""
    context = plant(tmp_path, adapter("mlx5_0", "0-3", dict.fromkeys(range(2100), "0")))
    assert asked(SOURCES, "irq-affinity")(context).count(b"/proc/irq/") == 2048


def test_a_huge_file_is_cut(tmp_path: Path) -> None:
    """A file of many megabytes is read up to its cap."""
    context = plant(tmp_path, {"/etc/tuned/active_profile": "x" * (4 << 20)})
    assert len(asked(SOURCES, "tuned")(context)) < 10_000
    assert reading.CAP <= 4 << 20
