"""
The whole warm-up of one node: neighbours first, then the rounds of the tournament.

A peer that does not come, or a program that fails, is told for that pair and method; the others go on. Nothing is
written on the node.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from typing import Any

from . import programs, samples
from .meeting import Door, Line, MeetingError, go_to
from .tournament import meetings

NEIGHBOUR = "neighbour"
MOST_PEERS = 4096
_PINGS = 5
_PORTS = 50
"""Ports that the programs take turns on: one that was used a moment ago may still be closing."""


class WarmupError(Exception):
    """The request is not understood, or this node cannot take part."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """
    Warm the paths between this node and its peers.

    Args:
        request: ``peers`` (``name``, ``address``, ``device``), ``name`` of this node, ``methods``, ``iterations``,
            ``gid_index``, ``port``, ``round_timeout`` in seconds, ``rate`` of neighbours in a second, ``check``.

    Returns:
        ``ok``, ``why``, ``missing`` (programs that are not installed here), ``pairs`` (one for each peer and
        method, with ``status``: warmed, missing, failed) and ``measurements``.
    """
    try:
        peers = _read(request)
        missing = sorted(
            program for method, program in programs.METHODS.items()
            if method in request["methods"] and programs.path_of(program) is None
        )  # fmt: skip
        if request.get("check") or len(peers) < 2 or not request["methods"]:
            return _told([], missing)
        return _told(_Warmup(request, peers).run(), missing)
    except (WarmupError, MeetingError) as error:
        return {"ok": False, "why": str(error), "missing": [], "pairs": [], "measurements": []}


def _told(pairs: list[dict[str, Any]], missing: list[str]) -> dict[str, Any]:
    wrong = [f"{pair['peer']} by {pair['method']}: {pair['why']}" for pair in pairs if pair["status"] == "failed"]
    measured = [
        {"name": "warmup", "peer": pair["peer"], "method": pair["method"], **pair.pop("measured")}
        for pair in pairs
        if "measured" in pair
    ]
    return {"ok": not wrong, "why": "; ".join(wrong[:10]), "missing": missing, "pairs": pairs, "measurements": measured}


def _read(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """
    Check the request.

    Raises:
        WarmupError: something in it is not understood.
    """
    peers: dict[str, dict[str, Any]] = {}
    known = (NEIGHBOUR, *programs.METHODS)
    if len(request["peers"]) > MOST_PEERS:
        raise WarmupError(f"more than {MOST_PEERS} peers; a rack or a rail at a time is enough")
    for peer in request["peers"]:
        try:
            peer = {**peer, "address": str(ipaddress.ip_address(peer["address"]))}  # noqa: PLW2901 - the same in one spelling
        except ValueError:
            raise WarmupError(f"peer {peer['name']}: {peer['address']!r} is no IP address") from None
        if peer["name"] in peers or peer["address"] in {other["address"] for other in peers.values()}:
            raise WarmupError(f"peer {peer['name']} or its address stands twice in the list")
        peers[peer["name"]] = peer
    if peers and request["name"] not in peers:
        raise WarmupError(f"{request['name']} is none of the peers")
    unknown = sorted(set(request["methods"]) - set(known))
    if unknown:
        raise WarmupError(f"no method {', '.join(unknown)}; there are {', '.join(known)}")
    if not 5 <= request["iterations"] <= 100_000:
        raise WarmupError("iterations must be 5 to 100000")
    if not 1024 <= request["port"] <= 65535 - _PORTS:
        raise WarmupError(f"port must be 1024 to {65535 - _PORTS}")
    if not request["round_timeout"] > 0 or not request["rate"] > 0:
        raise WarmupError("round_timeout and rate must be more than 0")
    return peers


class _Warmup:
    """One run on one node."""

    def __init__(self, request: dict[str, Any], peers: dict[str, dict[str, Any]]) -> None:
        self._request = request
        self._peers = peers
        self._me = request["name"]
        self._paired = [method for method in request["methods"] if method in programs.METHODS]
        self._seconds = float(request["round_timeout"])

    def run(self) -> list[dict[str, Any]]:
        pairs: list[dict[str, Any]] = []
        if NEIGHBOUR in self._request["methods"]:
            pairs += self._neighbours()
        if self._paired:
            addresses = {name: peer["address"] for name, peer in self._peers.items()}
            door = Door(addresses[self._me], self._request["port"], addresses)
            try:
                for number, meeting in enumerate(meetings(list(self._peers), self._me)):
                    if meeting.partner is not None:
                        pairs += self._meet(door, meeting.partner, number, serves=meeting.serves)
            finally:
                door.close()
        return pairs

    def _neighbours(self) -> list[dict[str, Any]]:
        """Let the kernel look for each peer's hardware address, not faster than the rate."""
        pairs = []
        for name, peer in self._peers.items():
            if name == self._me:
                continue
            begun = time.monotonic()
            pairs.append(_pair(name, NEIGHBOUR, **self._greet(peer["address"])))
            time.sleep(max(0.0, 1.0 / self._request["rate"] - (time.monotonic() - begun)))
        return pairs

    def _greet(self, address: str) -> dict[str, Any]:
        mine = self._peers[self._me]["address"]
        if programs.path_of("ping") is None:
            return _greet_without_program(mine, address)
        line = ["ping", "-n", "-c", str(_PINGS), "-i", "0.2", "-W", "1", "-I", mine, address]
        with programs.Program(line) as ping:
            code = ping.wait(time.monotonic() + self._seconds)
            found = samples.of_ping(ping.said())
            if code is None or not found:
                return {"status": "failed", "why": "did not answer to ping"}
        return {"status": "warmed", "measured": samples.comparison(found)}

    def _meet(self, door: Door, partner: str, number: int, *, serves: bool) -> list[dict[str, Any]]:
        """Meet one partner; what could not be done is told for every method."""
        until = time.monotonic() + self._seconds
        me, other = ((name, self._peers[name]["address"]) for name in (self._me, partner))
        done: list[dict[str, Any]] = []
        try:
            line = door.await_partner(partner, until) if serves else go_to(me, other, self._request["port"], until)
            try:
                self._go_through(line, partner, number, done, serves=serves)
            finally:
                line.close()
        except MeetingError as error:
            told = {pair["method"] for pair in done}
            done += [_pair(partner, method, "failed", str(error)) for method in self._paired if method not in told]
        return done

    def _go_through(self, line: Line, partner: str, number: int, done: list[dict[str, Any]], *, serves: bool) -> None:
        line.tell(has=[method for method in self._paired if programs.path_of(programs.METHODS[method])])
        theirs = line.hear(time.monotonic() + self._seconds).get("has")
        for place, method in enumerate(self._paired):
            lacks = [
                name
                for name, has in (
                    (self._me, programs.path_of(programs.METHODS[method])),
                    (partner, method in (theirs or [])),
                )
                if not has
            ]
            if lacks:
                why = f"{programs.METHODS[method]} is not installed on {' and '.join(lacks)}"
                done.append(_pair(partner, method, "missing", why))
                continue
            port = self._request["port"] + 1 + (number * len(self._paired) + place) % (_PORTS - 1)
            side = self._serve if serves else self._call
            done.append(side(line, partner, method, port))

    def _line(self, method: str, port: int, address: str, *, serves: bool) -> list[str]:
        device = self._peers[self._me].get("device") or ""
        return programs.words(method, self._request, device, port, address, serves=serves)

    def _serve(self, line: Line, partner: str, method: str, port: int) -> dict[str, Any]:
        """Be the server until the partner says that it is done, or the time is over; the program ends in any case."""
        until = time.monotonic() + self._seconds
        with programs.Program(self._line(method, port, self._peers[self._me]["address"], serves=True)) as server:
            line.tell(started=method)
            said = line.hear(until + 2.0)
            code = server.wait(min(until, time.monotonic() + 2.0))
            if said.get("done") != method or not said.get("well"):
                return _pair(
                    partner, method, "failed", f"the other end failed; here: {programs.last_line(server.said())}"
                )
            return _pair(partner, method, "warmed", "" if code == 0 else "the server had to be ended")

    def _call(self, line: Line, partner: str, method: str, port: int) -> dict[str, Any]:
        """Be the client; a server that is not listening yet is called again."""
        until = time.monotonic() + self._seconds
        if line.hear(until).get("started") != method:
            raise MeetingError("the partner is at another step")
        words = self._line(method, port, self._peers[partner]["address"], serves=False)
        code, said, seconds = None, "", 0.0
        while code != 0 and time.monotonic() < until:
            begun = time.monotonic()
            with programs.Program(words) as client:
                code, said = client.wait(until), client.said()
                seconds = time.monotonic() - begun
            if code != 0:
                time.sleep(0.2)
        line.tell(done=method, well=code == 0)
        if code != 0:
            return _pair(partner, method, "failed", programs.last_line(said) if code is not None else "took too long")
        measured = {"unit": "s", "seconds": round(seconds, 4)}
        if method == "send_lat":
            measured = samples.comparison(samples.of_send_lat(said))
        return _pair(partner, method, "warmed", measured=measured)


def _greet_without_program(mine: str, address: str) -> dict[str, Any]:
    """Send one datagram to the discard port, for which the kernel has to find the neighbour; nobody needs to answer."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind((mine, 0))
            sender.sendto(b"", (address, 9))
    except OSError as error:
        return {"status": "failed", "why": f"cannot be sent to: {error.strerror}"}
    return {"status": "warmed", "why": "ping is not installed; one datagram was sent, and nothing measured"}


def _pair(peer: str, method: str, status: str, why: str = "", **more: Any) -> dict[str, Any]:
    return {"peer": peer, "method": method, "status": status, "why": why, **more}
