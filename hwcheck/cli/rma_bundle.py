"""Judge one node's evidence and put it into a file for the vendor: what ``hwcheck rma`` does once it is read."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from hwcheck import __version__
from hwcheck.cli.keeping import node_of, pseudonym_key, this_user
from hwcheck.cli.targets import Collection
from hwcheck.errors import StoreError, UsageError
from hwcheck.evidence_dir import MANIFEST, BundleKeeper, keeper
from hwcheck.facts import gpu_at
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers.kept import Kept, read_kept
from hwcheck.redact import Redactor
from hwcheck.report.json_run import dump, dump_lines, run_object
from hwcheck.report.rma import Case, rma_html, rma_text
from hwcheck.store import Store
from hwcheck.transports.target import LOCAL, Target

_INDEX = re.compile(r"GPU\d{1,3}")
RUNS = 20
"""Earlier runs that are searched for the serial number of a part that no longer answers."""


def of_evidence(arguments: argparse.Namespace) -> int:
    """Bundle evidence that was taken earlier."""
    nodes = read_kept(arguments.evidence)
    chosen = [one for one in nodes if one.name == arguments.node] if arguments.node else nodes
    if len(chosen) != 1:
        held = ", ".join(one.name or "(no name)" for one in nodes[:8]) or "none"
        raise UsageError(f"a bundle is of one node; the evidence has {held}: name one")
    return _bundle(arguments, chosen[0], Target(chosen[0].name, connection=LOCAL), now=False)


def of_node(arguments: argparse.Namespace, collection: Collection) -> int:
    """Bundle what a node says now; 3 when it does not answer."""
    (outcome,) = collection
    node = node_of(outcome)
    if outcome.error is not None:
        advice = f" {node.advice}" if node.advice else ""
        print(
            f"hwcheck: {outcome.name} could not be read, there is no bundle: {node.unreachable}.{advice}",
            file=sys.stderr,
        )
        return 3
    return _bundle(arguments, Kept(node.name, dict(node.files())), outcome.target, now=True)


def _bundle(arguments: argparse.Namespace, kept: Kept, target: Target, *, now: bool) -> int:
    place = keeper(arguments.output)  # refuses a place that is taken, before the work
    assert isinstance(place, BundleKeeper)  # noqa: S101 - chosen by the name, which was looked at
    name = kept.name or target.name
    earlier = Earlier(arguments.store, name)
    redactor = _redactor(arguments, kept, target) if arguments.redact else None
    if redactor is not None:
        kept = _redacted(kept, redactor)
    evidence = kept.evidence()
    profiles = ProfileSet(arguments.site)
    over = profiles.over(target.site, f"hwcheck_site of {name}") if target.site else profiles
    verdict = Pipeline(over, target.profile).judge_snapshot(take_snapshot(evidence))
    started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    profile = {"name": target.profile or "auto", "hash": over.hash}
    run = json.loads(dump(run_object([verdict], f"hwcheck {__version__}", profile, started)))
    part = part_of(run, arguments.gpu, earlier)
    history = earlier.sentences(part.names)
    case = Case(run, part.record, part.names, part.source, history, _taken(run, now=now))
    told = {"summary.txt": rma_text(case).encode(), "summary.html": rma_html(case).encode()}
    if earlier.spells:
        rows = [{**asdict(spell), "node": verdict.node} for spell in earlier.spells]
        told["history.json"] = json.dumps(rows, default=str, indent=1).encode()
    if redactor is not None:
        told = {file: redactor.data(data) for file, data in told.items()}
    told["run.json"] = dump_lines(run).encode()
    with place:
        shown = run["nodes"][0]["name"] or "node"
        place.put(f"rma-{shown}", [*told.items(), *((f"evidence/{file}", data) for file, data in kept.files.items())])
    whole = not evidence.broken
    if not arguments.quiet:
        print(
            f"hwcheck: {case.title} is in {arguments.output}{'' if whole else '; not read to its end'}", file=sys.stderr
        )
    return 0 if whole else 3


def _taken(run: dict[str, Any], *, now: bool) -> str:
    about = run["nodes"][0]["about"]
    taken = about.get("taken")
    time = dt.datetime.fromtimestamp(taken, dt.UTC).isoformat(timespec="seconds") if taken else "a time not told"
    how = "read from the node by this command" if now else "taken earlier"
    return f"evidence {how}, at {time} in boot {about.get('boot_id') or 'not told'}; hwcheck has reset nothing"


@dataclass(frozen=True, slots=True)
class Part:
    """
    The GPU that is meant.

    Attributes:
        record: what is known of it; empty for the node as a whole.
        names: its subjects in findings.
        source: where its serial number is from when the evidence does not tell it.
    """

    record: dict[str, Any] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    source: str = ""


def part_of(run: dict[str, Any], wanted: str, earlier: Earlier) -> Part:
    """
    Find a GPU.

    Args:
        run: JSON of a run over this node.
        wanted: index, PCI address, serial number or UUID; "" for the node as a whole.
        earlier: what earlier runs knew of its GPUs: one that fell off the bus tells its serial number no more.

    Raises:
        UsageError: there is none, or several (the GPUs of one board can share a serial number).
    """
    if not wanted:
        return Part()
    parts = _parts(run, earlier)
    keys = ("index",) if wanted.isdecimal() and len(wanted) < 4 else ("id", "serial", "uuid")
    words = {wanted, gpu_at(wanted).id}
    found = [part for part in parts if any(str(part.record.get(key, "")) in words for key in keys)]
    if len(found) != 1:
        listed = "; ".join(
            " ".join(str(p.record[k]) for k in ("index", "id", "serial") if k in p.record) for p in parts
        )
        raise UsageError(f"--gpu {wanted}: {len(found) or 'no'} such GPUs; there are {listed or 'none'}")
    return found[0]


def _parts(run: dict[str, Any], earlier: Earlier) -> list[Part]:
    """
    List the GPUs of a node, each once.

    NVML calls a GPU that it lost by its index alone (``GPU3``), the kernel log by its address. They are one where an
    earlier run knew the index, or where no other GPU is left.
    """
    gpus = {gpu["id"]: gpu for gpu in run["nodes"][0]["about"].get("gpus", ())}
    nameless = [id for id in gpus if _INDEX.fullmatch(id)]
    found = {id: ({**gpu}, {id}) for id, gpu in gpus.items() if id not in nameless}
    silent = [id for id, (gpu, _) in found.items() if "index" not in gpu]
    known = {gpu.get("index"): id for id, gpu in earlier.gpus.items()}
    for id in nameless:
        number = int(id.removeprefix("GPU"))
        address = known.get(number) or (silent[0] if len(silent) == len(nameless) == 1 else id)
        record, names = found.setdefault(address, ({"id": address}, set()))
        record["index"] = number
        names |= {address, id}
    parts = []
    for id, (gpu, names) in found.items():
        before = earlier.gpus.get(id, {})
        source = f"told by {earlier.run}; it does not tell it now" if before and "serial" not in gpu else ""
        parts.append(Part({**before, **gpu}, frozenset(names), source))
    return parts


class Earlier:
    """
    What the store knows of a node; nothing where there is no store.

    Args:
        url: of the store; "" for the user's own.
        node: its name.

    Attributes:
        there: whether earlier runs of the node are kept.
        spells: what was not well, from when to when.
        gpus: PCI address → record of the last run that told a serial number.
        run: the run that ``gpus`` is from.
    """

    def __init__(self, url: str, node: str) -> None:
        self.there, self.run = False, ""
        self.spells: list[Any] = []
        self.gpus: dict[str, dict[str, Any]] = {}
        try:
            store = Store.open(url)
            self.spells = list(store.history(node)) if node else []
            runs = store.runs(node=node, limit=RUNS) if node else []
            self.there = bool(runs)
            for kept in runs:
                self._remember(store.load(kept.name), node)
        except StoreError as error:
            if url:
                raise
            print(f"hwcheck: no earlier runs in the bundle: {error}", file=sys.stderr)

    def _remember(self, run: dict[str, Any], node: str) -> None:
        for record in run["nodes"]:
            if record["name"] != node:
                continue
            for gpu in record["about"].get("gpus", ()):
                if gpu.get("serial") and gpu["id"] not in self.gpus:
                    self.gpus[gpu["id"]] = gpu
                    self.run = self.run or f"the run of {run['started'][:19]}"

    def sentences(self, names: frozenset[str]) -> list[str] | None:
        """Tell the spells of a part and of its node, of all parts where it has no name; None without earlier runs."""
        if not self.there:
            return None
        return [_spell(spell) for spell in self.spells if not names or spell.subject in {*names, ""}][:40]


def _spell(spell: Any) -> str:
    first, last = (
        dt.datetime.fromtimestamp(moment.at, dt.UTC).isoformat(" ", "minutes") for moment in (spell.first, spell.last)
    )
    end = "and ended" if spell.ended else "and lasts"
    on = f" on {spell.subject}" if spell.subject else ""
    return f"{spell.status} {spell.check}{on}: in {spell.runs} runs from {first} to {last}, {end}: {spell.message}"


def _redactor(arguments: argparse.Namespace, kept: Kept, target: Target) -> Redactor:
    hello = next((data for file, data in kept.files.items() if file.endswith("/node.hello")), b"")
    own = [line[5:] for line in hello.decode("utf-8", "replace").splitlines() if line.startswith("host=")]
    users = sorted({this_user(), target.user} - {""})
    hosts = [kept.name, target.name, target.address, *own]
    redactor = Redactor(pseudonym_key(arguments.redact_key), keep_serials=True, hosts=hosts, users=users)
    for data in kept.files.values():
        redactor.learn(data.decode("utf-8", "surrogateescape"))
    return redactor


def _redacted(kept: Kept, redactor: Redactor) -> Kept:
    """Replace names in all files; in the manifest the node's own wherever it is only a word."""
    files = {file: redactor.data(data) for file, data in kept.files.items()}
    manifest = json.loads(files[MANIFEST])
    name = redactor.host(kept.name)
    manifest["node"] = name
    files[MANIFEST] = json.dumps(manifest, indent=1).encode() + b"\n"
    return Kept(name, files)
