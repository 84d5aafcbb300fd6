"""What was read, what was not understood: coverage is part of the verdict."""

from __future__ import annotations

from collections import Counter

from hwcheck.checks.relation import Answer, Given, ok, relation, skip, unknown
from hwcheck.findings import Remedy, Urgency
from hwcheck.parse.format import FORMATS

_APART = Remedy(
    "hands", "Judge the outputs one by one, each with its own hwcheck check --evidence, or only the newest."
)
_POST = Remedy("hands", "Post the output of a known tool (nvidia-smi -q, dmesg, ibstat ...), whole and as text.")


@relation("evidence.read", needs=("evidence.read",), uses=("evidence.collected",), remedy=_POST)
def something_was_read(given: Given) -> Answer:
    """
    Something in the evidence was understood.

    What it checks: that at least one output of a known format was found, and which.

    Why it matters: nothing recognised means that nothing was judged; that must not look like a healthy node.

    How to fix: post the output of a known tool, whole, as text (not a screenshot, not an editor's rendering).

    Applies to: all evidence.

    Source: the formats of this tool; see hwcheck explain for each.
    """
    read = given["evidence.read"]
    if not read:
        return unknown("nothing in the evidence was recognised; nothing was judged")
    counts = Counter(FORMATS[record["kind"]].title for record in read if record["kind"] in FORMATS)
    text = ", ".join(f"{title} ({count} times)" if count > 1 else title for title, count in counts.items())
    return ok(f"read: {text}", observed=[f"{r['kind']} {r['file']}:{r['first']}" for r in read][:50])


@relation("evidence.leftovers", needs=("evidence.leftovers",), urgency=Urgency.NOTE)
def nothing_left_over(given: Given) -> Answer | list[Answer] | None:
    """
    Every line was understood.

    What it checks: lines that belong to no known output.

    Why it matters: what is not understood is not judged. Prose around an output is harmless; an output of a tool that
    hwcheck does not know may hold the fault.

    How to fix: look at the line; if it is a tool's output, ask for its format to be added.

    Applies to: posted text.

    Source: by design of this tool: not understood is said, never guessed.
    """
    left = given["evidence.leftovers"]
    if not left:
        return None
    return [
        skip(
            f"{record['count']} line{'s' if record['count'] > 1 else ''} of {record['file'] or 'the text'} "
            f"not understood, the first is line {record['line']}: {record['excerpt'][:80]!r}",
            observed=record["count"],
        )
        for record in left[:20]
    ]


@relation("evidence.contradictions", needs=("evidence.changes",), remedy=_APART)
def outputs_agree(given: Given) -> Answer | None:
    """
    The outputs agree about the state of the node.

    What it checks: states (not temperatures, loads or clocks) that two outputs of one node give differently, such as a
    row remap that is pending in one and not in the other.

    Why it matters: which of the two holds now is not in the text, and the order of a paste must not decide it. A fault
    that another output does not show may be older, or may be the newer one.

    How to fix: judge the outputs one by one, or only the newest.

    Applies to: evidence with two outputs about the same thing.

    Source: by design of this tool: could not tell is never fine.
    """
    changes = given["evidence.changes"]
    if not changes:
        return None
    first = changes[0]
    where = f" of {first['subject']}" if first["subject"] else ""
    told = f"{first['name']}{where}: {first['before']}, then {first['after']}"
    text = f"two outputs contradict each other in {len(changes)} states, first {told}"
    return unknown(text, observed=[f"{c['name']} {c['subject']}: {c['before']} / {c['after']}" for c in changes[:20]])


@relation("evidence.duplicates", needs=("gpu.duplicates",), urgency=Urgency.NOTE)
def no_gpu_twice(given: Given) -> Answer:
    """
    No GPU stands twice in one listing.

    What it checks: PCI addresses that occur under two indices in one listing.

    Why it matters: such a listing was edited, or joins two nodes; the later row is not believed.

    How to fix: post the listing of one node as the tool printed it.

    Applies to: nvidia-smi CSV.

    Source: a public sample whose rows were copied to make eight of four.
    """
    addresses = given["gpu.duplicates"]
    return skip(
        f"{len(addresses)} PCI addresses stand twice in one listing: {', '.join(addresses[:8])}",
        observed=len(addresses),
    )
