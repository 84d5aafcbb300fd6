"""Node sets in ClusterShell's notation, in and out: ``gpu-[001-128]``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import NodeSet, NodeSetException

from hwcheck.errors import UsageError

MOST = 100_000
"""Nodes of one set; more is a slip of the finger."""
_BRACKETS, _RANGE = re.compile(r"\[[^\]]*\]?"), re.compile(r"(\d+)-(\d+)")


def expand(text: str) -> list[str]:
    """
    Return the names of a set, in its order; also groups (``@rack1``), where ClusterShell knows them.

    Raises:
        UsageError: no set, an empty one, or an absurdly large one.
    """
    for first, last in (pair for part in _BRACKETS.findall(text) for pair in _RANGE.findall(part)):
        # ClusterShell writes out each range before anybody can count it
        if max(len(first), len(last)) > 12 or int(last) - int(first) > 100 * MOST:
            raise UsageError(f"{text[:80]!r} has a range of more than {100 * MOST} nodes")
    try:
        nodes = NodeSet(text)
        size = len(nodes)
        if not 0 < size <= MOST:
            raise UsageError(f"{text!r} is a set of {size} nodes")
        return [str(node) for node in nodes]
    except NodeSetException as error:
        raise UsageError(f"no node set: {text!r}: {error}") from error


def fold(names: Iterable[str]) -> str:
    """Write names as one set; names that cannot be folded stand as they are."""
    names = list(names)
    try:
        return str(NodeSet.fromlist([name for name in names if name]))
    except NodeSetException:
        return ",".join(names)
