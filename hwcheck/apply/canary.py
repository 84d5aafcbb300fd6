"""Another canary where the first could not be tried: a cohort follows only a node of its own that was changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hwcheck.plan import NodePlan
from hwcheck.rollout import Wave

MOST = 3
"""Canaries of a cohort that may be busy before a person decides."""


class Canaries:
    """
    Which cohorts still lack a canary.

    Args:
        plans: node → plan, with its cohort and its failure domain.
        is_tried: tells whether a node was changed, well or not; one that refused, or has jobs, was not.
    """

    def __init__(self, plans: Mapping[str, NodePlan], is_tried: Callable[[str], bool]) -> None:
        self._plans = plans
        self._is_tried = is_tried
        self._asked: dict[str, int] = {}

    def after(self, wave: Wave, rest: Sequence[Wave]) -> tuple[list[Wave], str]:
        """
        Put new canaries before the rest, for cohorts of which none of this canary's nodes was tried.

        Args:
            wave: a canary that has been gone through.
            rest: waves that follow.

        Returns:
            What follows now, and why the roll-out holds instead; "" when it goes on.
        """
        cohorts = {self._plans[node].cohort for node in wave.nodes}
        lacking = cohorts - {self._plans[node].cohort for node in wave.nodes if self._is_tried(node)}
        fresh: list[str] = []
        for cohort in sorted(lacking):
            unit = self._next_unit(cohort, rest)
            self._asked[cohort] = self._asked.get(cohort, 0) + 1
            if unit and self._asked[cohort] == MOST:
                return list(rest), f"none of {MOST} canaries could be tried, which {unit[0]} and others wait for"
            fresh += unit
        left = [Wave(tuple(node for node in one.nodes if node not in fresh), one.canary) for one in rest]
        apart: dict[str, list[str]] = {}
        for node in fresh:
            apart.setdefault(self._plans[node].failure_domain, []).append(node)
        again = [Wave(tuple(nodes), canary=True) for nodes in apart.values()]
        return [*again, *(one for one in left if one.nodes)], ""

    def _next_unit(self, cohort: str, rest: Sequence[Wave]) -> list[str]:
        """Return the next node of a cohort, with all that share its failure domain."""
        nodes = [node for one in rest for node in one.nodes if self._plans[node].cohort == cohort]
        domain = self._plans[nodes[0]].domain if nodes else ""
        return [node for node in nodes if self._plans[node].domain == domain] if domain else nodes[:1]
