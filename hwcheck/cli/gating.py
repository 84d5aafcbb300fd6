"""Judge nodes for ``hwcheck gate``: certificate first, then the full check, and what is remembered of it."""

from __future__ import annotations

import argparse
import copy
import datetime as dt
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hwcheck.checks import COMPARED
from hwcheck.cli.gate_paper import Paper
from hwcheck.cli.judging import Bench
from hwcheck.cli.targets import Collection
from hwcheck.cli.trouble import printing
from hwcheck.errors import MachineError
from hwcheck.findings import NodeVerdict
from hwcheck.gate.decision import (
    NOT_READY,
    READY,
    UNTOLD,
    Answer,
    certified,
    hardware_errors,
    lost_errors,
    of_node,
    settings_not_told,
)
from hwcheck.gate.fast import JUMP, digest_of, stamp
from hwcheck.gate.memory import Memory, boot_id_of, clock, folder_of, key_of, number, since_boot
from hwcheck.gate.watch import is_whole, look
from hwcheck.history import State
from hwcheck.parse import take_snapshot
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome

DEEP, DEEP_SECONDS, FIRST_KERNEL = "deep", 120.0, "cuda-sanity"


@dataclass(slots=True)
class Look:
    """
    What one look at a node rests on.

    Attributes:
        paper: its certificate.
        memory: of earlier looks.
        verdict: of the full check; None where the certificate already decided.
        before: digests of this machine, read before the full check; empty for other nodes.
        files: path → digest of what the decision rests on.
        changed: what differs from the last full check that passed, where there was one.
    """

    paper: Paper
    memory: Memory
    verdict: NodeVerdict | None = None
    before: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)


class Gate:
    """
    Decides for nodes.

    Args:
        arguments: of ``hwcheck gate``.
        collection: the nodes.

    Raises:
        ProfileError: a layer or the waivers do not load.
    """

    def __init__(self, arguments: argparse.Namespace, collection: Collection) -> None:
        self._arguments, self._collection = arguments, collection
        self._words = sys.argv[2:]  # as hwcheck.gate.fast names the memory
        self._root = collection.request.root
        self._bench = Bench(arguments)
        self._state: State | None = None
        if not self._root:
            try:
                self._state = State(COMPARED)
            except MachineError:
                self._state = None  # no home: rates are not told

    def here(self) -> tuple[Answer, Look]:
        """Decide for this machine, or the one below ``--live-root``."""
        files = self._files()
        memory = Memory(folder_of(self._words), key_of(self._words), boot_id_of(self._root))
        paper = Paper.here(self._arguments, self._root, _jump(memory))
        found = Look(paper, memory, files=files)
        if paper.answer is None:
            found.before = look(self._root)
            found.changed = _changed(memory, found)
            for outcome in self._collection:
                found.verdict = self._judge_all(outcome, paper)
        return self._settle(found), found

    def others(self) -> Iterator[tuple[str, Answer, Look]]:
        """Decide for other nodes, as they answer."""
        for outcome in self._collection:
            memory = Memory(folder_of(self._words), key_of(self._words, outcome.name), outcome.hello.get("boot_id", ""))
            found = Look(Paper.of_other(self._arguments, outcome.name), memory)
            if found.paper.answer is None:
                found.verdict = self._judge_all(outcome, found.paper)
            yield outcome.name, self._settle(found), found

    def _judge_all(self, outcome: Outcome, paper: Paper) -> NodeVerdict:
        """Judge a node; what was certified of it and only the deep tier tells is asked for as well."""
        verdict = self._judge(outcome)
        if self._arguments.tier != DEEP and settings_not_told(verdict.findings, paper.certificate):
            for deeper in self._read_deeper(outcome):
                if deeper.error is None:
                    return self._judge(deeper)
        return verdict

    def _read_deeper(self, outcome: Outcome) -> list[Outcome]:
        from hwcheck.cli.measuring import read_nodes  # noqa: PLC0415 - only few nodes have such settings

        wanted = copy.copy(self._arguments)
        wanted.off = [*self._arguments.off, *([] if self._arguments.cuda else [FIRST_KERNEL])]
        wanted.timeout = max(self._arguments.timeout, DEEP_SECONDS)
        return read_nodes(wanted, DEEP, [outcome.name])

    def _judge(self, outcome: Outcome) -> NodeVerdict:
        pipeline = self._bench.pipeline(outcome.target)
        evidence = evidence_of(outcome)
        if evidence.unreachable:
            return pipeline.judge(evidence)
        snapshot = take_snapshot(evidence)
        previous = self._state.previous(snapshot) if self._state is not None else None
        verdict = pipeline.judge_snapshot(snapshot, previous)
        if self._state is not None:
            try:
                self._state.keep(snapshot)
            except OSError:
                self._state = None  # a full disk: rates are not told, and the node is not to blame
        return verdict

    def _settle(self, found: Look) -> Answer:
        """Weigh with what earlier looks saw, and remember this one."""
        answer, errors = found.paper.answer, _remembered_errors(found)
        if answer is None and found.verdict is not None:
            lost = lost_errors(errors, found.verdict.findings)
            errors = [*lost, *hardware_errors(found.verdict.findings)]
            answer = of_node(found.verdict, found.paper.certificate, self._arguments.require)
            if answer.word == READY and lost:
                check, subject, message = lost[0]
                text = f"{check} of {subject} was logged in this boot ({message}); the log does not hold it any more"
                answer = Answer(NOT_READY, f"{text}: reboot, or certify the node anew")
        if answer is None:
            answer = Answer(UNTOLD, "the node did not answer")
        kept: dict[str, object] = {"certificate": _certificate_of(found), "errors": errors}
        if found.paper.keeps_clock and found.memory.told:
            kept["clock"] = found.memory.told.get("clock")
        if answer.word == UNTOLD:
            return self._repeat(answer, found.memory, kept)
        if answer.word == READY and found.before and is_whole(found.before) and not self._arguments.cuda:
            kept["passed"] = self._passed(found)
        found.memory.keep(**kept)
        note = f" ({found.memory.trouble})" if found.memory.trouble else ""
        return Answer(answer.word, answer.reason + note)

    def _repeat(self, answer: Answer, memory: Memory, kept: dict[str, object]) -> Answer:
        """Count what could not be told; so often in a row, or for so long, is a no."""
        before = memory.told.get("unknown")
        told = before if isinstance(before, dict) else {}
        times, now = int(number(told.get("times"))) + 1, since_boot()
        since = number(told.get("since")) if times > 1 else now
        memory.keep(**kept, unknown={"times": times, "since": since})
        if memory.trouble:
            return Answer(UNTOLD, f"{answer.reason} ({memory.trouble}, so no look is counted)")
        most, patience = self._arguments.unknown_times, self._arguments.unknown_for
        if times >= most or (patience and times > 1 and now - since >= patience):
            return Answer(NOT_READY, f"could not be told {times} times in a row: {answer.reason}")
        return Answer(UNTOLD, f"{answer.reason} (look {times} of {most})")

    def _passed(self, found: Look) -> dict[str, object]:
        certificate = found.paper.certificate
        begin, end = (dt.datetime.fromisoformat(certificate[key]).timestamp() for key in ("issued", "valid_until"))
        if self._arguments.waivers:  # a waiver ends with a day
            day = dt.datetime.now(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            end = min(end, (day + dt.timedelta(days=1)).timestamp())
        return {
            "tool": stamp(), "at": since_boot(), "trust": self._arguments.trust, "from": begin, "until": end,
            "files": found.files, "digests": found.before, "line": certified(certificate),
        }  # fmt: skip

    def _files(self) -> dict[str, str]:
        """Digest what the decision rests on before it is read: what changes meanwhile differs at the next look."""
        arguments = self._arguments
        paths = [*Paper.places(arguments, self._root), *arguments.site, *filter(None, [arguments.waivers])]
        return {str(path): digest_of(str(path)) for path in map(Path.absolute, paths)}


def _jump(memory: Memory) -> float:
    """Return by how many seconds somebody set the clock since the last look at this boot; 0 for a trifle."""
    before = number(memory.told.get("clock"))
    jump = clock() - before if before else 0.0
    return jump if abs(jump) > JUMP else 0.0


def _changed(memory: Memory, found: Look) -> list[str]:
    """List the sources and files that are not as they were at the last full check that passed."""
    passed = memory.told.get("passed")
    if not isinstance(passed, dict):
        return []
    pairs = ((passed.get("digests"), found.before), (passed.get("files"), found.files))
    return [name for then, now in pairs if isinstance(then, dict) for name in now if then.get(name) != now[name]]


def _certificate_of(found: Look) -> object:
    """Return the digest of the certificate that errors are remembered for: the last one that counted."""
    return found.paper.digest if found.paper.answer is None else found.memory.told.get("certificate")


def _remembered_errors(found: Look) -> list[list[str]]:
    """Return the hardware errors of earlier looks, unless the node was certified anew since."""
    told: Any = found.memory.told.get("errors")
    if found.memory.told.get("certificate") != _certificate_of(found) or not isinstance(told, list):
        return []
    return [error for error in told if isinstance(error, list) and len(error) == 3]


def gate(arguments: argparse.Namespace, collection: Collection) -> int:
    """Decide for the nodes of a command line, print a line for each, and return the exit code."""
    decider = Gate(arguments, collection)
    with printing():
        if collection.is_local and len(collection.targets) == 1 and not collection.targets[0].name:
            answer, found = decider.here()
            print(answer.line)
            if arguments.explain:
                _explain(found)
            return answer.code
        codes = {0}
        for name, answer, found in decider.others():
            print(f"{name}: {answer.line}", flush=True)
            if arguments.explain:
                _explain(found)
            codes.add(answer.code)
    return 1 if 1 in codes else max(codes)


def _explain(found: Look) -> None:
    for line in _explained(found):
        print("  " + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line))


def _explained(found: Look) -> Iterator[str]:
    """Say what was looked at."""
    yield from found.paper.explained()
    if found.changed:
        yield "changed since the last full check that passed: " + ", ".join(found.changed)
    verdict = found.verdict
    if verdict is not None:
        yield f"judged by {verdict.platform}: " + ", ".join(f"{n} {word}" for word, n in verdict.coverage.items())
        sources = verdict.about.get("sources", {})
        yield "read: " + ", ".join(sorted(kind for kind, how in sources.items() if how == "read"))
        yield "not told: " + (", ".join(f"{k} ({how})" for k, how in sorted(sources.items()) if how != "read") or "-")
    yield f"remembered in {found.memory.folder}/{found.memory.name}, of boot {found.memory.boot_id or 'unknown'}"
