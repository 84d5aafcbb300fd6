"""
A run in the form in which it is kept: what is not well in full, what passed or was skipped by name alone.

Ten thousand nodes with a thousand findings each are ten million, nearly all of them passes that nodes of one kind share
word for word. So each node has a *fold*: ``{"pass": {check: [subjects]}, "skip": {...}}``, and equal folds are one.
A record takes a run whole or node by node, so that a fleet streams through.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from hwcheck.errors import StoreError

RUN_SCHEMA = "hwcheck.run/1"
FORMAT = "hwcheck.record/1"
FOLDED = ("pass", "skip")
_SAID = {
    "pass": "It passed; of what passed only the name is kept.",
    "skip": "Not applicable or never asked; of what was skipped only the name is kept.",
}
_LISTS = ("nodes", "findings", "incidents", "measurements")

Fold = dict[str, dict[str, list[str]]]


class Record:
    """
    A run that is being folded.

    Args:
        run: run JSON (``hwcheck.run/1``), whole or with the first of its nodes.

    Attributes:
        run: the run without what is folded; findings and incidents are numbered anew.
        folds: each different fold once.
        fold_of: for each node of the run the index of its fold.

    Raises:
        StoreError: it is no run JSON.
    """

    def __init__(self, run: dict[str, Any]) -> None:
        check_run(run)
        self.run: dict[str, Any] = {**run, **{key: [] for key in _LISTS}}
        self.folds: list[Fold] = []
        self.fold_of: list[int] = []
        self._known: dict[str, int] = {}
        self._take(run)

    def add(self, part: dict[str, Any]) -> None:
        """
        Take further nodes of the same run, as a run JSON of their own.

        Raises:
            StoreError: it is no run JSON.
        """
        check_run(part)
        self.run["verdict"] = max(self.run["verdict"], part["verdict"], key=("pass", "unknown", "fail").index)
        self._take(part)

    def _take(self, part: dict[str, Any]) -> None:
        _check_nodes(part)
        needed = {index for item in part["incidents"] for index in (item["lead"], *item["follows"])}
        folds: dict[str, Fold] = {node["name"]: {} for node in part["nodes"]}
        numbers: dict[int, int] = {}
        for index, finding in enumerate(part["findings"]):
            if finding["status"] in FOLDED and index not in needed:
                checks = folds[finding["node"]].setdefault(finding["status"], {})
                checks.setdefault(finding["check"], []).append(finding["subject"])
                continue
            numbers[index] = len(self.run["findings"])
            self.run["findings"].append({**finding, "id": numbers[index]})
        for node in part["nodes"]:
            self.run["nodes"].append(node)
            self.fold_of.append(self._number(folds.pop(node["name"], {})))  # a second one of that name has none
        self.run["incidents"].extend(_moved(item, numbers.__getitem__) for item in part["incidents"])
        self.run["measurements"].extend(part["measurements"])

    def _number(self, fold: Fold) -> int:
        ordered = {status: {check: sorted(fold[status][check]) for check in sorted(fold[status])} for status in fold}
        key = canonical(ordered)
        if key not in self._known:
            self._known[key] = len(self.folds)
            self.folds.append(ordered)
        return self._known[key]

    def to_json(self) -> dict[str, Any]:
        """Return it for a file."""
        return {"format": FORMAT, "run": self.run, "folds": self.folds, "fold_of": self.fold_of}

    @classmethod
    def of(cls, data: Any) -> Record:
        """
        Make a record of run JSON, or of what :meth:`to_json` gave.

        Raises:
            StoreError: it is neither.
        """
        with understanding():
            return cls._of_record(data) if isinstance(data, dict) and data.get("format") == FORMAT else cls(data)

    @classmethod
    def _of_record(cls, data: dict[str, Any]) -> Record:
        check_run(data.get("run"))
        run: dict[str, Any] = data["run"]
        folds: Any = data.get("folds")
        fold_of: Any = data.get("fold_of")
        are_lists = isinstance(folds, list) and isinstance(fold_of, list)
        if not are_lists or len(fold_of) != len(run["nodes"]) or any(one not in range(len(folds)) for one in fold_of):
            raise StoreError("this record of a run is damaged: it has not one fold for each node")
        _check_nodes(run)
        places = range(len(run["findings"]))
        indices = [index for item in run["incidents"] for index in (item["lead"], *item["follows"])]
        if [one["id"] for one in run["findings"]] != list(places) or any(index not in places for index in indices):
            raise StoreError("this record of a run is damaged: its findings are not those that it numbers")
        record = cls({**run, **{key: [] for key in _LISTS}})
        record.run, record.folds, record.fold_of = run, folds, fold_of
        return record

    def unfold(self) -> dict[str, Any]:
        """Return run JSON; of what was folded, check, subject and status are told, and nothing else is made up."""
        own: dict[str, list[dict[str, Any]]] = {}
        for finding in self.run["findings"]:
            own.setdefault(finding["node"], []).append(finding)
        findings: list[dict[str, Any]] = []
        numbers: dict[int, int] = {}
        for node, fold in zip(self.run["nodes"], self.fold_of, strict=True):
            for finding in own.pop(node["name"], []):
                numbers[finding["id"]] = len(findings)
                findings.append({**finding, "id": len(findings)})
            for status in FOLDED:
                for check, subjects in self.folds[fold].get(status, {}).items():
                    for subject in subjects:
                        findings.append(_folded(len(findings), node["name"], check, subject, status))
        incidents = [_moved(item, numbers.__getitem__) for item in self.run["incidents"]]
        return {**self.run, "findings": findings, "incidents": incidents}


@contextlib.contextmanager
def understanding() -> Iterator[None]:
    """
    Take a run apart that may come from anywhere.

    Raises:
        StoreError: something in it is not there, or of another type than it should be.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise StoreError(f"this run of hwcheck is damaged: {type(error).__name__}: {error}") from error


def check_run(run: Any) -> None:
    """
    See that an object is run JSON, as far as it is relied on here.

    Raises:
        StoreError: it is not.
    """
    if not isinstance(run, dict) or run.get("schema") != RUN_SCHEMA:
        raise StoreError(f"this is no run of hwcheck: its schema is not {RUN_SCHEMA}")
    lacks = [key for key in (*_LISTS, "tool", "profile", "started", "verdict") if key not in run]
    if lacks:
        raise StoreError(f"this run of hwcheck is cut off: it has no {', '.join(lacks)}")


def _check_nodes(run: dict[str, Any]) -> None:
    strangers = {one["node"] for one in run["findings"]} - {node["name"] for node in run["nodes"]}
    if strangers:
        raise StoreError(f"this run of hwcheck is damaged: a finding is of {min(strangers)!r}, no node of it")


def canonical(value: Any) -> str:
    """Write JSON so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def _moved(item: dict[str, Any], number: Callable[[int], int]) -> dict[str, Any]:
    return {**item, "lead": number(item["lead"]), "follows": [number(index) for index in item["follows"]]}


def _folded(number: int, node: str, check: str, subject: str, status: str) -> dict[str, Any]:
    told = {"id": number, "node": node, "check": check, "subject": subject, "status": status, "message": _SAID[status]}
    return {**told, **dict.fromkeys(("urgency", "observed", "expected", "evidence", "remedy", "waived"))}
