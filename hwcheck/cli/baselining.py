"""What ``hwcheck baseline run`` does: read → consent → load → judge → keep."""

from __future__ import annotations

import argparse
import sys

from hwcheck.cli.accept_report import demand_place
from hwcheck.cli.consent import demand_consent
from hwcheck.cli.judging import Bench, Tally, report
from hwcheck.cli.measuring import Measured, Measuring, read_nodes
from hwcheck.cli.recording import keep_run, new_name, record_of
from hwcheck.cli.referring import Referring, load_pinned, open_store
from hwcheck.cli.targets import fold
from hwcheck.cli.trouble import printing
from hwcheck.errors import UsageError

NOT_MEASURED = 3


def run(arguments: argparse.Namespace) -> int:
    """Carry out the verb; 1 a figure or a check fails, 3 something could not be told or a node was not measured."""
    if arguments.root:
        raise UsageError("an image measures nothing: name nodes (-i, -w), --live-root, or none for this machine")
    if arguments.output is not None:
        demand_place(arguments.output.parent)
    bench = Bench(arguments)
    store = open_store(arguments.store)
    referring = Referring(load_pinned(arguments.references), store, arguments.profile)
    measuring = Measuring(arguments, bench, referring.of)
    demand_consent("put nodes that are idle under load", yes=arguments.yes, otherwise="nothing was measured")
    measured = measuring.measure(read_nodes(arguments, "quick"))
    tally = Tally(strict=bench.strict)
    verdicts = list(tally.count(bench.then_fleet(one.verdict for one in measured)))
    left_out = tell_left_out(measured)
    # kept before it is printed: a reader that is gone must not cost an hour of measuring
    kept = keep_run(record_of("baseline", new_name(bench.started), verdicts, bench.profile, bench.started), store,
                    arguments.output)  # fmt: skip
    with printing():
        started = bench.started.isoformat(timespec="seconds")
        report(verdicts, bench.form, bench.profile, started, strict=bench.strict)
        sys.stdout.flush()
    return tally.exit_code or (NOT_MEASURED if left_out or not kept else 0)


def tell_left_out(measured: list[Measured]) -> list[str]:
    """Say which nodes were not measured, and why; returns their names."""
    reasons: dict[str, list[str]] = {}
    for one in measured:
        if one.left_out:
            reasons.setdefault(one.left_out, []).append(one.name)
    for why, names in reasons.items():
        print(f"hwcheck: not measured: {fold(names) or 'this machine'}: {why}", file=sys.stderr)
    return [one.name for one in measured if one.left_out]
