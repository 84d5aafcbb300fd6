"""
In which order nodes are changed, and when a roll-out holds. Pure: it decides, others act.

Canary first: one unit of each cohort (platform × firmware and driver × kernel), since nodes that behave alike fail
alike. A unit is a node, or all nodes of an NVLink domain, which are changed together. Then waves, each a share of the
whole fleet.

Where the inventory declares failure domains (``hwcheck_failure_domain``: a rack, a row, whatever a site places its
replicas across), a wave touches one at a time, canaries included, unless more are allowed: what a change breaks is then
broken in one place, and whoever has spread work over several keeps the rest. A share is taken first and cut after, so
waves become smaller, never larger. Nodes without one count together as one more. A unit that lies in several is still
not split; it goes alone.

After each wave, fresh evidence is set against that of before:

* a node with a check that has become worse is *quarantined*: left drained, with its finding;
* the roll-out *holds* when a changed key itself is not right, when anything of a canary has become worse, or when one
  check has become worse on two nodes and on more than 2 % of those touched.

Only state is compared: a measured value has its spread, and the log tells of what the change itself has done.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hwcheck.errors import UsageError
from hwcheck.findings import Finding, Status
from hwcheck.plan import NodePlan

WAVES = ("1", "5%", "25%", "100%")
READS = 3
"""Times that a node is read before it counts as worse."""
_SHARE = 0.02
_NO_STATE = frozenset(("xid", "sxid", "baseline", "evidence", "process"))
_RANK = {Status.PASS: 0, Status.SKIP: 0, Status.WARN: 1, Status.UNKNOWN: 2, Status.FAIL: 3}

Key = tuple[str, str]
"""Check and subject."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Nodes that are changed together; the first wave of a roll-out is its canary."""

    nodes: tuple[str, ...]
    canary: bool = False


def plan_waves(
    plans: Sequence[NodePlan], sizes: Sequence[str] = WAVES, domains: Mapping[str, str] | None = None, most: int = 0,
    most_domains: int = 1,
) -> list[Wave]:  # fmt: skip
    """
    Put nodes into waves.

    Args:
        plans: of the nodes to be changed; order is kept within a cohort.
        sizes: of the waves: a number of units, or a share of all nodes as ``5%``. The first is for each cohort; the
            last is repeated until all nodes are in.
        domains: node → NVLink domain; a domain is never split.
        most: nodes that may be out of work at once (interruption budget); 0 for no bound. A domain may exceed it.
        most_domains: declared failure domains that a wave may touch; 0 for no bound.

    Raises:
        UsageError: a size that is none.
    """
    counts = [_size(text, len(plans)) for text in sizes]
    if not counts:
        raise UsageError("no wave is given")
    by_cohort: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for plan in plans:
        unit = (domains or {}).get(plan.name) or f"node {plan.name}"
        by_cohort[plan.cohort][unit].append(plan.name)
    canary: list[list[str]] = []
    rest: list[list[str]] = []
    for units in by_cohort.values():
        queue = list(units.values())
        canary += queue[: counts[0]]
        rest += queue[counts[0] :]
    bounds = _Bounds({plan.name: plan.failure_domain for plan in plans}, most or len(plans), most_domains or len(plans))
    waves = [Wave(nodes, canary=True) for nodes in bounds.cut(bounds.ordered(canary))]
    rest = bounds.ordered(rest)
    at = 1
    while rest:
        wanted = counts[min(at, len(counts) - 1)]
        taken: list[list[str]] = []
        while rest and (not taken or sum(map(len, taken)) + len(rest[0]) <= wanted):
            taken.append(rest.pop(0))
        waves += [Wave(nodes) for nodes in bounds.cut(taken)]
        at += 1
    return waves


def _size(text: str, total: int) -> int:
    found = re.fullmatch(r"(\d{1,6})(%?)", text.strip())
    if found is None or not int(found[1]) or (found[2] and int(found[1]) > 100):
        raise UsageError(f"no size of a wave: {text!r}; a number of nodes or a share: 1,5%,25%")
    return math.ceil(total * int(found[1]) / 100) if found[2] else int(found[1])


@dataclass(frozen=True, slots=True)
class _Bounds:
    """
    What no wave may exceed.

    Attributes:
        places: node → its failure domain.
        most: nodes out of work at once.
        most_domains: failure domains touched at once.
    """

    places: Mapping[str, str]
    most: int
    most_domains: int

    def ordered(self, units: list[list[str]]) -> list[list[str]]:
        """Put units of one failure domain side by side, domains in the order in which they come."""
        first = {where: at for at, where in enumerate(dict.fromkeys(map(self._where, units)))}
        return sorted(units, key=lambda unit: first[self._where(unit)])

    def cut(self, units: Iterable[list[str]]) -> Iterable[tuple[str, ...]]:
        """Cut a wave where it would take more nodes out of work, or touch more domains, than is allowed."""
        taken: list[str] = []
        for unit in units:
            together = [*taken, *unit]
            if taken and (len(together) > self.most or len(self._where(together)) > self.most_domains):
                yield tuple(taken)
                together = unit
            taken = together
        if taken:
            yield tuple(taken)

    def _where(self, nodes: Iterable[str]) -> frozenset[str]:
        return frozenset(self.places[node] for node in nodes)


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    One node after its change, against before.

    Attributes:
        node: its name.
        worse: checks that have become worse, and stayed so in every read; with what they say now.
        not_right: checks of the plan that still do not pass; with what they say.
    """

    node: str
    worse: tuple[tuple[Key, str], ...] = ()
    not_right: tuple[tuple[Key, str], ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the node may work again."""
        return not self.worse and not self.not_right


def compare(
    node: str, before: Sequence[Finding], reads: Sequence[Sequence[Finding]], changed: Iterable[str]
) -> Comparison:
    """
    Compare findings.

    Args:
        node: its name.
        before: of the evidence that the plan rests on.
        reads: of fresh evidence, oldest first.
        changed: ids of the checks whose settings were written.
    """
    old = _states(before)
    now = [_states(findings) for findings in reads]
    keys = [key for key in now[-1] if key[0].partition(".")[0] not in _NO_STATE]
    worse = [
        (key, now[-1][key][1])
        for key in keys
        if all(read.get(key, (3, ""))[0] > max(old.get(key, (0, ""))[0], 1) for read in now)
    ]
    wanted = set(changed)
    not_right = [(key, text) for key, (rank, text) in now[-1].items() if key[0] in wanted and rank > 0]
    return Comparison(node, tuple(worse), tuple(not_right))


def _states(findings: Sequence[Finding]) -> dict[Key, tuple[int, str]]:
    """Return the worst status of each check and subject, without what is waived."""
    states: dict[Key, tuple[int, str]] = {}
    for finding in findings:
        if not finding.counts:
            continue
        key = (finding.check, finding.subject.id)
        rank = _RANK[finding.status]
        if rank >= states.get(key, (-1, ""))[0]:
            states[key] = rank, finding.message
    return states


def reason_to_hold(*, canary: bool, comparisons: Sequence[Comparison], touched: int) -> str:
    """
    Say why the roll-out must hold; "" when it may go on.

    Args:
        canary: the last wave was one.
        comparisons: of all nodes of the roll-out so far.
        touched: how many those are.
    """
    for one in comparisons:
        if one.not_right:
            (check, subject), text = one.not_right[0]
            return f"{one.node}: {check}{f' {subject}' if subject else ''} is changed and still not right: {text}"
    worse: dict[str, list[str]] = defaultdict(list)
    for one in comparisons:
        for check in sorted({key[0] for key, _ in one.worse}):
            worse[check].append(one.node)
    for check, nodes in worse.items():
        if canary:
            return f"the canary {nodes[0]} has become worse: {check}"
        if len(nodes) >= 2 and len(nodes) > _SHARE * touched:
            return f"{check} has become worse on {len(nodes)} of {touched} nodes"
    return ""
