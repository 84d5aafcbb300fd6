"""
What is known: a value with its origin, or Missing with a reason. Never a default, never a silent None.

A fact is keyed by (subject, name, facet). Names, types and units are declared once, in :mod:`hwcheck.facts.names`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple


class Reason(enum.StrEnum):
    """Why a value is missing. The engine turns each into skip or unknown; see :attr:`Reason.asked`."""

    ABSENT = "absent"
    """Asked, and the answer is that there is none: ``[N/A]``, no such file, not supported on this part."""
    DENIED = "denied"
    """Asked, and refused for want of privilege."""
    TIMEOUT = "timeout"
    """Asked, and never answered."""
    UNPARSABLE = "unparsable"
    """Answered, but the answer is not understood or cut off."""
    FAILED = "failed"
    """Asked, and the device or tool answered with an error: ``Unknown Error``, ``[GPU requires reset]``."""
    NOT_COLLECTED = "not collected"
    """Never asked."""

    @property
    def asked(self) -> bool:
        """Whether a source was asked and did not tell: such a gap makes a check unknown, any other skips it."""
        return self in (Reason.DENIED, Reason.TIMEOUT, Reason.UNPARSABLE, Reason.FAILED)


class Facet(enum.StrEnum):
    """
    The five readings of a tunable.

    Running and next boot differ for kernel arguments, sysctl drop-ins, ECC and MIG mode; running and effective
    differ where something vetoes the setting (firmware and ASPM, a power cap and a clock lock).
    """

    SUPPORTED = "supported"
    PERMITTED = "permitted"
    RUNNING = "running"
    NEXT_BOOT = "next boot"
    EFFECTIVE = "effective"


class Origin(NamedTuple):
    """
    Where a value was read.

    Attributes:
        source: kind of output it stands in, e.g. ``nvidia-smi.q``.
        file: file name as the user gave it or as in the evidence directory; "" when unknown.
        line: 1-based line in that file; 0 when the format has no lines (NVML calls).
        excerpt: the line itself, at most 200 characters, escapes removed.
        time: when the source was read or the line was logged, as printed; "" when unknown.
    """

    source: str
    file: str = ""
    line: int = 0
    excerpt: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """
    A value that could not be had, and why.

    Attributes:
        reason: the kind of gap.
        detail: the tool's own word for it, or what would have been needed.
    """

    reason: Reason
    detail: str = ""

    def __bool__(self) -> bool:
        """Refuse truth tests: ``if value`` must never take a gap for a false or a present value."""
        raise TypeError(f"a Missing has no truth value ({self.reason}: {self.detail})")


NOT_COLLECTED = Missing(Reason.NOT_COLLECTED)


class Fact(NamedTuple):
    """
    One reading.

    Attributes:
        value: the value in the unit that the registry declares for the name, or Missing.
        origin: where it was read; None only for facts that nothing was asked for.
    """

    value: Any
    origin: Origin | None = None

    @property
    def present(self) -> bool:
        """Whether there is a value."""
        return not isinstance(self.value, Missing)


NO_FACT = Fact(NOT_COLLECTED)
