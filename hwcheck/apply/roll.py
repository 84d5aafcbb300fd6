"""
A roll-out, wave by wave: drain → write → wait for the boot → settle → read anew → compare → put back, or hold.

The order of things and nothing else: which nodes and when to hold is :mod:`hwcheck.rollout`, how a node is written is
:mod:`.ansible`, how it is read and judged is passed in. What has become of each node is recorded before the next thing
is done, so that a run which was killed is resumed, or undone, from its folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import Event, NodeResult
from hwcheck.apply.canary import Canaries
from hwcheck.apply.drain import Drain
from hwcheck.apply.out_of_work import OutOfWork
from hwcheck.apply.run_folder import RunFolder
from hwcheck.findings import Finding
from hwcheck.plan import ABSENT, NodePlan
from hwcheck.rollout import READS, Comparison, Wave, compare, reason_to_hold


@dataclass(frozen=True, slots=True)
class Reading:
    """Fresh evidence of a node, judged: its findings and its boot; ``error`` where it did not answer."""

    findings: Sequence[Finding] = ()
    boot_id: str = ""
    error: str = ""


class Writer(Protocol):
    """Writes to nodes: :class:`hwcheck.apply.ansible.Play`, :class:`hwcheck.apply.direct.Direct`."""

    def run(
        self, nodes: list[str], variables: dict[str, Any], on_event: Event, *, check: bool = False
    ) -> dict[str, NodeResult]:
        """Carry out the stage that the variables name."""


@dataclass(frozen=True, slots=True)
class Ports:
    """
    What a roll-out works with.

    Attributes:
        play: writes to nodes.
        read: nodes → their readings; unreachable ones are among them.
        drain: None where nodes need not be taken out of work.
        say: tells the user one line.
        watch: number of nodes → a context that is told each node and how its write ended.
        sleep: waits.
        clock: monotonic seconds.
    """

    play: Writer
    read: Callable[[list[str]], Mapping[str, Reading]]
    drain: Drain | None
    say: Callable[[str], None]
    watch: Callable[[int], AbstractContextManager[Event]]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: before a change is judged, between two reads, for a reboot; and a file whose presence stops us."""

    settle: float = 3.0
    between: float = 5.0
    reboot: float = 900.0
    freeze: Path | None = None


@dataclass(slots=True)
class Roll:
    """
    One roll-out.

    Args:
        run: its record, locked by the caller.
        plans: node → plan.
        before: node → findings on which its plan rests.
        ports: see :class:`Ports`.
        patience: see :class:`Patience`.
        variables: for the play: programs that are no work, and the like.
    """

    run: RunFolder
    plans: Mapping[str, NodePlan]
    before: Mapping[str, Sequence[Finding]]
    ports: Ports
    patience: Patience = Patience()
    variables: dict[str, Any] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)

    def go(self, waves: Sequence[Wave]) -> str:
        """
        Go through the waves.

        Returns:
            Why it holds, for a person to decide; "" when all nodes are done.
        """
        canaries = Canaries(self.plans, lambda node: self.state(node) != states.REFUSED)
        left, number, why = list(waves), 0, ""
        while left and not why:
            wave, number = left.pop(0), number + 1
            if why := self._frozen():
                break
            what = "canary" if wave.canary else f"wave {number} of {number + len(left)}"
            if len(self.plans) > 1:
                self.ports.say(f"{what}: {', '.join(wave.nodes[:8])}{' ...' if len(wave.nodes) > 8 else ''}")
            why = self._wave(wave)
            if wave.canary and not why:
                left, why = canaries.after(wave, left)
        return why

    def _frozen(self) -> str:
        freeze = self.patience.freeze
        there = freeze is not None and os.path.lexists(freeze)
        return f"changes are frozen ({freeze} is there); nothing more is changed until it is gone" if there else ""

    def _wave(self, wave: Wave) -> str:
        ready = self._out_of_work.take([node for node in wave.nodes if self.state(node) != states.CHANGED])
        self._write(ready)
        gone = self.await_boot({node: boot for node in self._changed(wave) if (boot := self._left_boot(node))})
        why = f"did not come back within {self.patience.reboot:g} s of its reboot"
        self.run.set_state(gone, states.FAILED, why)
        changed = self._changed(wave)
        if changed:
            self._compare(changed)
        self._out_of_work.put_back()
        failed = [node for node in wave.nodes if self.state(node) == states.FAILED]
        if failed:
            return f"{failed[0]} could not be changed: {self.run.record['nodes'][failed[0]]['why']}"
        return reason_to_hold(canary=wave.canary, comparisons=self.comparisons, touched=len(self.comparisons))

    def _changed(self, wave: Wave) -> list[str]:
        return [node for node in wave.nodes if self.state(node) == states.CHANGED]

    def state(self, node: str) -> str:
        """Return what has become of a node so far."""
        return str(self.run.record["nodes"].get(node, {}).get("state", states.PLANNED))

    @property
    def _out_of_work(self) -> OutOfWork:
        return OutOfWork(self.run, self.ports.drain, self.ports.say)

    # --------------------------------------------------------------------------------------------------------- change

    def _write(self, nodes: list[str]) -> None:
        if not nodes:
            return
        may_reboot = self._may_reboot(nodes)
        self.run.set_state(nodes, states.BEGUN)
        results = self._play(nodes, "apply", may_reboot)
        self.run.record["results"] = {
            **self.run.record.get("results", {}), **{node: result.results for node, result in results.items()}
        }  # fmt: skip
        for node, result in results.items():
            state = _state_after(result)
            self.run.set_state([node], state, result.why)
            self.run.record["nodes"][node]["refused"] = refusals(result)
            self.run.save()
            for why in [result.why] if result.why else refusals(result):
                self.ports.say(f"{node}: {state if result.why else 'left as it is'}: {why}")

    def undo(self, nodes: list[str], then: Callable[[list[str]], None] = lambda _: None) -> dict[str, NodeResult]:
        """Take back what this run has changed on nodes; ``then`` gets them before any is put back to work."""
        results = self._play(nodes, "undo", self._may_reboot(nodes))
        for node, result in results.items():
            if result.ok and not result.results:
                self.run.set_state([node], states.UNDONE)
            elif result.ok:
                self.run.set_state([node], states.QUARANTINED, "partly taken back")
            else:
                self.run.set_state([node], self.state(node), result.why)
        then([node for node, result in results.items() if result.ok])
        self._out_of_work.put_back()
        return results

    def _may_reboot(self, nodes: list[str]) -> set[str]:
        """Return the nodes that a killed controller may have left in the reboot that their steps end with."""
        begun = (node for node in nodes if self.state(node) in (states.BEGUN, states.CHANGED))
        return {
            node
            for node in begun
            if any(act["do"] == "reboot" for act in (self.run.read(f"steps/{node}.json") or {}).get("acts", []))
        }

    def _play(self, nodes: list[str], stage: str, may_reboot: set[str]) -> dict[str, NodeResult]:
        """Run the play; a node that may be in a reboot of this run is asked again until it is back."""
        until = self.ports.clock() + self.patience.reboot
        results: dict[str, NodeResult] = {}
        asked = nodes
        while asked:
            with self.ports.watch(len(asked)) as on_event:
                results.update(self.ports.play.run(asked, self.play_variables(stage), on_event))
            asked = [node for node in asked if node in may_reboot and results[node].unreachable]
            if self.ports.clock() >= until:
                break
            if asked:
                self.ports.say(f"waiting for the reboot of {', '.join(asked[:8])}")
                self.ports.sleep(min(self.patience.between, 2.0))
        return results

    def play_variables(self, stage: str) -> dict[str, Any]:
        """Return what a play is given for a stage."""
        return {
            **self.variables, "hwcheck_stage": stage, "hwcheck_run": self.run.name,
            "hwcheck_holder": self.run.record["holder"], "hwcheck_run_dir": str(self.run.path),
            "hwcheck_session": self.run.session,
        }  # fmt: skip

    def await_boot(self, waiting: dict[str, str]) -> list[str]:
        """Wait until nodes have left the boots they are named with; returns those that did not in time."""
        waiting = dict(waiting)
        if waiting:
            self.ports.say(f"waiting for the reboot of {len(waiting)} node{'s' if len(waiting) > 1 else ''}")
        until = self.ports.clock() + self.patience.reboot
        while waiting and self.ports.clock() < until:
            self.ports.sleep(min(self.patience.between, 2.0))
            for node, reading in self.ports.read(list(waiting)).items():
                if not reading.error and reading.boot_id and reading.boot_id != waiting[node]:
                    del waiting[node]
        return list(waiting)

    def _left_boot(self, node: str) -> str:
        """Return the boot id that a node leaves by its reboot, as its journal says; "" when it does not reboot."""
        acts = (self.run.read(f"journal/{node}.json") or {}).get("acts", [])
        mine = (one for one in acts if one["do"] == "reboot" and one["state"] in ("begun", "done"))
        return next((str(one["boot_id"]) for one in mine), "")

    # -------------------------------------------------------------------------------------------------------- compare

    def _compare(self, nodes: list[str]) -> None:
        self.ports.sleep(self.patience.settle)
        reads: dict[str, list[Sequence[Finding]]] = {node: [] for node in nodes}
        verdicts: dict[str, Comparison] = {}
        asked = nodes
        for attempt in range(READS):
            if attempt:
                self.ports.sleep(self.patience.between)
            for node, reading in self.ports.read(asked).items():
                reads[node].append(reading.findings)
                verdicts[node] = self._verdict(node, reads[node], reading.error)
            asked = [node for node in asked if node not in verdicts or not verdicts[node].is_good]
            if not asked:
                break
        for node in nodes:
            one = verdicts.get(node, Comparison(node, ((("evidence.reachable", ""), "was not read"),)))
            self.comparisons.append(one)
            if one.is_good:
                self.run.set_state([node], states.GOOD)
                continue
            told = "; ".join(f"{key[0]} {key[1]}: {text}" for key, text in (*one.not_right, *one.worse))
            self.run.set_state([node], states.QUARANTINED, told[:1000])
            self.ports.say(f"{node}: quarantined: {told[:300]}")

    def _verdict(self, node: str, reads: Sequence[Sequence[Finding]], error: str) -> Comparison:
        if error:
            return Comparison(node, ((("evidence.reachable", ""), error),))
        changed = [
            str(one["id"])
            for one in self.run.record.get("results", {}).get(node, [])
            if one.get("status") in ("changed", "right") and one.get("value") != ABSENT  # that nobody judges any more
        ]
        return compare(node, self.before.get(node, ()), reads, changed)


def _state_after(result: NodeResult) -> str:
    """Tell a node that refused everything before a write from one on which something went wrong."""
    if result.ok and any(one.get("status") not in ("refused", "stale") for one in result.results or [{}]):
        return states.CHANGED
    written = any(one.get("status") in ("changed", "failed") for one in result.results)
    return states.FAILED if written or result.begun or result.unreachable else states.REFUSED


def refusals(result: NodeResult) -> list[str]:
    """Return the steps that a node did not take, and why; the others were taken."""
    return [f"{one['id']}: {one['why']}"[:500] for one in result.results if one.get("status") in ("refused", "stale")]
