"""
Whose fault a slow pair is: a node that is slow with each of its partners, of which each is well with somebody else.

One slow pair tells nothing of its two ends; two partners each are enough. What only two ends have in common, while both
are well with others, is the path between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Met:
    """
    One pair that was measured.

    Attributes:
        one, other: nodes.
        slow: below its bound.
        marked: the end whose own port showed why (a lower rate than the rail's); "" for none.
    """

    one: str
    other: str
    slow: bool
    marked: str = ""

    def partner(self, node: str) -> str:
        """Return the other end."""
        return self.other if node == self.one else self.one


@dataclass(frozen=True, slots=True)
class Blame:
    """
    What slow pairs have in common.

    Attributes:
        kind: ``node`` (slow with all its partners), ``path`` (both ends are well with others), ``either`` (two ends,
            of which nothing else is known).
        nodes: the one, or the two.
        partners: of a ``node``, those it was slow with.
    """

    kind: str
    nodes: tuple[str, ...]
    partners: tuple[str, ...] = ()


def blame(met: Iterable[Met]) -> list[Blame]:
    """
    Name the likely culprits of one rail and test.

    Args:
        met: pairs that count; each two nodes at most once.

    Returns:
        Nodes first, then paths and pairs of which either may be it, in order of names. [] when no pair is slow.
    """
    of: dict[str, list[Met]] = defaultdict(list)
    slow = []
    for pair in met:
        of[pair.one].append(pair)
        of[pair.other].append(pair)
        slow += [pair] if pair.slow else []
    well = {node for node, mine in of.items() if any(not pair.slow for pair in mine)}
    guilty = {pair.marked for pair in slow if pair.marked}
    guilty |= {end for pair in slow for end in (pair.one, pair.other) if end not in well and pair.partner(end) in well}
    nodes = [
        Blame("node", (node,), tuple(sorted(pair.partner(node) for pair in of[node] if pair.slow)))
        for node in sorted(guilty)
    ]
    left = sorted(tuple(sorted((pair.one, pair.other))) for pair in slow if not {pair.one, pair.other} & guilty)
    return nodes + [Blame("path" if set(ends) <= well else "either", ends) for ends in left]


def common_end(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the one node that is in all pairs: whose they are; "" where that is nobody, or both ends of one pair."""
    ends: set[str] | None = None
    for pair in pairs:
        ends = set(pair) if ends is None else ends & set(pair)
    return ends.pop() if ends and len(ends) == 1 else ""
