"""Chip-to-chip links between Grace and its GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hwcheck.checks.relation import Answer, Every, Given, fail, ok, relation, skip, unknown
from hwcheck.facts import Subject
from hwcheck.findings import Act, Remedy, Urgency

_REMEDY = Remedy(
    "act",
    "Drain and reboot the node, then read nvidia-smi c2c -s again; look for Xid 121, 173 and 174 in the kernel log. If "
    "the links stay down, run the field diagnostic and replace the module (RMA): the links are inside it.",
    disturbs="node",
    acts=(Act("reboot", opt_in=True),),
)


@relation("c2c.active", needs=("c2c.links",), urgency=Urgency.NOW, remedy=_REMEDY)
def c2c_links_are_active(given: Given) -> Answer:
    """
    All chip-to-chip links of a GPU are up and run at one speed.

    What it checks: number and rate of the C2C links against the platform's figures; where the platform is not known,
    that none is inactive and all run at one rate.

    Why it matters: all traffic between Grace and the GPU goes over these links.

    How to fix: reboot; if links stay down, replace the module.

    Applies to: Grace superchips (GH200: 10 links; GB200 and GB300: 5 for each GPU).

    Source: nvidia-smi c2c -s of a GH200 and of a four-GPU Grace Blackwell tray: 44.7 GB/s for each link.
    """
    links = given["c2c.links"]
    up = {link["link"]: link["speed"] for link in links if link["active"]}
    down = [str(link["link"]) for link in links if not link["active"]]
    wanted, rate = given.bound("c2c.links"), given.bound("c2c.speed")
    if down:
        return fail(
            f"C2C link {', '.join(down)} inactive, {len(up)} up", observed=len(up), expected=wanted or len(links)
        )
    if not up:
        return skip("no C2C link is listed")
    if wanted and len(up) < wanted:
        text = f"only {len(up)} C2C links are listed, none of them inactive: the listing is not whole"
        return unknown(text, observed=len(up), expected=wanted)
    fastest = rate or max(up.values())
    # One per cent: what links of one module differ by in public captures is a tenth of that.
    slow = [str(link) for link, speed in up.items() if speed < 0.99 * fastest]
    if slow:
        text = f"C2C link {', '.join(slow)} slower than {fastest:g} GB/s: {min(up.values()):g} GB/s"
        return fail(text, observed=min(up.values()), expected=fastest, urgency=Urgency.MAINTENANCE)
    return ok(f"all {len(up)} C2C links run at {max(up.values()):.1f} GB/s", observed=len(up), expected=wanted)


@relation("c2c.uniform", needs=(Every("c2c.links"),), urgency=Urgency.NOW, remedy=_REMEDY)
def gpus_have_equal_c2c_links(given: Given) -> Iterable[Answer]:
    """
    All GPUs of a node have the same number of chip-to-chip links.

    What it checks: the number of C2C links that are up on each GPU against that of most GPUs.

    Why it matters: where the platform has no figure, the other GPUs of the tray are the yardstick.

    How to fix: see c2c.active.

    Applies to: nodes of two or more GPUs with C2C links, where the platform does not tell their number.

    Source: judgement; the GPUs of a tray are built alike.
    """
    counts: dict[Subject, int] = {
        gpu: sum(link["active"] for link in links) for gpu, links in given["c2c.links"].items() if links
    }
    if len(counts) < 2 or given.bound("c2c.links"):
        return [skip("the platform tells how many C2C links there are, or there is no second GPU to compare with")]
    usual, holders = Counter(counts.values()).most_common(1)[0]
    if holders == len(counts):
        return [ok(f"each of {len(counts)} GPUs has {usual} C2C links up", observed=usual)]
    if holders * 2 <= len(counts):
        return [unknown("the GPUs differ in their number of C2C links, and the platform is not known")]
    return [
        fail(f"{count} C2C links are up, the other GPUs have {usual}", subject=gpu, observed=count, expected=usual)
        for gpu, count in counts.items()
        if count < usual
    ]
