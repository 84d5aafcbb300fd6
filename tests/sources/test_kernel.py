"""Sources of the kernel area, on small trees: parameters, log, modules, boot loader, drop-ins."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
from pathlib import Path

import pytest

from hwcheck.facts import NODE, Facet, Missing, Reason
from hwcheck.facts.names.sysctl import KEYS
from hwcheck.sources import boot, kernel, modules
from hwcheck.sources.hide import hide
from hwcheck.sources.source import Absent, Context, Denied
from tests.sources.tree import asked, facts_of, output_of, plant


def elf(**fields: str) -> bytes:
    """Make the smallest file that has a section .modinfo, with padding in front as a driver has code."""
    info = b"\0".join(f"{key}={value}".encode() for key, value in fields.items()) + b"\0"
    names = b"\0.modinfo\0.shstrtab\0"
    padding = b"\x90" * 4096
    at = 64 + len(padding)
    rows = [(0, 0, 0), (1, at, len(info)), (10, at + len(info), len(names))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, where, size, 0, 0, 1, 0) for name, where, size in rows)
    head = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<QIHHHHHH", at + len(info) + len(names), 0, 64, 0, 0, 64, 3, 2)
    return head + padding + info + names + table


def test_parameters_are_printed_as_sysctl_does(tmp_path: Path) -> None:
    """Files under /proc/sys become the lines of ``sysctl``, and one parser reads both."""
    context = plant(
        tmp_path,
        {
            "proc/sys/kernel/numa_balancing": "0\n",
            "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t33554432\n",
            "proc/sys/net/ipv4/conf/all/arp_ignore": "2\n",
            "proc/sys/net/ipv4/conf/eth0.100/arp_ignore": "1\n",
            "proc/sys/net/ipv4/conf/bad name\n/arp_ignore": "1\n",
        },
    )
    snapshot = facts_of(output_of(kernel.SOURCES, "sysctl", context))
    assert snapshot.value("sysctl.numa_balancing") == 0
    assert snapshot.value("sysctl.tcp_rmem_max") == 33554432
    (netdev,) = snapshot.subjects("netdev")
    assert netdev.id == "eth0.100"
    assert snapshot.get(netdev, "sysctl.arp_ignore").value == 1
    assert snapshot.get(netdev, "sysctl.arp_ignore", Facet.EFFECTIVE).value == 2


def test_every_parameter_that_is_a_fact_is_asked_for() -> None:
    """The node program knows no fact names; its list must hold every parameter that has one."""
    assert set(KEYS) <= set(kernel.SYSCTLS)


def test_no_parameters_at_all_are_absent(tmp_path: Path) -> None:
    """A tree without /proc/sys answers absent, not an empty text that parsers could take for all of it."""
    with pytest.raises(Absent):
        asked(kernel.SOURCES, "sysctl")(Context(root=str(tmp_path)))


def test_log_records_become_lines_of_dmesg(tmp_path: Path) -> None:
    """Records of /dev/kmsg lose their dictionary lines and get the time in front; secrets of the command line go."""
    context = plant(
        tmp_path,
        {
            "dev/kmsg": "5,0,0,-;Linux version 6.8.0\n SUBSYSTEM=cpu\n5,1,0,-;Command line: ro api_token=abc\n"
            "4,9,4031557120,-;NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus.\nno record\n"
        },
    )
    text = asked(kernel.SOURCES, "kernel-log")(context).decode()
    assert text.splitlines() == [
        "[    0.000000] Linux version 6.8.0",
        "[    0.000000] Command line: ro api_token=<hidden>",
        "[ 4031.557120] NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus.",
        "no record",
    ]
    snapshot = facts_of(output_of(kernel.SOURCES, "kernel-log", context))
    assert snapshot.value("kernel.log.xids") == 1


def test_log_that_is_not_there_is_absent(tmp_path: Path) -> None:
    """A container without /dev/kmsg has no log to give."""
    with pytest.raises(Absent):
        asked(kernel.SOURCES, "kernel-log")(Context(root=str(tmp_path)))


def test_log_of_another_user_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that may not be opened is denied, with what would be needed."""

    def refuse(*_: object) -> int:
        raise PermissionError

    context = plant(tmp_path, {"dev/kmsg": "5,0,0,-;x\n"})
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Denied, match="needs root"):
        asked(kernel.SOURCES, "kernel-log")(context)


def test_state_and_traces_of_crashes(tmp_path: Path) -> None:
    """A dump is named with the time it was left; its age is counted from the time of reading."""
    context = plant(
        tmp_path,
        {
            "proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
            "proc/sys/kernel/tainted": "0\n",
            "proc/uptime": "600.00 100.00\n",
            "var/crash/202512010500/dmesg": "x",
            "var/crash/bad\nname/dmesg": "x",
        },
    )
    os.utime(tmp_path / "var/crash/202512010500", (1000, 1000))
    snapshot = facts_of(output_of(kernel.SOURCES, "kernel-state", context, time="1700.5"))
    assert snapshot.value("kernel.crashes") == ({"path": "/var/crash/202512010500", "time": 1000, "age": 700},)
    assert snapshot.value("kernel.uptime") == 600


def test_module_files_of_all_kernels(tmp_path: Path) -> None:
    """modules.dep says which file counts; plain files are read in place, compressed ones in the deep tier only."""
    driver = elf(version="570.172.08", license="Dual MIT/GPL", vermagic="6.8.0-60 SMP")
    context = plant(
        tmp_path,
        {
            "proc/sys/kernel/osrelease": "6.8.0-60\n",
            "lib/modules/6.8.0-60/modules.dep": "kernel/other.ko:\nupdates/dkms/nvidia.ko: kernel/drivers/ecc.ko\n",
            "lib/modules/6.8.0-60/updates/dkms/nvidia.ko": driver,
            "lib/modules/6.8.0-60/kernel/nvidia.ko": elf(version="535.1.1"),
            "lib/modules/5.14.0/modules.dep": "extra/nvidia.ko.xz:\nextra/gdrdrv.ko.gz:\n",
            "lib/modules/5.14.0/extra/nvidia.ko.xz": lzma.compress(driver),
            "lib/modules/5.14.0/extra/gdrdrv.ko.gz": gzip.compress(elf(version="2.5")),
        },
    )
    quick = facts_of(output_of(modules.SOURCES, "module-files", context))
    assert quick.value("driver.module_installed") == "570.172.08"
    assert quick.value("kernel.module.files")["5.14.0"]["nvidia"]["gap"] == "compressed xz"
    both = [output_of(modules.SOURCES, name, context) for name in ("module-files-deep", "module-files")]
    files = facts_of(*both).value("kernel.module.files")
    assert files["5.14.0"]["nvidia"]["version"] == "570.172.08"
    assert files["5.14.0"]["gdrdrv"]["version"] == "2.5"
    assert files["6.8.0-60"]["nvidia"]["license"] == "Dual MIT/GPL"


@pytest.mark.parametrize("cut", [0, 5, 40, 63, 70, 4200])
def test_module_file_that_is_cut_off_is_said(tmp_path: Path, cut: int) -> None:
    """A file that is no module, or ends early, is an error of that file and no version."""
    context = plant(
        tmp_path,
        {
            "lib/modules/6.8.0-60/modules.dep": "extra/nvidia.ko:\n",
            "lib/modules/6.8.0-60/extra/nvidia.ko": elf(version="570.172.08")[:cut],
        },
    )
    record = facts_of(output_of(modules.SOURCES, "module-files", context)).value("kernel.module.files")
    assert record["6.8.0-60"]["nvidia"]["version"] == ""
    assert record["6.8.0-60"]["nvidia"]["gap"].startswith("error")


def test_module_file_as_a_loop_of_links(tmp_path: Path) -> None:
    """A link that leads to itself is an error of that file; the others are still read."""
    context = plant(
        tmp_path,
        {
            "lib/modules/6.8.0-60/modules.dep": "extra/nvidia.ko:\nextra/gdrdrv.ko:\n",
            "lib/modules/6.8.0-60/extra/nvidia.ko": "-> nvidia.ko",
            "lib/modules/6.8.0-60/extra/gdrdrv.ko": elf(version="2.5"),
        },
    )
    files = facts_of(output_of(modules.SOURCES, "module-files", context)).value("kernel.module.files")["6.8.0-60"]
    assert files["nvidia"]["gap"].startswith("error")
    assert files["gdrdrv"]["version"] == "2.5"


def test_boot_loader_without_its_passwords(tmp_path: Path) -> None:
    """The next boot's arguments are read; a password hash and tokens are not sent."""
    context = plant(
        tmp_path,
        {
            "boot/grub/grub.cfg": "password_pbkdf2 root grub.pbkdf2.sha512.10000.AB\nset default=0\nmenuentry 'A' {\n"
            "  linux /vmlinuz-6.8.0-60 ro iommu=pt site.token=abc\n}\n",
            "boot/vmlinuz-6.8.0-60": "",
        },
    )
    output = output_of(boot.SOURCES, "boot-loader", context)
    assert "abc" not in output.text
    assert "grub.pbkdf2.sha512" not in output.text
    snapshot = facts_of(output)
    assert snapshot.get(NODE, "kernel.release", Facet.NEXT_BOOT).value == "6.8.0-60"
    assert "iommu=pt" in snapshot.get(NODE, "kernel.cmdline", Facet.NEXT_BOOT).value
    assert snapshot.get(NODE, "kernel.cmdline").value.reason is Reason.NOT_COLLECTED


def test_boot_loader_hidden_from_users_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that only root may enter is denied, not absent."""
    (tmp_path / "boot/grub2").mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, _: not path.endswith("/boot/grub2"))
    snapshot = facts_of(output_of(boot.SOURCES, "boot-loader", Context(root=str(tmp_path), uid=1000)))
    missing = snapshot.get(NODE, "kernel.cmdline", Facet.NEXT_BOOT).value
    assert isinstance(missing, Missing)
    assert missing.reason is Reason.DENIED


def test_drop_ins_with_a_masked_file_and_the_old_file_linked(tmp_path: Path) -> None:
    """A link to /dev/null masks a file of its name; a link to /etc/sysctl.conf makes that file count."""
    context = plant(
        tmp_path,
        {
            "etc/sysctl.conf": "vm.max_map_count = 65530\n",
            "etc/sysctl.d/99-sysctl.conf": "-> ../sysctl.conf",
            "etc/sysctl.d/60-gpu.conf": "vm.max_map_count = 1048576\nkernel.numa_balancing = 0\n",
            "etc/sysctl.d/70-vendor.conf": "-> /dev/null",
            "usr/lib/sysctl.d/70-vendor.conf": "kernel.numa_balancing = 1\n",
        },
    )
    snapshot = facts_of(output_of(boot.SOURCES, "sysctl-dropins", context))
    fact = snapshot.get(NODE, "sysctl.max_map_count", Facet.NEXT_BOOT)
    assert fact.value == 65530
    assert fact.origin is not None
    assert fact.origin.file == "/etc/sysctl.d/99-sysctl.conf"
    assert fact.origin.excerpt == "/etc/sysctl.d/99-sysctl.conf: vm.max_map_count = 65530"
    assert snapshot.get(NODE, "sysctl.numa_balancing", Facet.NEXT_BOOT).value == 0
    assert snapshot.value("sysctl.unread") == ()


def test_drop_ins_of_a_hostile_tree(tmp_path: Path) -> None:
    """Loops, fifos, binary text and a file of megabytes are no reason to hang or to fall over."""
    context = plant(
        tmp_path,
        {
            "etc/sysctl.d/10-loop.conf": "-> 10-loop.conf",
            "etc/sysctl.d/20-binary.conf": bytes(range(256)),
            "etc/sysctl.d/30-huge.conf": "x" * (3 << 20),
            "etc/sysctl.d/50-new\nline.conf": "vm.swappiness = 1\n",
            "etc/sysctl.d/40-good.conf": "kernel.numa_balancing = 0\n",
        },
    )
    os.mkfifo(tmp_path / "etc/sysctl.d/60-fifo.conf")
    snapshot = facts_of(output_of(boot.SOURCES, "sysctl-dropins", context))
    assert snapshot.get(NODE, "sysctl.numa_balancing", Facet.NEXT_BOOT).value == 0


def test_secrets_are_taken_out_by_name() -> None:
    """Values of words that are called a token, password, secret or key go; other words stay as they are."""
    assert hide(b"ro quiet\tiommu=pt\n") == b"ro quiet\tiommu=pt\n"
    assert hide(b'a rd.password="one two" b') == b"a rd.password=<hidden>"
    assert hide(b"x PASSWORD=1 y api_token=2 z") == b"x PASSWORD=<hidden> y api_token=<hidden> z"
    assert hide(b"init --auth-token abc def") == b"init --auth-token <hidden>"
    assert hide(b"luks.key=/dev/sda\nkeyboard us") == b"luks.key=<hidden>\nkeyboard us"


def test_nothing_is_absent_or_raises_elsewhere(tmp_path: Path) -> None:
    """On an empty tree every source of this area is absent."""
    for source in kernel.SOURCES:
        with pytest.raises(Absent):
            assert source.ask(Context(root=str(tmp_path)))
