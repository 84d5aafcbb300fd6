"""The PCIe link of a GPU as the driver sees it. Grace parts are judged by their C2C link instead."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_RESEAT = Remedy(
    "hands",
    "Drain the node and reseat the GPU or its riser, retimer and cables; after a power cycle compare LnkSta with "
    "LnkCap (lspci -vvv). If the link stays narrow, swap the slot to tell GPU from board.",
    disturbs="node",
)
_TRAIN = Remedy(
    "act",
    "Read the link again under load; if it stays low, power-cycle the node and check BIOS link speed, riser and "
    "retimer.",
    disturbs="node",
)


@relation(
    "pcie.gpu_width",
    needs=("gpu.pcie.width", "gpu.pcie.width_max"),
    uses=("gpu.addressing_mode", "gpu.c2c.mode"),
    urgency=Urgency.NOW,
    remedy=_RESEAT,
)
def all_lanes_are_up(given: Given) -> Answer:
    """
    The GPU's PCIe link has all its lanes.

    What it checks: lanes now against the most that GPU and slot can have together, and against the platform's figure.

    Why it matters: a link that trained at x8 halves host copies and GPUDirect traffic. Unlike the speed, the width does
    not drop when the GPU is idle.

    How to fix: reseat GPU, riser, retimer; power-cycle; then swap to find the bad part.

    Applies to: GPUs behind PCIe. A GH200 reports Gen4 x1 by design, its host link is C2C.

    Source: nvidia-smi -q "Link Width"; GH200 dump with 1x.
    """
    now, most = given["gpu.pcie.width"], given["gpu.pcie.width_max"]
    least = given.bound("pcie.min_width")
    if given.maybe("gpu.c2c.mode") or (given.maybe("gpu.addressing_mode") == "ATS" and least is None):
        return skip(f"x{now}: this GPU's host link is NVLink-C2C, not PCIe", observed=now)
    wanted = max(most, least or 0)
    if now < wanted:
        return fail(f"PCIe link is x{now}, expected x{wanted}", observed=now, expected=wanted)
    return ok(f"PCIe link is x{now}", observed=now, expected=wanted)


@relation(
    "pcie.gpu_speed",
    needs=("gpu.pcie.gen", "gpu.pcie.gen_max"),
    uses=("gpu.clocks.reason.idle", "gpu.c2c.mode", "gpu.virtualization_mode", "gpu.addressing_mode"),
    remedy=_TRAIN,
)
def link_runs_at_its_generation(given: Given) -> Answer:
    """
    The GPU's PCIe link runs at the generation that GPU and slot can do together.

    What it checks: current against maximum generation of the link. The maximum of the GPU alone and "Host Max" are not
    compared: guests do not see the root port, and a GB300 runs Gen6 beside a host maximum of 4.

    Why it matters: a Gen5 link that fell to Gen3 moves a quarter of the data.

    How to fix: read it under load (an idle link may save power at a lower speed); then power-cycle, BIOS, riser.

    Applies to: GPUs behind PCIe.

    Source: nvidia-smi -q "PCIe Generation" of H100, H200, B200, GB200, GB300.
    """
    now, most = given["gpu.pcie.gen"], given["gpu.pcie.gen_max"]
    if given.maybe("gpu.c2c.mode") or given.maybe("gpu.addressing_mode") == "ATS":
        return skip(f"Gen{now}: this GPU's host link is NVLink-C2C, not PCIe", observed=now)
    if now >= most:
        return ok(f"PCIe link is Gen{now}", observed=now, expected=most)
    if given.maybe("gpu.clocks.reason.idle"):
        return skip(f"PCIe link is Gen{now} of Gen{most} while idle, which saves power", observed=now, expected=most)
    return warn(f"PCIe link is Gen{now}, it can do Gen{most}", observed=now, expected=most)


@relation(
    "pcie.gpu_generation",
    needs=("gpu.pcie.gen_max",),
    uses=("gpu.c2c.mode", "gpu.addressing_mode", "gpu.virtualization_mode"),
    remedy=Remedy(
        "act",
        "Check the link speed of this slot in the BIOS (Auto or the platform's generation), then riser, retimer and "
        "switch; power-cycle the node and compare LnkCap of GPU and root port (lspci -vvv). In a guest the host "
        "decides: ask its operator.",
        disturbs="node",
    ),
)
def link_can_do_its_generation(given: Given) -> Answer:
    """
    The GPU's PCIe link can do the generation that the platform has.

    What it checks: the maximum of GPU and slot together against the platform's figure. The maximum of the link alone
    is no measure: a slot that was set or fell to Gen4 says Gen4 for current and maximum, and looks whole by its own
    word. "Host Max" is not compared: guests do not see it, and a GB300 says 4 there beside a Gen6 link.

    Why it matters: each generation lost halves host copies and GPUDirect traffic of this GPU.

    How to fix: BIOS link speed, riser, retimer; power-cycle.

    Applies to: platforms with a known generation: boards and trays; a card is as fast as the slot it is in. A guest is
    offered what its host gives, Gen4 on some clouds: no verdict. A GH200 reports Gen4 x1 by design.

    Source: the bound pcie.gen of the platform's profile; nvidia-smi -q -x of an H100 guest that is offered Gen4.
    """
    most, wanted = given["gpu.pcie.gen_max"], given.bound("pcie.gen")
    if wanted is None:
        if given.maybe("gpu.c2c.mode") or given.maybe("gpu.addressing_mode") == "ATS":
            return skip(f"Gen{most}: this GPU's host link is NVLink-C2C, not PCIe", observed=most)
        return skip(f"the link can do Gen{most}; no generation is known for this platform", observed=most)
    if most >= wanted:
        return ok(f"the PCIe link can do Gen{most}", observed=most, expected=wanted)
    if given.maybe("gpu.virtualization_mode") not in (None, "None"):
        return skip(f"the link can do Gen{most}, all that this guest is offered", observed=most, expected=wanted)
    text = f"the PCIe link can do Gen{most} at most, this platform has Gen{wanted}"
    return warn(text, observed=most, expected=wanted)


@relation(
    "pcie.gpu_replays",
    needs=("gpu.pcie.replays",),
    uses=("gpu.pcie.rollovers",),
    compares=("gpu.pcie.replays",),
    remedy=_RESEAT,
)
def replays_do_not_grow(given: Given) -> Answer:
    """
    PCIe replays do not grow.

    What it checks: growth of the replay counter since an earlier reading of the same boot. Without one nothing is said
    of the count: healthy H100s show over a hundred.

    Why it matters: a replay repeats a packet that arrived broken; a steady stream of them is a bad contact.

    How to fix: reseat GPU, riser, retimer.

    Applies to: every GPU; growth needs an earlier snapshot.

    Source: nvidia-smi -q of eight healthy H100 with 106 to 174 replays.
    """
    now, before = given["gpu.pcie.replays"], given.previous("gpu.pcie.replays")
    if before is None or now < before:
        return skip(f"{now} replays since reset; one reading shows no growth", observed=now)
    limit = given.bound("pcie.replay_growth")
    if limit is None:
        return skip(f"{now - before} replays since the last reading", observed=now - before)
    if now - before > limit:
        return warn(f"{now - before} PCIe replays since the last reading", observed=now - before, expected=limit)
    return ok(f"{now - before} PCIe replays since the last reading", observed=now - before, expected=limit)
