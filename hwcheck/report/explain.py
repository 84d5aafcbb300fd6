"""``hwcheck explain``: find what the words mean, and print its page."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from hwcheck.checks import Relation
from hwcheck.errors import UsageError
from hwcheck.facts import NAMES
from hwcheck.mechanisms import MECHANISMS, SEEN
from hwcheck.parse import FORMATS
from hwcheck.profiles import ProfileSet
from hwcheck.report.explain_check import check_ids, check_page
from hwcheck.report.explain_code import code_page, unlisted_page
from hwcheck.report.explain_parts import (
    bound_page,
    fact_page,
    family_page,
    format_page,
    mechanism_page,
    profile_page,
)
from hwcheck.report.page import Page, render_page
from hwcheck.report.sheet import terminal

_SHOWN = 60


def print_page(words: list[str], profiles: ProfileSet, tried: Mapping[str, str]) -> None:
    """
    Print the page of what the words name.

    Args:
        words: as given on the command line.
        profiles: all layers.
        tried: kind of a source → how the node program's reading of it was seen to work, a key of ``SEEN``.

    Raises:
        UsageError: nothing is called that.
    """
    page = explain(words, profiles)
    if page.kind == "source" and page.name in tried:
        page.add("Read from nodes", f"seen: {tried[page.name]} ({SEEN[tried[page.name]]})")
    render_page(page, terminal())


def explain(words: list[str], profiles: ProfileSet) -> Page:
    """
    Make the page of a check, a code (``xid 79``), a profile, a source, a mechanism, a fact, a bound or a family.

    Where one name is of two things, the first of this order is explained and the others are mentioned.

    Args:
        words: as given on the command line.
        profiles: all layers.

    Raises:
        UsageError: nothing is called that; with the nearest names.
    """
    names = _names(profiles)
    for wanted in _spellings(words):
        if wanted in names:
            (_, page), *others = names[wanted]
            made = page()
            made.add(
                "See also",
                *(f"There is a {kind} of this name too: {other().title}{_how(kind, words)}" for kind, other in others),
            )
            return made
    unlisted = unlisted_page(_spellings(words)[-1])
    if unlisted is not None:
        return unlisted
    raise UsageError(_unknown(words, names))


def _how(kind: str, words: list[str]) -> str:
    return f" (hwcheck explain mechanism {' '.join(words)})" if kind == "mechanism" else ""


def _spellings(words: list[str]) -> list[str]:
    """Return what the words may stand for: ``Xid 79`` is ``xid.79``."""
    joined = " ".join(" ".join(words).split())
    return [joined, joined.lower(), ".".join(joined.lower().split())]


Maker = Callable[[], Page]


@lru_cache(maxsize=1)
def _names(profiles: ProfileSet) -> dict[str, list[tuple[str, Maker]]]:
    """Map every name to what it may be: kind of thing, and how its page is made."""
    names: dict[str, list[tuple[str, Maker]]] = {}

    def know(name: str, kind: str, page: Maker) -> None:
        names.setdefault(name, []).append((kind, page))

    for id, relation in check_ids(profiles).items():
        know(id, "check", partial(_check, id, relation, profiles))
    for name in profiles.layers:
        know(name, "profile", partial(profile_page, name, profiles))
    for form in FORMATS.values():
        for name in dict.fromkeys((form.kind, form.title.lower())):
            know(name, "source", partial(format_page, form))
    for fact in NAMES.values():
        know(fact.name, "fact", partial(fact_page, fact, profiles))
    for bound in dict.fromkeys(id for layer in profiles.layers.values() for id in (layer.data.get("bounds") or {})):
        know(bound, "figure", partial(bound_page, bound, profiles))
    for family in sorted(profiles.families):
        know(family, "family", partial(family_page, family, profiles))
    for mechanism in MECHANISMS.values():
        for name in (mechanism.name, f"mechanism {mechanism.name}"):
            know(name, "mechanism", partial(mechanism_page, mechanism, profiles))
    return names


def _check(id: str, relation: Relation | None, profiles: ProfileSet) -> Page:
    code = code_page(id, relation) if relation is not None else None
    return code or check_page(id, relation, profiles)


def _unknown(words: list[str], names: dict[str, list[tuple[str, Maker]]]) -> str:
    asked = " ".join(words)[:_SHOWN]
    wanted = _spellings(words)[-1][:_SHOWN]
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)
    if not near and wanted:
        near = [name for name in names if name.rpartition(".")[2] == wanted or (len(wanted) > 2 and wanted in name)][:3]
    if near:
        return f"nothing is called {asked!r}; did you mean {' or '.join(near)}?"
    return f"nothing is called {asked!r}; try a check (hbm.total), xid 79, hgx-h200, nvidia-smi.q or a family (hbm)"
