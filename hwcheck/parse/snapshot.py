"""Evidence of a node → its snapshot: every output through its parser, GPUs under one name each."""

from __future__ import annotations

from hwcheck.errors import ParseError
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import IDENTITIES, NODE, Missing, Origin, Reason, Snapshot, SourceGap, Subject, show
from hwcheck.facts.identity import unify_gpus
from hwcheck.parse.format import FORMATS
from hwcheck.parse.sink import FactSink


def take_snapshots(evidence: Evidence) -> list[Snapshot]:
    """
    Parse posted evidence that may mix two machines: the GPU of one PCI address has two UUIDs or serial numbers.

    Returns:
        One snapshot, or one for each machine that the identities of the GPUs tell apart. An output without identity
        belongs to the machine of the output before it.
    """
    snapshot = take_snapshot(evidence)
    if evidence.collected or not any(change.name in IDENTITIES for change in snapshot.changes):
        return [snapshot]
    machines: list[tuple[dict[tuple[Subject, str], object], Evidence]] = []
    for output in evidence.outputs:
        who = _identities(take_snapshot(Evidence("", [output])))
        fitting = [
            known
            for known in reversed(machines)
            if all(known[0].get(key, value) == value for key, value in who.items())
        ]
        if not fitting:
            fitting = [({}, Evidence(f"machine {len(machines) + 1}"))]
            machines.append(fitting[0])
        fitting[0][0].update(who)
        fitting[0][1].outputs.append(output)
    machines[0][1].leftovers, machines[0][1].broken = evidence.leftovers, evidence.broken
    return [take_snapshot(part) for _, part in machines]


def _identities(snapshot: Snapshot) -> dict[tuple[Subject, str], object]:
    return {
        (gpu, name): fact.value
        for name in IDENTITIES
        for gpu, fact in snapshot.with_fact(name)
        if fact.present and str(fact.value).strip("GPU-0") not in ("", "N/A")
    }


def take_snapshot(evidence: Evidence) -> Snapshot:
    """
    Parse everything that was collected or posted of one node.

    A source that failed becomes a gap over the names it would have given; an output that is not understood becomes
    one too, with the line. What was read is recorded as ``evidence.*`` facts, so that the report can say it.
    """
    snapshot = Snapshot(evidence.node, simulated=evidence.simulated)
    seen_in: dict[Subject, set[int]] = {}
    for output in evidence.outputs:
        _parse(output, FactSink(snapshot, output, seen_in), snapshot)
    for name, why in evidence.broken:
        snapshot.gaps.append(SourceGap(name, (), Missing(Reason.UNPARSABLE, why), Origin("evidence", name)))
    _record_reading(evidence, snapshot)
    unify_gpus(snapshot, seen_in)
    _record_changes(snapshot)
    return snapshot


def _parse(output: Output, sink: FactSink, snapshot: Snapshot) -> None:
    spec = FORMATS.get(output.kind)
    gives = spec.gives if spec else ()
    if output.reason is not None:
        origin = Origin(output.kind, output.file, 0, "", output.time)
        snapshot.gaps.append(SourceGap(output.kind, gives, Missing(output.reason, output.detail), origin))
    if spec is None or (output.reason is not None and not output.lines and output.digest is None):
        return
    try:
        spec.parse(output, sink)
    except ParseError as error:
        line = error.line or output.first_line
        origin = Origin(output.kind, output.file, line, output.excerpt(line), output.time)
        snapshot.gaps.append(SourceGap(output.kind, gives, Missing(Reason.UNPARSABLE, str(error)), origin))


def _record_changes(snapshot: Snapshot) -> None:
    """Put what two outputs say differently as a fact of the node: the order of a paste decides nothing silently."""
    records = tuple(
        {
            "subject": str(change.subject),
            "name": change.name,
            "before": show(change.name, change.before.value),
            "after": show(change.name, change.after.value),
            "line": change.before.origin.line if change.before.origin else 0,
        }
        for change in snapshot.changes[:200]
    )
    FactSink(snapshot, Output("evidence")).put(NODE, "evidence.changes", records)


def _record_reading(evidence: Evidence, snapshot: Snapshot) -> None:
    """Put what was read, and what was not understood, as facts of the node."""
    about = FactSink(snapshot, Output("evidence"))
    read = [
        {
            "kind": output.kind,
            "file": output.file,
            "first": output.first_line,
            "lines": output.count or len(output.lines),
        }
        for output in evidence.outputs
        if (output.lines or output.count) and output.kind in FORMATS
    ]
    about.put(NODE, "evidence.read", tuple(read))
    about.put(NODE, "evidence.collected", evidence.collected)
    about.put(
        NODE,
        "evidence.leftovers",
        tuple(
            {"file": left.file, "count": left.count, "line": left.first_line, "excerpt": left.excerpt}
            for left in evidence.leftovers
            if left.count
        ),
    )
