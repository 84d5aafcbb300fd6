"""
Clock event reasons: what holds the clocks down at this moment.

Idle and the power cap are normal (a fully loaded GPU is power capped for hours); heat and the power brake are not.
"""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency, Write

_POWER = Remedy(
    "hands",
    "The platform, not the GPU, asserts the power brake: check power supplies (PSU), PDU and feed, the BMC's event log "
    "and power budget, and the chassis or baseboard power cabling.",
    disturbs="node",
)
_COOLING = Remedy(
    "hands",
    "Check cooling: fans and their BMC profile, airflow and blanking plates, inlet temperature, heat sink or coolant "
    "flow of the chassis. The GPU itself protects itself; lowering clocks only hides it.",
    disturbs="node",
)

_UNLOCK = Remedy(
    "act",
    "Release the lock: nvidia-smi -rgc (nvidia-smi -rmc for memory clocks); look at what set it, mostly a benchmark "
    "that was killed before it cleaned up.",
    role="gpu_clocks",
    disturbs="nothing",
    writes=(Write("gpu", "graphics_clocks", "reset", opt_in=True, indirect=True, irreversible=True),),
)


@relation("power.brake", needs=("gpu.clocks.reason.hw_power_brake",), urgency=Urgency.NOW, remedy=_POWER)
def no_power_brake(given: Given) -> Answer:
    """
    The platform does not assert the power brake.

    What it checks: the clock event reason "HW Power Brake Slowdown".

    Why it matters: an external signal (power supplies, rack power, BMC) cuts the clocks of the GPU by half or more.
    On all GPUs of a board at once it is the platform's power, on a single one its connector or the sensing of it.

    How to fix: find who asserts it: PSU and PDU state, BMC event log and power cap, cabling of the baseboard.

    Applies to: every GPU that reports clock event reasons.

    Source: nvml.h, nvmlClocksEventReasonHwPowerBrakeSlowdown; nvidia-smi -q of an HGX H100 with all eight braked.
    """
    if given["gpu.clocks.reason.hw_power_brake"]:
        return fail("HW power brake slowdown is active", observed=True, expected=False)
    return ok("no power brake", observed=False, expected=False)


@relation("power.brake_scope", needs=(Some("gpu.clocks.reason.hw_power_brake"),), urgency=Urgency.NOW, remedy=_POWER)
def power_brake_scope(given: Given) -> Answer | None:
    """
    When the power brake is active, on how many GPUs.

    What it checks: whether all GPUs of the node are braked together.

    Why it matters: all at once means that the platform's power is in trouble (supply, feed, BMC cap) and swapping a
    GPU would be a waste.

    How to fix: look at the node's power, not at a GPU.

    Applies to: nodes with two or more GPUs.

    Source: nvidia-smi -q of an HGX H100 with all eight braked.
    """
    states = given["gpu.clocks.reason.hw_power_brake"]
    braked = [gpu for gpu, on in states.items() if on]
    if len(states) > 1 and len(braked) == len(states):
        return fail(
            f"HW power brake is active on all {len(states)} GPUs at once: the platform's power", observed=len(braked)
        )
    return None


@relation(
    "thermal.hw_slowdown",
    needs=("gpu.clocks.reason.hw_thermal",),
    urgency=Urgency.NOW,
    remedy=_COOLING,
)
def no_hw_thermal_slowdown(given: Given) -> Answer:
    """
    Hardware does not slow the GPU down for heat.

    What it checks: the clock event reason "HW Thermal Slowdown".

    Why it matters: the GPU or its memory is past the limit at which the hardware cuts clocks on its own, the last step
    before shutdown.

    How to fix: cooling: fans, airflow, inlet temperature, heat sink, coolant.

    Applies to: every GPU that reports clock event reasons.

    Source: nvml.h, nvmlClocksEventReasonHwThermalSlowdown.
    """
    if given["gpu.clocks.reason.hw_thermal"]:
        return fail("HW thermal slowdown is active", observed=True, expected=False)
    return ok("no HW thermal slowdown", observed=False, expected=False)


@relation(
    "thermal.slowdown",
    needs=("gpu.clocks.reason.sw_thermal",),
    uses=("gpu.temperature.tlimit", "gpu.clocks.counter.sw_thermal"),
    remedy=_COOLING,
)
def no_sw_thermal_slowdown(given: Given) -> Answer:
    """
    The driver does not slow the GPU down for heat.

    What it checks: the clock event reason "SW Thermal Slowdown"; the distance to the limit is said beside it.

    Why it matters: the GPU cannot be cooled at its present load and runs below its clocks. One such GPU holds back
    every job that spans it.

    How to fix: cooling: fans, airflow, inlet temperature, heat sink, coolant.

    Applies to: every GPU that reports clock event reasons.

    Source: nvml.h, nvmlClocksEventReasonSwThermalSlowdown; a chassis that cannot cool its H200 NVL under load.
    """
    if not given["gpu.clocks.reason.sw_thermal"]:
        return ok("no SW thermal slowdown", observed=False, expected=False)
    left = given.maybe("gpu.temperature.tlimit")
    text = "SW thermal slowdown is active"
    if left is not None:
        text += f", {left} C left to the limit"
    return warn(text, observed=True, expected=False)


@relation(
    "thermal.memory",
    needs=("gpu.temperature.memory",),
    uses=("gpu.temperature.memory_max", "gpu.temperature.tlimit"),
    remedy=_COOLING,
)
def memory_is_cool_enough(given: Given) -> Answer:
    """
    The HBM is below its highest operating temperature.

    What it checks: the memory's temperature against the limit that the driver itself gives. Hopper and Blackwell give
    none, and none is published: there the temperature is told and not judged. Their distance to the limit (T.Limit)
    is that to the nearest slowdown threshold, see thermal.tlimit.

    Why it matters: hot memory is refreshed more often, makes more errors, and slows the whole GPU down.

    How to fix: cooling: fans, airflow, inlet temperature, heat sink, coolant.

    Applies to: GPUs that report a memory temperature.

    Source: nvidia-smi -q -x of an A100: gpu_temp_max_mem_threshold; nvml.h, nvmlDeviceGetMarginTemperature.
    """
    now, most = given["gpu.temperature.memory"], given.maybe("gpu.temperature.memory_max")
    if most is None:
        left = given.maybe("gpu.temperature.tlimit")
        nearest = "" if left is None else f"; {left} C are left to the GPU's nearest limit"
        return skip(f"memory is at {now} C; the driver gives no limit for it{nearest}", observed=now)
    if now >= most:
        return warn(f"memory is at {now} C, its highest operating temperature is {most} C", observed=now, expected=most)
    return ok(f"memory is at {now} C, below its limit of {most} C", observed=now, expected=most)


@relation("clocks.hw_slowdown", needs=("gpu.clocks.reason.hw_slowdown",), uses=(
    "gpu.clocks.reason.hw_thermal", "gpu.clocks.reason.hw_power_brake",
), urgency=Urgency.NOW, remedy=_POWER)  # fmt: skip
def no_hw_slowdown(given: Given) -> Answer:
    """
    Hardware does not slow the GPU down.

    What it checks: the clock event reason "HW Slowdown", which stands for heat or the power brake.

    Why it matters: clocks are at half or less; the cause stands in the two reasons under it.

    How to fix: see power.brake or thermal.hw_slowdown, whichever is active.

    Applies to: every GPU that reports clock event reasons.

    Source: nvml.h, nvmlClocksEventReasonHwSlowdown.
    """
    if not given["gpu.clocks.reason.hw_slowdown"]:
        return ok("no HW slowdown", observed=False, expected=False)
    if given.maybe("gpu.clocks.reason.hw_thermal"):
        return fail("HW slowdown is active, for heat", observed=True, expected=False, remedy=_COOLING)
    cause = "by the power brake" if given.maybe("gpu.clocks.reason.hw_power_brake") else "cause not said"
    return fail(f"HW slowdown is active, {cause}", observed=True, expected=False)


@relation(
    "clocks.reasons",
    needs=("gpu.clocks.reason.idle",),
    uses=("gpu.clocks.reason.sw_power_cap", "gpu.clocks.reason.applications", "gpu.clocks.sm", "gpu.clocks.max_sm"),
)
def clocks_are_explained(given: Given) -> Answer | None:
    """
    Low clocks have a harmless reason: nothing runs, or the power limit.

    What it checks: the reasons "Idle" and "SW Power Cap" together with the SM clock.

    Why it matters: Hopper idles at 345 MHz and Blackwell at 120 MHz in P0, and a loaded GPU is power capped most of
    the time. Both look like faults to tools that compare the clock with its maximum.

    How to fix: nothing.

    Applies to: every GPU that reports clock event reasons.

    Source: nvidia-smi -q of idle and loaded H100, H200, B200, GB200.
    """
    clock = given.maybe("gpu.clocks.sm")
    at = f" at {clock} MHz" if clock is not None else ""
    if given["gpu.clocks.reason.idle"]:
        return ok(f"idle{at}", observed="idle")
    if given.maybe("gpu.clocks.reason.sw_power_cap"):
        return ok(f"busy{at}, held by the power limit", observed="power cap")
    return None


@relation(
    "clocks.lock",
    needs=("gpu.clocks.reason.idle", "gpu.clocks.sm", "gpu.clocks.max_sm", "evidence.collected"),
    uses=("gpu.processes", "gpu.persistence_mode"),
    urgency=Urgency.MAINTENANCE,
    remedy=_UNLOCK,
)
def no_lock_was_left(given: Given) -> Answer:
    """
    An idle GPU has gone down to its idle clock.

    What it checks: the SM clock of a GPU that says it is idle, as a share of its maximum, against bound clocks.idle.
    NVML can set and reset a lock of the clocks, but nothing can read one; this is how it shows.

    Why it matters: a lock that a benchmark left behind holds every job to its clock: 1200 of 1980 MHz cost 39 %.

    How to fix: look again, then release it. Where the site locks clocks on purpose it sets the bound to 100.

    Applies to: nodes that were read whole and idle, persistence mode on, no process on the GPU. Posted text may be from
    just after a job; without persistence mode a lock goes with its last user; a process keeps clocks up while it waits.

    Source: nvml.h (no getter of locked clocks); nvidia-smi -q of idle H100, H200 (345 MHz), B200, GB200 (120 MHz), and
    of H100 and H200 with a waiting process (1980 MHz).
    """
    if not given["evidence.collected"]:
        return skip("text that was posted may be from the moment after a job")
    if not given["gpu.clocks.reason.idle"]:
        return skip("not idle: its clock tells nothing of a lock")
    clock, most, share = given["gpu.clocks.sm"], given["gpu.clocks.max_sm"], given.bound("clocks.idle")
    if share is None or not most:
        return skip(f"idle at {clock} MHz; no bound is known")
    text = f"idle at {clock} of {most} MHz"
    if 100 * clock > share * most:
        if given.maybe("gpu.processes"):
            return skip(f"{text}: a process on the GPU may keep them up", observed=clock)
        if given.maybe("gpu.persistence_mode") is False:
            return skip(f"{text}: just started, since persistence mode is off; no lock lasts there", observed=clock)
        text += ": its clocks are locked, or a job ended this moment"
        return warn(text, observed=clock, expected=f"at most {share} %")
    return ok(text, observed=clock)
