"""
Secrets out of evidence: the last line of defence, after the node program's own care. Pure.

Works on what leaves no doubt: a value behind a name like ``password`` or ``api_key``, a bearer token, credentials in an
address, a private key, tokens with a maker's prefix. The value becomes ``***``; the name stays, so that a person sees
that something stood there.
"""

from __future__ import annotations

import re

HIDDEN = b"***"
_NAME = (
    rb"(?:[a-z0-9]{1,40}[_-]){0,6}(?:password|passwd|passphrase"
    rb"|(?:secret|access|private|auth|api)[_-]?(?:access[_-]?)?key|secret|token|credentials?)"
)
_NEW = rb"(?!\*\*\*|<hidden>)"
"""Not hidden before, by us or by the node program."""
_SECRETS = (
    # TOKEN=x, password: x, "secret": "x", --token x; not "password for root" in a log, nor an empty value
    (re.compile(rb"(?i)(?<![a-z0-9])(" + _NAME + rb"[\"']?\s{0,3}[=:]\s{0,3}[\"']?)" + _NEW + rb"[^\s\"',;&]+"),
     rb"\1" + HIDDEN),
    (re.compile(rb"(?i)(?<![\w-])(--?" + _NAME + rb" +)(?!-)" + _NEW + rb"\S+"), rb"\1" + HIDDEN),
    (re.compile(rb"(?i)\b(authorization\s{0,3}[:=]\s{0,3}(?:bearer|basic|token)\s+|bearer\s+)[\w.~+/=-]{8,}"),
     rb"\1" + HIDDEN),
    (re.compile(rb"(?i)([a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:)[^\s/@\"']{1,200}(?=@)"), rb"\1" + HIDDEN),
    (re.compile(rb"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----).*?(?:(?=-----END)|\Z)", re.DOTALL), rb"\1" + HIDDEN),
    (re.compile(rb"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{20,}|glpat-[\w-]{15,}|hvs\.[\w-]{20,}|xox[abprs]-[\w-]{10,}"
                rb"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"), HIDDEN),
)  # fmt: skip
_HINTS = (
    b"password", b"passwd", b"passphrase", b"secret", b"token", b"_key", b"-key", b"apikey", b"accesskey",
    b"privatekey", b"authkey", b"authorization", b"credential", b"bearer", b"://", b"akia", b"ghp_", b"gho_", b"ghu_",
    b"ghs_", b"ghr_", b"glpat-", b"hvs.", b"xox", b"eyj",
)  # fmt: skip
"""One of them stands in each secret above; looking for words is a hundred times faster than looking for patterns."""


def scrub(data: bytes) -> bytes:
    """Return the text without the values of secrets; the same bytes where there are none."""
    parts: list[bytes] = []
    done = 0
    for start, end in _suspect_lines(data):
        parts += (data[done:start], _scrub_lines(data[start:end]))
        done = end
    return b"".join((*parts, data[done:])) if parts else data


def _suspect_lines(data: bytes) -> list[tuple[int, int]]:
    """Return the places of the lines with a hint; those that touch are one."""
    lower = data.lower()
    if b"private key-----" in lower:
        return [(0, len(data))]  # the key itself is in the lines after
    spans: list[tuple[int, int]] = []
    for hint in _HINTS:
        at = lower.find(hint)
        while at >= 0:
            end = lower.find(b"\n", at)
            end = len(lower) if end < 0 else end
            spans.append((lower.rfind(b"\n", 0, at) + 1, end))
            at = lower.find(hint, end)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _scrub_lines(text: bytes) -> bytes:
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text
