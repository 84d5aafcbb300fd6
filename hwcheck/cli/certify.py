"""``hwcheck certify``: certificates for the nodes of a run that passed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hwcheck.cli.option_types import days
from hwcheck.cli.trouble import told
from hwcheck.errors import UsageError

MAX_RUN = 1 << 30


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "certify",
        help="sign certificates for nodes that passed",
        description="Make a signed certificate for each node of a run (hwcheck check --format json) that passed: what "
        "it is, what was found right, by whom it was judged and until when that counts. hwcheck accept does the same "
        "at its end. A node that did not pass gets none, and what is in the way is said.",
        epilog="Exit codes: 0 all were certified; 1 a node fails; 3 none fails, but what a certificate rests on was "
        "not told; 2 wrong usage, nothing was signed.",
    )
    parser.add_argument("run_file", metavar="RUN.json", type=Path, help="JSON of a run")
    parser.add_argument("nodes", metavar="NODE", nargs="*", help="these nodes (default: all of the run)")
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help="where to write them")
    parser.add_argument(
        "--key", metavar="FILE", type=Path,
        help="ed25519 key that signs, PEM or OpenSSH (default: one that is made at first use, and kept)",
    )  # fmt: skip
    parser.add_argument("--valid", metavar="DAYS", type=days, default=90, help="how long they hold: 90d (the default)")
    parser.add_argument(
        "--evidence", metavar="PATH", type=Path,
        help="what hwcheck collect kept and the run was judged by: its hash goes into the certificate",
    )  # fmt: skip
    parser.add_argument(
        "--site", metavar="FILE", action="append", default=[], type=Path, help="YAML layers that the run was judged by"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Certify, say what is in the way of the others, and return the exit code."""
    from hwcheck.cli.certifying import certify, signer_of  # noqa: PLC0415 - loads checks and profiles
    from hwcheck.profiles import ProfileSet  # noqa: PLC0415 - as above

    record = read_run(arguments.run_file)
    profiles = ProfileSet(arguments.site)
    if record["profile"]["hash"] != profiles.hash:
        raise UsageError(
            f"{arguments.run_file} was judged by other profiles (hash {record['profile']['hash']}, here "
            f"{profiles.hash}): give the same --site files, and the hwcheck that judged it"
        )
    evidence = _hashes(arguments.evidence, record) if arguments.evidence is not None else {}
    with told(str(arguments.output)):
        signer, made = signer_of(arguments.key, arguments.valid)
        if made is not None:
            line = made.pinned.read_text(encoding="ascii").strip()
            print(f"hwcheck: a key was made and pinned ({made.pinned}): {line}", file=sys.stderr)
        done = certify(record, arguments.nodes, arguments.output, signer, profiles, evidence)
    from hwcheck.cli.main import printable  # noqa: PLC0415 - main imports this module

    for name, file in done.files.items():
        print(f"{printable(name)}: certified, {printable(str(file))} signed by {signer.fingerprint}")
    for refused in done.refused:
        print(f"{printable(refused.node)}: not certified")
        for reason in refused.reasons:
            print(f"  - {printable(reason)}")
    if any(refused.failed for refused in done.refused):
        return 1
    return 3 if done.refused else 0


def read_run(path: Path) -> dict[str, Any]:
    """
    Read the JSON of a run.

    Raises:
        UsageError: no such file, or it is not of the schema.
    """
    from importlib import resources  # noqa: PLC0415 - as jsonschema, only this verb needs it

    import jsonschema  # noqa: PLC0415 - 40 ms

    from hwcheck.keyring import read_file  # noqa: PLC0415 - loads cryptography

    data = read_file(path, MAX_RUN)
    try:
        record = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON of a run: {error}") from error
    schema = json.loads(resources.files("hwcheck.report").joinpath("run.schema.json").read_text(encoding="utf-8"))
    wrong = next(jsonschema.Draft202012Validator(schema).iter_errors(record), None)
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path)) or "the file"
        raise UsageError(f"{path}: not of schema hwcheck.run/1: {where}: {wrong.message[:200]}")
    count = len(record["findings"])
    for index, finding in enumerate(record["findings"]):
        if finding["id"] != index:
            raise UsageError(f"{path}: finding {index} has id {finding['id']}")
    if any(index >= count for incident in record["incidents"] for index in (incident["lead"], *incident["follows"])):
        raise UsageError(f"{path}: an incident names a finding that is not there")
    return dict(record)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _hashes(path: Path, record: dict[str, Any]) -> dict[str, str]:
    """
    Hash the evidence of each node of the run.

    Raises:
        UsageError: evidence of a node is not there, or is of another time than the run's.
    """
    from hwcheck.certificate import evidence_hash  # noqa: PLC0415 - only with --evidence
    from hwcheck.readers.kept import read_kept  # noqa: PLC0415 - as above

    kept = {one.name: one for one in read_kept([str(path)])}
    hashes = {}
    for node in record["nodes"]:
        one = kept.get(node["name"])
        if one is None or not node["about"]:
            continue
        if not one.is_of(node["about"].get("taken")):
            raise UsageError(f"{path}: the evidence of {node['name']} is of another time than the run")
        hashes[node["name"]] = evidence_hash(one.files)
    if not hashes:
        raise UsageError(f"{path}: no evidence of a node of the run")
    return hashes
