"""What is asked of one end of a measurement between two nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hwcheck.baselines.pairs import Pair
from hwcheck.baselines.ports import HOST, INFINIBAND, Port
from hwcheck.transports.request import Request

SERVE, CALL = "serve", "call"


@dataclass(frozen=True, slots=True)
class Manner:
    """
    How pairs are measured.

    Attributes:
        seconds: of load for one bandwidth.
        streams: TCP connections at once.
        gpu: buffers in GPU memory.
        dmabuf: by dma-buf; else by the peer-memory module.
        first_port, ports: TCP ports on which servers listen; they have to be open between the nodes.
        setup: seconds until a server listens.
        slack: seconds for all else of a measurement: logins, latencies, and the end.
    """

    seconds: float = 5.0
    streams: int = 4
    gpu: bool = False
    dmabuf: bool = True
    first_port: int = 18515
    ports: int = 50
    setup: float = 30.0
    slack: float = 30.0

    @property
    def limit(self) -> float:
        """Seconds for one pair, after which both ends are ended."""
        return self.setup + self.slack + 2 * self.seconds


@dataclass(frozen=True, slots=True)
class PairRequest(Request):
    """
    One end of a measurement.

    Attributes:
        order: see :func:`hwcheck.sources.load_pair.main`.
    """

    order: Mapping[str, Any] = field(default_factory=dict)

    def call(self) -> str:
        """Return the last line of the program, which starts it."""
        words = f"take_part_in({dict(self.order)!r}, deadline={self.deadline!r})"
        return f"from hwcheck.sources.load_pair import main as take_part_in\n{words}"

    def owed(self, came: Iterable[str]) -> Counter[str]:
        """Owe nothing: what did not come is told for the pair."""
        del came
        return Counter()


def order_of(pair: Pair, role: str, manner: Manner, token: str) -> dict[str, Any]:
    """
    Write down what one end is to do.

    Args:
        pair: the measurement.
        role: ``serve`` or ``call``; a client needs ``address``, ``port`` and ``other`` besides.
        manner: how.
        token: known to the two ends only.
    """
    port = pair.server_port if role == SERVE else pair.client_port
    return {
        "role": role, "test": pair.test, "on": pair.on, "conditions": _conditions(pair, port),
        "device": port.device, "number": port.number, "pci": port.address, "interface": port.interface,
        "gid": port.gid, "gpu": port.gpu if manner.gpu else None, "dmabuf": manner.dmabuf,
        "seconds": manner.seconds, "streams": manner.streams, "token": token,
        "ports": (manner.first_port, manner.ports),
    }  # fmt: skip


def _conditions(pair: Pair, port: Port) -> dict[str, Any]:
    told: dict[str, Any] = {"client": pair.client, "server": pair.server, "rail": port.rail}
    if pair.rate:
        told["link_rate"] = pair.rate
    if port.kind != HOST and pair.test.startswith("rdma"):
        told["transport_expected"] = "IB" if port.kind == INFINIBAND else "Ethernet"
    return told
