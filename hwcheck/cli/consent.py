"""Consent: nothing is changed and nothing is put under load that nobody has agreed to."""

from __future__ import annotations

import sys

from hwcheck.errors import UsageError


def demand_consent(deed: str, *, yes: bool, otherwise: str = "nothing was changed") -> None:
    """
    Make sure that a deed is wanted.

    Args:
        deed: what would be done, as an order: ``change 3 nodes``.
        yes: it was agreed to on the command line.
        otherwise: what to say when it is not wanted.

    Raises:
        UsageError: it is not wanted, or nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"this would {deed}; --yes says that this is wanted")
    print(f"{deed[0].upper()}{deed[1:]}? Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise UsageError(otherwise)
