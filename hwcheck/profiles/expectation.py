"""A wanted value: the few forms in which YAML can say what is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_NUMBERS = ("at_least", "at_most", "above", "below")
OPERATORS = ("equals", "one_of", "none_of", "between", "matches", *_NUMBERS)


@dataclass(frozen=True, slots=True)
class Expectation:
    """
    One operator and its operand, e.g. ``{at_least: 16}``.

    Values are compared typed, as the parser normalised them: a number never equals a text, true never equals 1.
    """

    operator: str
    operand: Any

    @classmethod
    def of(cls, data: Any) -> Expectation:
        """
        Read the YAML form.

        Raises:
            ValueError: not exactly one known operator, or an operand of the wrong form.
        """
        if not isinstance(data, dict) or len(data) != 1:
            raise ValueError(f"an expectation is one of {', '.join(OPERATORS)}")
        ((operator, operand),) = data.items()
        if operator not in OPERATORS:
            raise ValueError(f"no such operator: {operator}; there are {', '.join(OPERATORS)}")
        if operator in _NUMBERS and not _is_number(operand):
            raise ValueError(f"{operator} takes a number, not {operand!r}")
        if operator in ("one_of", "none_of") and not (isinstance(operand, list) and operand):
            raise ValueError(f"{operator} takes a list")
        if operator == "between" and not (
            isinstance(operand, list)
            and len(operand) == 2
            and all(map(_is_number, operand))
            and operand[0] <= operand[1]
        ):
            raise ValueError("between takes two numbers, the lower first")
        if operator == "matches":
            try:
                re.compile(operand)
            except (re.error, TypeError) as error:
                raise ValueError(f"no valid pattern: {operand!r}") from error
        return cls(operator, operand)

    def check_type(self, kind: type) -> None:
        """
        Tell a wanted value that this type of fact can never have: it would fail every healthy node.

        Raises:
            ValueError: the operand is of another type.
        """
        if self.operator in _NUMBERS or self.operator == "between":
            good = kind in (int, float)
        elif self.operator == "matches":
            good = kind is str
        else:
            among = self.operand if self.operator in ("one_of", "none_of") else [self.operand]
            good = all(type(item) is kind or (kind is float and _is_number(item)) for item in among)
        if not good:
            raise ValueError(f"{self} cannot be said of a value of type {kind.__name__}")

    def holds(self, value: Any) -> bool:
        """
        Tell whether the value is right.

        Raises:
            TypeError: the value is of a type that the operator cannot compare (a text with at_least).
        """
        operand = self.operand
        if self.operator in _NUMBERS or self.operator == "between":
            if not _is_number(value):
                raise TypeError(f"{self.operator} cannot judge {value!r}")
            compare: dict[str, Callable[[], bool]] = {
                "at_least": lambda: value >= operand,
                "at_most": lambda: value <= operand,
                "above": lambda: value > operand,
                "below": lambda: value < operand,
                "between": lambda: operand[0] <= value <= operand[1],
            }
            return compare[self.operator]()
        if self.operator == "equals":
            return _same(value, operand)
        if self.operator == "matches":
            return isinstance(value, str) and re.fullmatch(operand, value) is not None
        among = any(_same(value, item) for item in operand)
        return among if self.operator == "one_of" else not among

    def __str__(self) -> str:
        """Say it in words, without unit."""
        words = {
            "equals": "{}", "at_least": "at least {}", "at_most": "at most {}", "above": "above {}",
            "below": "below {}", "matches": "like {}",
        }  # fmt: skip
        if self.operator == "between":
            return f"{self.operand[0]} to {self.operand[1]}"
        if self.operator in ("one_of", "none_of"):
            joined = ", ".join(map(_word, self.operand))
            return f"one of {joined}" if self.operator == "one_of" else f"none of {joined}"
        return words[self.operator].format(_word(self.operand))


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(value: Any, operand: Any) -> bool:
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    if _is_number(value) and _is_number(operand):
        return bool(value == operand)
    return type(value) is type(operand) and bool(value == operand)
