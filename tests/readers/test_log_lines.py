"""Kernel log lines behind whatever tools and people put in front of them."""

from __future__ import annotations

import pytest

from hwcheck.evidence import Evidence
from hwcheck.facts import Snapshot, gpu_at
from hwcheck.parse import take_snapshot
from hwcheck.readers.segments import split_text

XID = "NVRM: Xid (PCI:0000:5d:00): 79, pid=77, name=train, GPU has fallen off the bus."
NIC = "mlx5_core 0000:52:00.0: Port module event[error]: module 0, Cable error, Power budget exceeded"
GPU = gpu_at("0000:5d:00.0")


def read(*lines: str) -> list[Snapshot]:
    """Read one text; a snapshot for each node in it."""
    return [take_snapshot(evidence) for evidence in split_text(list(lines), "posted", Evidence())]


def xids(snapshot: Snapshot) -> list[tuple[int, str]]:
    """Return code and time of what the GPU logged."""
    return [(record["code"], record["time"]) for record in snapshot.value("xid.events", GPU) or ()]


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("<4>1 2025-05-06T07:08:09.123Z gpu-7 kernel - - - {}", "2025-05-06T07:08:09.123Z"),
        ("<3>1 2025-05-06T07:08:09+02:00 gpu-7 kernel 0 - [origin a=1] {}", "2025-05-06T07:08:09+02:00"),
        ("2025-05-06T07:08:09.123456789Z stderr F [  812.5] {}", "2025-05-06T07:08:09.123456789Z"),
        ("Mär 06 07:08:09 gpu-7 kernel: {}", "Mär 06 07:08:09"),
        ("5月 06 07:08:09 gpu-7 kernel: {}", "5月 06 07:08:09"),
        ("déc. 06 07:08:09 gpu-7 kernel: {}", "déc. 06 07:08:09"),
        ("/var/log/messages:May  6 07:08:09 gpu-7 kernel: {}", "May  6 07:08:09"),
        ("/var/log/kern.log.2.gz:May  6 07:08:09 gpu-7 kernel: [  812.5] {}", "May  6 07:08:09"),
        ("messages-20250506:May  6 07:08:09 gpu-7 kernel: {}", "May  6 07:08:09"),
        ("./dmesg.txt:12:[  812.5] {}", "812.5"),
        ("123:May  6 07:08:09 gpu-7 kernel: {}", "May  6 07:08:09"),
        ("1234-2025-05-06T07:08:09+0000 gpu-7 kernel: {}", "2025-05-06T07:08:09+0000"),
        ("gpu-7 login: [  812.512345] {}", "812.512345"),
        ("2025/05/06 07:08:09 gpu-7 kernel: {}", "2025/05/06 07:08:09"),
        ("2025/05/06 07:08:09 {}", "2025/05/06 07:08:09"),
        ("- [  812.5] {}", "812.5"),
        ("* `[  812.5] {}`", "812.5"),
        ("2025-05-06T07:08:09+0000 gpu-7 kernel: {}", "2025-05-06T07:08:09+0000"),
    ],
)
def test_a_prefix_is_taken_off_and_its_time_kept(line: str, time: str) -> None:
    """Whatever log shipper, grep, console or chat the line went through, error and time are read."""
    (snapshot,) = read(line.format(XID))
    assert xids(snapshot) == [(79, time)]
    (snapshot,) = read(line.format(NIC))
    assert [record["kind"] for record in snapshot.value("kernel.log.events")] == ["mlx5.module"]


@pytest.mark.parametrize(
    "line",
    ["`{}`", "ALERT || {}", "node7: {}", "[x] [y] (z) {}", '{{"log":"{}","stream":"stderr"}}', '\t"MESSAGE" : "{}",'],
)
def test_what_only_the_driver_writes_is_read_behind_anything(line: str) -> None:
    """An error with address and number needs no prefix that is known; it has no time then."""
    (snapshot,) = read("some words", line.format(XID))
    assert xids(snapshot) == [(79, "")]


@pytest.mark.parametrize(
    "line", ['Look for "{}" in the log.', '  "excerpt": "{}",', "It prints '{}' first.", "x" * 950 + " {}"]
)
def test_what_speaks_about_an_error_is_none(line: str) -> None:
    """A quotation in prose, a value of somebody's JSON and a line of absurd length are no log lines."""
    (snapshot,) = read(line.format(XID))
    assert xids(snapshot) == []


def test_the_journal_as_json_is_read() -> None:
    """Kernel lines of journalctl -o json have their time in microseconds; other programs' lines are none."""
    entry = '{{"__REALTIME_TIMESTAMP":"1746515289123456","_TRANSPORT":"{}","MESSAGE":"{}"}}'
    (snapshot,) = read(entry.format("kernel", XID), entry.format("kernel", NIC))
    assert xids(snapshot) == [(79, "2025-05-06T07:08:09+00:00")]
    assert len(snapshot.value("kernel.log.events")) == 1
    (other,) = read(entry.format("stdout", NIC))
    assert other.value("kernel.log.events") is None


def test_hosts_in_front_of_bare_messages_stay_apart() -> None:
    """That a message is known behind anything must not hide that host names stand in front of it."""
    lines = [f"{host}: {XID.replace('79', code)}" for code in ("79", "45") for host in ("n1", "n2")]
    assert [xids(snapshot) for snapshot in read(*lines)] == [[(79, ""), (45, "")]] * 2


def test_a_driver_that_was_loaded_later_is_seen_in_any_language() -> None:
    """Months of other languages compare."""
    load = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu May  1 00:00:00 UTC 2025"
    (snapshot,) = read(f"Mär 06 07:08:09 n kernel: {XID}", f"Mai 06 07:08:09 n kernel: {load}")
    (record,) = snapshot.value("xid.events", GPU)
    assert record["stale"] is True


@pytest.mark.parametrize(
    "words",
    ["0x00000000d0x00000000 0x1", "0x1,,,0x2", "0x" + "f" * 40, "0xg 0x1", "0x1 0x2", "0x1,0x2,", "0x1 0x2) tail ("],
)
@pytest.mark.parametrize("form", ["145, RLW_RXPIPE Nonfatal XC0 i0 Link 02 ({})", "74, NVLink: link 5({})"])
def test_broken_hexadecimal_words_raise_nothing(words: str, form: str) -> None:
    """Words that run into each other are not taken for others; the error itself stays."""
    (snapshot,) = read(f"[  1.2] NVRM: Xid (PCI:0000:5d:00): {form.format(words)}")
    (record,) = snapshot.value("xid.events", GPU)
    assert record["words"] in ((), (1, 2))
