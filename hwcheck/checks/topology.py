"""Who reaches whom over NVLink, by the matrix of ``nvidia-smi topo -m``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from hwcheck.checks.nvlink import SWITCHED
from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import Subject, gpu_index
from hwcheck.findings import Act, Remedy, Urgency

BRIDGED = (2, 4)
"""GPUs that one NVLink bridge can join: two or four."""

_MOST_LINKS = 18
"""NVLinks of one GPU, up to NVLink5; pairs that add up to more share their links, so there is a switch."""

_NO_PEER = Remedy(
    "act",
    "Read the Fabric section of nvidia-smi -q and nvidia-smi nvlink -s of this GPU, and the log of the fabric manager "
    "(and NVLSM on Blackwell). Drain the node, reset all GPUs together with the fabric manager restarted, or reboot. "
    "If the GPU still has no NVLink: field diagnostic, then RMA.",
    disturbs="board",
    acts=(Act("reset_gpu", opt_in=True),),
)

Pairs = dict[tuple[str, str], int]


@relation(
    "nvlink.topology",
    needs=("topo.matrix", Some("gpu.index")),
    urgency=Urgency.NOW,
    remedy=_NO_PEER,
)
def gpus_reach_each_other(given: Given) -> Iterable[Answer]:
    """
    Every GPU reaches every other one over NVLink, with the same number of links.

    What it checks: the GPU part of the matrix of nvidia-smi topo -m.

    Why it matters: a GPU without NVLink to its peers falls back to PCIe, or keeps jobs over all GPUs from starting.

    How to fix: look at the GPU's fabric state; restart the fabric manager and reset all GPUs together, or reboot; then
    the field diagnostic and RMA.

    Applies to: nodes of two or more GPUs. Cards without NVLink show none between any two. Bridges join groups of two or
    four cards, with SYS or NODE between the groups: right for PCIe cards, a fault on a switched board. A lone GPU
    beside a group that is too large for a bridge, or of three, is a fault on any board. One pair, or the pairs of one
    GPU, with fewer links than all others are a fault on a switched board and a warning on any other. NICs are not
    judged: SYS to every NIC is normal where each GPU has its own PCI domain (Grace Blackwell).

    Source: topo -m of HGX H100 and H20 (NV18 everywhere), of a GB200 tray, of 8 × H200 NVL in two groups of four;
    vllm-project/vllm issue 16336 (one of eight B200 without NVLink).
    """
    matrix = given["topo.matrix"]
    gpus: tuple[str, ...] = matrix["gpus"]
    if len(gpus) < 2:
        return [skip("one GPU has no peer")]
    pairs, strange = _pairs(matrix)
    if strange:
        return [unknown(f"the matrix has a word that is not understood: {strange[:20]!r}", observed=strange[:20])]
    switched = given.bound("fabric.kind") in SWITCHED
    if not any(pairs.values()):
        return [_none_at_all(gpus, switched=switched)]
    groups = _groups(gpus, pairs)
    if len(groups) == 1:
        return [_one_group(gpus, pairs, given.bound("nvlink.links") if switched else None, switched=switched)]
    names = {f"GPU{index}": subject for subject, index in given["gpu.index"].items()}
    return _several_groups(groups, pairs, given.bound("fabric.kind"), names)


def _pairs(matrix: dict[str, Any]) -> tuple[Pairs, str]:
    """Return the number of NVLinks between each two GPUs, and the first word that is none of the tool's."""
    pairs: Pairs = {}
    for one, other in combinations(matrix["gpus"], 2):
        word = matrix["cells"][one][other]
        links = re.fullmatch(r"NV(\d{1,2})", word)
        if links is None and word not in ("SYS", "NODE", "PHB", "PXB", "PIX", "SOC"):
            return {}, word
        pairs[one, other] = int(links[1]) if links else 0
    return pairs, ""


def _groups(gpus: tuple[str, ...], pairs: Pairs) -> list[list[str]]:
    """Gather GPUs that reach each other over NVLink, directly or over others; largest group first."""
    groups: list[list[str]] = []
    left = list(gpus)
    while left:
        group = [left.pop(0)]
        for gpu in group:  # grows while it is walked
            near = [other for other in left if pairs.get((gpu, other)) or pairs.get((other, gpu))]
            group += near
            left = [other for other in left if other not in near]
        groups.append(sorted(group, key=gpus.index))
    return sorted(groups, key=len, reverse=True)


def _none_at_all(gpus: tuple[str, ...], *, switched: bool) -> Answer:
    if switched:
        return fail(f"no NVLink between any of {len(gpus)} GPUs of a switched board", observed=0)
    return skip("no NVLink between any two GPUs: usual for cards without a bridge", observed=0)


def _one_group(gpus: tuple[str, ...], pairs: Pairs, wanted: int | None, *, switched: bool) -> Answer:
    """Judge GPUs that all hang together."""
    width = max(pairs.values())
    narrow = [pair for pair, links in pairs.items() if links < width]
    if not narrow and (wanted is None or width >= wanted):
        return ok(f"NV{width} between all {len(pairs)} pairs of GPUs", observed=width, expected=wanted)
    (one, other), least = min(pairs.items(), key=lambda item: item[1])
    low = f"NV{least}" if least else "no NVLink"
    text = f"{one} and {other} have {low} between them, expected NV{wanted or width}"
    common: dict[str, Any] = {"observed": least, "expected": wanted or width}
    odd = _odd_gpu(gpus, narrow)
    if odd:
        text = f"{odd} has {low} to other GPUs, which have NV{width} among themselves"
    elif len(narrow) == 1:
        text = f"{one} and {other} have {low} between them, all other pairs NV{width}"
    if switched:
        return fail(text, **common)
    if (len(narrow) == 1 and len(gpus) >= max(BRIDGED)) or odd or _shares_links(gpus, pairs):
        return warn(text, **common)
    return skip(f"{text} on a switched board; boards without a switch differ in this", observed=least)


def _odd_gpu(gpus: tuple[str, ...], narrow: list[tuple[str, str]]) -> str:
    """Name the one GPU that all narrow pairs have in common, where that is most likely no design; else ""."""
    common = [gpu for gpu in gpus if all(gpu in pair for pair in narrow)]
    return common[0] if len(common) == 1 and len(narrow) > 1 and len(gpus) > max(BRIDGED) else ""


def _shares_links(gpus: tuple[str, ...], pairs: Pairs) -> bool:
    """Tell whether pairs use the same links, which only a switch can do."""
    return any(sum(links for pair, links in pairs.items() if gpu in pair) > _MOST_LINKS for gpu in gpus)


def _several_groups(
    groups: list[list[str]], pairs: Pairs, kind: str | None, names: dict[str, Subject]
) -> Iterable[Answer]:
    """Judge GPUs that fall into groups without NVLink between them."""
    main, *rest = groups
    width = max(pairs.values())
    whole = all(pairs[pair] == width for pair in combinations(main, 2))
    lone = [group[0] for group in rest if len(group) == 1]
    impossible = len(main) not in BRIDGED and kind != "bridge"
    if kind in SWITCHED or (whole and impossible and len(lone) == len(rest)):
        outside = [gpu for group in rest for gpu in group]
        if len(outside) >= len(main):
            sizes = ", ".join(str(len(group)) for group in groups)
            return [fail(f"the GPUs fall into groups of {sizes} without NVLink between them", observed=sizes)]
        return [
            fail(
                f"{gpu} has no NVLink to the other {len(main)} GPUs, which have NV{width} among themselves",
                subject=names.get(gpu, gpu_index(gpu[3:])), observed=0, expected=f"NV{width}",
            )
            for gpu in outside
        ]  # fmt: skip
    sizes = ", ".join(str(len(group)) for group in groups)
    if kind == "bridge":
        return [_bridged(groups, pairs)]
    text = f"groups of {sizes} GPUs without NVLink between them: right for bridged cards, a fault on a switched board"
    return [unknown(f"{text}, and the text does not name the board", observed=sizes)]


def _bridged(groups: list[list[str]], pairs: Pairs) -> Answer:
    """Judge cards joined by bridges: each group of a size that a bridge has, and equal pairs within it."""
    sizes = ", ".join(str(len(group)) for group in groups)
    width = max(pairs.values())
    for group in groups:
        within = {pair: pairs[pair] for pair in combinations(group, 2)}
        if len(group) > 1 and len(group) not in BRIDGED:
            return warn(f"{len(group)} GPUs hang together by NVLink; a bridge joins two or four", observed=sizes)
        low = [pair for pair, links in within.items() if links < width]
        if low:
            (one, other), links = low[0], within[low[0]]
            text = f"{one} and {other} have {f'NV{links}' if links else 'no NVLink'} in their group, others NV{width}"
            return warn(text, observed=links, expected=width)
    return ok(f"groups of {sizes} GPUs joined by NVLink bridges, NV{width} inside", observed=sizes)
