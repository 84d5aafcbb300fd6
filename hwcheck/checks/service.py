"""systemd units that a GPU node needs."""

from __future__ import annotations

from dataclasses import replace

from hwcheck.checks.pcie import in_guest
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.findings import Act, Remedy, Urgency, Write

_MANAGER = "nvidia-fabricmanager.service"
_NEEDED = (
    "nvidia-persistenced", "nvidia-imex", "slurmd", "munge", "chronyd", "chrony", "ptp4l", "phc2sys", "nvidia-dcgm",
    "openibd", "containerd", "nvidia-nvlsm", "nvlsm",
)  # fmt: skip
_HOST = Remedy(
    "act",
    "Not curable in this guest: ask the operator or provider of the host to run the fabric manager on the hypervisor "
    "(shared NVSwitch, partition activated) or to pass the NVSwitches through; in a cloud give the instance back.",
    disturbs="board",
)


_START = Remedy(
    "act",
    "Read journalctl -u nvidia-fabricmanager for the reason; when versions differ, install the fabric manager "
    "version that matches the driver; then systemctl enable --now nvidia-fabricmanager and check that Fabric "
    "State is Completed.",
    disturbs="board",
    writes=(Write("unit", _MANAGER, "running"),),
)
_VERSIONS = replace(_START, writes=(), by_hand="Another version has to be installed first.")
_STATE = Remedy(
    "act",
    "Read journalctl -u UNIT for the reason and start it again.",
    disturbs="nothing",
    worked_out="start of a unit that a GPU node needs, except IMEX",
)


@relation(
    "service.fabricmanager",
    needs=("service.active",),
    uses=(
        "service.sub", "service.loaded", "driver.fabric_manager.wanted", "driver.fabric_manager.version",
        "driver.module_version", "driver.module_installed", "driver.version", "driver.package_version",
        "driver.fabric_manager.idle",
    ),
    urgency=Urgency.NOW,
    remedy=_START,
)  # fmt: skip
def fabric_manager_runs(given: Given) -> Answer | None:
    """
    The fabric manager runs.

    What it checks: the state of the unit nvidia-fabricmanager.

    Why it matters: without it the GPUs of an NVSwitch board are not joined, and CUDA fails with error 802.

    How to fix: its journal tells why it stopped; most often another version than the driver's.

    Applies to: HGX and DGX boards with NVSwitch. PCIe cards, guests without NVSwitches and GB200 trays need none.

    Source: NVIDIA fabric manager user guide.
    """
    if given.subject.id != _MANAGER:
        return None
    state, how = given["service.active"], given.maybe("service.sub")
    words = f"nvidia-fabricmanager is {state}{f' ({how})' if how else ''}"
    if given.maybe("driver.fabric_manager.idle"):
        return skip(f"{words}: it finds no NVSwitch to manage")
    if state == "active":
        return ok(words, observed=state)
    if state == "failed":
        why = _why(given)
        return fail(f"{words}{why}", observed=state, expected="active", remedy=_VERSIONS if why else _START)
    if given.platform.startswith("hgx-"):
        return fail(words, observed=state, expected="active")
    if state == "activating":
        return warn(words, observed=state, expected="active")
    return skip(f"{words}; whether this machine needs it is not known")


def _why(given: Given) -> str:
    manager = given.maybe("driver.fabric_manager.version")
    sources = ("driver.fabric_manager.wanted", "driver.module_version", "driver.version", "driver.module_installed")
    driver = next((version for version in map(given.maybe, sources) if version), None)
    return f": it is {manager}, the driver {driver}" if manager and driver and manager != driver else ""


@relation(
    "service.nvswitch",
    needs=("driver.fabric_manager.idle",),
    uses=("platform.virtualization", "platform.lspci_names"),
    urgency=Urgency.NOW,
)
def nvswitch_visible(given: Given) -> Answer:
    """
    The fabric manager finds the NVSwitches.

    What it checks: its message that there is nothing to manage.

    Why it matters: an SXM GPU waits for a fabric registration that only a fabric manager with the switches can give.

    How to fix: in a guest the host has to do it; on bare metal the switches are missing on the PCIe bus.

    Applies to: machines with SXM GPUs. On PCIe cards the message is normal. Starting the service again cures nothing.

    Source: NVIDIA fabric manager user guide, virtualisation models.
    """
    guest = in_guest(given)
    names = " ".join(given.maybe("platform.lspci_names") or ())
    sxm = given.platform.startswith("hgx-") or "SXM" in names
    if given.platform in ("h100-pcie", "h100-nvl", "h200-nvl", "gh200", "gh200-144g"):
        return skip("this machine has no NVSwitch, so the fabric manager has nothing to do")
    if guest and sxm:
        text = f"the fabric manager finds no NVSwitch in this virtual machine ({guest})"
        return fail(text, observed="no NVSwitch", remedy=_HOST)
    if sxm:
        hands = Remedy(
            "hands",
            "Look for the NVSwitches with lspci -d 10de: on the host (class 0680); missing ones need a power cycle of "
            "the board or service.",
            disturbs="node",
        )
        return fail("the fabric manager finds no NVSwitch on this SXM machine", observed="no NVSwitch", remedy=hands)
    return unknown("the fabric manager finds no NVSwitch; whether this machine has any is not known", remedy=_HOST)


@relation(
    "service.state",
    needs=("service.active",),
    uses=("service.sub",),
    remedy=_STATE,
)
def unit_runs(given: Given) -> Answer | None:
    """
    Services that were asked about run.

    What it checks: the state of each unit in the evidence, except the fabric manager, which has a check of its own.

    Why it matters: a failed slurmd, chronyd or persistence daemon takes the node out of work, or makes it drift.

    How to fix: the journal of the unit.

    Applies to: every unit whose state was printed. Inactive is no fault: a scheduler starts IMEX per job, and time has
    several daemons of which one runs.

    Source: systemd.
    """
    unit, state = given.subject.id, given["service.active"]
    if unit == _MANAGER:
        return None
    name = unit.removesuffix(".service")
    how = given.maybe("service.sub")
    words = f"{name} is {state}{f' ({how})' if how else ''}"
    if state == "active":
        return ok(words, observed=state)
    if state == "failed":
        again = name in _NEEDED and name != "nvidia-imex"  # one node's IMEX is a matter of its whole rack
        remedy = replace(_STATE, acts=(Act("start", unit),)) if again else _STATE
        return (fail if name in _NEEDED else warn)(words, observed=state, expected="active", remedy=remedy)
    return skip(words, observed=state)


@relation(
    "service.enabled",
    needs=("service.active", "service.enabled"),
    remedy=Remedy(
        "act",
        "Enable the unit, so that it starts at boot: systemctl enable UNIT.",
        disturbs="nothing",
        writes=(Write("unit", "{subject}", "enabled"),),
    ),
)
def unit_starts_at_boot(given: Given) -> Answer | None:
    """
    Units that the GPUs depend on start at boot.

    What it checks: that the fabric manager and the persistence daemon are enabled where they run.

    Why it matters: packages install the fabric manager disabled; one that was only started by hand is missing after the
    next reboot, and CUDA fails with error 802.

    How to fix: systemctl enable.

    Applies to: these two units, where they are active. A static unit is started by others, and is right.

    Source: NVIDIA fabric manager user guide; systemd.
    """
    if given.subject.id not in (_MANAGER, "nvidia-persistenced.service") or given["service.active"] != "active":
        return None
    name, state = given.subject.id.removesuffix(".service"), given["service.enabled"]
    if state == "disabled":
        return warn(f"{name} runs but is disabled: it does not start at boot", observed=state, expected="enabled")
    return ok(f"{name} starts at boot ({state})", observed=state)
