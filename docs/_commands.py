"""The command line → pages: verbs with their options, exit codes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from _markdown import escaped, table

import hwcheck.errors
from hwcheck.cli import main as command_line
from hwcheck.cli.grammar import commands_of, groups_of

_OWN = ("argument", "options")
"""Groups of a verb's own, that are told with it."""
_EXIT = re.compile(r"Exit codes?: (.*)", re.DOTALL)
_ERROR = re.compile(r"^ *[├└]── (\w+) +(\S.*?) +exit (.*)$", re.MULTILINE)


def verbs() -> str:
    """Tell of each verb what it does and its options; groups that several verbs share are told once."""
    parser = command_line.build_parser()
    told = [(words, below, _groups(below)) for words, below, _ in commands_of(parser)]
    every = [group for _, _, groups in told for group in groups]
    shared = [group for group in dict.fromkeys(every) if every.count(group) > 1 and group[0] not in _OWN]
    lines = ["# Verbs", "", str(parser.description), ""]
    for words, below, groups in told[1:]:
        lines += [f"## {' '.join(('hwcheck', *words))}", "", escaped(str(below.description or _help(told, words))), ""]
        lines += [f"{escaped(below.epilog)}\n"] if below.epilog else []
        for title, rows in groups:
            lines += [] if (title, rows) in shared else [*table((title, "what"), rows), ""]
        links = [f"[{group[0]}](#options-of-{group[0]})" for group in groups if group in shared]
        lines += [f"And options of {', '.join(links)}.", ""] if links else []
    for title, rows in shared:
        lines += [f"## Options of {title}", "", *table(("option", "what"), rows), ""]
    return "\n".join(lines)


def _help(told: Sequence[tuple[tuple[str, ...], argparse.ArgumentParser, Any]], words: tuple[str, ...]) -> str:
    helps = {path: text for path, _, text in commands_of(told[0][1])}
    return f"{helps[words][0].upper()}{helps[words][1:]}."


def _groups(parser: argparse.ArgumentParser) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    groups = []
    for title, _, actions in groups_of(parser):
        rows = tuple(
            (_name(action), " ".join((action.help or "").split()) % {**vars(action), "prog": "hwcheck"})
            for action in actions
            if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)  # noqa: SLF001 - no public names
        )
        if rows:
            groups.append(("argument" if title == "positional arguments" else title, rows))
    return groups


def _name(action: argparse.Action) -> str:
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest.upper())
    value = f"{value} ..." if action.nargs in ("+", "*") else value
    return " ".join(part for part in (", ".join(action.option_strings), value) if part)


def exit_codes() -> str:
    """Tell what each exit code means, for all verbs and for each that says more."""
    told = re.search(r"verb: (.*?)\.?\s*1 beats 3", " ".join((command_line.__doc__ or "").split()))
    if told is None:
        raise LookupError("hwcheck.cli.main does not say its exit codes")
    rows = [part.strip().partition(" ")[::2] for part in told[1].split("·")]
    rows += [("130", "interrupted (Ctrl-C)"), ("141", "the reader of standard output is gone")]
    lines = ["# Exit codes", "", *table(("code", "meaning"), rows), ""]
    lines += ["1 beats 3, and 3 beats 0. Warnings alone are 0 unless `--strict`.", "", "## By verb", ""]
    for words, parser, _ in list(commands_of(command_line.build_parser()))[1:]:
        said = _EXIT.search(f"{parser.description or ''} {parser.epilog or ''}")
        if said:
            lines.append(f"- `hwcheck {' '.join(words)}`: {' '.join(said[1].split()).rstrip('.')}.")
    rows = [[cell.strip() for cell in line] for line in _ERROR.findall(hwcheck.errors.__doc__ or "")]
    lines += ["", "## By error", "", *table(("error", "what it says", "code"), rows), ""]
    return "\n".join(lines)
