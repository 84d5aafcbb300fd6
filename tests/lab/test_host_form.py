"""The lab's host form: nodes in namespaces with their own sshd, and that nothing of it touches the machine or stays."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.cli.targets import Collection, add_target_options
from hwcheck.lab import nodes
from hwcheck.lab.host.attributes import LOG
from hwcheck.lab.host.faults import HOST_FAULTS, put
from hwcheck.lab.host.lab import HostLab, HostLabError, address_of, missing, set_behaviour
from hwcheck.lab.host.root import mounts_of
from tests.lab.host_machine import BOOT, fingerprint, keepers, login, mounts, plant, settings

LACKS = missing()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(LACKS), reason="the lab's host form needs " + "; ".join(LACKS)),
]
CHECK = [sys.executable, "-m", "hwcheck", "check", "--format", "json", "-q"]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[HostLab]:
    """Return a lab with one small node on disk, not started; it is ended afterwards."""
    plant(tmp_path, "small")
    lab = HostLab(tmp_path)
    yield lab
    lab.down()


def check(lab: HostLab, *arguments: str) -> tuple[int, dict[str, list[dict[str, str]]], float]:
    """
    Judge all nodes over SSH.

    Returns:
        Exit code, findings that are not pass or skip by node, each with the check that leads its incident, and seconds.
    """
    begun = time.monotonic()
    done = subprocess.run(
        [*CHECK, "-i", str(lab.inventory), *arguments], capture_output=True, text=True, check=False, timeout=180
    )
    seconds = time.monotonic() - begun
    assert done.returncode in (0, 1, 3), done.stderr
    run = json.loads(done.stdout)
    leads = {follower: incident["lead"] for incident in run["incidents"] for follower in incident["follows"]}
    found: dict[str, list[dict[str, str]]] = {node["name"]: [] for node in run["nodes"]}
    for number, finding in enumerate(run["findings"]):
        if finding["status"] not in ("pass", "skip"):
            lead = run["findings"][leads.get(number, number)]["check"]
            found[finding["node"]].append({**finding, "lead": lead})
    return done.returncode, found, seconds


def test_a_node_is_a_machine_of_its_own(lab: HostLab) -> None:
    """Host name, processes, network, home, settings and tools of a node are its own, not the machine's."""
    assert lab.up(["small"]) == {}
    said = login(lab, "small", (
        "hostname; cat /proc/cmdline /proc/sys/kernel/random/boot_id; nvidia-smi;"
        "ls /usr/lib/modules /usr/lib/sysctl.d; ls /root /home; ls /sys;"
        "cat /sys/devices/system/cpu/online /dev/kmsg /proc/mounts; wc -l < /proc/net/dev; id -u"
    ))  # fmt: skip
    assert said.split("\n") == [
        "small", "BOOT_IMAGE=/vmlinuz root=/dev/sda1", BOOT, "smi of the lab",
        "/usr/lib/modules:", "6.8.0-lab", "", "/usr/lib/sysctl.d:", "10-node.conf", "/home:", "", "/root:",
        "devices", "kernel", "module", "0-191", "6,1,0,-;lab",
        "/dev/sda1 / ext4 rw,relatime,errors=remount-ro 0 0", said.split("\n")[-3], "0", "",
    ]  # fmt: skip
    assert int(said.split("\n")[-3]) < 8  # two lines of heading, and a loopback


PAGES = "cd /sys/kernel/mm/transparent_hugepage; "
POLICY = "cd /sys/devices/system/cpu/cpufreq/policy0; "
DEVICE = "cd /sys/devices/pci0000:00/0000:00:01.0; "
WRITES = [
    (PAGES + "echo never > enabled; cat enabled", "always madvise [never]"),
    (PAGES + "echo often > enabled; cat enabled", "Invalid argument|always [madvise] never"),
    (POLICY + "echo performance > scaling_governor; cat scaling_governor", "performance"),
    (POLICY + "echo ondemand > scaling_governor; cat scaling_governor", "Invalid argument|powersave"),
    ("cd /proc/sys/vm; echo 10 > swappiness; cat swappiness", "10"),
    ("cd /proc/sys/vm; echo 300 > swappiness; echo ten > swappiness; cat swappiness",
     "Invalid argument|Invalid argument|60"),
    ("cd /proc/sys/net/ipv4; echo 4096 87380 16777216 > tcp_rmem; cat tcp_rmem", "4096\t87380\t16777216"),
    ("echo 1 > /sys/devices/system/cpu/online", "Read-only file system"),
    ("cd /proc/sys/kernel; echo x > osrelease; cat osrelease", "Permission denied|6.8.0-lab"),
    (DEVICE + "printf '\\7' | dd of=config bs=1 seek=4 status=none conv=notrunc; od -An -tx1 -j4 -N1 config", "07"),
    (DEVICE + "wc -c < config", "256"),
    ("touch /usr/lib/x; ls /usr/lib/x; ls /run/hwcheck-lab/root/usr/lib/x", "x|x"),
    ("echo later > /etc/x; cat /etc/x", "later"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "shown"), WRITES)
def test_attributes_take_what_the_kernel_would_take(shared_lab: HostLab, script: str, shown: str) -> None:
    """A choice, a word, a number or bytes are kept; what is none is refused as by the kernel."""
    for path, text in {
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n", "proc/sys/vm/swappiness": "60\n",
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
    }.items():  # fmt: skip
        (shared_lab.home / "small/root" / path).write_text(text, encoding="utf-8")
    lines = login(shared_lab, "small", script).strip().split("\n")
    assert len(lines) == len(shown.split("|")), lines
    for line, end in zip(lines, shown.split("|"), strict=True):
        assert line.strip().endswith(end)


@pytest.fixture(scope="module")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLab]:
    """Return a lab with one small node that runs, shared by tests that set its values themselves."""
    home = tmp_path_factory.mktemp("lab")
    plant(home, "small")
    lab = HostLab(home)
    assert lab.up(["small"]) == {}
    yield lab
    lab.down()


def test_a_table_gives_attributes_errors(lab: HostLab) -> None:
    """Firmware that keeps ASPM to itself refuses a write, a broken device a read; the log tells both."""
    node = lab.home / "small"
    set_behaviour(node, "root/sys/module/pcie_aspm/parameters/policy", write="EPERM")
    set_behaviour(node, "root/proc/sys/vm/swappiness", read="EIO")
    assert lab.up(["small"]) == {}
    said = login(
        lab, "small", "echo performance > /sys/module/pcie_aspm/parameters/policy; cat /proc/sys/vm/swappiness"
    )
    assert [line.rpartition(": ")[2] for line in said.splitlines()] == ["Operation not permitted", "Input/output error"]
    log = (node / LOG).read_text(encoding="utf-8").splitlines()
    assert [line.split(" ", 1)[1] for line in log] == [
        "write root/sys/module/pcie_aspm/parameters/policy 'performance\\n' EPERM"
    ]
    set_behaviour(node, "root/proc/sys/vm/swappiness", read="")
    lab.reread_tables()
    assert login(lab, "small", "cat /proc/sys/vm/swappiness") == "60\n"


def test_what_a_node_writes_stays_on_its_disk(lab: HostLab) -> None:
    """After a restart /etc is as it was left, memory file systems are empty, and the node has its address again."""
    assert lab.up(["small"]) == {}
    address = lab.running()["small"]
    login(lab, "small", "echo kept > /etc/kept; echo lost > /run/lost; echo lost > /tmp/lost")
    assert lab.restart(["small"]) == {}
    assert lab.running() == {"small": address}
    assert login(lab, "small", "cat /etc/kept; ls /tmp /run/lost").splitlines()[0] == "kept"
    assert "lost" not in login(lab, "small", "ls /tmp")


def test_a_node_reboots_itself(tmp_path: Path) -> None:
    """
    Connections drop, nobody listens for a second, then it is there with another boot id.

    /run is empty, what was written to disk is there, and what is enabled has been started from it.
    """
    nodes.up(tmp_path, "one", "hgx-h100", [])
    lab = HostLab(tmp_path)
    try:
        assert lab.up(["one"]) == {}
        unit = '[Service]\\nType=oneshot\\nExecStart=/bin/sh -c "cp %s /etc/ran"\\n'
        unit += "[Install]\\nWantedBy=multi-user.target\\n"
        before = login(lab, "one", (
            f"printf '{unit}' /proc/sys/kernel/random/boot_id > /etc/systemd/system/x.service; systemctl enable x;"
            "printf '[Service]\\nLimitMEMLOCK=1M\\n' > /etc/systemd/system/slurmd.service.d/90-hwcheck.conf;"
            "echo kept > /usr/lib/kept; echo kept > /lib/modules/kept; mkdir /run/hwcheck; flock /run/hwcheck/l true;"
            "cat /proc/sys/kernel/random/boot_id"
        )).splitlines()[-1]  # fmt: skip
        begun = time.monotonic()
        assert "later" not in login(lab, "one", "systemctl reboot; sleep 5; echo later")
        assert "refused" in login(lab, "one", "true")
        wait(lambda: "up" in login(lab, "one", "echo up"))
        assert 1 <= time.monotonic() - begun < 20
        said = login(lab, "one", (
            "cat /proc/sys/kernel/random/boot_id /etc/ran /usr/lib/kept /lib/modules/kept; ls /run/hwcheck;"
            "grep -h locked /proc/$(systemctl show --value -p MainPID slurmd)/limits"
        )).splitlines()  # fmt: skip
    finally:
        lab.down()
    assert said[0] == said[1] != before
    assert said[2:4] == ["kept", "kept"]
    assert "No such file" in said[4]
    assert said[5].split()[3] == "1048576"


def test_nothing_of_the_machine_changes_and_nothing_stays(lab: HostLab) -> None:
    """Mounts, settings and files of the machine are the same while nodes run and are written to, and after them."""
    before, files = (mounts(), settings()), sorted(lab.home.iterdir())
    others = keepers()
    assert lab.up(["small"]) == {}
    login(
        lab,
        "small",
        "echo 3 > /proc/sys/vm/swappiness; mount -t tmpfs x /mnt; hostname other; ip link set lo down; true",
    )
    assert (mounts(), settings()) == before
    lab.down()
    assert (mounts(), settings()) == before
    assert keepers() <= others
    assert sorted(lab.home.iterdir()) == files
    assert lab.running() == {}


def test_a_killed_keeper_takes_its_nodes_along(lab: HostLab) -> None:
    """SIGKILL of the keeper ends all nodes, one in uninterruptible sleep too; the next start begins anew."""
    put(lab.home / "small", "nvml-uninterruptible")
    assert lab.up(["small"]) == {}
    hanging = subprocess.Popen(
        ["ssh", "-F", "none", "-i", str(lab.folder / "client_key"), "-p", str(lab.port),
         "-o", f"UserKnownHostsFile={lab.folder / 'known_hosts'}", f"root@{lab.running()['small']}",
         "cat /run/hwcheck-lab/nvml/driver_version"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    log = lab.home / "small" / LOG
    wait(lambda: "hang" in log.read_text(encoding="utf-8"))
    pid = int((lab.folder / "keeper.pid").read_text(encoding="ascii").split()[0])
    os.kill(pid, signal.SIGKILL)
    hanging.wait(20)
    wait(lambda: lab.running() == {})
    assert not {process for process in keepers() if str(lab.home) in command(process)}
    assert lab.up(["small"]) == {}
    assert login(lab, "small", "hostname") == "small\n"


def wait(for_what: object, seconds: float = 20.0) -> None:
    """Wait until a function says yes."""
    assert callable(for_what)
    end = time.monotonic() + seconds
    while not for_what():
        assert time.monotonic() < end
        time.sleep(0.02)


def read_here(lab: HostLab, *arguments: str) -> set[str]:
    """Read all nodes within this process, and judge nothing; returns the names of the nodes in the outcome."""
    parser = argparse.ArgumentParser()
    add_target_options(parser)
    with Collection(parser.parse_args(["-i", str(lab.inventory), "-q", *arguments])) as collection:
        return {outcome.target.name for outcome in collection}


def descriptors() -> set[int]:
    """Return the numbers of what this process has open, less the one that lists them."""
    with os.scandir("/proc/self/fd") as entries:
        return {int(entry.name) for entry in entries if Path(entry.path).readlink().name != "fd"}


def processes_with(word: str) -> list[int]:
    """Return the processes whose command line has a word."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if word in command(int(path.name))]


def command(pid: int) -> str:
    """Return the command line of a process; "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.mark.parametrize("after", [0.15, 0.4, 0.7, 1.0])
def test_a_start_that_is_killed_leaves_nothing_after_down(lab: HostLab, after: float) -> None:
    """SIGKILL of the command that starts a lab, at any moment: down then ends whatever had come up."""
    script = (
        "from pathlib import Path; from hwcheck.lab.host.lab import HostLab;"
        f"HostLab(Path({str(lab.home)!r})).up(['small'])"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2]) as starting:
        time.sleep(after)
        starting.kill()
    lab.down()
    time.sleep(0.5)  # a keeper that was about to write its pid file
    lab.down()
    assert not {process for process in keepers() if str(lab.home) in command(process)}
    assert not lab.folder.exists()


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, lab: HostLab) -> None:
    """Without a right or a program the host form says which, and starts nothing."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda path, _: "sshd" not in str(path))
    assert [text.partition(":")[0] for text in missing()] == ["root", "/usr/sbin/sshd (Debian package openssh-server)"]
    with pytest.raises(HostLabError, match=r"needs root: .*; /usr/sbin/sshd"):
        lab.up(["small"])
    assert not lab.folder.exists()


def test_two_labs_run_side_by_side(lab: HostLab, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A second lab takes another port, and each inventory leads to its own nodes."""
    home = tmp_path_factory.mktemp("other")
    plant(home, "second")
    other = HostLab(home)
    try:
        assert (lab.up(["small"]), other.up(["second"])) == ({}, {})
        assert (login(lab, "small", "hostname"), login(other, "second", "hostname")) == ("small\n", "second\n")
        assert lab.port != other.port
    finally:
        other.down()


def test_addresses_are_loopback_and_distinct() -> None:
    """A thousand nodes have a thousand loopback addresses."""
    addresses = {address_of(number) for number in range(1, 1001)}
    assert len(addresses) == 1000
    assert all(address.startswith("127.0.") and not address.endswith((".0", ".255")) for address in addresses)


def test_mounts_are_told_as_the_kernel_tells_them() -> None:
    """Options of mount point and file system stand together, rw and ro once; what is cut off is left out."""
    text = "36 35 8:2 / /data ro,noatime shared:1 - xfs /dev/sdb1 rw,noquota\n37 35 0:1 / /x"
    assert mounts_of(text) == "/dev/sdb1 /data xfs ro,noatime,noquota 0 0\n"


@pytest.mark.slow
def test_probing_changes_nothing(tmp_path: Path) -> None:
    """After a deep check a node's files, modes and attributes are as before, and none was opened for writing."""
    lab = HostLab(tmp_path)
    node, _ = nodes.up(tmp_path, "one", "hgx-h100", [])
    try:
        assert lab.up(["one"]) == {}
        before = fingerprint(node.folder)
        _, found, _ = check(lab, "--tier", "deep")
        assert {finding["check"] for finding in found["one"]} <= {
            "storage.smart"
        }  # a drive of the lab takes no commands
        assert fingerprint(node.folder) == before
        log = (node.folder / LOG).read_text(encoding="utf-8").splitlines()
        assert {line.split()[1] for line in log} == {"read"}
        assert len(log) > 50
    finally:
        lab.down()


MIXED = [
    ("hgx-h200", []), ("hgx-h100", []), ("gb200", []), ("hgx-b200", []),
    ("hgx-h200", ["gpu-lost:2"]), ("hgx-h200", ["port-down", "persistence-off"]), ("hgx-h200", ["gpu-link-x8"]),
    ("hgx-h200", ["stale-module", "numa-balancing"]),
    ("hgx-h100", ["trust-pcp"]), ("hgx-h100", ["wrong-tos", "sysctl-overridden"]), ("hgx-h100", ["power-cap"]),
    ("gb200", ["imex-down"]), ("gb200", ["port-slow"]),
    ("hgx-b200", ["fabric-in-progress"]), ("hgx-b200", ["gpu-needs-reset"]), ("hgx-b200", ["leftover-process"]),
]  # fmt: skip


@pytest.mark.slow
def test_sixteen_mixed_nodes_over_ssh(tmp_path: Path) -> None:
    """What is found on a node is led by its faults, every fault is found, and healthy nodes are clean."""
    from hwcheck.lab.faults import find  # noqa: PLC0415 - filled by reading all fault files

    lab = HostLab(tmp_path)
    faults = {f"{platform}-{number:02}": wanted for number, (platform, wanted) in enumerate(MIXED)}
    try:
        for name, wanted in faults.items():
            nodes.up(tmp_path, name, name[:-3], wanted)
        begun = time.monotonic()
        assert lab.up(list(faults)) == {}
        assert time.monotonic() - begun < 20
        code, found, _ = check(lab)
    finally:
        lab.down()
    assert code == 1
    for name, wanted in faults.items():
        known = [find(word)[0] for word in wanted]
        expected = {check for fault in known for check in (*fault.leads, *fault.also)}
        leads = {finding["lead"] for finding in found[name]}
        assert {lead for lead in leads if not names_of(lead) & expected} == set(), name
        for fault in [fault for fault in known if fault.leads]:  # the others are told, not judged
            assert any(names_of(lead) & set(fault.leads) for lead in leads), (name, fault.id)


def names_of(check: str) -> set[str]:
    """Return a check's id and its family."""
    return {check, check.partition(".")[0]}


@pytest.mark.slow
def test_nodes_that_hang_or_die_do_not_hold_up_the_others(tmp_path: Path) -> None:
    """Silent sshd, hanging driver, power lost half-way: each is an unknown, the others are in time, nothing stays."""
    lab = HostLab(tmp_path)
    wrong = {"silent": "ssh-silent", "stuck": "nvml-uninterruptible", "dead": "dies", "frozen": "freezes"}
    hangs = {"hangs": "nvml-hangs", "hard": "nvml-hangs-hard"}
    names = ["well", *wrong, *hangs]
    try:
        for name in names:
            nodes.up(tmp_path, name, "hgx-h200", [hangs[name]] if name in hangs else [])
        for name, fault in wrong.items():
            assert fault in HOST_FAULTS
            put(tmp_path / name, fault)
        assert lab.up(names) == {}
        open_before = descriptors()
        assert read_here(lab, "--timeout", "8") == set(names)
        wait(lambda: descriptors() <= open_before, 5)  # a connection's own thread closes it a moment later
        assert lab.up(["dead"]) == {}
        code, found, seconds = check(lab, "--timeout", "12")
        assert code == 3
        assert seconds < 25
        assert found["well"] == []
        for name in (*wrong, *hangs):
            assert {finding["status"] for finding in found[name]} == {"unknown"}, name
        assert "left behind" in json.dumps(found["stuck"])
        assert [finding["check"] for finding in found["silent"]] == ["evidence.reachable"]
        assert "dead" not in lab.running()
        assert not [pid for pid in processes_with(str(lab.inventory)) if pid != os.getpid()]
        assert lab.up(["dead"]) == {}  # power comes back
    finally:
        lab.down()
