"""
What a remedy of a layer writes and does: checked with the line it stands on, merged over layers, its value worked out.

::

    remedy:
      kind: write
      text: ...
      write: {mechanism: sysctl, key: kernel.numa_balancing}     # one, or a list; the value is what is expected
      act: {do: restart, target: slurmd.service}                 # one, or a list

A later layer that names no ``kind`` changes single keys, and those of every ``write`` where it names no mechanism:
``remedy: {write: {opt_in: false}}``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwcheck.facts import NAMES
from hwcheck.mechanisms import DEEDS, MECHANISMS
from hwcheck.profiles.expectation import Expectation

_WRITE = {
    "mechanism": str, "key": str, "opt_in": bool, "restart": str, "irreversible": bool, "indirect": bool,
    "subject": str, "refused_by": str, "keeps": bool,
}  # fmt: skip
_ACT = {"do": str, "target": str, "opt_in": bool}
_HINT = "no word; in YAML quote words such as 'on', 'off', 'yes'"


def listed(remedy: dict[str, Any], section: str) -> list[dict[str, Any]]:
    """Return the entries under ``write`` or ``act``, of which one may stand without a list."""
    told = remedy.get(section) or []
    return [told] if isinstance(told, dict) else told


def laid_over(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """
    Lay a remedy over that of the layers below.

    Args:
        old: of the layers below; None when they have none.
        new: of this layer; one with a ``kind`` stands for itself.
    """
    if not old or "kind" in new:
        return new
    result = {**old, **{key: value for key, value in new.items() if value is not None}}
    for section, name in (("write", "mechanism"), ("act", "do")):
        told = new.get(section)
        if isinstance(told, dict) and name not in told:
            result[section] = [{**one, **told} for one in listed(old, section)] or [told]
        elif section in new and told is None:
            del result[section]
    return result


def faults(remedy: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """
    Find what is wrong with the writes and acts of one layer.

    Yields:
        path of keys below the remedy, and what is wrong there.
    """
    for section, known in (("write", _WRITE), ("act", _ACT)):
        told = remedy.get(section)
        for index, one in enumerate(listed(remedy, section)):
            path: tuple[str | int, ...] = (section,) if isinstance(told, dict) else (section, index)
            yield from _faults_of(one, known, path, "kind" in remedy or not isinstance(told, dict))
            if section == "write":
                yield from _faults_of_write(one, path)
            elif one.get("do", "reboot") not in DEEDS:
                yield (*path, "do"), f"no such act: {one['do']}; there are {', '.join(DEEDS)}"


def _faults_of(
    one: dict[str, Any],
    known: dict[str, type],
    path: tuple[str | int, ...],
    whole: bool,  # noqa: FBT001 - whether it has to be complete
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for key, value in one.items():
        if key == "value" and known is _WRITE:
            continue
        if key not in known:
            yield (*path, key), f"{key}: not known; there are {', '.join(known)}, value"
        elif type(value) is not known[key]:
            hint = _HINT if isinstance(value, bool) else f"not of type {known[key].__name__}"
            yield (*path, key), f"{key}: {value!r} is {hint}"
    first, second = list(known)[:2]
    needed = (first, second) if known is _WRITE else (first,)
    if whole or first in one:
        for key in needed:
            if not one.get(key):
                yield path, f"{path[0]} has no {key}"


def _faults_of_write(one: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    name, value = one.get("mechanism"), one.get("value", "")
    if isinstance(name, str) and name not in MECHANISMS:
        yield (*path, "mechanism"), f"no such mechanism: {name}; there are {', '.join(MECHANISMS)}"
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        yield (
            (*path, "value"),
            f"value: {value!r} is {_HINT if isinstance(value, bool) else 'neither text nor integer'}",
        )
    elif isinstance(value, str) and not (value.isprintable() and len(value) <= 4096):
        yield (*path, "value"), "value: not one printable line"
    if one.get("refused_by") and one["refused_by"] not in NAMES:
        yield (*path, "refused_by"), f"no such fact: {one['refused_by']}"


def as_text(value: Any) -> str:
    """
    Spell a value as a mechanism gets it: yes is 1, no is 0.

    Raises:
        ValueError: a value that is no single word or number.
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    raise ValueError(f"no single value: {value!r}")


def wanted_text(data: dict[str, Any]) -> str:
    """
    Work out what a merged entry wants written: the value, bound or first choice of ``prefer``, else of ``expect``.

    A site's ``expect`` may be out of reach of the ``prefer`` of a layer below; then it alone counts.

    Raises:
        ValueError: what it expects names no single value.
    """
    found = []
    for key in ("prefer", "expect"):
        if data.get(key):
            expectation = Expectation.of(data[key])
            if expectation.operator in ("equals", "at_least"):
                found.append(expectation.operand)
            elif expectation.operator == "one_of":
                found.append(expectation.operand[0])
    if not found:
        raise ValueError("what it expects names no single value to write: the write needs a value")
    hard = Expectation.of(data["expect"]) if data.get("expect") else None
    return as_text(next((value for value in found if hard is None or hard.holds(value)), found[-1]))


def contradiction(data: dict[str, Any]) -> str:
    """
    Say why a merged entry cannot be written as it stands; "" when it can.

    A remedy that is half, a write without a value, or one of a value that the check itself would not accept.
    """
    remedy = data.get("remedy") or {}
    if remedy and not (remedy.get("kind") and remedy.get("text")):
        return "its remedy has no kind or no text"
    if not all(one.get("mechanism") or one.get("do") for name in ("write", "act") for one in listed(remedy, name)):
        return "there is no write or act of a lower layer that this one could change"
    if not (data.get("expect") or data.get("prefer")):
        return ""
    for write in listed(remedy, "write"):
        if "value" not in write:
            try:
                wanted_text(data)
            except ValueError as error:
                return str(error)
        elif not write.get("indirect") and not _accepts(data, write["value"]):
            return f"would write {write['value']!r}, which the check itself does not accept"
    return ""


def _accepts(data: dict[str, Any], value: Any) -> bool:
    kind = NAMES[data["fact"]].type
    if kind is bool:
        typed: Any = {"1": True, "0": False}.get(as_text(value))
    elif kind in (int, float):
        try:
            typed = kind(as_text(value))
        except ValueError:
            return False
    else:
        typed = as_text(value)
    return all(Expectation.of(data[key]).holds(typed) for key in ("expect", "prefer") if data.get(key))
