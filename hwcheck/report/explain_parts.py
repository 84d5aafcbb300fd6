"""Pages about profiles, sources, facts, bounds and families."""

from __future__ import annotations

import fnmatch
import inspect
import sys

from hwcheck.checks import RELATIONS
from hwcheck.checks.coverage import OWN_CHECKS
from hwcheck.facts import NAMES, FactName
from hwcheck.fleet import FOLDS
from hwcheck.mechanisms import SEEN, Mechanism
from hwcheck.parse import FORMATS, Format
from hwcheck.profiles import Profile, ProfileSet
from hwcheck.profiles.identify import GENERIC
from hwcheck.profiles.remedies import listed
from hwcheck.report.explain_changes import mechanisms_of
from hwcheck.report.explain_check import check_ids
from hwcheck.report.page import Literal, Page, Table, capital, paragraphs
from hwcheck.report.wanted import CONFIDENCE, Sources, entries_of, platform_names, set_by, wanted, wanted_table


def profile_page(name: str, profiles: ProfileSet) -> Page:
    """Explain a profile: how it is recognised, and each figure with layer, confidence and source."""
    profile = profiles.profile(name)
    page = Page(name, "profile", profile.title)
    page.add("Layers", " → ".join(profile.layers))
    match = profiles.layers[name].data.get("match") or {}
    rules = [
        ("PCI device/subsystem", ", ".join(match.get("pci") or ())),
        ("product name", ", ".join(match.get("names") or ())),
        ("memory total", f"{match['memory_total']} MiB" if match.get("memory_total") else ""),
        ("row-remap banks", str(match.get("banks") or "")),
    ]
    page.add("Recognised by", Table(("what", "is one of"), [rule for rule in rules if rule[1]]))
    if not match:
        page.add("Recognised by", "Never: it is under the other profiles, and judges what none of them fits.")
    sources = Sources()
    own, general = _figures(profile, sources)
    page.add("Figures of this platform", own)
    page.add("Figures of every platform", general)
    page.add("Sources", CONFIDENCE, *sources.listed())
    return page


def _figures(profile: Profile, sources: Sources) -> tuple[Table, Table]:
    """Divide the figures of a profile: its own, and those of the general layers below."""
    header = ("check or bound", "wanted", "set in", "conf.", "source")
    tables: tuple[list[tuple[str, ...]], list[tuple[str, ...]]] = ([], [])
    for id, entry in sorted((*profile.checks.items(), *profile.bounds.items())):
        if wanted(entry) == "no figure":
            continue
        layer = set_by(entry)
        general = profile.name != layer and (layer == GENERIC or layer.startswith(f"{GENERIC}-"))
        row = (id, wanted(entry), layer, entry.data.get("confidence", ""), sources.cite(entry.data["source"]))
        tables[general].append(row)
    return Table(header, tables[0]), Table(header, tables[1])


def format_page(form: Format) -> Page:
    """Explain a source: how its text is recognised, what it gives, and what its parser knows about it."""
    page = Page(form.kind, "source", form.title)
    page.add("Recognised by", *_recognition(form))
    rows = [(name, NAMES[name].unit, NAMES[name].text) for name in NAMES if _gives(form, name)]
    page.add("Facts it gives", Table(("fact", "unit", "what it is"), rows))
    module = sys.modules[form.parse.__module__]
    page.add("Its parser", *paragraphs(inspect.cleandoc(module.__doc__ or "")))
    page.add("Its parser", *paragraphs(inspect.getdoc(form.parse) or ""))
    return page


def _recognition(form: Format) -> list[str | Table | Literal]:
    ways: list[str | Table | Literal] = []
    if form.opens is not None:
        ways += ["a line that begins like this (regular expression):", Literal(form.opens)]
    if form.command is not None:
        ways += ["what follows a command at a shell prompt that holds this:", Literal(form.command.pattern)]
    if form.lines:
        ways.append("It is a log: its lines may stand among others.")
    return ways or ["the manifest of an evidence directory only: its text alone does not tell."]


def mechanism_page(mechanism: Mechanism, profiles: ProfileSet) -> Page:
    """Explain a way to write: its keys and values, when they count, how it was tried, and the checks that use it."""
    page = Page(mechanism.name, "mechanism", f"How hwcheck writes: {mechanism.name}")
    when = "at the next boot" if mechanism.reboots else "at once" if mechanism.phase == "volatile" else "at a restart"
    belongs = "the subject of the check: a GPU, a port" if mechanism.of_subject else "the node"
    rows = [("key", mechanism.key), ("value", mechanism.value), ("belongs to", belongs), ("counts", when)]
    page.add("What it is", Table(("", ""), rows), f"seen: {mechanism.seen} ({SEEN[mechanism.seen]})")
    page.add("Checks that write by it", ", ".join(_writers(mechanism.name, profiles)))
    return page


def _writers(mechanism: str, profiles: ProfileSet) -> list[str]:
    found = set()
    for platform in platform_names(profiles):
        for id, entry in profiles.profile(platform).checks.items():
            told = listed(entry.data.get("remedy") or {}, "write")
            found |= {id for one in told if one["mechanism"] == mechanism}
    return sorted(found | {one.id for one in RELATIONS.values() if mechanism in mechanisms_of(one.remedy)})


def _gives(form: Format, name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in form.gives)


def fact_page(fact: FactName, profiles: ProfileSet) -> Page:
    """Explain a fact: what it is, which sources give it, and which checks look at it."""
    page = Page(fact.name, "fact", capital(fact.text))
    rows = [("belongs to", fact.scope), ("type", fact.type.__name__), ("unit", fact.unit or "none")]
    page.add("What it is", Table(("", ""), rows))
    givers = [(form.kind, form.title) for form in FORMATS.values() if _gives(form, fact.name)]
    page.add("Sources", Table(("source", "title"), givers))
    page.add("Checks", ", ".join(_users(fact.name, profiles)))
    return page


def _users(name: str, profiles: ProfileSet) -> list[str]:
    users = set()
    for platform in platform_names(profiles):
        users |= {id for id, entry in profiles.profile(platform).checks.items() if entry.data["fact"] == name}
    for relation in RELATIONS.values():
        needs = [need if isinstance(need, str) else need.name for need in relation.needs]
        if name in (*needs, *relation.uses, *relation.any_of):
            users.add(relation.id)
    return sorted(users)


def bound_page(id: str, profiles: ProfileSet) -> Page:
    """Explain a bound: its value on each platform."""
    entries = entries_of(profiles, "bounds", id)
    page = Page(id, "figure", "A figure that checks compare with, platform by platform")
    sources = Sources()
    page.add("Values", wanted_table(entries, sources), CONFIDENCE)
    whys: dict[str, list[str]] = {}
    for platform, entry in entries.items():
        whys.setdefault(" ".join(entry.data["why"].split()), []).append(platform)
    page.add("Why", *(f"- {', '.join(platforms)}: {why}" for why, platforms in whys.items()))
    page.add("Source", *sources.listed())
    return page


def family_page(family: str, profiles: ProfileSet) -> Page:
    """List the checks of a family."""
    titles: dict[str, str] = {}
    for id, relation in check_ids(profiles).items():
        if id.partition(".")[0] != family or (relation is not None and relation.id != id):
            continue
        if relation is not None:
            titles[id] = relation.title.rstrip(".")
        else:
            entries = entries_of(profiles, "checks", id)
            titles[id] = (
                next(iter(entries.values())).data["title"]
                if entries
                else OWN_CHECKS[id][0]
                if id in OWN_CHECKS
                else FOLDS[id].title.rstrip(".")
            )
    page = Page(family, "family of checks", f"{len(titles)} checks")
    page.add("Checks", Table(("check", "what it looks at"), sorted(titles.items())))
    page.add("Checks", "" if titles else "No check of this family yet.")
    return page
