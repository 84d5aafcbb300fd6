"""Clock sources: the kernel's clock by its system call, the rest from small trees."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from hwcheck.facts import Subject
from hwcheck.sources import clock
from hwcheck.sources.clock import SOURCES
from hwcheck.sources.source import Absent, Context
from tests.sources.tree import asked, facts_of, output_of, plant


def test_the_kernel_answers_for_its_own_clock() -> None:
    """Every field has its place: tick and tolerance have known values on all of Linux."""
    text = asked(SOURCES, "adjtimex")(Context()).decode()
    rows = dict(line.split("=") for line in text.splitlines())
    assert 9000 <= int(rows["tick"]) <= 11000
    assert rows["tolerance"] == "32768000"
    assert abs(int(rows["tv_sec"]) - __import__("time").time()) < 5
    assert facts_of(output_of(SOURCES, "adjtimex", Context())).value("time.kernel.synchronised") in (True, False)


def test_another_root_has_no_clock(tmp_path: Path) -> None:
    """The clock of this machine says nothing of an image or a lab tree."""
    for name in ("adjtimex", "sysfs-time", "time-conf", "phc-offset"):
        with pytest.raises(Absent):
            asked(SOURCES, name)(Context(root=str(tmp_path)))


def test_clock_sources_and_hardware_clocks(tmp_path: Path) -> None:
    """The clock source in use, and the hardware clocks by name."""
    base = "/sys/devices/system/clocksource/clocksource0/"
    files: dict[str, str | bytes] = {
        f"{base}current_clocksource": "hpet\n",
        f"{base}available_clocksource": "hpet acpi_pm \n",
        "/sys/class/ptp/ptp3/clock_name": "mlx5_ptp\n",
    }
    snapshot = facts_of(output_of(SOURCES, "sysfs-time", plant(tmp_path, files)))
    assert snapshot.value("time.clocksource") == "hpet"
    assert snapshot.value("time.phc.name", Subject("clock", "ptp3")) == "mlx5_ptp"


def test_configuration_is_followed_and_keys_are_not_read(tmp_path: Path) -> None:
    """Drop-ins that chrony.conf names count, and no key file is in the evidence."""
    files: dict[str, str | bytes] = {
        "/etc/chrony.conf": "include /etc/chrony.d/*.conf\nkeyfile /etc/chrony.keys\nrtcsync\n",
        "/etc/chrony.d/site.conf": "server 10.0.0.1 iburst key 7\n",
        "/etc/chrony.keys": "7 SHA256 HEX:c0ffee\n",
    }
    context = plant(tmp_path, files)
    assert b"c0ffee" not in asked(SOURCES, "time-conf")(context)
    snapshot = facts_of(output_of(SOURCES, "time-conf", context))
    assert [row["name"] for row in snapshot.value("time.configured")] == ["10.0.0.1"]
    assert snapshot.value("time.configured.rtcsync") is True


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    """A circle of includes is read once."""
    files: dict[str, str | bytes] = {
        "/etc/chrony.conf": "include /etc/chrony.d/*.conf\nserver a\n",
        "/etc/chrony.d/a.conf": "include /etc/chrony.conf\ninclude /etc/chrony.d/a.conf\nserver b\n",
    }
    snapshot = facts_of(output_of(SOURCES, "time-conf", plant(tmp_path, files)))
    assert [row["name"] for row in snapshot.value("time.configured")] == ["b", "a"]


def test_the_shortest_reading_of_a_hardware_clock_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The offset is taken between two readings of the system clock, from the sample least disturbed."""

    def answer(_fd: int, request: int, buffer: bytearray, _mutate: bool) -> int:  # noqa: FBT001 - as fcntl has it
        assert request == 0x43403D05
        system = 1_000_000_000
        for number in range(11):
            late = 400 if number == 5 else 100 * number
            at = system + 37 * 10**9 + late if number % 2 else system + late
            struct.pack_into("@qI", buffer, 16 + 16 * number, *divmod(at, 10**9))
        return 0

    monkeypatch.setattr("fcntl.ioctl", answer)
    context = plant(tmp_path, {"/dev/ptp0": ""})
    output = output_of(SOURCES, "phc-offset", context)
    snapshot = facts_of(output)
    offset = snapshot.value("time.phc.offset", Subject("clock", "ptp0"))
    assert abs(offset - 37 * 10**9) <= 100
    assert snapshot.value("time.phc.delay", Subject("clock", "ptp0")) == 200


def test_a_clock_that_cannot_do_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the driver is that clock's answer, not the end of the others."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("fcntl.ioctl", refuse)
    text = asked(SOURCES, "phc-offset")(plant(tmp_path, {"/dev/ptp0": "", "/dev/ptp1": ""}))
    assert text.count(b"!error Operation not supported") == 2


def test_layout_is_that_of_the_kernel() -> None:
    """The fields that are judged stand where 64-bit Linux has them."""
    assert struct.calcsize("@I4q") == 40
    assert struct.calcsize(clock._LAYOUT) == 164
