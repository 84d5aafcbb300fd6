"""Faults of devices as the kernel log reports them: GPUs outside of Xids, NICs, disks, the driver."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.kernel_events import EVENTS, Words, events, tell, tell_all
from hwcheck.checks.log_lines import Record, origin_of
from hwcheck.checks.relation import Answer, Given, fail, relation, skip
from hwcheck.findings import Remedy, Status, Urgency

_DAY = 86400.0

_OFF_BUS = Remedy(
    "act",
    "Drain and power-cycle the node: a GPU reset does not bring a GPU back that is off the bus. "
    "If it returns: check power, riser and seating, then RMA.",
    disturbs="node",
)
_INIT = Remedy(
    "act",
    "Drain, reset the GPU or power-cycle the node. If it still does not start: check its power and seating, "
    "and that driver and GSP firmware belong together; then RMA.",
    disturbs="node",
)
_UNUSABLE = {
    "nvrm.bad_region": (
        "the firmware gave the GPU no valid PCI address space (BAR)",
        Remedy(
            "hands",
            "Drain; in the BIOS enable Above 4G Decoding and Resizable BAR (a large enough MMIO window), update the "
            "BIOS, and take pci=nocrs or pci=noacpi out of the kernel arguments; in a guest enlarge its MMIO window.",
            disturbs="node",
        ),
    ),
    "nvrm.unsupported": (
        "the driver that is installed does not support this GPU",
        Remedy(
            "act",
            "Install a driver branch that supports this GPU (Blackwell: open kernel module, 570 or later), on the "
            "drained node, with Fabric Manager of the same version.",
            disturbs="node",
        ),
    ),
}

_NIC = Remedy(
    "act",
    "Drain; reset the device (mlxfwreset) or reboot; bring its firmware up to date; if it returns, replace the card.",
    disturbs="network",
)
_MODULE = Remedy(
    "hands", "Check cable or transceiver of the port: seating, type, temperature; swap it.", disturbs="network"
)
_DISK = Remedy("hands", "Drain; read SMART or nvme smart-log of the disk; replace it if errors grow.", disturbs="node")
_READ_ONLY = Remedy(
    "act",
    "Drain; check the disk behind it, repair the file system (fsck) and mount it again, or reboot.",
    disturbs="node",
)
_RELOAD = Remedy(
    "act",
    "Drain; stop everything that uses the GPUs (persistenced, DCGM, Fabric Manager, containers), unload nvidia_uvm, "
    "nvidia_drm, nvidia_modeset and nvidia (rmmod) and load them again (modprobe nvidia), else reboot. Hold the driver "
    "packages against unattended upgrades, and bring Fabric Manager to the same version.",
    disturbs="node",
)


@relation("gpu.log_on_bus", needs=(EVENTS,), urgency=Urgency.NOW, remedy=_OFF_BUS)
def gpus_stay_on_the_bus(given: Given) -> Iterator[Answer]:
    """
    No GPU fell off the bus.

    What it checks: the driver's line "GPU has fallen off the bus", which it prints with and without an Xid 79.

    Why it matters: the GPU does not answer on PCI Express any more; every job that touches it fails or hangs.

    How to fix: power-cycle the node; if it returns, the slot's power, riser and seating.

    Applies to: any NVIDIA GPU.

    Source: NVIDIA open kernel modules, os_notify on a lost device; NVIDIA Xid catalogue, code 79.
    """
    words: dict[str, Words] = {"nvrm.off_bus": (Status.FAIL, None, "the GPU has fallen off the bus")}
    yield from tell_all(given, words, subject="gpu")


@relation("gpu.log_initialises", needs=(EVENTS,), urgency=Urgency.NOW, remedy=_INIT)
def driver_initialises_gpus(given: Given) -> Iterator[Answer]:
    """
    The driver can initialise every GPU.

    What it checks: the driver's lines "RmInitAdapter failed!", "None of the NVIDIA devices were initialized", "probe
    of ... failed", "This PCI I/O region assigned to your NVIDIA device is invalid" (the firmware gave the GPU no
    address space) and "is not supported by the ... driver".

    Why it matters: a GPU that is not initialised is missing from nvidia-smi, or answers every query with an error.

    How to fix: reset or power-cycle; then power, seating and firmware.

    Applies to: any NVIDIA GPU.

    Source: NVIDIA open kernel modules, osinit.c.
    """
    words: dict[str, Words] = {
        "nvrm.init_failed": (Status.FAIL, None, "the driver could not initialise the GPU, RmInitAdapter failed"),
        "nvrm.no_device": (Status.FAIL, None, "the driver initialised no GPU at all"),
        "nvrm.probe_failed": (Status.FAIL, None, "the driver could not take the GPU, its probe failed with error"),
    }
    yield from tell_all(given, words, subject="gpu")
    for kind, (what, remedy) in _UNUSABLE.items():
        for record in events(given, kind):
            yield tell(given, record, Status.FAIL, what, subject="gpu", remedy=remedy)


@relation("driver.api_mismatch", needs=("driver.api_mismatch",), urgency=Urgency.NOW, remedy=_RELOAD)
def libraries_match_module(given: Given) -> Answer:
    """
    User-space libraries and kernel module are of one version.

    What it checks: the driver's message "API mismatch", which names both versions.

    Why it matters: nothing that uses the GPUs can start. Mostly packages were upgraded while the old module stayed
    loaded; the GPUs are fine.

    How to fix: reload the module or reboot; hold the packages.

    Applies to: any node with an NVIDIA driver.

    Source: NVIDIA open kernel modules, nv.c (API version check).
    """
    mismatch = given["driver.api_mismatch"]
    module = mismatch["module"] or "a version that the log does not show"
    base = given.origin("driver.api_mismatch")
    return fail(
        f"the libraries are of version {mismatch['client']}, the loaded kernel module of {module}",
        observed=mismatch["client"],
        expected=mismatch["module"] or None,
        origin=base and base._replace(line=mismatch["line"], excerpt=mismatch["text"]),
    )


@relation("rdma.log_fatal", needs=(EVENTS,), urgency=Urgency.NOW, remedy=_NIC)
def nics_report_no_fatal_error(given: Given) -> Iterator[Answer]:
    """
    No RDMA device reports a fatal error.

    What it checks: the mlx5 driver's lines about fatal errors, a bad health syndrome, commands without an answer, and
    devices that it could not take.
    The notice about 27 W of slot power stands in the log of every healthy node and is not judged.

    Why it matters: the firmware of the card stopped or is about to; its ports go down.

    How to fix: reset the card; firmware; replace it.

    Applies to: ConnectX and BlueField devices.

    Source: Linux kernel, drivers/net/ethernet/mellanox/mlx5/core/health.c; boot logs of healthy HGX H100 nodes.
    """
    words: dict[str, Words] = {
        "mlx5.fatal": (Status.FAIL, Urgency.NOW, "fatal error of the RDMA device"),
        "mlx5.probe_failed": (Status.FAIL, Urgency.NOW, "the driver could not take the RDMA device, probe failed with"),
        "mlx5.timeout": (Status.WARN, Urgency.MAINTENANCE, "the RDMA device did not answer a command"),
    }
    yield from tell_all(given, words, subject="nic")
    notices = events(given, "mlx5.power")
    if notices:
        text = f"{len(notices)} RDMA devices note little power in their slot; so they do on healthy nodes: not judged"
        yield skip(text, origin=origin_of(given, EVENTS, notices[0]))


@relation("rdma.log_module", needs=(EVENTS,), urgency=Urgency.MAINTENANCE, remedy=_MODULE)
def modules_report_no_error(given: Given) -> Iterator[Answer]:
    """
    No cable or transceiver reports an error.

    What it checks: the mlx5 driver's lines "Port module event[error]" and "High temperature".

    Why it matters: the port stays down, or loses its link under load.

    How to fix: seat, cool or swap the module.

    Applies to: ConnectX and BlueField devices.

    Source: Linux kernel, drivers/net/ethernet/mellanox/mlx5/core/events.c.
    """
    words: dict[str, Words] = {
        "mlx5.module": (Status.WARN, None, "error of a cable or transceiver"),
        "mlx5.hot": (Status.WARN, None, "the RDMA device is too hot"),
    }
    yield from tell_all(given, words, subject="nic")


@relation("rdma.log_flaps", needs=(EVENTS,), urgency=Urgency.MAINTENANCE, remedy=_MODULE)
def links_do_not_flap(given: Given) -> Iterator[Answer]:
    """
    No link was lost again and again.

    What it checks: whether one device lost its link several times within 24 hours, by the dated lines of the log; and
    whether a link that was up is down at the end of the log. A link that was never up is of a port without a cable.

    Why it matters: a flapping link stalls collectives of the whole job each time.

    How to fix: cable, transceiver, switch port.

    Applies to: ConnectX and BlueField devices whose link losses the kernel logs with a time.

    Source: bound rdma.flaps_per_day.
    """
    limit = given.bound("rdma.flaps_per_day")
    ups = {record["device"]: record for record in events(given, "mlx5.link_up")}
    for record in events(given, "mlx5.link_down"):
        most, up = _most_in_a_day(record), ups.get(record["device"])
        lost = up is not None and up["line"] < record["last_line"] and up["last_line"] < record["last_line"]
        if limit is not None and most >= limit:
            yield tell(given, record, Status.WARN, f"the link was lost {most} times within 24 hours", subject="nic")
        elif lost and not record["stale"]:
            what = "the link was up, went down and did not come back within the log"
            yield tell(given, record, Status.WARN, what, subject="nic")
        else:
            yield tell(given, record, Status.SKIP, "the link was reported down; too little to judge", subject="nic")


def _most_in_a_day(record: Record) -> int:
    times = record["times"]
    return max((sum(1 for other in times if 0 <= other - time <= _DAY) for time in times), default=0)


@relation("storage.read_only", needs=(EVENTS,), urgency=Urgency.NOW, remedy=_READ_ONLY)
def file_systems_are_writable(given: Given) -> Iterator[Answer]:
    """
    No file system was shut down or made read-only.

    What it checks: lines of ext4, XFS and btrfs that say so.

    Why it matters: the kernel found the file system damaged; jobs and services of the node fail at their next write.

    How to fix: the disk first, then the file system.

    Applies to: any Linux node.

    Source: Linux kernel, fs/ext4, fs/xfs, fs/btrfs.
    """
    words: dict[str, Words] = {
        "fs.readonly": (Status.FAIL, None, "the file system was shut down or made read-only"),
    }
    yield from tell_all(given, words)


@relation("storage.log_errors", needs=(EVENTS,), urgency=Urgency.MAINTENANCE, remedy=_DISK)
def disks_report_no_error(given: Given) -> Iterator[Answer]:
    """
    No disk and no file server reports an error.

    What it checks: input/output errors of disks (not of optical, floppy and loop devices), damage that a file system
    found in itself, NVMe controllers that went away or did not answer, NFS servers that do not respond.

    Why it matters: checkpoints and data sets are lost or slow; blocked tasks follow.

    How to fix: read the disk's own error log; replace it.

    Applies to: any Linux node.

    Source: Linux kernel, block layer and drivers/nvme.
    """
    words: dict[str, Words] = {
        "disk.io_error": (Status.FAIL, Urgency.MAINTENANCE, "input/output error"),
        "fs.damaged": (Status.FAIL, Urgency.MAINTENANCE, "the file system is damaged; check it (fsck) and its disk"),
        "nvme.down": (Status.FAIL, Urgency.NOW, "the NVMe controller went away"),
        "nvme.timeout": (Status.WARN, Urgency.MAINTENANCE, "the NVMe controller did not answer in time"),
        "nfs.silent": (Status.WARN, Urgency.MAINTENANCE, "the file server did not respond"),
    }
    yield from tell_all(given, words)
