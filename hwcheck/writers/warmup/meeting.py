"""
Two peers agree: a TCP connection of their own, one JSON object a line, each way.

The listener is there for the whole run, so a peer that is early waits instead of failing. Only peers by address and
name are listened to, and what they say are names of methods, which select nothing but our own command lines.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any

_LINE = 4096


class MeetingError(Exception):
    """The partner did not come, or said what we do not understand."""


class Line:
    """One connection to a partner; every wait has an end."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""

    def tell(self, **said: Any) -> None:
        """Send an object."""
        try:
            self._socket.settimeout(5.0)
            self._socket.sendall(json.dumps(said).encode() + b"\n")
        except OSError as error:
            raise MeetingError(f"the partner has gone: {error}") from error

    def hear(self, until: float) -> dict[str, Any]:
        """
        Wait for an object.

        Raises:
            MeetingError: none came by then, or it is none.
        """
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0:
                raise MeetingError("the partner did not answer in time")
            try:
                self._socket.settimeout(left)
                part = self._socket.recv(_LINE)
            except OSError as error:
                raise MeetingError(f"the partner has gone: {error}") from error
            self._rest += part
            if not part or len(self._rest) > _LINE:
                raise MeetingError("the partner has gone" if not part else "the partner says too much")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise MeetingError("the partner said what is not understood")
        return said

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Door:
    """
    Where partners come to.

    Args:
        address: of this node on the fabric.
        port: to listen on.
        peers: name → address of those who may come.
    """

    def __init__(self, address: str, port: int, peers: dict[str, str]) -> None:
        self._peers = peers
        self._early: dict[str, Line] = {}
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((address, port))
            self._socket.listen(128)
        except OSError as error:
            self._socket.close()
            raise MeetingError(f"cannot listen on {address} port {port}: {error.strerror}") from error

    def await_partner(self, name: str, until: float) -> Line:
        """
        Wait for a partner; others that come meanwhile are kept for their round.

        Raises:
            MeetingError: it did not come.
        """
        while name not in self._early:
            left = until - time.monotonic()
            if left <= 0:
                raise MeetingError(f"{name} did not come")
            self._socket.settimeout(left)
            try:
                connection, source = self._socket.accept()
            except socket.timeout:
                continue
            except OSError as error:
                raise MeetingError(f"cannot wait for {name}: {error.strerror}") from error
            line = Line(connection)
            try:
                who = line.hear(min(until, time.monotonic() + 2.0)).get("from")
            except MeetingError:
                who = None
            if isinstance(who, str) and self._peers.get(who) == source[0]:
                self._early[who] = line
            else:
                line.close()
        return self._early.pop(name)

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()
        for line in self._early.values():
            line.close()


def go_to(me: tuple[str, str], partner: tuple[str, str], port: int, until: float) -> Line:
    """
    Go to a partner, again and again while it is not there yet.

    Args:
        me: name and address of this node.
        partner: name and address.
        port: it listens on.
        until: when to give up.

    Raises:
        MeetingError: it was not there.
    """
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise MeetingError(f"{partner[0]} was not there")
        try:
            connection = socket.create_connection((partner[1], port), timeout=min(left, 5.0), source_address=(me[1], 0))
        except OSError:
            time.sleep(0.1)
            continue
        line = Line(connection)
        line.tell(**{"from": me[0]})
        return line
