"""Sources of the platform area, on small trees: machine, operating system, time zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.sources import platform
from hwcheck.sources.source import Absent, Context
from tests.sources.tree import facts_of, output_of, plant

CPU = "processor\t: {}\nflags\t\t: fpu vme {}\n\n"


def test_bare_metal(tmp_path: Path) -> None:
    """A machine of a manufacturer whose CPU has no hypervisor flag is bare metal, started by EFI, with a BMC."""
    context = plant(
        tmp_path,
        {
            "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
            "sys/class/dmi/id/product_name": "PowerEdge XE9680\n",
            "sys/class/dmi/id/product_serial": "7H2K9X3\n",
            "sys/class/dmi/id/board_serial": "To be filled by O.E.M.\n",
            "sys/class/dmi/id/bios_version": "2.6.3\n",
            "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": b"\x06\0\0\0\x01",
            "dev/ipmi0": "",
            "proc/cpuinfo": CPU.format(0, "avx512f") + CPU.format(1, "hypervisor"),
        },
    )
    snapshot = facts_of(output_of(platform.SOURCES, "machine", context))
    assert snapshot.value("platform.virtualization") == "none"
    assert snapshot.value("platform.product") == "PowerEdge XE9680"
    assert snapshot.value("platform.serial") == "7H2K9X3"
    assert snapshot.value("platform.board_serial") is None
    assert snapshot.value("platform.bmc") is True
    assert snapshot.value("platform.secure_boot") is True
    assert snapshot.value("firmware.bios") == "2.6.3"


def test_guest_without_dmi(tmp_path: Path) -> None:
    """A small virtual machine without DMI tables is told by the flag of its CPU alone."""
    context = plant(tmp_path, {"proc/cpuinfo": CPU.format(0, "hypervisor")})
    assert facts_of(output_of(platform.SOURCES, "machine", context)).value("platform.virtualization") == "vm-other"


def test_system_and_zone(tmp_path: Path) -> None:
    """The operating system is found in either of its two places; the zone is where the link leads."""
    context = plant(
        tmp_path,
        {
            "usr/lib/os-release": 'NAME="X"\nID="rocky"\nVERSION_ID="9.5"\n',
            "etc/localtime": "-> ../usr/share/zoneinfo/UTC",
        },
    )
    snapshot = facts_of(*(output_of(platform.SOURCES, name, context) for name in ("os-release", "time-zone")))
    assert snapshot.value("platform.os") == "rocky 9.5"
    assert snapshot.value("time.zone") == "UTC"


def test_empty_tree_is_absent(tmp_path: Path) -> None:
    """On an empty tree every source of this area is absent."""
    for source in platform.SOURCES:
        with pytest.raises(Absent):
            assert source.ask(Context(root=str(tmp_path)))
