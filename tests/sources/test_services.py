"""Sources of services, on small trees: limits, packages, libraries, IMEX, holders of devices."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from hwcheck.facts import Facet, Subject
from hwcheck.sources import boot, host, services
from hwcheck.sources.source import Absent, Context, Instead
from tests.sources.tree import asked, facts_of, output_of, plant

LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max locked memory         {}   {}   bytes\n"
)
SLURMD = Subject("unit", "slurmd.service")


def stat(pid: int, comm: str, state: str = "S", parent: int = 1, start: int = 100) -> str:
    """Write /proc/PID/stat."""
    return f"{pid} ({comm}) {state} {parent} " + " ".join(["0"] * 17) + f" {start} 0 0\n"


def test_limits_of_the_process_that_init_started(tmp_path: Path) -> None:
    """Of the processes in a service's group the daemon itself is read, not the jobs below it."""
    context = plant(
        tmp_path,
        {
            "sys/fs/cgroup/system.slice/slurmd.service/cgroup.procs": "90\n77\nnonsense\n",
            "proc/90/stat": stat(90, "slurmstepd", parent=77),
            "proc/90/limits": LIMITS.format("unlimited", "unlimited"),
            "proc/77/stat": stat(77, "slurmd) S 5"),
            "proc/77/limits": LIMITS.format(65536, 65536),
            "usr/lib/systemd/system/slurmd.service": "[Service]\nLimitMEMLOCK=infinity\n",
        },
    )
    outputs = [
        output_of(services.SOURCES, "service-limits", context),
        output_of(boot.SOURCES, "unit-files", context),
    ]
    snapshot = facts_of(*outputs)
    assert snapshot.get(SLURMD, "service.memlock").value == "64"
    assert snapshot.get(SLURMD, "service.memlock", Facet.NEXT_BOOT).value == "unlimited"
    assert snapshot.get(SLURMD, "service.launcher").value == "scheduler"


def test_packages_of_the_driver_set(tmp_path: Path) -> None:
    """The database of dpkg becomes lines of ``dpkg -l``; removed packages and others are left out, holds are kept."""
    blocks = [
        "Package: nvidia-driver-570-open\nStatus: hold ok installed\nArchitecture: amd64\nVersion: 570.172.08-1\n",
        "Package: nvidia-fabricmanager-570\nStatus: install ok installed\nArchitecture: amd64\nVersion: 570.158.01-1\n",
        "Package: nvidia-imex-550\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 550.1.1-1\n",
        "Package: bash\nStatus: install ok installed\nVersion: 5.1\n",
        "Package: nvidia-odd\nDescription: no status\n a line: with a colon\n",
    ]
    context = plant(tmp_path, {"var/lib/dpkg/status": "\n".join(blocks)})
    output = output_of(services.SOURCES, "dpkg", context)
    assert "bash" not in output.text
    snapshot = facts_of(output)
    assert snapshot.value("driver.package_version") == "570.172.08"
    assert snapshot.value("driver.fabric_manager.version") == "570.158.01"
    assert snapshot.value("driver.packages_held") == ("nvidia-driver-570-open",)
    assert snapshot.value("driver.imex.version") is None


def test_libraries_and_imex_files(tmp_path: Path) -> None:
    """Versions stand in the names that links lead to; channels come with their modes."""
    context = plant(
        tmp_path,
        {
            "usr/lib64/libcuda.so.1": "-> libcuda.so.570.172.08",
            "etc/nvidia-imex/nodes_config.cfg": "10.0.0.1\n# no\n10.0.0.2\n",
            "dev/nvidia-caps-imex-channels/channel0": "",
        },
    )
    (tmp_path / "dev/nvidia-caps-imex-channels/channel0").chmod(0o666)
    names = ("driver-libraries", "imex-files", "imex-channels")
    snapshot = facts_of(*(output_of(services.SOURCES, name, context) for name in names))
    assert snapshot.value("driver.libraries")[0]["version"] == "570.172.08"
    assert snapshot.value("imex.config_nodes") == ("10.0.0.1", "10.0.0.2")
    assert snapshot.value("imex.channels") == ({"path": "/dev/nvidia-caps-imex-channels/channel0", "mode": "666"},)


def test_imex_is_asked_only_where_it_runs(tmp_path: Path) -> None:
    """Without a running daemon the tool would wait for its own timeout; with one it is run in place of the call."""
    with pytest.raises(Absent):
        asked(services.SOURCES, "imex-domain")(Context(root=str(tmp_path)))
    group = "sys/fs/cgroup/system.slice/nvidia-imex.service/cgroup.procs"
    context = plant(tmp_path, {group: "5\n", "proc/5/stat": stat(5, "nvidia-imex")})
    answer = asked(services.SOURCES, "imex-domain")(context)
    assert isinstance(answer, Instead)
    assert answer.argv == ("nvidia-imex-ctl", "-N")


def test_holders_and_processes_that_hang(tmp_path: Path) -> None:
    """Who holds a GPU is named without command line; state D counts only where nothing ran between two looks."""
    switches = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t0\n"
    context = plant(
        tmp_path,
        {
            "proc/uptime": "1000.0 1.0\n",
            "proc/10/stat": stat(10, "python3\x1b[31m x", start=100),
            "proc/10/fd/4": "-> /dev/nvidia3",
            "proc/10/fd/5": "-> /dev/null",
            "proc/11/stat": stat(11, "nvidia-smi", state="D", parent=9),
            "proc/11/status": switches,
            "proc/11/stack": "[<0>] os_acquire_rwlock_read+0x1f/0x40 [nvidia]\n[<0>] nvidia_open+0x2/0x9 [nvidia]\n",
            "proc/11/fd/3": "-> /dev/nvidiactl",
            "proc/12/stat": stat(12, "gone", state="D"),
            "proc/13/stat": "garbage",
            "proc/self": "-> 10",
        },
    )
    snapshot = facts_of(output_of(host.SOURCES, "processes", context))
    holders = snapshot.value("process.holders")
    assert [(one["pid"], one["devices"]) for one in holders] == [(10, ("/dev/nvidia3",)), (11, ("/dev/nvidiactl",))]
    assert "\x1b" not in holders[0]["name"]
    (hung,) = snapshot.value("process.hung")
    assert (hung["pid"], hung["wait"]) == (11, "os_acquire_rwlock_read,nvidia_open")


def test_empty_tree_is_absent(tmp_path: Path) -> None:
    """On an empty tree every source that reads files is absent."""
    for source in (*services.SOURCES, *host.SOURCES):
        if source.ask is not None:
            with pytest.raises(Absent):
                assert source.ask(Context(root=str(tmp_path)))


def test_quick_tier_spawns_one_command() -> None:
    """Start-up of commands is what costs on a node: units are asked for all at once."""
    quick = [source.id for source in services.SOURCES if source.argv is not None and source.tier == "quick"]
    assert quick == ["units"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_this_machine_can_be_read() -> None:
    """The real /proc is read, and what this process holds is no device of interest."""
    snapshot = facts_of(output_of(host.SOURCES, "processes", Context(uid=os.geteuid())))
    assert snapshot.facts
    assert all(one["pid"] != os.getpid() for one in snapshot.value("process.holders") or ())


def test_every_module_is_python_3_9() -> None:
    """The oldest Python that a node may have can read the text of every module of the node program."""
    for file in Path(services.__file__).parent.glob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
