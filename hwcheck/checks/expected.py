"""Simple expectations of a profile (YAML) as checks: one fact, one wanted value, and where it applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, Relation, fail, ok, skip, warn
from hwcheck.facts import NAMES, Facet, show
from hwcheck.findings import Act, Remedy, Urgency, Write
from hwcheck.profiles.expectation import Expectation
from hwcheck.profiles.layer import Entry
from hwcheck.profiles.remedies import as_text, listed, wanted_text

RUNNING, NEXT_BOOT = str(Facet.RUNNING), str(Facet.NEXT_BOOT)
Condition = Callable[[Given], "bool | None"]


def compile_entry(entry: Entry) -> Relation:
    """
    Make the check of a merged profile entry.

    An entry without ``expect`` and ``prefer`` (no figure is known for this platform) answers skip.
    """
    data = entry.data
    fact = data["fact"]
    return Relation(
        id=entry.id,
        scope=NAMES[fact].scope,
        needs=(fact,),
        uses=(),
        any_of=(),
        body=_setting_body(data) if data.get("setting") else _body(data),
        urgency=Urgency(data.get("urgency", "maintenance")),
        remedy=remedy_of(data),
        title=data["title"],
        text=data["why"],
        facets=bool(data.get("setting")),
    )


def remedy_of(data: dict[str, Any]) -> Remedy | None:
    """
    Make the remedy of a merged entry.

    What it would write is left out while the entry wants nothing: without a figure there is nothing to write.
    """
    told = data.get("remedy")
    if not told:
        return None
    words = {key: value for key, value in told.items() if key not in ("write", "act")}
    wants = bool(data.get("expect") or data.get("prefer"))
    writes = tuple(
        Write(**{**write, "value": as_text(write["value"]) if "value" in write else wanted_text(data)})
        for write in (listed(told, "write") if wants else ())
    )
    return Remedy(**words, writes=writes, acts=tuple(Act(**act) for act in listed(told, "act")))


def _body(data: dict[str, Any]) -> Callable[[Given], Answer]:
    applies = _applicability(data)
    judge = _judge(data)

    def body(given: Given) -> Answer:
        return applies(given) or judge(given[data["fact"]])

    return body


def _judge(data: dict[str, Any]) -> Callable[[Any], Answer]:
    fact, title = data["fact"], data["title"]
    expect = Expectation.of(data["expect"]) if data.get("expect") else None
    prefer = Expectation.of(data["prefer"]) if data.get("prefer") else None
    violated = warn if data.get("severity") == "warn" else fail
    unit = NAMES[fact].unit
    wanted = f"{expect or prefer}{f' {unit}' if unit else ''}"
    preferred = f"{prefer or expect}{f' {unit}' if unit else ''}"

    def judge(value: Any) -> Answer:
        if expect is None and prefer is None:
            return skip(f"{title} is {show(fact, value)}; no figure is known for this platform", observed=value)
        if expect is not None and not expect.holds(value):
            return violated(f"{title} is {show(fact, value)}, expected {wanted}", observed=value, expected=wanted)
        if prefer is not None and not prefer.holds(value):
            return warn(f"{title} is {show(fact, value)}, expected {preferred}", observed=value, expected=preferred)
        return ok(f"{title} is {show(fact, value)}", observed=value, expected=wanted)

    return judge


def _setting_body(data: dict[str, Any]) -> Callable[[Given], Answer]:
    """
    Judge a tunable by its facets: effective (or running) wrong fails; next boot wrong warns.

    A value that is right is a pass even where the node refuses to change it; running right while the effective value
    is wrong is called ineffective: something vetoes the setting.
    """
    applies = _applicability(data)
    judge = _judge(data)
    fact, title = data["fact"], data["title"]

    def body(given: Given) -> Answer:
        away = applies(given)
        if away is not None:
            return away
        running = given[fact]
        if given.next_boot_only:
            answer = judge(running)
            text = f"{answer.message} (for the next boot; nothing runs here)"
            return replace(answer, message=text, seen={RUNNING: None, NEXT_BOOT: running})
        effective, following = given.maybe(fact, Facet.EFFECTIVE), given.maybe(fact, Facet.NEXT_BOOT)
        seen = {RUNNING: running, NEXT_BOOT: following}
        answer = judge(running if effective is None else effective)
        if effective is not None and answer.status in ("fail", "warn") and judge(running).status == "pass":
            text = f"{title} is set to {show(fact, running)} but has no effect: effective is {show(fact, effective)}"
            return Answer(answer.status, text, observed=effective, expected=answer.expected, seen=seen)
        if answer.status == "pass" and following is not None and judge(following).status != "pass":
            text = f"{title} is right now but will be {show(fact, following)} after a reboot"
            return warn(text, observed=following, expected=answer.expected, seen=seen)
        return replace(answer, seen=seen)

    return body


def _applicability(data: dict[str, Any]) -> Callable[[Given], Answer | None]:
    when = [_condition(item) for item in data.get("when") or ()]
    unless = [_condition(item) for item in data.get("unless") or ()]

    def away(given: Given) -> Answer | None:
        for holds, words in when:
            if not holds(given):
                return skip(f"applies only when {words}")
        for holds, words in unless:
            if holds(given):
                return skip(f"does not apply when {words}")
        return None

    return away


def _condition(item: dict[str, Any]) -> tuple[Condition, str]:
    """Read ``{fact: NAME, OPERATOR: VALUE}`` or ``{bound: ID, OPERATOR: VALUE}``; a missing one does not hold."""
    key = "fact" if "fact" in item else "bound"
    name = item[key]
    expectation = Expectation.of({k: v for k, v in item.items() if k != key})

    def holds(given: Given) -> bool:
        value = given.maybe(name) if key == "fact" else given.bound(name)
        return value is not None and expectation.holds(value)

    return holds, f"{name} is {expectation}"
