"""
Write docs/reference/ from the code itself: checks, codes, profiles, mechanisms, roles, modules, verbs, exit codes.

``python docs/reference.py`` writes what has changed, a folder as argument has all of it written there.
tests/test_reference.py fails where a committed page is not what this makes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from _ansible import modules, roles
from _commands import exit_codes, verbs
from _markdown import escaped, table

from hwcheck.mechanisms import MECHANISMS, SEEN
from hwcheck.profiles import Entry, Profile, ProfileSet
from hwcheck.report.explain import explain
from hwcheck.report.explain_check import check_ids
from hwcheck.report.page import HEADINGS, Block, Page, Table
from hwcheck.report.wanted import CONFIDENCE, Sources, platform_names, set_by, wanted

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "docs/reference"
_MADE = "<!-- Made by docs/reference.py; do not edit. -->\n\n"
_CODES = ("xid", "sxid")


def pages() -> dict[str, str]:
    """Make all pages; name of the file → text."""
    profiles = ProfileSet()
    made = {
        "checks.md": checks(profiles),
        "codes.md": codes(profiles),
        "profiles.md": figures(profiles),
        "mechanisms.md": mechanisms(profiles),
        "roles.md": roles(ROOT / "roles"),
        "modules.md": modules(ROOT / "playbooks/library"),
        "verbs.md": verbs(),
        "exit-codes.md": exit_codes(),
    }
    titles = [f"- [{text.splitlines()[0].removeprefix('# ')}]({name})" for name, text in made.items()]
    how = "What hwcheck knows, written by `docs/reference.py` from the code. `hwcheck explain NAME` says more of each."
    made["README.md"] = "\n".join(["# Reference", "", how, "", *titles, ""])
    return {name: _MADE + text for name, text in made.items()}


# -------------------------------------------------------------------------------------------------------- checks, codes


def checks(profiles: ProfileSet) -> str:
    """Tell of each check what, why, how, where and by whose word; codes have a page of their own."""
    ids = {id: relation for id, relation in check_ids(profiles).items() if id.partition(".")[0] not in _CODES}
    lines = ["# Checks", "", "By family. Wanted figures of each platform: [profiles](profiles.md).", ""]
    family = ""
    for id in sorted(ids):
        relation = ids[id]
        if relation is not None and relation.id != id:  # one relation that answers under several ids: told once
            if relation.id not in ids:
                raise LookupError(f"{id}: its relation {relation.id} is in no list")
            continue
        if id.partition(".")[0] != family:
            family = id.partition(".")[0]
            lines += [f"## {family}", ""]
        lines += [f"### {id}", "", *_check(explain([id], profiles)), ""]
    return "\n".join(lines)


def _check(page: Page) -> Iterable[str]:
    yield f"{escaped(page.title)}."
    yield ""
    for heading in (*HEADINGS[:-1], "Wanted", "Answers as", HEADINGS[-1]):
        told = _flat(page.sections.get(heading, ()))
        if told:
            yield f"- **{heading}**: {told}"


def _flat(blocks: Iterable[Block]) -> str:
    """Make one paragraph of blocks; of a table of wanted values, its values and platforms."""
    told = []
    for block in blocks:
        if isinstance(block, Table):
            told.append("; ".join(f"{row[0]} ({row[-1]})" for row in block.rows) + ".")
        elif isinstance(block, str) and block != CONFIDENCE:
            said = escaped(re.sub(r"^(- |\[\d+\] )", "", block))
            told.append(said if said[-1] in ".:;!?" else f"{said}.")
    return " ".join(told)


def codes(profiles: ProfileSet) -> str:
    """Tell of each Xid and SXid how it is judged and what to do."""
    lines = ["# Xid and SXid codes", "", "`hwcheck explain xid 79` says why, on which chips, and from where that is."]
    for family, title in zip(_CODES, ("Xid: errors of GPUs", "SXid: errors of NVSwitches"), strict=True):
        lines += ["", f"## {title}"]
        numbers = sorted(int(id.partition(".")[2]) for id in check_ids(profiles) if re.fullmatch(rf"{family}\.\d+", id))
        told = [explain([f"{family}.{number}"], profiles) for number in numbers]
        rows = [
            (str(number), page.title.partition(": ")[2], _severity(page), *_advice(page))
            for number, page in zip(numbers, told, strict=True)
        ]
        alike = {row[3] for row in rows}
        header = ("code", "name", "severity", "judged as", "what to do")
        if len(alike) == 1:
            lines += ["", f"Judged are {escaped(alike.pop())}"]
            header, rows = (*header[:3], header[4]), [(*row[:3], row[4]) for row in rows]
        lines += ["", *table(header, rows)]
    return "\n".join([*lines, ""])


def _severity(page: Page) -> str:
    told = re.match(r"Severity ([\w-]+):", str(page.sections.get("Why it matters", [""])[0]))
    return told[1] if told else ""


def _advice(page: Page) -> tuple[str, str]:
    judged, fix = (str(page.sections.get(heading, [""])[0]) for heading in ("How hwcheck judges it", "How to fix"))
    return judged, fix


# ------------------------------------------------------------------------------------------------- profiles, mechanisms


def figures(profiles: ProfileSet) -> str:
    """Tell the figures of each layer, with confidence and source."""
    sources = Sources()
    intro = (
        "A platform is its own layer over the general ones; a site's layers come on top ([guide](../site-overlay.md))."
    )
    lines = ["# Profiles", "", intro, "", CONFIDENCE]
    for name in (*platform_names(profiles), *(name for name in profiles.layers if name not in profiles.platforms)):
        profile = profiles.profile(name)
        rows = [
            (id, wanted(entry), entry.data.get("confidence", ""), sources.cite(entry.data["source"]))
            for id, entry in _of_layer(profile)
        ]
        if rows and f"## {name}" not in lines:
            lines += ["", f"## {name}", "", f"{escaped(profile.title)}. Layers: {' → '.join(profile.layers)}.", ""]
            lines += table(("check or bound", "wanted", "confidence", "source"), rows)
    listed = (str(block).partition("] ") for block in sources.listed())
    return "\n".join([*lines, "", "## Sources", "", *(f"{n.strip('[')}. {escaped(text)}" for n, _, text in listed), ""])


def _of_layer(profile: Profile) -> list[tuple[str, Entry]]:
    """Return what the topmost layer of a profile sets itself."""
    entries = sorted((*profile.checks.items(), *profile.bounds.items()), key=lambda item: item[0])
    return [
        (id, entry) for id, entry in entries if set_by(entry) == profile.layers[-1] and wanted(entry) != "no figure"
    ]


def mechanisms(profiles: ProfileSet) -> str:
    """Tell of each way to write its keys and values, and the checks that use it."""
    lines = ["# Mechanisms", "", "The ways in which hwcheck writes a value on a node. How each was tried:", ""]
    lines += [f"- *{word}*: {text}" for word, text in SEEN.items()]
    for name in MECHANISMS:
        page = explain(["mechanism", name], profiles)
        lines += ["", f"## {name}", ""]
        for heading, blocks in page.sections.items():
            for block in blocks:
                if isinstance(block, Table):
                    lines += [f"- **{row[0]}**: {escaped(row[1])}" for row in block.rows]
                elif heading != "See also":
                    told = f"**checks**: {block}" if heading.startswith("Checks") else escaped(str(block))
                    lines.append(f"- {told}")
    return "\n".join([*lines, ""])


def main(folder: Path) -> int:
    """Write what has changed, remove what is not made any more, and say so."""
    made = pages()
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        if file.name not in made:
            file.unlink()
    for name, text in made.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE))
