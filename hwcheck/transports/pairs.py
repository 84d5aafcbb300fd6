"""
Measurements between nodes: server on one, client on the other, by the usual transport, both ended whatever happens.

The server's end is asked first; when it says that it listens, the client's is, with its address and port. Whoever goes
away is told by name, and the other end is ended then. What came is given to both nodes: a figure between two is one of
each.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from hwcheck.baselines.pairs import Pair, PairPlan
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.fan_out import Collect
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.pair_end import COURTESY, End
from hwcheck.transports.pair_request import CALL, SERVE, Manner, order_of
from hwcheck.transports.stream import Answer
from hwcheck.transports.target import Target

_LOOK = 0.1
_KIND = "hwcheck.load"
Answers = dict[str, list[Answer]]
"""Node → what it is given of a pair."""


def measure_pairs(
    plan: PairPlan,
    targets: Mapping[str, Target],
    collect: Collect,
    manner: Manner | None = None,
    *,
    at_once: int = 16,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Outcome]:
    """
    Carry out a plan.

    Args:
        plan: of :func:`hwcheck.baselines.pairs.plan_pairs`; its nodes are idle, and their load is wanted.
        targets: name → node.
        collect: the transport.
        manner: how to measure.
        at_once: pairs at once, each with two connections.
        say: told of each pair when it begins.

    Returns:
        Node → what to add to its evidence: the client's answers of each of its pairs, or why there are none. What the
        plan leaves out has its reason.
    """
    found: Answers = defaultdict(list)
    for skipped in plan.skipped:
        why = f"{skipped.port}: {skipped.why}" if skipped.port else skipped.why
        found[skipped.node].append(_answer("absent", f"between nodes: {why}"))
    work = _Work(targets, collect, manner or Manner(), say)
    with ThreadPoolExecutor(max(1, at_once), "hwcheck-pair") as pool:
        try:
            for wave in plan.waves:
                for answers in pool.map(work.measure, wave):
                    for node, some in answers.items():
                        found[node] += some
        except BaseException:
            work.cancel.stop()
            raise
    return {node: Outcome(targets[node], tuple(answers)) for node, answers in found.items()}


class _Work:
    """The measuring of pairs: what they share."""

    def __init__(
        self, targets: Mapping[str, Target], collect: Collect, manner: Manner, say: Callable[[str], object]
    ) -> None:
        self._targets, self._collect, self._manner, self._say = targets, collect, manner, say
        self.cancel = Cancel()
        self._gone: dict[str, str] = {}

    def measure(self, pair: Pair) -> Answers:
        """Measure one pair; a node that could not be reached once is not tried again."""
        for node, role in ((pair.server, "server"), (pair.client, "client")):
            if node in self._gone:
                return _no_figure(pair, f"{node} ({role}) had gone before: {self._gone[node]}")
        self._say(f"{pair.test} {pair.on}")
        order = order_of(pair, SERVE, self._manner, secrets.token_hex(16))
        limit = self._manner.limit
        with End(self._targets[pair.server], order, self._collect, limit, self.cancel) as server:
            if not server.wait_listening(self._manner.setup):
                return self._unserved(pair, server)
            call = order_of(pair, CALL, self._manner, order["token"]) | _way_to(server, self._targets[pair.server])
            with End(self._targets[pair.client], call, self._collect, limit, self.cancel) as client:
                late = self._watch(server, client)
                client_was_done = client.done.is_set()
        return self._told(pair, server, client, late, client_was_done=client_was_done)

    def _watch(self, server: End, client: End) -> str:
        """Wait for both ends; returns which of them was late, "" for none."""
        last = time.monotonic() + self._manner.limit
        while not client.done.wait(_LOOK):
            if server.done.is_set() and server.error:
                client.done.wait(COURTESY)
                return ""
            if time.monotonic() > last:
                return f"{client.name} (client) did not end within {self._manner.limit:g} s"
        server.done.wait(COURTESY)
        return ""

    def _unserved(self, pair: Pair, server: End) -> Answers:
        """Say why the server did not listen."""
        if server.lacks is not None:
            return _lacking(pair, server)
        if not server.done.is_set():
            return _no_figure(pair, f"{pair.server} (server) did not listen within {self._manner.setup:g} s")
        if server.error:
            self._gone[pair.server] = server.error
        said = server.trouble or _last_line(server.answers) or "it ended"
        return _no_figure(pair, f"{pair.server} (server) did not listen: {said}")

    def _told(self, pair: Pair, server: End, client: End, late: str, *, client_was_done: bool) -> Answers:
        """Sort what came to the two nodes."""
        if client.lacks is not None:
            return _lacking(pair, client)
        if server.error and not client_was_done:
            self._gone[pair.server] = server.error
            return _no_figure(pair, f"{pair.server} (server) vanished: {server.error}")
        if late:
            return _no_figure(pair, late)
        if client.error or not client.answers:
            self._gone[pair.client] = client.error or "it said nothing"
            return _no_figure(pair, f"{pair.client} (client) vanished: {self._gone[pair.client]}")
        heard = [replace(one, payload=one.payload.replace(b'"role": "call"', b'"role": "heard"', 1))
                 for one in client.answers]  # fmt: skip
        kept = [one for one in server.answers if one.payload or one.status != "ok"]
        return {pair.client: client.answers, pair.server: [*kept, *heard]}


def _way_to(server: End, target: Target) -> dict[str, Any]:
    """Say where the client finds the server: by what the server tells, else by what we call it."""
    told = server.listening
    other = {key: told[key] for key in told if key not in ("port", "address")}
    return {"address": str(told.get("address") or target.host), "port": told["port"], "other": other}


def _no_figure(pair: Pair, why: str) -> Answers:
    """Tell both nodes that their pair has no figure."""
    about = {"client": pair.client, "server": pair.server, "rail": pair.client_port.rail}
    record = {"test": pair.test, "on": pair.on, "error": why, "conditions": about}
    answer = _answer("ok", "", json.dumps(record).encode() + b"\n")
    return {pair.client: [answer], pair.server: [answer]}


def _lacking(pair: Pair, end: End) -> Answers:
    """Tell both nodes that one of them has no tool for this."""
    assert end.lacks is not None  # noqa: S101 - who calls has looked
    answer = replace(end.lacks, detail=f"on {end.name}: {end.lacks.detail}")
    return {pair.client: [answer], pair.server: [answer]}


def _answer(status: str, detail: str, payload: bytes = b"") -> Answer:
    return Answer(_KIND, status, 0.0, detail, "hwcheck pairs", payload)


def _last_line(answers: list[Answer]) -> str:
    lines = [line for answer in answers for line in answer.payload.decode("utf-8", "replace").splitlines()]
    said = [line.strip() for line in lines if line.strip("- \t") and not line.startswith("{")]
    return said[-1][:200] if said else ""
