"""Write what nodes said, redacted where that is asked for: what ``hwcheck collect`` does once nodes are being read."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import secrets
import sys
from pathlib import Path

from hwcheck import __version__
from hwcheck.cli.targets import Collection, fold
from hwcheck.errors import UsageError
from hwcheck.evidence_dir import Node, Source, keeper
from hwcheck.places import state_home
from hwcheck.redact import Redactor
from hwcheck.report.progress import Progress
from hwcheck.transports.outcome import Outcome

KEY_LENGTH = 32


def keep(arguments: argparse.Namespace, collection: Collection) -> int:
    """Keep node by node; returns 3 when a node could not be read to its end."""
    redactor = _redactor(arguments, collection) if arguments.redact else None
    lost: list[str] = []
    with (
        keeper(arguments.output) as place,
        Progress(len(collection.targets), fold, quiet=arguments.quiet) as progress,
    ):
        for outcome in collection:
            node = node_of(outcome)
            place.keep(redacted(node, outcome, redactor) if redactor is not None else node)
            if node.unreachable or node.broken:
                lost.append(outcome.name)
            progress.count(outcome.name, unreachable=outcome.error is not None)
    if not arguments.quiet:
        told = f"; not read to the end: {fold(lost)}" if lost else ""
        count = len(collection.targets)
        print(f"hwcheck: {count} {'nodes' if count != 1 else 'node'} kept in {arguments.output}{told}", file=sys.stderr)
    return 3 if lost else 0


def node_of(outcome: Outcome) -> Node:
    """Make of an outcome what is kept of it."""
    return Node(
        outcome.name,
        tuple(
            Source(answer.kind, file, answer.payload, answer.status, answer.detail, answer.seconds, answer.command)
            for file, answer in outcome.files()
        ),
        outcome.time,
        outcome.simulated,
        tuple(outcome.broken()),
        str(outcome.error) if outcome.error is not None else "",
        outcome.error.advice if outcome.error is not None else "",
        f"hwcheck {__version__}",
    )


def redacted(node: Node, outcome: Outcome, redactor: Redactor) -> Node:
    """Return a node with pseudonyms: in its texts, its name, and what is said about it."""
    redactor.learn_host(outcome.hello.get("host", ""))
    for source in node.sources:
        redactor.learn(source.data.decode("utf-8", "surrogateescape"))
    sources = tuple(
        Source(
            source.id,
            source.file,
            redactor.data(source.data),
            source.status,
            redactor.text(source.detail),
            source.seconds,
            redactor.text(source.command),
        )
        for source in node.sources
    )
    broken = tuple((name, redactor.text(why)) for name, why in node.broken)
    return Node(
        redactor.host(node.name), sources, node.time, node.simulated, broken, redactor.text(node.unreachable),
        redactor.text(node.advice), node.tool,
    )  # fmt: skip


def _redactor(arguments: argparse.Namespace, collection: Collection) -> Redactor:
    hosts = [name for target in collection.targets for name in (target.name, target.address)]
    users = {this_user(), *(target.user for target in collection.targets)}
    return Redactor(
        pseudonym_key(arguments.redact_key),
        keep_serials=arguments.keep_serials,
        hosts=hosts,
        users=sorted(users - {""}),
    )


def this_user() -> str:
    """Return who runs this; "" for a user without a name, as containers have them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def pseudonym_key(path: Path | None) -> bytes:
    """Return the key of pseudonyms; without a file of the user's, one that is made once and kept."""
    if path is not None:
        try:
            key = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        if len(key) < 16:
            raise UsageError(f"{path}: a key has 16 bytes at least")
        return key
    kept = state_home() / "redact.key"
    with contextlib.suppress(OSError):
        key = kept.read_bytes()
        if len(key) >= KEY_LENGTH:
            return key
    key = secrets.token_bytes(KEY_LENGTH)
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(key)
    except OSError as error:
        print(f"hwcheck: the key of these pseudonyms is not kept, the next bundle has others: {error}", file=sys.stderr)
    return key
