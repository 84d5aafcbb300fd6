"""``systemctl`` of a lab node in tree form: what is written counts when systemd would let it count."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.lab import nodes
from tests.lab.actor_bench import Bench

SLURMD = "/etc/systemd/system/slurmd.service.d/90-hwcheck.conf"
CLOCKS = """[Unit]
After=nvidia-persistenced.service
PartOf=nvidia-persistenced.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c "echo %i >> /var/lib/ran"
[Install]
WantedBy=multi-user.target nvidia-persistenced.service
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a lab, whose library and tools are built once."""
    return tmp_path_factory.mktemp("lab")


def test_a_drop_in_counts_from_reload_and_restart_on(home: Path) -> None:
    """Written: NeedDaemonReload; reloaded: the property; restarted: the process, which has another id; gone: undone."""
    bench = Bench(home)
    before = bench.ask("show", "-p", "MainPID", "slurmd")
    bench.write(SLURMD, "[Service]\nLimitMEMLOCK=1M\nNUMAPolicy=bind\nNUMAMask=0,1\nCPUAffinity=0-3,8\n")
    wanted = ("show", "-p", "NeedDaemonReload,LimitMEMLOCK,NUMAPolicy,NUMAMask,CPUAffinity", "slurmd")
    assert bench.ask(*wanted).splitlines()[:2] == ["NeedDaemonReload=yes", "LimitMEMLOCK=infinity"]
    bench.act("daemon-reload")
    assert bench.ask(*wanted).splitlines() == [
        "NeedDaemonReload=no", "LimitMEMLOCK=1048576", "NUMAPolicy=bind", "NUMAMask=0-1", "CPUAffinity=0-3 8",
    ]  # fmt: skip
    assert bench.limit("slurmd") == "unlimited"
    bench.act("try-restart", "slurmd")
    assert bench.limit("slurmd") == "1048576"
    assert bench.ask("show", "-p", "MainPID", "slurmd") != before
    assert not (bench.root / "proc" / before.partition("=")[2]).exists()
    (bench.root / SLURMD.lstrip("/")).unlink()
    bench.act("daemon-reload")
    bench.act("restart", "slurmd")
    assert bench.limit("slurmd") == "unlimited"


def test_it_answers_as_systemd_does(home: Path) -> None:
    """A unit that is not there, a masked one and one that is down have systemd's words and exit statuses."""
    bench = Bench(home, "hgx-h200", "scheduler-down")
    missing = bench.run("systemctl", "restart", "nothing")
    assert (missing.returncode, missing.stderr) == (
        5, "Failed to restart nothing.service: Unit nothing.service not found.\n",
    )  # fmt: skip
    down = bench.run("systemctl", "is-active", "slurmd")
    assert (down.returncode, down.stdout) == (3, "failed\n")
    bench.act("try-restart", "slurmd")
    assert bench.ask("is-active", "slurmd") == "failed"
    bench.act("start", "slurmd")
    assert bench.ask("is-active", "slurmd") == "active"
    bench.act("mask", "munge")
    assert bench.run("systemctl", "restart", "munge").returncode == 1
    assert bench.ask("is-enabled", "munge") == "masked"
    assert bench.ask("show", "nothing").splitlines()[1] == "LoadState=not-found"


@pytest.mark.parametrize(("flag", "shown"), [("--persistence-mode", "1"), ("--no-persistence-mode", "0")])
def test_persistence_is_what_the_daemon_was_told(home: Path, flag: str, shown: str) -> None:
    """It follows ExecStart of the daemon, over a reboot too, and ends with it."""
    bench = Bench(home)
    bench.write(
        "/etc/systemd/system/nvidia-persistenced.service.d/90-hwcheck.conf",
        f"[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced {flag}\n",
    )
    bench.act("daemon-reload")
    bench.act("restart", "nvidia-persistenced")
    assert bench.nvml("gpu7/persistence") == shown
    nodes.reboot(bench.node)
    assert bench.nvml("gpu7/persistence") == shown
    bench.act("stop", "nvidia-persistenced")
    assert bench.nvml("gpu7/persistence") == "0"


def test_a_new_unit_runs_what_it_says(home: Path) -> None:
    """A oneshot runs when it is started, with the unit that wants it, and at boot while it is enabled."""
    bench = Bench(home)
    bench.write("/etc/systemd/system/hwcheck-clocks@.service", CLOCKS)
    bench.act("daemon-reload")
    bench.act("enable", "--now", "hwcheck-clocks@7")
    assert bench.read("/var/lib/ran") == "7\n"
    bench.act("restart", "nvidia-persistenced")
    assert bench.read("/var/lib/ran") == "7\n7\n"
    nodes.reboot(bench.node)
    assert bench.read("/var/lib/ran") == "7\n7\n7\n"
    assert bench.ask("is-active", "hwcheck-clocks@7") == "active"
    bench.act("disable", "hwcheck-clocks@7")
    nodes.reboot(bench.node)
    assert bench.read("/var/lib/ran") == "7\n7\n7\n"


def test_the_fabric_manager_brings_the_fabric_up(home: Path) -> None:
    """A restart lets the GPUs register; where its version is not the driver's it fails, after a reboot too."""
    bench = Bench(home, "hgx-h100", "fabric-in-progress")
    assert bench.nvml("gpu3/fabric_state") == "2"
    bench.act("restart", "nvidia-fabricmanager")
    assert bench.nvml("gpu3/fabric_state") == "3"
    other = Bench(home, "hgx-h100", "fabric-manager-version")
    nodes.reboot(other.node)
    done = other.run("systemctl", "restart", "nvidia-fabricmanager")
    assert done.returncode == 1
    assert "failed because the control process exited with error code" in done.stderr
    assert other.nvml("gpu0/fabric_state") == "2"


def test_what_is_disabled_does_not_start(home: Path) -> None:
    """A boot starts what is enabled, and nothing else."""
    bench = Bench(home)
    bench.act("disable", "--now", "irqbalance")
    bench.act("stop", "munge")
    nodes.reboot(bench.node)
    assert bench.ask("is-active", "irqbalance", "munge").split() == ["inactive", "active"]


def test_reboot_by_the_node_itself(home: Path) -> None:
    """``systemctl reboot`` and ``shutdown -r now`` boot the tree."""
    bench = Bench(home)
    seen = {bench.read("/proc/sys/kernel/random/boot_id")}
    for words in (("systemctl", "reboot"), ("shutdown", "-r", "now")):
        assert bench.run(*words).returncode == 0
        seen.add(bench.read("/proc/sys/kernel/random/boot_id"))
    assert len(seen) == 3
    assert bench.run("shutdown", "-h", "now").returncode == 1


def test_the_clock_follows_the_servers_that_exist(home: Path) -> None:
    """A daemon whose servers do not answer synchronises once it has been given one that does."""
    bench = Bench(home)
    bench.write("/etc/chrony/chrony.conf", "server 192.0.2.1 iburst\nsourcedir /etc/chrony/sources.d\n")
    bench.act("restart", "chrony")
    assert bench.run("chronyc", "-c", "tracking").stdout.strip().endswith("Not synchronised")
    bench.write("/etc/chrony/sources.d/hwcheck.sources", "server ntp2.lab.internal iburst\n")
    assert bench.run("chronyc", "reload", "sources").returncode == 0
    assert bench.run("chronyc", "-n", "-c", "tracking").stdout.startswith("0A000101,ntp2.lab.internal,3,")
    assert bench.run("chronyc", "waitsync", "6", "0.01").returncode == 0
    bench.act("stop", "chrony")
    assert bench.run("chronyc", "-c", "tracking").stdout == "506 Cannot talk to daemon\n"


def test_breaking_leaves_what_was_done(home: Path) -> None:
    """A fault that is added changes its own part: a restart and an NVML setting of before stay."""
    bench = Bench(home)
    bench.act("restart", "munge")
    pid = bench.ask("show", "-p", "MainPID", "munge")
    bench.node.folder.joinpath("nvml/gpu1/power_limit").write_text("600000\n", encoding="ascii")
    nodes.break_node(bench.node, "power-cap:3")
    nodes.break_node(bench.node, "scheduler-down")
    assert bench.ask("show", "-p", "MainPID", "munge") == pid
    assert (bench.nvml("gpu1/power_limit"), bench.nvml("gpu3/power_limit")) == ("600000", "500000")
    assert bench.ask("is-active", "slurmd") == "failed"
    nodes.mend(bench.node)
    assert bench.ask("is-active", "slurmd") == "active"
    assert bench.nvml("gpu1/power_limit") == "700000"
