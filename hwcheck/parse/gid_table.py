"""GID tables of RoCE ports, put together from ``gids/N`` and ``gid_attrs`` of sysfs."""

from __future__ import annotations

import re

from hwcheck.facts import Subject
from hwcheck.parse.sink import FactSink

_GID = re.compile(r"^[0-9a-f]{4}(?::[0-9a-f]{4}){7}$")
_MAPPED = re.compile(r"^0000:0000:0000:0000:0000:ffff:([0-9a-f]{4}):([0-9a-f]{4})$")
_FILE = re.compile(r"^(gids|gid_attrs/types|gid_attrs/ndevs)/(\d{1,3})$")
_TYPES = {"RoCE v2": "v2", "IB/RoCE v1": "v1", "RoCE v1": "v1"}
_NETDEV = re.compile(r"^[\w.:@-]{1,32}$")


class GidTables:
    """
    Entries of all ports while a tree is read; only those with a type and an interface are of RoCE.

    Args:
        facts: where the tables go.
    """

    def __init__(self, facts: FactSink) -> None:
        self._facts = facts
        self._entries: dict[Subject, dict[int, dict[str, str]]] = {}
        self._lines: dict[Subject, int] = {}

    def put(self, port: Subject, name: str, text: str, line: int) -> None:
        """Take one file: ``gids/3``, ``gid_attrs/types/3``, ``gid_attrs/ndevs/3``."""
        match = _FILE.match(name)
        if match is None or text.startswith("!"):
            return
        entry = self._entries.setdefault(port, {}).setdefault(int(match[2]), {})
        entry[match[1].rpartition("/")[2]] = text.strip()
        self._lines.setdefault(port, line)

    def netdev(self, port: Subject) -> tuple[str, int] | None:
        """Return the interface of the first RoCE entry, and its line."""
        rows = self._rows(port)
        return (str(rows[0]["netdev"]), self._lines[port]) if rows else None

    def close(self) -> None:
        """Record the table of each port that has one, as ``show_gids`` does."""
        for port in self._entries:
            rows = self._rows(port)
            if rows:
                self._facts.put(port, "rdma.port.gids", tuple(rows), self._lines[port])

    def _rows(self, port: Subject) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for index, entry in sorted(self._entries.get(port, {}).items()):
            gid, netdev = entry.get("gids", ""), entry.get("ndevs", "")
            version = _TYPES.get(entry.get("types", ""))
            if version is None or not _GID.match(gid) or not _NETDEV.match(netdev):
                continue
            address = _MAPPED.match(gid)
            ip = ".".join(str(byte) for byte in bytes.fromhex(address[1] + address[2])) if address else ""
            rows.append({"index": index, "gid": gid, "ip": ip, "version": version, "netdev": netdev})
        return rows
