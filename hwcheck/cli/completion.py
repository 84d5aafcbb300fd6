"""
``hwcheck completion``: a script that lets a shell complete verbs, options and names.

The script is made once and knows all names itself: at a press of TAB no Python starts. That takes shtab; argcomplete
would start this program, and load all verbs, at every TAB.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from hwcheck.cli.grammar import actions_of, commands_of

SHELLS = ("bash", "zsh", "fish")
_FOLDERS = ("DIR", "FOLDER")
_FILES = ("FILE", "PATH", "INVENTORY", "PLANFILE", "RUN", "RUN.json", "CERT", "PUB", "FILE.tar.gz")
_RUNS_OF = {("rollback",): "runs", ("apply",): "runs", ("accept",): "accept"}
"""Verb → folder in which its runs are kept, each below its name: the shell itself lists them."""


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "completion",
        help="completion for a shell",
        description="Print a script with which a shell completes verbs, options, checks, platforms, families, faults "
        'of the lab and names of runs. bash: eval "$(hwcheck completion bash)" in ~/.bashrc. zsh: hwcheck completion '
        "zsh > a file _hwcheck in a folder of $fpath. fish: hwcheck completion fish > "
        "~/.config/fish/completions/hwcheck.fish. Make it anew after an update.",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print(script(arguments.shell))
    return 0


def script(shell: str) -> str:
    """Make the script of a shell."""
    import shtab  # noqa: PLC0415 - no other verb needs it

    from hwcheck.cli.main import build_parser  # noqa: PLC0415 - main declares this verb

    parser = build_parser()
    names = _names()
    for words, command, text in commands_of(parser):
        command.description = text  # fish and zsh show it beside the name: one line
        for action in actions_of(command):
            if action.metavar == "RUN" and words in _RUNS_OF:
                action.complete = _runs_in(_RUNS_OF[words])  # type: ignore[attr-defined] # where shtab looks for it
            else:
                _complete(action, names.get((*words, action.dest)) or names.get((action.dest,)), shtab)
    return str(shtab.complete(parser, shell=shell))


def _runs_in(folder: str) -> dict[str, Any]:
    """Return how each shell completes names of runs."""
    name = f"_hwcheck_{folder}"
    listed = f'command ls -1 "${{XDG_STATE_HOME:-$HOME/.local/state}}/hwcheck/{folder}" 2>/dev/null'
    fish = f'  command ls -1 "$state/hwcheck/{folder}" 2>/dev/null'
    return {
        "bash": name,
        "zsh": name,
        "fish": f"({name})",
        "preamble": {
            "bash": f'{name}() {{\n  compgen -W "$({listed})" -- "$1"\n}}',
            "zsh": f'{name}() {{\n  compadd -- ${{(f)"$({listed})"}}\n}}',
            "fish": f"function {name}\n  set -l state ~/.local/state\n"
            f'  set -q XDG_STATE_HOME; and set state "$XDG_STATE_HOME"\n{fish}\nend',
        },
    }


def _complete(action: argparse.Action, names: Iterable[str] | None, shtab: Any) -> None:
    """Say what an argument completes to: names that are known, files or folders."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if names is not None:
        action.choices = list(names)
    elif metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined] # as above
    elif metavar in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined] # as above


def _names() -> dict[tuple[str, ...], list[str]]:
    """Return the names that arguments take, by destination; with the words of a verb before it, of that verb alone."""
    from hwcheck.lab.faults import catalogue  # noqa: PLC0415 - hundreds of modules that only this verb needs at once
    from hwcheck.lab.host.faults import HOST_FAULTS  # noqa: PLC0415 - as above
    from hwcheck.lab.platforms import PLATFORMS  # noqa: PLC0415 - as above
    from hwcheck.mechanisms import MECHANISMS  # noqa: PLC0415 - as above
    from hwcheck.parse import FORMATS  # noqa: PLC0415 - as above
    from hwcheck.profiles import ProfileSet  # noqa: PLC0415 - as above
    from hwcheck.report.explain_check import check_ids  # noqa: PLC0415 - as above
    from hwcheck.sources import catalogue as sources  # noqa: PLC0415 - as above
    from hwcheck.sources import load_catalogue  # noqa: PLC0415 - as above

    profiles = ProfileSet()
    checks, families = sorted(check_ids(profiles)), sorted(profiles.families)
    codes = [id for id in checks if id.startswith(("xid.", "sxid."))]
    judged = sorted({*checks} - {*codes})
    faults = sorted({*catalogue(), *HOST_FAULTS})
    return {
        ("profile",): sorted(profiles.platforms),
        ("only",): families,
        ("off",): sorted(source.id for source in sources.SOURCES),
        ("tests",): sorted(source.id for source in load_catalogue.SOURCES),
        ("opt_in",): [*families, *judged],
        ("check",): [*families, *judged],
        ("explain", "words"): [*checks, *families, *sorted({*profiles.layers, *MECHANISMS, *FORMATS})],
        ("lab", "up", "platform"): list(PLATFORMS),
        ("lab", "up", "fault"): faults,
        ("lab", "break", "fault"): faults,
    }
