"""
One way to write a JSON value down, and a reader that takes nothing else.

Keys are sorted, there is no blank, everything beyond ASCII is escaped, and a line break ends the text. What reads back
to the same value but is written otherwise (blanks, another order, a key twice, ``1e3``) is refused, so that a file has
one form and each byte of it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hwcheck.errors import CertificateError

MAX_BYTES = 4 << 20
"""Some 60 kB for a node of eight GPUs; what is larger is no certificate."""
DEPTH = 12


def canonical(value: Any) -> bytes:
    """
    Write a value.

    Raises:
        CertificateError: not a number, infinity, or what JSON cannot say.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise CertificateError(f"cannot be written down: {error}") from error


def read_canonical(data: bytes) -> Any:
    """
    Read what :func:`canonical` wrote, with the line break at its end.

    Raises:
        CertificateError: anything else.
    """
    if len(data) > MAX_BYTES:
        raise CertificateError(f"larger than {MAX_BYTES >> 20} MiB")
    try:
        value = json.loads(data.decode("ascii"), object_pairs_hook=_once, parse_constant=_no_number)
        read = canonical(value)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"no JSON of ours, or cut off: {error}") from error
    if read + b"\n" != data:
        raise CertificateError("not in canonical form: it was written anew, changed or cut off")
    for text in texts(value):
        if not text.isprintable():
            raise CertificateError(f"a text that cannot be printed: {text[:40]!a}")
    return value


def texts(value: Any, depth: int = 0) -> Iterator[str]:
    """
    Go through all texts of a value, keys included.

    Raises:
        CertificateError: nested deeper than anything of ours.
    """
    if depth > DEPTH:
        raise CertificateError(f"nested more than {DEPTH} deep")
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, depth + 1)


def plain(value: Any, depth: int = 0) -> Any:
    """
    Make of what a node said what a certificate may hold.

    Texts are cut at 300 characters and spelled out where they cannot be printed (escapes, lone surrogates, marks that
    turn the reading direction); lists end after 100 entries, and what is nested too deep becomes text.
    """
    if isinstance(value, str):
        cut = value if len(value) <= 300 else value[:297] + "..."
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict) and depth < 4:
        return {plain(str(key)): plain(item, depth + 1) for key, item in list(value.items())[:100]}
    if isinstance(value, (list, tuple)) and depth < 4:
        return [plain(item, depth + 1) for item in value[:100]]
    return plain(str(value))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise CertificateError("a key stands twice")
    return found


def _no_number(name: str) -> Any:
    raise CertificateError(f"{name} is no number")
