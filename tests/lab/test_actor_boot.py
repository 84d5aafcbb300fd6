"""What a boot of a lab node takes from its files: a running value alone is lost, a persistent fix stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.findings import Status
from hwcheck.lab import nodes
from hwcheck.lab.faults import FAULTS, HANDS, catalogue
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from tests.lab.actor_bench import Bench
from tests.lab.lab_node import evidence_from

GOVERNORS = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
UDEV = "/etc/udev/rules.d/90-hwcheck.rules"
READ = 'ACTION=="add", SUBSYSTEM=="pci", ATTR{vendor}=="0x15b3", RUN+="/usr/bin/setpci -s %k CAP_EXP+8.w=5000:f000"\n'
ACS_RULE = (
    'ACTION=="add", SUBSYSTEM=="pci", ATTR{vendor}=="0x1000", TAG+="systemd", '
    'ENV{SYSTEMD_WANTS}+="hwcheck-acs@%k.service"\n'
)
ACS_UNIT = "[Service]\nType=oneshot\nExecStart=-/usr/bin/setpci -s %i ECAP_ACS+6.w=0:1c\n"
CURES = {
    "governor-powersave": ("cpu.governor", {"/etc/tmpfiles.d/90-hwcheck.conf": f"w {GOVERNORS} - - - - performance\n"}),
    "mrrs-512": ("pcie.max_read_request", {UDEV: READ}),
    "persistence-off": ("gpu.persistence", {
        "/etc/systemd/system/nvidia-persistenced.service.d/90-hwcheck.conf":
            "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --persistence-mode\n",
    }),
    "memlock-64k": ("limits.service_memlock", {
        "/etc/systemd/system/slurmd.service.d/90-hwcheck.conf": "[Service]\nLimitMEMLOCK=infinity\n",
    }),
    "trust-pcp": ("roce.trust", {
        UDEV: 'ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="*", ATTR{qos/trust}="dscp"\n',
    }),
    "ecn-off": ("roce.ecn", {
        UDEV: 'ACTION=="add", SUBSYSTEM=="net", DRIVERS=="mlx5_core", ATTR{ecn/roce_np/enable/3}="1", '
              'ATTR{ecn/roce_rp/enable/3}="1"\n',
    }),
    "chrony-unsynchronised": ("time.chrony", {"/etc/chrony/sources.d/90-hwcheck.sources": "server 10.0.0.1 iburst\n"}),
    "acs-on": ("pcie.acs", {UDEV: ACS_RULE, "/etc/systemd/system/hwcheck-acs@.service": ACS_UNIT}),
}  # fmt: skip
"""Fault → the check that finds it, and the files that mend it."""
BAD = (Status.FAIL, Status.WARN)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a lab, whose library and tools are built once."""
    return tmp_path_factory.mktemp("lab")


def found(bench: Bench, check: str, root: Path) -> list[str]:
    """Return what a check finds on a node."""
    verdict = Pipeline(ProfileSet([root / "inventories/lab/site.yaml"]), only=[check.partition(".")[0]]).judge(
        evidence_from(bench.node)
    )
    return [finding.check for finding in verdict.findings if finding.status in BAD and finding.check == check]


@pytest.mark.parametrize("fault", sorted(CURES))
def test_a_persistent_fix_outlives_the_boot(home: Path, fault: str, root: Path) -> None:
    """The fault comes back with the boot as long as no file mends it."""
    check, files = CURES[fault]
    bench = Bench(home, FAULTS[fault].platforms[0], fault)
    nodes.reboot(bench.node)
    assert found(bench, check, root)
    for path, text in files.items():
        bench.write(path, text)
    nodes.reboot(bench.node)
    assert not found(bench, check, root)


@pytest.mark.parametrize(("argument", "fault", "check"), [
    ("pci=config_acs=xx000x0@pci:1000:c030", "acs-on", "pcie.acs"),
    ("cpufreq.default_governor=performance", "governor-powersave", "cpu.governor"),
    ("pcie_aspm.policy=performance", "aspm-on", "pcie.aspm"),
])  # fmt: skip
def test_an_argument_of_the_kernel_has_its_effect(
    home: Path, argument: str, fault: str, check: str, root: Path
) -> None:
    """Written as a drop-in of GRUB's settings it is in grub.cfg after update-grub, and counts from the boot on."""
    bench = Bench(home, "hgx-h200", fault)
    bench.write("/etc/default/grub.d/90-hwcheck.cfg", f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {argument}"\n')
    nodes.reboot(bench.node)
    assert found(bench, check, root)
    assert bench.run("update-grub").returncode == 0
    assert argument in bench.read("/boot/grub/grub.cfg")
    nodes.reboot(bench.node)
    assert argument in bench.read("/proc/cmdline").split()
    assert not found(bench, check, root)


def test_redirection_is_switched_off_as_the_kernel_does(home: Path) -> None:
    """``pci=disable_acs_redir`` clears requests and completions, and leaves upstream forwarding and validation."""
    bench = Bench(home, "hgx-h200", "acs-on")
    bench.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="pci=disable_acs_redir=pci:0:0"\n')
    bench.run("update-grub")
    nodes.reboot(bench.node)
    port = bench.node.machine().functions[bench.node.machine().nics[0].address].above
    assert bench.run("setpci", "-s", port, "ECAP_ACS+6.w").stdout == "0011\n"


def test_the_trap_of_pcie_aspm_off(home: Path) -> None:
    """``pcie_aspm=off`` leaves the links as the firmware set them and locks the policy."""
    bench = Bench(home, "hgx-h200", "aspm-on:3")
    bench.write("/etc/default/grub.d/90-x.cfg",
                'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX pcie_aspm=off pcie_aspm.policy=performance"\n')  # fmt: skip
    bench.run("update-grub")
    nodes.reboot(bench.node)
    address = bench.node.machine().nics[3].address
    assert bench.run("setpci", "-s", address, "CAP_EXP+10.w").stdout == "0002\n"
    assert bench.read("/sys/module/pcie_aspm/parameters/policy").startswith("[default]")


def test_an_entry_is_tried_once(home: Path) -> None:
    """What grub-reboot chose is booted once; grub-set-default counts where the settings leave the choice to it."""
    bench = Bench(home)
    bench.write("/etc/grub.d/41_try", "#!/bin/sh\nexec tail -n +3 $0\nmenuentry 'Try' --id try {\n"
                "\tlinux\t/boot/vmlinuz-6.8.0-60-generic root=/dev/nvme0n1p2 ro quiet trying\n}\n")  # fmt: skip
    bench.run("update-grub")
    bench.run("grub-reboot", "try")
    nodes.reboot(bench.node)
    assert "trying" in bench.read("/proc/cmdline")
    nodes.reboot(bench.node)
    assert "trying" not in bench.read("/proc/cmdline")
    bench.write("/etc/default/grub.d/50-saved.cfg", "GRUB_DEFAULT=saved\n")
    bench.run("update-grub")
    bench.run("grub-set-default", "try")
    nodes.reboot(bench.node)
    assert "trying" in bench.read("/proc/cmdline")


def test_a_healthy_node_is_healthy_after_a_boot(home: Path) -> None:
    """Its own files bring about what it is."""
    for platform in ("hgx-b200", "gb200"):
        bench = Bench(home, platform)
        before = take_snapshot(evidence_from(bench.node))
        nodes.reboot(bench.node)
        evidence = evidence_from(bench.node)
        verdict = Pipeline(ProfileSet()).judge(evidence, before)
        assert [f"{f.check} {f.message}" for f in verdict.findings if f.status in (*BAD, Status.UNKNOWN)] == []


def test_sysctls_of_interfaces_and_defaults(home: Path) -> None:
    """A pattern sets interfaces that have no line of their own; without a drop-in the kernel's default is back."""
    bench = Bench(home, "hgx-h100")
    one, other = (f"net.ipv4.conf.{nic.netdev}.rp_filter" for nic in bench.node.machine().nics[:2])
    bench.write("/etc/sysctl.d/90-hwcheck.conf", f"net.ipv4.conf.*.rp_filter = 0\n{other} = 1\n")
    (bench.root / "etc/sysctl.d/60-gpu-node.conf").unlink()
    nodes.reboot(bench.node)
    assert [bench.read("/proc/sys/" + key.replace(".", "/")) for key in (one, other)] == ["0\n", "1\n"]
    assert bench.read("/proc/sys/vm/swappiness") == "60\n"
    assert bench.read("/proc/sys/kernel/numa_balancing") == "0\n"  # by its kernel argument


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_a_fault_says_what_mends_it(name: str) -> None:
    """A write or an act says which; whatever a write mends without a trace is a value that was only set by hand."""
    fault = FAULTS[name]
    assert fault.fix in ("write", "act", HANDS)
    assert bool(fault.how) is (fault.fix != HANDS)


def test_a_node_of_rhel(home: Path) -> None:
    """Entries of the Boot Loader Specification, edited by grubby; chronyd, with its configuration where RHEL has it."""
    node = nodes.up(home, "rhel", "hgx-h200", ["acs-on"], "rhel")[0]
    bench = Bench.of(node)
    assert not (bench.root / "boot/grub").exists()
    assert bench.ask("is-active", "chronyd") == "active"
    wanted = "pci=config_acs=xx000x0@pci:1000:c030"
    done = bench.run("grubby", "--update-kernel=ALL", f"--args={wanted}", "--remove-args=quiet")
    assert done.returncode == 0
    told = bench.run("grubby", "--info=ALL").stdout
    assert 'root="/dev/nvme0n1p2"' in told
    assert wanted in told
    assert nodes.load(home, "rhel").os == "rhel"
    nodes.reboot(node)
    words = bench.read("/proc/cmdline").split()
    assert "quiet" not in words
    assert wanted in words
    verdict = Pipeline(ProfileSet(), only=["pcie", "time", "kernel", "service"]).judge(evidence_from(node))
    assert [f"{f.check} {f.message}" for f in verdict.findings if f.status in BAD] == []
