"""Pages about checks: from the profiles' YAML, or from the docstring of a relation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from hwcheck.checks import RELATIONS, Every, Relation, Some
from hwcheck.checks.coverage import OWN_CHECKS
from hwcheck.checks.expected import remedy_of
from hwcheck.facts import NAMES
from hwcheck.findings import Remedy, Urgency
from hwcheck.fleet import FOLDS
from hwcheck.incidents import RULES
from hwcheck.profiles import Entry, ProfileSet
from hwcheck.profiles.remedies import listed
from hwcheck.report.entries import DISTURBS, URGENCIES
from hwcheck.report.explain_changes import changes
from hwcheck.report.page import HEADINGS, Block, Page, sections_of
from hwcheck.report.wanted import CONFIDENCE, Sources, conditions, entries_of, wanted_table

_SCOPES = {
    "node": "The node, where", "gpu": "Each GPU of which", "port": "Each RDMA port of which",
    "nic": "Each NIC of which", "netdev": "Each network interface of which", "switch": "Each NVSwitch of which",
    "numa": "Each NUMA node of which", "pci": "Each PCI device of which", "measurement": "Each measurement of which",
    "clock": "Each clock of which", "unit": "Each service of which", "component": "Each firmware component of which",
    "disk": "Each drive of which", "mount": "Each mount of which",
}  # fmt: skip


def check_ids(profiles: ProfileSet) -> dict[str, Relation | None]:
    """
    List every check id that a finding can have.

    Returns:
        id → the relation that answers for it; None for those of the profiles' YAML and of the engine.
    """
    ids: dict[str, Relation | None] = dict.fromkeys(OWN_CHECKS)
    for layer in (*profiles.layers.values(), *profiles.sites):
        ids.update(dict.fromkeys(id for id, entry in (layer.data.get("checks") or {}).items() if entry))
    for relation in RELATIONS.values():
        ids.update(dict.fromkeys((relation.id, *relation.ids), relation))
    ids.update(dict.fromkeys(FOLDS))
    return ids


def check_page(id: str, relation: Relation | None, profiles: ProfileSet) -> Page:
    """Explain a check."""
    if relation is not None:
        page = _relation_page(id, relation, profiles)
    elif id in FOLDS:
        page = Page(id, "fleet check", FOLDS[id].title.rstrip("."), sections_of(FOLDS[id].text))
    elif id in OWN_CHECKS:
        title, text = OWN_CHECKS[id]
        page = Page(id, "check", title, sections_of(text))
    else:
        page = _setting_page(id, entries_of(profiles, "checks", id))
    page.add("Incidents", *_incidents(id))
    return page


# --------------------------------------------------------------------------------------------------- checks of profiles


def _setting_page(id: str, entries: dict[str, Entry]) -> Page:
    data = next(iter(entries.values())).data
    fact = NAMES[data["fact"]]
    page = Page(id, "check", data["title"])
    setting = "It is a setting: the effective value decides, and the value after the next boot is looked at too."
    page.add("What it checks", f"{fact.name}: {fact.text}.", setting if data.get("setting") else "")
    page.add("Why it matters", *_distinct(entries, "why"))
    remedies = [(remedy_of(entry.data), listed(entry.data.get("remedy") or {}, "write")) for entry in entries.values()]
    words = dict.fromkeys(_remedy_text(remedy) for remedy, _ in remedies if remedy is not None)
    page.add("How to fix", *(words or ["Nothing is fixed; see why it matters."]))
    page.add("How to fix", *dict.fromkeys(line for remedy, told in remedies for line in changes(remedy, told)))
    page.add("How to fix", _grade(data))
    page.add("Applies to", f"{_SCOPES[fact.scope]} {fact.name} is in the evidence.")
    for condition in conditions(data.get("when") or ()):
        page.add("Applies to", f"- only when {condition}")
    for condition in conditions(data.get("unless") or ()):
        page.add("Applies to", f"- not when {condition}")
    sources = Sources()
    table = wanted_table(entries, sources)
    page.add("Wanted", table, CONFIDENCE)
    page.add("Source", *sources.listed())
    return page


def _distinct(entries: dict[str, Entry], key: str) -> list[Block]:
    """Return the different texts, each with the platforms it is for where there is more than one."""
    texts: dict[str, list[str]] = {}
    for platform, entry in entries.items():
        texts.setdefault(" ".join(str(entry.data.get(key, "")).split()), []).append(platform)
    if len(texts) == 1:
        return list(texts)
    general = next(iter(texts))
    return [text if text == general else f"- {', '.join(platforms)}: {text}" for text, platforms in texts.items()]


def _remedy_text(remedy: Remedy) -> str:
    disturbs = f" It {DISTURBS[remedy.disturbs]}." if remedy.disturbs in DISTURBS else ""
    return " ".join(remedy.text.split()) + disturbs


def _grade(data: dict[str, Any]) -> str:
    when = URGENCIES.get(Urgency(data.get("urgency", "maintenance")), "no hurry")
    only_preferred = not data.get("expect") and data.get("prefer")
    word = "warning" if data.get("severity") == "warn" or only_preferred else "fail"
    return f"Another value is a {word}; act: {when}."


# ------------------------------------------------------------------------------------------------------------ relations


def _relation_page(id: str, relation: Relation, profiles: ProfileSet) -> Page:
    page = Page(id, "check", relation.title.rstrip("."))
    sections = sections_of(relation.text)
    for heading in HEADINGS:
        page.add(heading, *sections.get(heading, ()))
        if heading == "How to fix" and relation.remedy is not None:
            when = URGENCIES.get(relation.urgency, "no hurry")
            page.add(heading, f"Remedy ({when}): {_remedy_text(relation.remedy)}", *changes(relation.remedy))
        if heading == "Applies to":
            page.add(heading, _needs(relation))
    if relation.ids and id.partition(".")[0] not in ("xid", "sxid"):
        page.add("Answers as", ", ".join(relation.ids))
    _bounds(page, relation, profiles)
    return page


def _needs(relation: Relation) -> str:
    parts = [_need(need) for need in relation.needs]
    if relation.any_of:
        parts.append(f"one of {', '.join(relation.any_of)}")
    return f"Needs {'; '.join(parts)}." if parts else ""


def _need(need: str | Every | Some) -> str:
    if isinstance(need, str):
        return need
    return f"{need.name} of {'every' if isinstance(need, Every) else 'at least one'} {NAMES[need.name].scope}"


def _bounds(page: Page, relation: Relation, profiles: ProfileSet) -> None:
    known = {id for layer in profiles.layers.values() for id in (layer.data.get("bounds") or {})}
    sources = Sources()
    used = sorted(set(_constants(relation.body)) & known)
    for bound in used:
        page.add("Figures of the platforms", f"{bound}:", wanted_table(entries_of(profiles, "bounds", bound), sources))
    if used:
        page.add("Figures of the platforms", *sources.listed(), CONFIDENCE)


def _constants(body: Any) -> Iterator[str]:
    """Go through the strings in a check's code and in the functions of its module that it calls."""
    seen: set[CodeType] = set()
    waiting = [body.__code__]
    while waiting:
        code = waiting.pop()
        if code in seen:
            continue
        seen.add(code)
        for constant in code.co_consts:
            if isinstance(constant, str):
                yield constant
            elif isinstance(constant, CodeType):
                waiting.append(constant)
        for name in code.co_names:
            value = body.__globals__.get(name)
            if isinstance(value, FunctionType) and value.__module__ == body.__module__:
                waiting.append(value.__code__)
            elif isinstance(value, str):
                yield value


# ------------------------------------------------------------------------------------------------------------ incidents


def _incidents(id: str) -> list[Block]:
    leads = dict.fromkeys(rule.text for rule in RULES if re.fullmatch(rule.lead, id))
    follows = dict.fromkeys(rule.text for rule in RULES if re.fullmatch(rule.follows, id))
    return [
        *(f"- leads others: {text}" for text in leads),
        *(f"- may follow from another finding: {text}" for text in follows if text not in leads),
    ]
