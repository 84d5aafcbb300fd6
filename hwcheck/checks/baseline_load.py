"""
hwcheck's own measurements against the profile's bound, the fleet's and the node's own history; validity first.

One relation for all of them: :data:`hwcheck.baselines.OWN` says which check and bound a test belongs to.
"""

from __future__ import annotations

from typing import Any

from hwcheck.baselines import OWN, Bound, Own, doubts, untold
from hwcheck.baselines.own import NEAR, RETEST, split
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import NAMES, NODE, Subject, pci_address
from hwcheck.findings import Remedy

_VALUES = ("result.bandwidth", "result.latency", "result.line_rate")
_REMEDIES = {
    "baseline.hbm_copy": Remedy(
        "act",
        "Look at memory clock, ECC counters and remapped rows of this GPU and measure again; one that stays slow alone "
        "is a case for dcgmi diag -r 3 and RMA.",
        disturbs="nothing",
    ),
    "baseline.h2d": Remedy(
        "act",
        "Check width and speed of the GPU's PCIe link under load, MaxPayload and IOMMU, and that the other GPUs of the "
        "node do better; then measure again.",
        disturbs="nothing",
    ),
    "baseline.p2p": Remedy(
        "act",
        "Check the NVLinks of both GPUs (nvidia-smi nvlink -s and -e) and the fabric manager; without NVLink check ACS "
        "and IOMMU; then measure again.",
        disturbs="nothing",
    ),
    "baseline.launch": Remedy(
        "act",
        "Check the CPU's governor and idle states, NUMA balancing and interrupts on the cores near this GPU, and the "
        "spectrum and the interrupts beside the figure; then measure again.",
        disturbs="nothing",
    ),
    "baseline.cpu_memory": Remedy(
        "act",
        "Check that every channel of this NUMA node has its module at its speed (dmidecode -t memory), the governor "
        "and NUMA balancing; then measure again.",
        disturbs="nothing",
    ),
    "baseline.disk": Remedy(
        "act",
        "Check the health of the drive, its PCIe link and how full it is; then measure again.",
        disturbs="nothing",
    ),
    "baseline.tcp": Remedy(
        "act",
        "Check rate and errors of the port, the MTU of both ends and the adapter's interrupts; then measure again.",
        disturbs="nothing",
    ),
}
_REMEDIES["baseline.d2h"] = _REMEDIES["baseline.h2d"]
_REMEDIES["baseline.launch_tail"] = _REMEDIES["baseline.copy_small_tail"] = _REMEDIES["baseline.launch"]
_REMEDIES["baseline.copy_small"] = _REMEDIES["baseline.os_jitter"] = _REMEDIES["baseline.launch"]


@relation(
    "baseline.load",
    any_of=("result.conditions",),
    uses=_VALUES,
    scope="measurement",
    ids=tuple(dict.fromkeys(own.check for own in OWN.values())),
)
def own_measurement(given: Given) -> Answer | None:
    """
    A measurement of hwcheck's own meets its bounds, under conditions that make it count.

    What it checks: copies within HBM, to and from the host and between peers, launch and small copies, memory of the
    CPUs, jitter, disk and network, against the bound of the platform, of the fleet (nodes of the same kind) and of
    the node's own earlier runs.

    Why it matters: a link that trained down, a slow memory or a core that is held up shows in no status field, but in
    every step of a job.

    How to fix: see the remedy of the finding; a figure near its bound is measured again first.

    Applies to: each figure of ``hwcheck baseline run``. Without a bound it is told and skipped. A condition that was
    seen false (clocks not reached, throttled, another process, memory errors or an Xid meanwhile, not bound to the NUMA
    node, busy before, too few or too uneven repeats, GPUDirect not used) makes it unknown, good or bad. One that was
    not told is said. Slower than its own history alone is a warning.

    Source: bounds of the platform profile, each with its own; median and MAD of the fleet and of the history.
    """
    test, on = split(given.subject.id)
    own = OWN.get(test)
    if own is None:
        return None
    conditions = given["result.conditions"] if "result.conditions" in given.facts else {}
    subject = _subject(given.subject, on)
    common: dict[str, Any] = {"check": own.check, "subject": subject, "remedy": _REMEDIES[own.check]}
    if conditions.get("error"):
        return unknown(f"{test}{_of(on)}: no figure: {conditions['error']}", **common)
    name, value = _value(given)
    if value is None:
        return unknown(f"{test}{_of(on)}: no figure", **common)
    unit = NAMES[name].unit
    bounds = _bounds(given, own)
    words = f"{test}{_of(on)}: {value:.6g} {unit}{_how(conditions)}"
    common |= {"observed": round(value, 3), "because": name}
    if not bounds:
        return skip(f"{words}; no bound is known for it on {given.platform}{_seen(test, on, conditions)}", **common)
    tightest = (max if own.higher_is_better else min)(bounds, key=lambda bound: bound.value)
    common["expected"] = f"{'>=' if own.higher_is_better else '<='} {tightest.value:.6g} {unit}"
    found = doubts(test, on, conditions)
    if found:
        names = ", ".join(dict.fromkeys(doubt.name for doubt in found))
        seen = "; ".join(doubt.text for doubt in found)
        return unknown(f"{words}; does not count ({names}): {seen}", **common)
    return _judged(words, value, unit, bounds, conditions, _said(test, conditions), common)


def _judged(
    words: str, value: float, unit: str, bounds: list[Bound], conditions: dict[str, Any], said: str, common: Any
) -> Answer:
    """Hold a figure that counts against its bounds."""
    broken = [bound for bound in bounds if not bound.holds(value)]
    near = any(abs(value - bound.value) <= NEAR * bound.value for bound in (broken or bounds))
    advice = f"; {RETEST}" if near else ""
    if not broken:
        held = "; ".join(_words(bound, unit) for bound in bounds)
        return ok(f"{words}, {held}{advice}{said}", **common)
    side = "below" if broken[0].higher_is_better else "above"
    why = " and ".join(_words(bound, unit, side) for bound in broken)
    text = f"{words}, {why}{_link(conditions)}{advice}{said}"
    return (warn if all(bound.origin == "history" for bound in broken) else fail)(text, **common)


def _bounds(given: Given, own: Own) -> list[Bound]:
    """Gather what the figure is held against; the profile's only where the platform is known."""
    found = []
    edge = given.bound(own.bound)
    if isinstance(edge, (int, float)):
        found.append(Bound(float(edge), own.higher_is_better, "profile", float(edge), 0))
    return found + [bound for bound in given.references if bound.higher_is_better == own.higher_is_better]


def _value(given: Given) -> tuple[str, float | None]:
    return next(((name, value) for name in _VALUES if (value := given.maybe(name)) is not None), ("", None))


def _words(bound: Bound, unit: str, side: str = "") -> str:
    side = side or ("at least" if bound.higher_is_better else "at most")
    edge = f"{side} {bound.value:.6g} {unit}"
    return f"{edge} of the platform" if bound.origin == "profile" else f"{edge} ({bound.text})"


def _how(conditions: dict[str, Any]) -> str:
    """Say what the figure counts and how sure it is."""
    parts = [conditions["counts"]] if "counts" in conditions else []
    if "samples" in conditions:
        parts.append(f"median of {conditions['samples']:g}, spread {conditions.get('spread', 0):.2g} %")
    return f" ({', '.join(parts)})" if parts else ""


def _link(conditions: dict[str, Any]) -> str:
    """Say of a slow copy that the GPU's link itself was narrow or slow while it ran."""
    found = [
        f"{name} {conditions[key]:g} of {conditions[key + '_max']:g}"
        for name, key in (("width", "pcie_width"), ("generation", "pcie_gen"))
        if conditions.get(key, 0) < conditions.get(key + "_max", 0)
    ]
    return f"; the PCIe link ran at {', '.join(found)} under load" if found and conditions.get("counts") else ""


def _seen(test: str, on: str, conditions: dict[str, Any]) -> str:
    found = doubts(test, on, conditions)
    return "; " + "; ".join(doubt.text for doubt in found) if found else ""


def _said(test: str, conditions: dict[str, Any]) -> str:
    missing = untold(test, conditions)
    return f"; not told: {', '.join(missing)}" if missing else ""


def _of(on: str) -> str:
    return f" of {on.replace('>', ' to ')}" if on else ""


def _subject(measured: Subject, on: str) -> Subject:
    """Name what a technician can touch: the GPU, the NUMA node; a pair, disk or peer stays the measurement."""
    address = pci_address(on)
    if address:
        return Subject("gpu", address)
    if on.startswith("numa") and on[4:].isdigit():
        return Subject("numa", on[4:])
    return measured if on else NODE
