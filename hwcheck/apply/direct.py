"""
Writing without Ansible: to this machine, or to files below a root (an image, a container's host, a lab node).

The same stages as on any node, called here: prepare → journal kept in the run's folder → commit. An image is given its
journal back, since none is left inside of it.
"""

from __future__ import annotations

from typing import Any

from hwcheck.apply.ansible import Event, NodeResult
from hwcheck.apply.run_folder import RunFolder
from hwcheck.writers.stages import answer


class Direct:
    """
    Plays on one place.

    Args:
        root: "" for this machine.
        live: what is below the root runs.
        run: whose journal is kept; None for a dry run.
    """

    def __init__(self, root: str, *, live: bool, run: RunFolder | None) -> None:
        self._where = {"root": root, "live_root": live} if root else {}
        self._run = run

    def run(
        self, nodes: list[str], variables: dict[str, Any], on_event: Event, *, check: bool = False
    ) -> dict[str, NodeResult]:
        """Carry out a stage; see :meth:`hwcheck.apply.ansible.Play.run`."""
        found = {}
        for node in nodes:
            on_event(node, "begun")
            found[node] = self._one(node, variables, check=check)
            on_event(node, "ok" if found[node].ok else "failed")
        return found

    def _one(self, node: str, variables: dict[str, Any], *, check: bool) -> NodeResult:
        stage = variables["hwcheck_stage"]
        given = variables.get("hwcheck_given") or (self._run.read(f"steps/{node}.json") if self._run else {}) or {}
        request = {
            **self._where, "run": variables.get("hwcheck_run"), "holder": variables.get("hwcheck_holder"),
            "steps": given.get("steps", []), "acts": given.get("acts", []),
            "idle": {
                "ignore": variables.get("hwcheck_idle_ignore", []), "skip": variables.get("hwcheck_idle_skip", False)
            },
        }  # fmt: skip
        if check:
            return _result(answer({**request, "stage": "check"}))
        kept = self._run.read(f"journal/{node}.json") if self._run else None
        if stage != "apply":
            told = answer({**request, "stage": stage, "journal": kept})
        else:
            told = answer({**request, "stage": "prepare", "journal": kept})
            if told["ok"] and told.get("pending"):
                self._keep(node, told)
                told = answer({**request, "stage": "commit", "journal": told["journal"]})
        self._keep(node, told)
        return _result(told)

    def _keep(self, node: str, told: dict[str, Any]) -> None:
        if self._run is not None and told.get("journal"):
            self._run.write(f"journal/{node}.json", told["journal"])


def _result(told: dict[str, Any]) -> NodeResult:
    return NodeResult(
        ok=told["ok"], changed=told["changed"], begun=bool(told.get("begun")), why=told["why"], results=told["results"],
        differences=told.get("differences", []),
    )  # fmt: skip
