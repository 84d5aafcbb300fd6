"""
What is asked for: steps and acts, as a plan has them, checked before anything on the node is looked at.

A step: ``{"id": "sysctl.swappiness", "subject": "", "mechanism": "sysctl", "key": "vm.swappiness", "value": "10",
"seen": {"running": "60", "next boot": null}, "disturbs": "nothing", "restart": ""}``. All values are strings.

People write several at once, as *groups*: ``subjects`` is a list that ``{subject}`` in ``key`` and ``restart`` stands
for, ``values`` maps keys to values. What has no value in ``values`` is left alone: so a role can offer a variable that
is not set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .place import WriteError

MOST_STEPS = 2000
DISTURBS = ("nothing", "gpu", "board", "network", "node")
ACTS = ("restart", "start", "reload_units", "reload_driver", "reset_gpu", "reboot")
BOARD_UNITS = ("nvidia-fabricmanager.service",)
"""Units whose restart is a reset of the whole board: all NVLink traffic of the node ends."""
_NAMING = ("key", "restart")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{0,4096}")
"""One line of text, whoever reads it: no control characters, no line breaks of Unicode, nothing without an encoding."""
_UNIT = re.compile(r"[A-Za-z0-9:_.@\\-]{1,200}\.(?:service|timer|socket|target)")


class Step(NamedTuple):
    """
    One setting to bring about.

    Attributes:
        number: place in the request; changes refer to it.
        id: check id.
        subject: GPU or PCI address, interface, device; "" for the node.
        mechanism, key, value: see the module of the mechanism.
        seen: facets on which the plan rests, running and next boot; empty when nothing is to be compared.
        disturbs: nothing, gpu, board, network, node.
        restart: unit that must be restarted for it to count; "".
    """

    number: int
    id: str
    subject: str
    mechanism: str
    key: str
    value: str
    seen: dict[str, str | None]
    disturbs: str
    restart: str


class Act(NamedTuple):
    """
    Something to do that is no setting.

    Attributes:
        do, target: one of :data:`ACTS`, and the unit or device; "" for the node.
        disturbs: as for a step.
        checks: ids of steps for whose sake it is done: not at all where none of them is changed or waits for it; empty
            when it is wanted for itself.
    """

    do: str
    target: str
    disturbs: str
    checks: tuple[str, ...] = ()


def read_steps(told: Any, mechanisms: Any) -> list[Step]:
    """
    Check steps.

    Args:
        told: a list of JSON objects.
        mechanisms: known names.

    Raises:
        WriteError: something is missing, of another type or not known; the text names the step.
    """
    if not isinstance(told, list):
        raise WriteError("steps must be a list")
    single = [one for place, group in enumerate(told) for one in _spread(f"step {place + 1}", group)]
    if len(single) > MOST_STEPS:
        raise WriteError(f"more than {MOST_STEPS} steps")
    return [_step(number, one, mechanisms) for number, one in enumerate(single)]


def _spread(where: str, told: Any) -> Iterator[Any]:
    """Go through the steps of a group; what is no group is its only step."""
    if not isinstance(told, dict) or not {"subjects", "values"} & set(told):
        yield told
        return
    subjects, values = told.get("subjects", [told.get("subject", "")]), told.get("values")
    if not isinstance(subjects, list) or ("subjects" in told and "subject" in told):
        raise WriteError(f"{where}: subjects must be a list, and subject is not given then")
    if "values" in told and (not isinstance(values, dict) or {"key", "value"} & set(told)):
        raise WriteError(f"{where}: values must map keys to values, and key and value are not given then")
    pairs = [(told.get("key"), told.get("value"))] if values is None else list(values.items())
    rest = {name: value for name, value in told.items() if name not in ("subjects", "values", "key", "value")}
    for subject in subjects:
        for key, value in pairs:
            if values is not None and value in (None, ""):
                continue
            one = {**rest, "subject": subject, "key": key, "value": value}
            if "subjects" in told and isinstance(subject, str):
                named = {
                    name: one[name].replace("{subject}", subject) for name in _NAMING if isinstance(one.get(name), str)
                }
                one.update(named)
            yield one


def _step(number: int, told: Any, mechanisms: Any) -> Step:
    where = f"step {number + 1}"
    if not isinstance(told, dict):
        raise WriteError(f"{where} is no mapping")
    unknown = sorted(set(told) - {"id", "subject", "mechanism", "key", "value", "seen", "disturbs", "restart", "text"})
    if unknown:
        raise WriteError(f"{where} has unknown keys: {', '.join(map(str, unknown))}")
    names = ("id", "subject", "mechanism", "key", "restart")
    words = {name: _word(where, name, "" if told.get(name) is None else told[name]) for name in names}
    where = f"{where} ({words['id'] or words['key']})"
    if words["mechanism"] not in mechanisms:
        raise WriteError(f"{where}: no mechanism {words['mechanism']!r}; there are {', '.join(sorted(mechanisms))}")
    if not words["key"]:
        raise WriteError(f"{where} has no key")
    if "value" not in told:
        raise WriteError(f"{where} has no value")
    disturbs = told.get("disturbs") or "nothing"
    if disturbs not in DISTURBS:
        raise WriteError(f"{where}: disturbs {disturbs!r} is none of {', '.join(DISTURBS)}")
    if words["restart"] and not _UNIT.fullmatch(words["restart"]):
        raise WriteError(f"{where}: {words['restart']!r} is no unit")
    return Step(
        number, words["id"] or words["key"], words["subject"], words["mechanism"], words["key"],
        _value(where, told["value"]), _seen(where, told.get("seen")), disturbs, words["restart"],
    )  # fmt: skip


def _word(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not _PLAIN.fullmatch(value):
        raise WriteError(f"{where}: {name} must be one line of text, not {str(value)[:60]!r}")
    return str(value)


def _value(where: str, value: Any) -> str:
    if isinstance(value, bool):
        raise WriteError(f"{where}: the value is {value}, not a word; in YAML quote words such as 'on', 'off', 'yes'")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        raise WriteError(f"{where}: the value is the number {value}, which has many spellings; put it in quotes")
    return _word(where, "value", value)


def _seen(where: str, told: Any) -> dict[str, str | None]:
    if told is None:
        return {}
    if not isinstance(told, dict) or not set(told) <= {"running", "next boot"}:
        raise WriteError(f"{where}: seen must map running and next boot to text")
    return {str(name): None if value is None else _word(where, name, value) for name, value in told.items()}


def read_acts(told: Any) -> list[Act]:
    """
    Check acts.

    Raises:
        WriteError: one is not known.
    """
    if not isinstance(told, list) or len(told) > 100:
        raise WriteError("acts must be a list of at most 100")
    acts = []
    for number, one in enumerate(told):
        if not isinstance(one, dict) or one.get("do") not in ACTS:
            raise WriteError(f"act {number + 1} is none of {', '.join(ACTS)}")
        target = _word(f"act {number + 1}", "target", one.get("target", ""))
        if one["do"] in ("restart", "start") and not _UNIT.fullmatch(target):
            raise WriteError(f"act {number + 1}: {target!r} is no unit")
        checks = one.get("checks", ())
        if not isinstance(checks, (list, tuple)) or not all(isinstance(id, str) for id in checks):
            raise WriteError(f"act {number + 1}: checks must be a list of ids")
        acts.append(Act(one["do"], target, disturbance(target, str(one.get("disturbs") or "node")), tuple(checks)))
    return acts


def disturbance(unit: str, told: str) -> str:
    """Return what a restart disturbs: at least the board where the unit runs the board's fabric."""
    return "board" if unit in BOARD_UNITS and told in ("nothing", "gpu") else told
