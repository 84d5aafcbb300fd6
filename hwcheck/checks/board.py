"""A board against its own word and its platform's: power limits, and banks of HBM that are in use."""

from __future__ import annotations

from dataclasses import replace

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.findings import Remedy, Urgency, Write

_BANKS = (
    "gpu.remap.banks.max",
    "gpu.remap.banks.high",
    "gpu.remap.banks.partial",
    "gpu.remap.banks.low",
    "gpu.remap.banks.none",
)
_TOLERANCE_W = 0.5


_LIMIT = Remedy(
    "act",
    "Find who lowered the limit (a unit, a benchmark, the BMC or a rack power policy); put it back with "
    "nvidia-smi -pl DEFAULT for each GPU, unless the site means it: then say so in a waiver.",
    disturbs="nothing",
    worked_out="gpu power_limit = default, where a lower one was asked for (only with opt-in)",
)


@relation(
    "power.limit",
    needs=("gpu.power.limit", "gpu.power.default"),
    uses=("gpu.power.requested", "gpu.module_power.limit"),
    urgency=Urgency.MAINTENANCE,
    remedy=_LIMIT,
)
def power_limit_is_default(given: Given) -> Answer:
    """
    The power limit is what the board starts with.

    What it checks: the limit asked for and the limit in force against the default that the board itself names. A limit
    above the default is an operator's choice and passes.

    Why it matters: a lower limit costs clock under load, and stays unseen at idle. Where nobody asked for it, the
    platform or the rack caps the board.

    How to fix: restore the default, or find the cap in the BMC.

    Applies to: GPUs that report limit and default. On Grace modules the module's own limit may hold the GPU below what
    was asked for; that is by design.

    Source: NVML power management limits; nvidia-smi -a of a GH200 held at 700 of 900 W by its module; recorded on H100,
    H200, B200, GB200 and GB300.
    """
    limit, default = given["gpu.power.limit"], given["gpu.power.default"]
    requested = given.maybe("gpu.power.requested")
    asked = limit if requested is None else requested
    if asked < default - _TOLERANCE_W:
        remedy = replace(_LIMIT, writes=(Write("gpu", "power_limit", "default", opt_in=True, indirect=True),))
        text = f"power limit is set to {asked:g} W, the board's default is {default:g} W"
        return warn(text, observed=asked, expected=default, remedy=remedy)
    if limit >= default - _TOLERANCE_W:
        return ok(f"power limit is {limit:g} W, the board's default {default:g} W", observed=limit, expected=default)
    if given.maybe("gpu.module_power.limit") is not None:
        return ok(f"{default:g} W are asked for; the module holds the GPU at {limit:g} W by design", observed=limit)
    text = f"power limit in force is {limit:g} W although {asked:g} W is asked for: the platform caps this board"
    return warn(text, observed=limit, expected=asked)


@relation(
    "power.default",
    needs=("gpu.power.default",),
    urgency=Urgency.MAINTENANCE,
    remedy=Remedy(
        "hands",
        "Compare VBIOS and PCI subsystem id with the other GPUs of the fleet: a default unlike the product's is a "
        "board of another kind, or a power policy of the BMC or the VBIOS.",
    ),
)
def default_power_is_the_products(given: Given) -> Answer:
    """
    The board starts with the power limit of its product.

    What it checks: the default power limit against the range known for the platform.

    Why it matters: a board with a lower default is slower under load and passes every check against its own word.

    How to fix: compare firmware and subsystem id with the rest of the fleet.

    Applies to: platforms with a known figure.

    Source: the bound power.default of the platform's profile.
    """
    default, known = given["gpu.power.default"], given.bound("power.default")
    if known is None:
        return skip(f"default power limit is {default:g} W; no figure is known for this platform", observed=default)
    low, high = known
    wanted = f"{low:g} W" if low == high else f"{low:g} to {high:g} W"
    if low - _TOLERANCE_W <= default <= high + _TOLERANCE_W:
        return ok(f"default power limit is {default:g} W", observed=default, expected=wanted)
    return warn(f"default power limit is {default:g} W, expected {wanted}", observed=default, expected=wanted)


@relation(
    "hbm.banks",
    needs=_BANKS,
    uses=("gpu.mig.mode",),
    urgency=Urgency.MAINTENANCE,
    remedy=Remedy(
        "hands",
        "Reset the GPU once; if the sum stays wrong, run the field diagnostic and open an RMA. Check first that the "
        "board is of the kind that its name and PCI ids say.",
        disturbs="gpu",
    ),
)
def all_banks_in_use(given: Given) -> Answer:
    """
    The memory banks (row-remap histogram) add up to the platform's number.

    What it checks: the sum over the bank histogram (max, high, partial, low, none). A bank with remapped rows moves
    within the histogram and stays in the sum. A smaller sum fails; a larger one no fault explains, so it is unknown.

    Why it matters: Hopper counts 512 banks for each HBM stack. The sum is the nearest thing to a count of memory
    channels that nvidia-smi shows: no tool prints channels or stacks themselves.

    How to fix: reset, field diagnostic, RMA.

    Applies to: platforms with a known bank count. N/A while MIG is on.

    Source: the bound hbm.banks of the platform's profile; NVML row remapper histogram.
    """
    total, known = sum(given[name] for name in _BANKS), given.bound("hbm.banks")
    if given.maybe("gpu.mig.mode"):
        return skip(f"{total} banks; the row remapper is not reported reliably while MIG is on", observed=total)
    if known is None:
        return skip(f"{total} memory banks; no figure is known for this platform", observed=total)
    if total == known:
        return ok(f"{total} memory banks in all, as this platform has", observed=total, expected=known)
    if total > known:  # no fault adds banks: the board, its profile or the text is another than it seems
        text = f"{total} memory banks in all, more than the {known} of this platform: the evidence is in doubt"
        return unknown(text, observed=total, expected=known)
    return fail(f"{total} memory banks in all, this platform has {known}", observed=total, expected=known)
