"""Orders to the keeper: one JSON object on one line, and so is the answer."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOCKET = "keeper.socket"
_LINE = 1 << 20


@dataclass
class Order:
    """An order whose nodes have not all answered yet."""

    connection: socket.socket
    waiting: set[str]
    answers: dict[str, Any] = field(default_factory=dict)


def bind_near(door: socket.socket, folder: Path) -> None:
    """Bind a socket in a folder whose path may be longer than an address of a socket."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        Path(folder, SOCKET).unlink(missing_ok=True)
        door.bind(f"/proc/self/fd/{fd}/{SOCKET}")
    finally:
        os.close(fd)


def read_line(connection: socket.socket) -> bytes:
    """Read an order; what is longer than any order is cut off."""
    data = b""
    while not data.endswith(b"\n") and len(data) < _LINE:
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data


def answer(connection: socket.socket, what: dict[str, Any]) -> None:
    """Answer an order; whoever asked may be gone."""
    try:
        connection.sendall(json.dumps(what).encode() + b"\n")
    except OSError:
        pass  # who asked is gone
    finally:
        connection.close()
