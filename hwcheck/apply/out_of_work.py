"""The nodes that a run takes out of work: out before the first write, back once they are right, and only its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hwcheck.apply import run_folder as states
from hwcheck.apply.drain import Drain, DrainError
from hwcheck.apply.run_folder import RunFolder

_AT_ONCE = 32
_GO_BACK = (states.GOOD, states.REFUSED, states.UNDONE)
"""Right now, or nothing was written to them."""


@dataclass(frozen=True, slots=True)
class OutOfWork:
    """
    Takes nodes out and puts them back.

    Args:
        run: record that keeps which nodes are drained by us.
        drain: how; None where nobody asked for it.
        say: shows a line to the operator.
    """

    run: RunFolder
    drain: Drain | None
    say: Callable[[str], None]

    def take(self, nodes: list[str]) -> list[str]:
        """Take nodes out of work; returns those that are, the others are recorded as refused."""
        if self.drain is None or not nodes:
            return nodes
        ready = []
        with ThreadPoolExecutor(min(_AT_ONCE, len(nodes))) as pool:
            for node, ours, why in pool.map(self._out, nodes):
                if why:
                    self.run.set_state([node], states.REFUSED, f"not drained, nothing was written: {why}")
                    continue
                if ours and node not in self.run.record["drained"]:
                    self.run.record["drained"].append(node)
                ready.append(node)
        self.run.save()
        return ready

    def _out(self, node: str) -> tuple[str, bool, str]:
        assert self.drain is not None  # noqa: S101 - narrows the type; the caller has looked
        try:
            return node, self.drain.drain(node, self._reason), ""
        except DrainError as error:
            return node, False, str(error)

    def put_back(self) -> None:
        """Put nodes back that are good, or to which nothing was written."""
        if self.drain is None:
            return
        for node in list(self.run.record["drained"]):
            if self.run.record["nodes"].get(node, {}).get("state") not in _GO_BACK:
                continue
            try:
                self.drain.undrain(node, self._reason)
            except DrainError as error:
                self.say(f"{node}: could not be put back to work: {error}")
                continue
            self.run.record["drained"].remove(node)
            self.run.save()

    @property
    def _reason(self) -> str:
        return f"hwcheck {self.run.name}"
