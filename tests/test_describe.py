"""What a node is, as a run tells it."""

from __future__ import annotations

from hwcheck.describe import describe
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Reason
from hwcheck.parse import take_snapshot

DMI = """\
/sys/class/dmi/id/sys_vendor: Dell Inc.
/sys/class/dmi/id/product_name: PowerEdge XE9680
/sys/class/dmi/id/product_serial: {}
/sys/class/dmi/id/board_serial: {}
"""


def machine(serial: str, board: str) -> Output:
    """Return what the DMI source prints."""
    return Output("sysfs.machine", DMI.format(serial, board).splitlines())


def test_serial_numbers_are_there_where_they_are_told() -> None:
    """A user may not read them and a manufacturer leaves them unfilled: then they are left out, never made up."""
    told = describe(take_snapshot(Evidence("n", [machine("7H2K9X3", "CN7475146")])), "hgx-h200")
    assert (told["serial"], told["board_serial"]) == ("7H2K9X3", "CN7475146")
    for serial, board in (
        ("!denied", "!denied"),
        ("To be filled by O.E.M.", "0000000"),
        ("System Serial Number", "None"),
    ):
        told = describe(take_snapshot(Evidence("n", [machine(serial, board)])), "hgx-h200")
        assert "serial" not in told
        assert "board_serial" not in told


def test_sources_tell_how_they_ended() -> None:
    """A source that was read says so; one that broke off, was denied or is not there says that instead."""
    outputs = [
        machine("7H2K9X3", ""),
        Output("uptime", [" 12:00:00 up 1 day"], reason=Reason.UNPARSABLE, detail="cut off"),
        Output("kernel.log", reason=Reason.DENIED),
        Output("dcb", reason=Reason.ABSENT),
    ]
    sources = describe(take_snapshot(Evidence("n", outputs)), "hgx-h200")["sources"]
    assert sources == {"sysfs.machine": "read", "uptime": "unparsable", "kernel.log": "denied", "dcb": "absent"}
