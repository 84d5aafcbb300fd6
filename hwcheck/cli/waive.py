"""``hwcheck waive``: accept a finding for a while, with owner and reason, in the waiver file of the site."""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
import json
from pathlib import Path
from typing import Any

from hwcheck.errors import UsageError

MOST_DAYS = 366
"""Days that a waiver may hold: longer ones are forgotten, not decided."""


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "waive",
        help="accept a finding for a while",
        description="Add an entry to a waiver file: until its last day the finding is shown as waived and does not "
        "count. The file is what check, plan, accept and gate take with --waivers.",
        epilog="Exit codes: 0 it was added; 2 it was not.",
    )
    parser.add_argument("check", metavar="CHECK", help="a check id, or a family as pcie.*")
    parser.add_argument(
        "--file", metavar="FILE", type=Path, required=True, help="the waiver file (YAML); made if missing"
    )
    parser.add_argument("--reason", required=True, help="why it is accepted, one sentence")
    parser.add_argument(
        "--until", metavar="DATE|Nd", required=True, help="last day it holds: 2027-03-31, or 30d from now"
    )
    parser.add_argument("--owner", default="", help="who accepts it (default: you)")
    parser.add_argument("--subject", metavar="ID", default="*", help="of this part only: 0000:18:00.0, mlx5_0/1, ...")
    parser.add_argument("-w", "--nodes", metavar="NODESET", default="", help="on these nodes only: gpu-[001-004]")
    parser.set_defaults(run=_waive)


def _waive(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.planning import keep  # noqa: PLC0415 - the checks are half of the start-up
    from hwcheck.cli.targets import fold  # noqa: PLC0415 - as above
    from hwcheck.waivers import load_waivers  # noqa: PLC0415 - as above

    today = dt.datetime.now().astimezone().date()
    entry = _entry(arguments, today)
    path: Path = arguments.file
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if before.strip():
        load_waivers(before, str(path), today)  # what is wrong already is said before anything is added
    text = before + ("\n" if before and not before.endswith("\n") else "") + _yaml(entry)
    load_waivers(text, str(path), today)
    keep(path, text)
    where = f" on {fold(entry['nodes'])}" if "nodes" in entry else ""
    print(f"{entry['check']} is waived{where} until {entry['expires']}, by {entry['owner']}: {path}")
    return 0


def _entry(arguments: argparse.Namespace, today: dt.date) -> dict[str, Any]:
    _demand_known(arguments.check)
    expires = _day(arguments.until, today)
    if not today <= expires <= today + dt.timedelta(days=MOST_DAYS):
        raise UsageError(f"--until {arguments.until}: a day from today on, {MOST_DAYS} days away at most")
    owner = arguments.owner or _user()
    for name, value in (("--reason", arguments.reason), ("--owner", owner)):
        if not value.strip() or not value.isprintable():
            raise UsageError(f"{name}: one line of text")
    entry: dict[str, Any] = {"check": arguments.check, "owner": owner, "reason": arguments.reason, "expires": expires}
    if arguments.subject != "*":
        entry["subject"] = arguments.subject
    if arguments.nodes:
        from hwcheck.transports.nodesets import expand  # noqa: PLC0415 - only where nodes are named

        entry["nodes"] = expand(arguments.nodes)
    return entry


def _demand_known(check: str) -> None:
    from hwcheck.checks import RELATIONS  # noqa: PLC0415 - slow to import
    from hwcheck.checks.coverage import OWN_CHECKS  # noqa: PLC0415 - as above
    from hwcheck.profiles import ProfileSet  # noqa: PLC0415 - as above

    profiles = ProfileSet()
    known = {*RELATIONS, *OWN_CHECKS, *(id for one in RELATIONS.values() for id in one.ids)}
    known |= {id for name in profiles.platforms for id in profiles.profile(name).checks}
    family = check.removesuffix(".*")
    if check not in known and not (check.endswith(".*") and family in profiles.families):
        raise UsageError(f"no check {check}: hwcheck explain lists them; a whole family is written pcie.*")


def _day(text: str, today: dt.date) -> dt.date:
    if text.endswith("d") and text[:-1].isdigit() and len(text) <= len("9999d"):
        return today + dt.timedelta(days=int(text[:-1]))
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until {text}: a day as 2027-03-31, or a number of days as 30d") from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise UsageError("--owner: say who accepts it") from None


def _yaml(entry: dict[str, Any]) -> str:
    """Write an entry as YAML; JSON of texts and lists is YAML, whatever is in them, and a date stays one."""
    rows = [f"{key}: {value if isinstance(value, dt.date) else json.dumps(value)}" for key, value in entry.items()]
    return "- " + "\n  ".join(rows) + "\n"
