"""What ``hwcheck store`` does."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema

from hwcheck.cli.recording import keep_in
from hwcheck.cli.when import moment
from hwcheck.errors import UsageError
from hwcheck.report import json_run
from hwcheck.report.sheet import visible
from hwcheck.store import Record, Store


def _path(arguments: argparse.Namespace) -> int:
    print(Store.open(arguments.store).address.label)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    for run in Store.open(arguments.store).runs(arguments.kind, arguments.node, arguments.limit):
        nodes = "1 node" if run.nodes == 1 else f"{run.nodes} nodes"
        doubt = f"  ({run.doubt})" if run.doubt else ""
        print(visible(f"{run.name}  {moment(run.at)}  {run.kind:8}  {run.verdict:7}  {nodes}  {run.who}{doubt}"))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    print(json_run.dump_lines(Store.open(arguments.store).load(arguments.name)))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    store = Store.open(arguments.store)
    read = [(name, _read(name)) for name in arguments.files]  # all, before the first is kept
    for name, record in read:
        keep_in(store, record)
        print(f"{visible(name)}: {len(record.run['nodes'])} of {visible(str(record.run['started']))}")
    return 0


def _read(name: str) -> Record:
    """
    Read a run or a record of one.

    Raises:
        UsageError: it is none.
        OSError: it cannot be read.
    """
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8", errors="replace")
    schema = json.loads(resources.files("hwcheck.report").joinpath("run.schema.json").read_text(encoding="utf-8"))
    try:
        data: Any = json.loads(text)
        inner = data.get("run") if isinstance(data, dict) and isinstance(data.get("run"), dict) else data
        jsonschema.validate(inner, schema)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no JSON: {error}") from error
    except jsonschema.ValidationError as error:
        raise UsageError(f"{name} is no run of hwcheck: {error.json_path}: {error.message[:200]}") from error
    return Record.of(data)


def _forget(arguments: argparse.Namespace) -> int:
    count = Store.open(arguments.store).forget(time.time() - arguments.older)
    print(f"{count} {'run' if count == 1 else 'runs'} forgotten")
    return 0


DEEDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "path": _path, "list": _list, "show": _show, "import": _import, "forget": _forget,
}  # fmt: skip
