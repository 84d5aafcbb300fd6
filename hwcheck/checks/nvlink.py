"""NVLinks of each GPU: how many are up, how fast they run, whether their error counters grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hwcheck.checks.relation import Answer, Every, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import Subject
from hwcheck.findings import Act, Remedy, Urgency

SWITCHED = ("nvswitch", "nvlink-domain")
"""Fabric kinds where every link of a GPU ends in a switch and all of them must be up."""

_LOST = "Link recovery failed events"
"""A link that could not be brought back: the one counter of which a single step is a fault."""

_LINK_DOWN = Remedy(
    "act",
    "Look at this GPU's links with nvidia-smi nvlink -s and at its Fabric section in nvidia-smi -q, then at the fabric "
    "manager's log. Drain the node, restart the fabric manager and reset all GPUs together, or reboot. If the links "
    "stay down: field diagnostic, then RMA.",
    disturbs="board",
    acts=(Act("reset_gpu", opt_in=True),),
)
_LINK_SLOW = Remedy(
    "act",
    "Drain the node and reset all GPUs together with the fabric manager restarted, or reboot: links are trained anew. "
    "If nvidia-smi nvlink -s shows the same links slow again: field diagnostic, then RMA.",
    disturbs="board",
    acts=(Act("reset_gpu", opt_in=True),),
)
_ERRORS_GROW = Remedy(
    "act",
    "Look for Xid 74 (Hopper) or 144 to 150 (Blackwell) with the same link in the kernel log, and read the counters "
    "again under load. If they keep growing: drain, reset the GPU, then field diagnostic.",
    disturbs="gpu",
)


@relation(
    "nvlink.active",
    needs=("nvlink.active_count",),
    uses=("nvlink.links",),
    urgency=Urgency.NOW,
    remedy=_LINK_DOWN,
)
def links_are_active(given: Given) -> Answer:
    """
    All NVLinks of a GPU are up.

    What it checks: that no link of the GPU is inactive, and that there are as many as the platform has.

    Why it matters: a GPU with fewer links is slower in every collective, and all others wait for it; one without any
    keeps CUDA from starting on a switched board.

    How to fix: restart the fabric manager and reset all GPUs together, or reboot; then the field diagnostic and RMA.

    Applies to: switched boards (HGX, NVL72). Bridged cards leave links without a bridge inactive. Where the platform is
    not known, an inactive link beside active ones is a warning, and no active link at all is taken for a card without
    a bridge.

    Source: nvidia-smi nvlink -s of HGX H100 and H200 (18 links), NVIDIA's NVL72 bring-up script (72 links a tray);
    leptonai/gpud issue 1085 (all links of a B200 inactive and nothing said).
    """
    count, links = given["nvlink.active_count"], given.maybe("nvlink.links") or ()
    down = [link["link"] for link in links if not link["active"]]
    kind, wanted = given.bound("fabric.kind"), given.bound("nvlink.links")
    if kind in SWITCHED and wanted:
        return _on_switched_board(count, down, wanted)
    if count == 0:
        return skip("no NVLink is up: usual for a card without a bridge", observed=0)
    if down and kind == "bridge":
        return skip(f"{count} NVLinks are up; links without a bridge are inactive on these cards", observed=count)
    if down:
        return warn(f"NVLink {_list(down)} inactive, {count} of {count + len(down)} are up", observed=count)
    return ok(f"all {count} NVLinks are up", observed=count)


def _on_switched_board(count: int, down: list[int], wanted: int) -> Answer:
    if count >= wanted:
        return ok(f"all {count} NVLinks are up", observed=count, expected=wanted)
    if count and not down:
        return unknown(
            f"only {count} NVLinks are listed, none of them inactive: the listing is not whole",
            observed=count,
            expected=wanted,
        )
    which = f": {_list(down)} inactive" if count else ""
    return fail(f"{count} of {wanted} NVLinks are up{which}", observed=count, expected=wanted)


@relation("nvlink.uniform", needs=(Every("nvlink.active_count"),), urgency=Urgency.NOW, remedy=_LINK_DOWN)
def gpus_have_equal_links(given: Given) -> Iterable[Answer]:
    """
    All GPUs of a node have the same number of NVLinks up.

    What it checks: the count of active links of each GPU against that of most GPUs.

    Why it matters: where the platform has no figure, the other GPUs of the node are the yardstick.

    How to fix: see nvlink.active.

    Applies to: nodes of two or more GPUs whose links were listed, unless the platform tells the number of links or its
    cards are joined by bridges, where groups of different size are usual.

    Source: judgement; HGX boards are built alike.
    """
    counts: dict[Subject, int] = given["nvlink.active_count"]
    if len(counts) < 2 or given.bound("fabric.kind") is not None:
        return [skip("the platform tells how many links there are, or there is no second GPU to compare with")]
    usual, holders = Counter(counts.values()).most_common(1)[0]
    if usual == 0:
        return [skip("no GPU has an NVLink up")]
    if holders == len(counts):
        return [ok(f"each of {len(counts)} GPUs has {usual} NVLinks up", observed=usual)]
    if holders * 2 <= len(counts):
        return [unknown("the GPUs differ in their number of NVLinks, and the platform is not known")]
    few = holders >= 3 and len(counts) - holders <= holders // 3
    answer = fail if few else warn
    return [
        answer(
            f"{count} NVLinks are up, {holders} other GPUs have {usual}", subject=gpu, observed=count, expected=usual
        )
        for gpu, count in counts.items()
        if count != usual
    ]


@relation("nvlink.speed", needs=("nvlink.links",), urgency=Urgency.MAINTENANCE, remedy=_LINK_SLOW)
def links_run_at_speed(given: Given) -> Answer:
    """
    The NVLinks of a GPU run at the platform's speed.

    What it checks: the raw signalling rate of each active link against the rates seen on healthy boards of the
    platform; without a platform, that all links of the GPU run at one rate.

    Why it matters: one slow link lowers the rate of every transfer that is striped over all of them.

    How to fix: reset all GPUs together, or reboot; then the field diagnostic and RMA.

    Applies to: GPUs with at least one active link.

    Source: nvidia-smi nvlink -s of HGX H100 and H200 (26.562 GB/s), HGX B200 and B300 (53.125, also 50), GB200 and
    GB300 (50, also 53.125). The text is raw signalling, about 6 % above the data-sheet rate.
    """
    speeds = {link["link"]: link["speed"] for link in given["nvlink.links"] if link["active"]}
    if not speeds:
        return skip("no NVLink is up")
    accepted = given.bound("nvlink.speed")
    seen = ", ".join(f"{speed:g}" for speed in sorted(set(speeds.values())))
    if accepted:
        wanted = f"one of {', '.join(f'{speed:g}' for speed in accepted)} GB/s"
        slow = [link for link, speed in speeds.items() if not any(_same(speed, good) for good in accepted)]
        if slow:
            lowest = min(speeds[link] for link in slow)
            return fail(f"NVLink {_list(slow)} at {lowest:g} GB/s, expected {wanted}", observed=lowest, expected=wanted)
        return ok(f"{len(speeds)} NVLinks run at {seen} GB/s", observed=seen, expected=wanted)
    slow = [link for link, speed in speeds.items() if not _same(speed, max(speeds.values()))]
    if slow:
        return warn(f"NVLink {_list(slow)} slower than the others: {seen} GB/s", observed=seen)
    return skip(f"{len(speeds)} NVLinks run at {seen} GB/s; no figure is known for this platform", observed=seen)


@relation(
    "nvlink.errors",
    needs=("nvlink.errors",),
    compares=("nvlink.errors",),
    urgency=Urgency.MAINTENANCE,
    remedy=_ERRORS_GROW,
)
def link_errors_do_not_grow(given: Given) -> Answer:
    """
    NVLink error counters do not grow.

    What it checks: the counters of nvidia-smi nvlink -e against those of the previous snapshot of the same boot. From
    one reading alone, zero everywhere is a pass and anything else no verdict.

    Why it matters: replays and recoveries cost bandwidth, and a link that needs more of them is about to fail.

    How to fix: match the link with Xids of the kernel log; reset the GPU, then the field diagnostic.

    Applies to: counters of errors. FEC buckets, bit error rates and raw lane errors count what was corrected, and are
    not zero on healthy Blackwell boards; successful recoveries and their total are no errors.

    Source: public capture of an 8 × B300 node, driver 595 (FEC bucket 0 in the billions, raw errors not zero, all error
    counters zero); aws/eks-node-monitoring-agent issue 261 (a lifetime counter drained healthy H100 nodes).
    """
    now = _errors(given["nvlink.errors"])
    if not now:
        return skip("the listing holds no error counters")
    before = given.previous("nvlink.errors")
    if before is not None:
        return _growth(now, _errors(before))
    counted = {key: value for key, value in now.items() if value}
    if not counted:
        return ok(f"all {len(now)} NVLink error counters are 0", observed=0)
    (link, counter), value = max(counted.items(), key=lambda item: item[1])
    text = f"{len(counted)} NVLink error counters are not 0, highest {counter} of link {link}: {value}"
    return skip(f"{text}; one reading does not tell whether they grow", observed=value)


def _growth(now: dict[tuple[int, str], int], before: dict[tuple[int, str], int]) -> Answer:
    """Judge two readings; a counter that went down was reset in between, and tells nothing."""
    both = {key: value - before[key] for key, value in now.items() if value >= before.get(key, value + 1)}
    if not both:
        return skip("no NVLink error counter stands in both readings, or all were reset in between")
    grown = {key: growth for key, growth in both.items() if growth}
    if not grown:
        return ok(f"none of {len(both)} NVLink error counters grew", observed=0)
    (link, counter), growth = max(grown.items(), key=lambda item: item[1])
    answer = fail if any(name == _LOST for _, name in grown) else warn
    text = f"{len(grown)} NVLink error counters grew, most of all {counter} of link {link} by {growth}"
    return answer(text, observed=growth)


def _errors(records: Iterable[dict[str, Any]]) -> dict[tuple[int, str], int]:
    """Pick the counters of errors by link and name; see the docstring above for what is none."""
    return {
        (record["link"], record["counter"]): record["value"]
        for record in records
        if isinstance(record["value"], int) and _is_error(record["counter"])
    }


def _is_error(counter: str) -> bool:
    if counter.startswith(("FEC", "Raw", "Effective BER", "Symbol")):
        return False
    return counter.endswith(("Errors", "discards", "failed events"))


def _same(speed: float, other: float) -> bool:
    """Whether two rates are one: tools round the third digit differently."""
    return abs(speed - other) <= 0.01 * other


def _list(links: list[int]) -> str:
    return f"{', '.join(map(str, links))} {'is' if len(links) == 1 else 'are'}"
