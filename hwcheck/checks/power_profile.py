"""Workload power profiles of Blackwell GPUs."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, ok, relation, skip


@relation("power.profile", needs=("gpu.power_profile.requested",), uses=("gpu.power_profile.enforced",))
def power_profiles_are_said(given: Given) -> Answer:
    """
    Workload power profiles that are asked for are said.

    What it checks: nothing by itself: it names the profiles that are requested, and those in force where they differ.

    Why it matters: a profile left over from a job (MAX_Q, say) slows the next one silently: neither clocks nor power
    limit show a setting.

    How to fix: where nobody wants the profile, clear it: nvidia-smi power-profiles, or the driver's reload.

    Applies to: Blackwell; older GPUs have none. Whether a profile is wanted the site knows, so this is never a fault.

    Source: NVML, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles.
    """
    asked = given["gpu.power_profile.requested"]
    if not asked:
        return ok("no workload power profile is requested", observed="none")
    enforced = given.maybe("gpu.power_profile.enforced")
    differs = f", in force: {', '.join(enforced) or 'none'}" if enforced is not None and enforced != asked else ""
    return skip(f"workload power profile {', '.join(asked)} is requested{differs}", observed=", ".join(asked))
