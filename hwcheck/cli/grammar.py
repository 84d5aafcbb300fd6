"""The command line, walked: every verb, deed and option as declared; for shell completion and for the reference."""

from __future__ import annotations

import argparse
from collections.abc import Iterator


def commands_of(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = (), text: str = ""
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser, str]]:
    """
    Go through a parser and all that is below it, in the order they are declared.

    Yields:
        words that lead there (none for the first), parser, and its one line of help.
    """
    yield path, parser, text
    for action in actions_of(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 - as above
            for name, below in action.choices.items():
                yield from commands_of(below, (*path, name), helps.get(name, ""))


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options and positional arguments of one parser."""
    return list(parser._actions)  # noqa: SLF001 - argparse has no public way to go through them


def groups_of(parser: argparse.ArgumentParser) -> list[tuple[str, str, list[argparse.Action]]]:
    """Return title, description and members of each group that shows something."""
    groups = []
    for group in parser._action_groups:  # noqa: SLF001 - as above
        shown = [action for action in group._group_actions if action.help is not argparse.SUPPRESS]  # noqa: SLF001
        if shown:
            groups.append((group.title or "", group.description or "", shown))
    return groups
