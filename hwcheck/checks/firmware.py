"""Firmware of NICs and board components: what runs is what was flashed, and equal parts have equal versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hwcheck.checks.relation import Answer, Every, Given, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_RESET = Remedy(
    "act",
    "Drain the node and reset the NIC's firmware (mlxfwreset -d DEVICE reset), or reboot; some updates need a power "
    "cycle: mlxfwreset query tells.",
    disturbs="network",
)
_UPDATE = Remedy(
    "act",
    "Bring the parts that differ to the version of the others in the next maintenance window; check the PSID first: "
    "boards of another PSID have firmware of their own.",
    disturbs="node",
)
_PACKAGE = Remedy(
    "act",
    "Update the component from the package in the next maintenance window (nvfwupd update_fw), then power-cycle.",
    disturbs="node",
)


@relation(
    "firmware.nic_running",
    needs=("rdma.device.fw", "rdma.device.fw_flashed"),
    urgency=Urgency.MAINTENANCE,
    remedy=_RESET,
)
def running_is_flashed(given: Given) -> Answer:
    """
    A NIC runs the firmware that is in its flash.

    What it checks: the running version against the flashed one.
    Why it matters: after an update the old firmware runs on until a reset; the tool's Status says Up to date all the
    same, for it looks at the flash.
    How to fix: mlxfwreset, or a reboot.
    Applies to: NICs whose query prints both versions.
    Source: public mlxup output of a ConnectX-7 (28.47.1026 flashed, 28.46.3048 running, Status: Up to date).
    """
    running, flashed = given["rdma.device.fw"], given["rdma.device.fw_flashed"]
    if running == flashed:
        return ok(f"firmware {running} runs and is flashed", observed=running, expected=flashed)
    text = f"firmware {running} runs, but {flashed} is flashed: a reset is outstanding"
    return warn(text, observed=running, expected=flashed)


@relation(
    "firmware.nic_uniform",
    needs=("rdma.device.fw", "rdma.device.model", "rdma.device.peers"),
    urgency=Urgency.MAINTENANCE,
    remedy=_UPDATE,
)
def nics_of_one_version(given: Given) -> Answer:
    """
    NICs of one model run one firmware version.

    What it checks: the versions of all devices of one type (and PSID, where the evidence has it). Types have firmware
    branches of their own: 28.x is ConnectX-7, 32.x BlueField-3.
    Why it matters: rails with differing firmware differ in congestion control and bugs; one straggler sets the pace.
    How to fix: update the ones that differ; check the PSID first.
    Applies to: two or more devices of one model.
    Source: public ibstat and sysfs captures of healthy nodes: one version a type.
    """
    model = given["rdma.device.model"]
    return _like_peers(given["rdma.device.fw"], given["rdma.device.peers"]["models"].get(model, {}), model)


def _like_peers(version: str, peers: Mapping[str, int], kind: str) -> Answer:
    """Judge a version by those of all parts of its kind, its own among them: version → number of parts."""
    total = sum(peers.values())
    if total < 2:
        return skip(f"no second {kind} to compare with", observed=version)
    counts = Counter(peers).most_common(2)
    usual, number = counts[0]
    if len(counts) == 1:
        return ok(f"all {number} {kind} have firmware {version}", observed=version, expected=usual)
    if version == usual and number > counts[1][1]:
        return ok(f"firmware {version}, as {number} of {total} {kind}", observed=version, expected=usual)
    others = ", ".join(sorted(set(peers) - {version}))
    text = f"firmware {version}, while other {kind} of the node have {others}"
    return warn(text, observed=version, expected=usual if number > counts[1][1] else None)


@relation(
    "firmware.component_uniform",
    needs=("firmware.component.version", Every("firmware.component.build")),
    urgency=Urgency.MAINTENANCE,
    remedy=_UPDATE,
)
def components_of_one_version(given: Given) -> Answer:
    """
    Components of one kind have one firmware version.

    What it checks: the versions of components whose names differ in their number only (GPU_SXM_1 to GPU_SXM_8).
    Why it matters: a GPU or switch with another version than its peers was exchanged or missed in an update.
    How to fix: update the ones that differ from one package.
    Applies to: nvfwupd show_version; kinds with two or more components. Kinds under bound
    firmware.numbered_versions carry their own number in the version and are not compared.
    Source: public nvfwupd output of a DGX H100.
    """
    builds = given["firmware.component.build"]
    own = builds.get(given.subject)
    if own is None:
        return skip("the component has no version to compare")
    if own["kind"] in (given.bound("firmware.numbered_versions") or ()):
        return skip(f"the version of {own['kind']} carries the number of the part", observed=own["version"])
    peers = Counter(build["version"] for build in builds.values() if build["kind"] == own["kind"])
    return _like_peers(own["version"], peers, own["kind"])


@relation(
    "firmware.component_package",
    needs=("firmware.component.version", "firmware.component.package"),
    uses=("firmware.component.current",),
    urgency=Urgency.MAINTENANCE,
    remedy=_PACKAGE,
)
def component_has_package_version(given: Given) -> Answer:
    """
    A component has the version of the update package.

    What it checks: version on the machine against version in the package. The tool's Up-To-Date column is not read: it
    says No where the package has no image, and where both versions are equal.
    Why it matters: board firmware is released and tested as one package.
    How to fix: update the component from the package.
    Applies to: components that the package has an image for.
    Source: public nvfwupd output of a DGX H100 (Up-To-Date No with equal versions).
    """
    version, package = given["firmware.component.version"], given["firmware.component.package"]
    if version == package:
        return ok(f"version {version} is the package's", observed=version, expected=package)
    return warn(f"version is {version}, the package has {package}", observed=version, expected=package)
