"""What the next boot brings, limits, crashes and processes that hang: judged from the texts of their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hwcheck.profiles
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Fact, Snapshot
from hwcheck.findings import Finding
from hwcheck.parse import take_snapshot
from hwcheck.profiles import ProfileSet

LAYER = Path(hwcheck.profiles.__file__).parent / "base-kernel.yaml"
PROFILE = ProfileSet([LAYER]).profile("base")

RUNNING = "BOOT_IMAGE=/boot/vmlinuz-6.8.0-60-generic root=UUID=1 ro iommu=pt pci=realloc=off pci=noaer quiet"
MENU = "==> /boot/grub/grub.cfg <==\nmenuentry 'A' {{\n linux /boot/vmlinuz-6.8.0-60-generic root=UUID=1 ro {}\n}}\n"
FILES = (
    "==> running <==\n6.8.0-60-generic\n==> /lib/modules/6.8.0-60-generic/updates/nvidia.ko <==\nversion: 570.172.08\n"
)


def judged(**texts: str) -> list[Finding]:
    """Judge texts, given by their kinds with ``_`` for ``.`` and ``-``."""
    kinds = {
        "cmdline": "proc-cmdline", "loader": "boot.loader", "state": "proc.kernel", "files": "module.files",
        "dkms": "dkms.links",
        "module": "sysfs.module", "links": "driver.links", "sysctl": "sysctl", "dropins": "sysctl.dropins",
        "limits": "proc.limits", "units": "systemd.files", "login": "limits.files", "holders": "proc.holders",
        "show": "systemctl.show",
    }  # fmt: skip
    outputs = [Output(kinds[key], text.splitlines(), time="1700000000") for key, text in texts.items()]
    return Judge(PROFILE).findings(take_snapshot(Evidence("", outputs, collected=True)))


def one(check: str, **texts: str) -> Finding:
    """Return the only finding of a check."""
    (finding,) = (finding for finding in judged(**texts) if finding.check == check)
    return finding


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("pci=noaer iommu=pt pci=realloc=off", "pass", "the same after a reboot"),
        ("iommu=pt pci=noaer quiet", "warn", "lost at the next boot: pci=realloc=off"),
        ("iommu=pt pci=realloc=off pci=noaer init_on_alloc=0", "skip", "waits for a reboot: init_on_alloc=0"),
        ("iommu=pt pci=realloc=off pci=noaer console=ttyS0", "pass", ""),
    ],
)
def test_arguments_that_are_lost_at_the_next_boot(arguments: str, status: str, words: str) -> None:
    """Arguments are compared as a multiset; a lost one warns, a new one only waits."""
    finding = one("kernel.next_arguments", cmdline=RUNNING, loader=MENU.format(arguments))
    assert finding.status == status
    assert words in finding.message


def test_a_node_booted_over_the_network_is_not_judged_by_its_disk() -> None:
    """An old system on the disk says nothing of a kernel that a server sent."""
    finding = one("kernel.next_arguments", cmdline="BOOT_IMAGE=images/gpu/vmlinuz iommu=pt", loader=MENU.format("ro"))
    assert finding.status == "skip"


def test_a_change_that_never_reached_the_boot_loader_warns() -> None:
    """/etc/default/grub without update-grub has no effect."""
    loader = MENU.format("quiet") + '==> /etc/default/grub <==\nGRUB_CMDLINE_LINUX="iommu=pt"\n'
    finding = one("kernel.loader_stale", loader=loader)
    assert finding.status == "warn"
    assert "iommu=pt" in finding.message


def next_kernel(files: str, release: str = "6.8.0-64-generic", dkms: str = "") -> Finding:
    """Judge the driver for the next kernel."""
    return one(
        "driver.next_boot",
        module="/sys/module/nvidia/version: 570.172.08\n",
        state="/proc/sys/kernel/osrelease: 6.8.0-60-generic\n",
        loader=f"==> /boot/grub/grub.cfg <==\nmenuentry 'A' {{\n linux /boot/vmlinuz-{release} ro\n}}\n",
        files=FILES + files,
        dkms=dkms,
    )


def test_a_new_kernel_without_the_driver_fails() -> None:
    """The node would come back without GPUs."""
    other = "==> /lib/modules/6.8.0-64-generic/kernel/mlx5_core.ko <==\nlicense: GPL\n"
    assert next_kernel(other).status == "fail"
    assert next_kernel(other, "6.8.0-60-generic").status == "pass"


def test_a_driver_upgrade_that_waits_for_a_reboot_warns() -> None:
    """The next boot brings another driver than the one that was tested."""
    other = "==> /lib/modules/6.8.0-64-generic/updates/nvidia.ko <==\nversion: 575.57.08\n"
    finding = next_kernel(other)
    assert finding.status == "warn"
    assert "575.57.08" in finding.message


def test_a_compressed_module_is_told_by_dkms_or_not_at_all() -> None:
    """A file that was not read is no missing driver."""
    other = "==> /lib/modules/6.8.0-64-generic/updates/nvidia.ko.zst <==\n!compressed zst\n"
    assert next_kernel(other).status == "skip"
    built = "/var/lib/dkms/nvidia/kernel-6.8.0-64-generic-x86_64 -> 570.172.08/6.8.0-64-generic/x86_64\n"
    assert next_kernel(other, dkms=built).status == "pass"


def test_libraries_of_another_version_than_the_module_fail() -> None:
    """A silent upgrade breaks the next job; NSCQ alone is a warning."""
    module = "/sys/module/nvidia/version: 570.172.08\n"
    link = "/usr/lib64/{}.so.1 -> {}.so.{}\n"
    assert one("driver.libraries", module=module, links=link.format(*["libcuda"] * 2, "570.172.08")).status == "pass"
    assert one("driver.libraries", module=module, links=link.format(*["libcuda"] * 2, "575.57.08")).status == "fail"
    assert (
        one("driver.libraries", module=module, links=link.format(*["libnvidia-nscq"] * 2, "570.1.1")).status == "warn"
    )


def test_a_parameter_that_another_drop_in_undoes() -> None:
    """Right now, wrong after a reboot: the file that wins is named by the evidence."""
    dropins = (
        "==> /etc/sysctl.d/60-gpu.conf <==\nkernel.numa_balancing = 0\n"
        "==> /etc/sysctl.d/99-site.conf <==\nkernel.numa_balancing = 1\n"
    )
    findings = judged(sysctl="kernel.numa_balancing = 0\n", dropins=dropins)
    (finding,) = (finding for finding in findings if finding.check == "sysctl.numa_balancing")
    assert finding.status == "warn"
    (fight,) = (finding for finding in findings if finding.check == "sysctl.overridden")
    assert fight.status == "skip"
    assert "1 of /etc/sysctl.d/99-site.conf wins over 0 of /etc/sysctl.d/60-gpu.conf" in fight.message


def test_a_parameter_set_by_hand_is_lost_at_boot() -> None:
    """A value that is not the kernel's default and stands in no file warns; the default itself does not."""
    empty = "==> /etc/sysctl.d/10-none.conf <==\n"
    assert one("sysctl.persistence", sysctl="vm.max_map_count = 262144\n", dropins=empty).status == "warn"
    kept = "==> /etc/sysctl.d/10-map.conf <==\nvm.max_map_count = 262144\n"
    found = [
        finding
        for finding in judged(sysctl="vm.max_map_count = 262144\n", dropins=kept)
        if finding.check == "sysctl.persistence"
    ]
    assert [finding.status for finding in found if finding.status != "skip"] == []


def test_what_stands_only_in_the_old_file_is_not_read() -> None:
    """Systemd passes /etc/sysctl.conf over unless a drop-in links to it."""
    dropins = "==> /etc/sysctl.d/10-none.conf <==\n==> /etc/sysctl.conf <==\nvm.max_map_count = 262144\n"
    assert one("sysctl.unread", dropins=dropins).status == "warn"


def limits(text: str, unit: str = "slurmd") -> str:
    """Write the limits of a service."""
    return f"==> {unit}.service /proc/7/limits <==\nMax locked memory         {text}   {text}   bytes\n"


def test_locked_memory_of_what_starts_jobs() -> None:
    """A low limit of the scheduler's daemon fails, of a container runtime it is reported."""
    check = "limits.service_memlock"
    assert one(check, limits=limits("65536")).status == "fail"
    assert one(check, limits=limits("unlimited")).status == "pass"
    assert one(check, limits=limits("65536", "containerd")).status == "skip"
    assert one("limits.container_memlock", limits=limits("65536", "containerd")).status == "skip"
    low = (
        "==> /etc/systemd/system/slurmd.service.d/50.conf <==\nLimitMEMLOCK=64K\n"
        "==> /usr/lib/systemd/system/slurmd.service <==\n[Service]\n"
    )
    finding = one(check, limits=limits("unlimited"), units=low)
    assert finding.status == "warn"
    assert "64" in finding.message


def test_locked_memory_at_login() -> None:
    """A low limit for everybody warns; that no file names one is no finding."""
    head = "==> /etc/security/limits.d/1.conf <==\n"
    assert one("limits.login_memlock", login=head + "* - memlock 64\n").status == "warn"
    assert one("limits.login_memlock", login=head + "# nothing\n").status == "skip"


def test_units_with_stale_settings() -> None:
    """Files newer than what systemd has read warn."""
    show = "Id=slurmd.service\nLoadState=loaded\nActiveState=active\nNeedDaemonReload={}\n"
    assert one("service.reload_needed", show=show.format("yes")).status == "warn"
    assert one("service.reload_needed", show=show.format("no")).status == "pass"


@pytest.mark.parametrize(
    ("taint", "status"), [(0, "pass"), (4096 + 8192 + 1, "pass"), (512, "pass"), (128, "warn"), (16, "warn")]
)
def test_taint_by_events_only(taint: int, status: str) -> None:
    """The bits of an out-of-tree module are usual; those of an oops or a machine check are not."""
    assert one("kernel.taint", state=f"/proc/sys/kernel/tainted: {taint}\n").status == status


@pytest.mark.parametrize(("before_boot", "status"), [(120, "warn"), (-60, "warn"), (90_000, "skip")])
def test_a_crash_that_led_to_this_boot(before_boot: int, status: str) -> None:
    """A dump that was left shortly before or after this boot began belongs to it; older ones are listed."""
    left = 1_700_000_000 - 3600 - before_boot
    state = f"/proc/uptime: 3600.0 1.0\n/var/crash/2023: left at {left}\n/sys/fs/pstore: 1 traces of crashes\n"
    assert one("kernel.crashed", state=state).status == status


def holder(**changes: Any) -> str:
    """Write one process."""
    process = {"pid": 9, "state": "S", "ppid": 1, "uid": 0, "age": 500}
    values = {**process, "devices": "/dev/nvidia0", "wait": "-", "comm": "x", **changes}
    return " ".join(f"{key}={value}" for key, value in values.items()) + "\nprocesses=9\n"


def test_processes_that_hang_in_the_driver() -> None:
    """Two minutes in the driver fail; a young process may be initialising, one that waits for a disk is no GPU's."""
    stuck = {"state": "D", "wait": "os_acquire_rwlock_read,nvidia_open", "devices": "-"}
    assert one("process.hung", holders=holder(**stuck)).status == "fail"
    assert one("process.hung", holders=holder(**stuck | {"age": 3})).status == "skip"
    assert one("process.hung", holders=holder(**stuck | {"wait": "folio_wait_bit"})).status == "skip"
    assert one("process.hung", holders=holder()).status == "pass"


def test_holders_of_gpus_are_listed_and_never_a_fault() -> None:
    """The driver's own daemons do not count; others are named."""
    assert one("process.holders", holders=holder(comm="nvidia-persiste")).status == "pass"
    finding = one("process.holders", holders=holder(comm="python3"))
    assert finding.status == "skip"
    assert "python3 (9)" in finding.message


def test_what_was_denied_never_passes() -> None:
    """As an ordinary user the holders and the boot loader are unknown."""
    finding = one("process.holders", holders="!denied open files of 8 processes\nprocesses=9\n")
    assert finding.status == "unknown"
    snapshot = Snapshot()
    snapshot.put(NODE, "kernel.taint", Fact(0))
    assert [f.status for f in Judge(PROFILE).findings(snapshot) if f.check == "kernel.next_arguments"] == ["skip"]
    hidden = one("kernel.next_arguments", cmdline=RUNNING, loader="==> /boot/grub2 <==\n!denied\n")
    assert hidden.status != "pass"


def test_a_fabric_manager_that_was_only_started_by_hand() -> None:
    """Active but disabled warns: it will be missing after a reboot; static is right."""
    show = "Id=nvidia-fabricmanager.service\nLoadState=loaded\nActiveState=active\nUnitFileState={}\n"
    assert one("service.enabled", show=show.format("disabled")).status == "warn"
    assert one("service.enabled", show=show.format("static")).status == "pass"
