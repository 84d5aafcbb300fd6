"""
``ibstat``: RDMA devices and their ports.

Source: ``ibstat`` of infiniband-diags (rdma-core), versions 39 to 47 seen; public outputs of A100, H100 and V100 nodes.
Shape: a device and its ports each have a block; the subject is the port ``mlx5_0/1``, firmware belongs to the device.
Units: ``Rate`` is Gb/s. The rate of a port that is not Active is a default (10, 40), no measurement.
Missing: ``ibpanic: ... stat of IB device 'X' failed`` ends the output and names a device that could not be read: its
    port state is FAILED. A last block with fewer lines than the first, or a device without its ports, is cut off, and
    the value on the very last line may be half of one: UNPARSABLE.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, port
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_DEVICE = re.compile(r"^\s*CA '([\w.:-]{1,64})'")
_PORT = re.compile(r"^\s*Port (\d{1,3}):\s*$")
_VALUE = re.compile(r"^\s*([A-Z][A-Za-z ]{2,24}):[ \t]*(\S.*)?$")
_PANIC = re.compile(r"^\s*ibpanic:.{0,200}?(?:device|CA|ca) '([\w.:-]{1,64})'")

_OF_DEVICE = {
    "CA type": ("rdma.device.hca_type", words.hca_type),
    "Firmware version": ("rdma.device.fw", words.short),
    "System image GUID": ("rdma.device.image_guid", words.short),
}
_OF_PORT = {
    "State": ("rdma.port.state", words.port_state),
    "Physical state": ("rdma.port.phys_state", words.physical_state),
    "Base lid": ("rdma.port.lid", words.lid),
    "SM lid": ("rdma.port.sm_lid", words.lid),
    "Link layer": ("rdma.port.link_layer", words.link_layer),
}
GIVES = (
    *(name for name, _ in _OF_PORT.values()), "rdma.port.rate", "rdma.port.hca_type",
    *(name for name, _ in _OF_DEVICE.values()), "rdma.device.model",
)  # fmt: skip


@fmt(
    "ibstat",
    "ibstat",
    gives=GIVES,
    opens=r"CA '[\w.:-]{1,64}'\s*$",
    continues=(
        r"\s*(?:CA '|CA type:|Number of ports:|Firmware version:|Hardware version:|Node GUID:|System image GUID:"
        r"|Port \d{1,3}:|State:|Physical state:|Rate:|Base lid:|LMC:|SM lid:|Capability mask:|Port GUID:|Link layer:"
        r"|ibpanic:|ibwarn:|$)"
    ),
    command=r"(?:^|[\s/|;&])ibstat(?:\s+-?[\w.]+)*\s*$",
)
def parse_ibstat(output: Output, facts: FactSink) -> None:
    """Read devices and ports; say what a broken end leaves untold."""
    last = max((i for i, text in enumerate(output.lines) if text.strip()), default=-1)
    complete = _is_complete(output.lines[: last + 1])
    reading = _Reading(facts)
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if match := _DEVICE.match(text):
            reading.begin(match[1])
        elif match := _PANIC.match(text):
            facts.missing(port(match[1]), "rdma.port.state", Reason.FAILED, "ibstat could not read the device", line)
            why = f"ibstat broke off at {match[1]}: the device is listed but could not be read"
            facts.cut_off(why, ("rdma.port.state",))
        elif match := _PORT.match(text):
            reading.port(match[1], line)
        elif match := _VALUE.match(text):
            reading.value(match[1], "" if index == last and not complete else match[2] or "", line)
    reading.close()
    if not complete:
        facts.cut_off("ibstat ends in the middle of a device", GIVES)


class _Reading:
    """Where in the text we are: in which device, and in which of its ports."""

    def __init__(self, facts: FactSink) -> None:
        self._ports, self._devices = words.Ports(facts), words.Devices(facts)
        self._device = self._kind = self._block = ""
        self._seen: set[str] | None = None

    def begin(self, device: str) -> None:
        """Enter a device."""
        self._device, self._kind, self._block, self._seen = device, "", "", None

    def port(self, number: str, line: int) -> None:
        """Enter a port of the device."""
        self._block = number
        if self._kind and self._device:
            self._ports.put(port(self._device, number), "rdma.port.hca_type", words.hca_type, self._kind, line)

    def value(self, key: str, text: str, line: int) -> None:
        """Record a value of the device or port."""
        if not self._device:
            return
        if key in _OF_DEVICE:
            self._kind = text.strip() if key == "CA type" else self._kind
            self._devices.put(Subject("nic", self._device), *_OF_DEVICE[key], text, line)
            return
        if key != "Rate" and key not in _OF_PORT:
            return
        if not self._block:
            self._seen = set()  # an excerpt without its "Port N:" lines: ports are told apart by a key that returns
            self.port("1", line)
        elif self._seen is not None and key in self._seen:
            self._seen = set()
            self.port(str(int(self._block) + 1), line)
        if self._seen is not None:
            self._seen.add(key)
        if key == "Rate":
            self._ports.put_rate(port(self._device, self._block), text, line)
        else:
            self._ports.put(port(self._device, self._block), *_OF_PORT[key], text, line)

    def close(self) -> None:
        """Record what peers are compared by."""
        self._ports.close()
        self._devices.close()


def _is_complete(lines: list[str]) -> bool:
    """
    Tell whether the last port has all lines that the first one has, and the last device its ports.

    An excerpt (``ibstat | grep ...``) sets its own measure; a whole output, known by its ``Node GUID`` lines, must
    reach ``Link layer``.
    """
    ports: list[set[str]] = []
    have, none, whole = 0, False, False
    for text in lines:
        if _DEVICE.match(text):
            have, none = 0, False
        elif _PORT.match(text):
            ports.append(set())
            have += 1
        elif match := _VALUE.match(text):
            whole |= match[1] == "Node GUID"
            none |= match[1] == "Number of ports" and match[2] == "0"
            if have:
                ports[-1].add(match[1])
    if not have:
        return none or not (ports or whole)
    return ports[-1] >= ports[0] and ("Link layer" in ports[-1] or not whole)
