"""The fleet check over measurements between nodes: which node, or which way between two, slow pairs have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hwcheck.baselines.culprit import Blame, Met, blame
from hwcheck.findings import Remedy, Status, Urgency
from hwcheck.fleet.fold import FleetAnswer, Row, fold

_LOOK = Remedy(
    "hands",
    "Start with the node that is named: its port, cable, adapter slot; for a way between two nodes the cables and "
    "switch ports along it; then measure the pairs again.",
)


@fold("baseline.pair_culprit", "result.pair", urgency=Urgency.MAINTENANCE, remedy=_LOOK)
def slow_pairs_have_a_culprit(rows: list[Row]) -> Iterator[FleetAnswer]:
    """
    Slow pairs of nodes are traced to the node, or to the way, that they have in common.

    What it checks: which pairs are below the rate of their link, and with whom else their two ends are well.

    Why it matters: one bad adapter makes every pair with it slow; taking its partners out of work too would be wrong.

    How to fix: repair what is named and measure its pairs again.

    Applies to: measurements of ``hwcheck baseline run`` between nodes that count, for each adapter position and test by
    itself. Two nodes alone cannot tell which of them it is.

    Source: comparison of partners; no threshold of its own.
    """
    pairs: dict[tuple[str, str], dict[tuple[str, str], Met]] = defaultdict(dict)
    for row in rows:
        for subject, record in row.values.get("result.pair", {}).items():
            ends = (record["client"], record["server"])
            if subject in row.decided:
                slow = row.decided[subject] is not Status.PASS
                pairs[record["test"], record["rail"]].setdefault(ends, Met(*ends, slow, record["marked"]))
    for (test, rail), met in sorted(pairs.items()):
        where = f"{test}, adapter at {rail}" if rail not in ("", "host") else test
        found = blame(met.values())
        for one in found:
            yield FleetAnswer(Status.FAIL, f"{where}: {_words(one)}", list(one.nodes))
        if not found:
            yield FleetAnswer(Status.PASS, f"{where}: none of {len(met)} pairs is below the rate of its link")


def _words(found: Blame) -> str:
    if found.kind == "path":
        return f"the way between {found.nodes[0]} and {found.nodes[1]} is slow; both are well with others"
    if found.kind == "either":
        return f"{found.nodes[0]} or {found.nodes[1]} is slow; measure each with a third node"
    return f"{found.nodes[0]} is likely at fault: slow with {', '.join(found.partners)}"
