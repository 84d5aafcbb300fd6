"""Mounts, space, drives and arrays."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import Facet
from hwcheck.findings import Remedy, Urgency

_SYSTEM = ("/", "/tmp", "/run")  # noqa: S108 - names to compare with
_WRITABLE = Remedy(
    "act",
    "Drain; read the kernel log for the error of the disk behind it, repair the file system (fsck) and mount it again, "
    "or reboot; replace a disk whose SMART log shows errors.",
    disturbs="node",
)
_MOUNT = Remedy("act", "Look at systemctl status of the mount unit and at the disk behind it; then mount -a.")
_SPACE = Remedy("act", "Delete or rotate what fills it: old logs, core files, container images, package caches.")
_DRIVE = Remedy("hands", "Drain; copy what is needed; replace the drive.", disturbs="node")
_ARRAY = Remedy("hands", "Replace the failed member and add it again: mdadm --add; watch /proc/mdstat.")
_WITHOUT_SPARE = ("raid0", "linear", "multipath")
_NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "wekafs", "cifs")


@relation(
    "storage.mounts",
    needs=("storage.mount.read_only",),
    uses=("storage.mount.forced", "storage.mount.options", "storage.mount.type"),
    urgency=Urgency.NOW,
    remedy=_WRITABLE,
)
def mounts_are_writable(given: Given) -> Answer | None:
    """
    No file system was turned read-only.

    What it checks: a mount for writing whose file system is read-only; one that /etc/fstab wants writable; one with
    errors=remount-ro, which makes sense on writable mounts only.

    Why it matters: the kernel does this after an error of the disk. Logs, job scripts and state of the scheduler can
    not be written; jobs start and die.

    How to fix: repair or replace what is behind it.

    Applies to: file systems on disks. One that is mounted read-only by intent is no fault.

    Source: Linux ext4, xfs and btrfs documentation; proc(5).
    """
    options, forced = given.maybe("storage.mount.options") or (), given.maybe("storage.mount.forced")
    if given.maybe("storage.mount.type") in _NETWORK:
        return None
    if not given["storage.mount.read_only"]:
        return ok("writable", observed=False)
    if forced:
        return fail("the kernel turned the file system read-only after an error", observed=True, expected=False)
    if given.maybe("storage.mount.read_only", Facet.NEXT_BOOT) is False:
        return fail("read-only, but /etc/fstab wants it writable", observed=True, expected=False)
    if "errors=remount-ro" in options and forced is None:
        return fail("read-only: the kernel turned it after an error (errors=remount-ro)", observed=True, expected=False)
    return skip("mounted read-only; nothing says that it should be writable", observed=True)


@relation(
    "storage.fstab",
    scope="mount",
    uses=("storage.root", "storage.mount.needed", "storage.mount.device"),
    remedy=_MOUNT,
)
def wanted_mounts_are_there(given: Given) -> Answer | None:
    """
    What /etc/fstab demands is mounted.

    What it checks: each entry without noauto, nofail or automount against the mounts.

    Why it matters: jobs then write into the directory below, on the root disk, until that is full.

    How to fix: see why the mount failed.

    Applies to: machines that boot from a disk; in containers and live images /etc/fstab means nothing.

    Source: fstab(5), systemd.mount(5).
    """
    root = given.maybe("storage.root")
    if not given.maybe("storage.mount.needed", Facet.NEXT_BOOT) or root in (None, "overlay", "tmpfs", "squashfs"):
        return None
    if given.maybe("storage.mount.device") is None:
        return warn("not mounted, but /etc/fstab demands it", observed=False, expected=True)
    return ok("mounted, as /etc/fstab demands")


@relation("storage.space", any_of=("storage.space.used",), uses=("storage.space.size",), remedy=_SPACE)
def system_has_space(given: Given) -> Answer:
    """
    File systems of the system have space left.

    What it checks: the share in use, as df says it, of the root, /var and what is below it, /tmp and /run.

    Why it matters: with a full root or /var the scheduler cannot keep state, logs stop, and kubelet evicts pods.

    How to fix: find what fills it.

    Applies to: system mounts. How full data mounts may be is their owner's decision; they are reported.

    Source: see the bounds.
    """
    return _filled(given, given["storage.space.used"], "space")


@relation("storage.inodes", any_of=("storage.inodes.used",), remedy=_SPACE)
def system_has_inodes(given: Given) -> Answer:
    """
    File systems of the system have inodes left.

    What it checks: the share in use, as df -i says it, of the root, /var and what is below it, /tmp and /run.

    Why it matters: without inodes no file can be made, however much space is left: "No space left on device".

    How to fix: find the directory with millions of small files.

    Applies to: system mounts on file systems with a fixed number of inodes.

    Source: see the bounds.
    """
    return _filled(given, given["storage.inodes.used"], "inodes")


def _filled(given: Given, used: int, what: str) -> Answer:
    much, most = given.bound(f"storage.{what}_used"), given.bound("storage.full")
    where = given.subject.id
    text = f"{used} % of its {what} in use"
    if where not in _SYSTEM and not where.startswith("/var"):
        return skip(f"{text}; how full it may be is its owner's decision", observed=used)
    if much is None or most is None:
        return skip(f"{text}; no bound is known", observed=used)
    if used >= most:
        return fail(text, observed=used, expected=f"below {most} %", urgency=Urgency.JOB_END)
    if used > much:
        return warn(text, observed=used, expected=f"at most {much} %")
    return ok(text, observed=used)


_BITS = (
    (1, "spare blocks are below the threshold"),
    (4, "its reliability is degraded by media or internal errors"),
    (8, "it has become read-only"),
    (16, "its power-loss backup has failed"),
    (32, "its persistent memory has become read-only or unreliable"),
)
_TOO_WARM = 2


@relation(
    "storage.smart",
    needs=("storage.smart.warning",),
    uses=(
        "storage.smart.temperature", "storage.smart.spare", "storage.smart.used", "storage.smart.media_errors",
        "storage.nvme.model",
    ),
    compares=("storage.smart.media_errors",),
    urgency=Urgency.JOB_END,
    remedy=_DRIVE,
)  # fmt: skip
def drive_is_healthy(given: Given) -> Answer:
    """
    The drive raises no warning of its own.

    What it checks: the bits of Critical Warning in the health log; media errors that grew since the last look; the
    share of the rated life that is used up.

    Why it matters: drives with these bits lose data or stop soon.

    How to fix: replace the drive; a warm one needs air.

    Applies to: NVMe drives whose health log was read, which takes root.

    Source: NVM Express Base Specification, SMART / Health Information log page.
    """
    bits = given["storage.smart.warning"]
    model = given.maybe("storage.nvme.model") or "drive"
    said = [text for bit, text in _BITS if bits & bit]
    if said:
        return fail(f"{model}: {'; '.join(said)}", observed=bits, expected=0)
    if bits & _TOO_WARM:
        warm = given.maybe("storage.smart.temperature")
        return warn(f"{model}: too warm or too cold ({warm} C)", observed=bits, expected=0)
    errors, before = given.maybe("storage.smart.media_errors"), given.previous("storage.smart.media_errors")
    if errors is not None and before is not None and errors > before:
        text = f"{model}: {errors - before} new media errors, {errors} in all"
        return warn(text, observed=errors, expected=before, because="storage.smart.media_errors")
    used = given.maybe("storage.smart.used")
    if used is not None and used > 100:
        text = f"{model}: {used} % of the rated life is used"
        return warn(text, observed=used, expected=100, urgency=Urgency.NOTE)
    return ok(f"{model}: no warning, {used if used is not None else '?'} % of the rated life used", observed=bits)


@relation(
    "storage.raid",
    needs=("storage.md.state",),
    uses=("storage.md.level", "storage.md.members", "storage.md.working", "storage.md.failed", "storage.md.activity"),
    urgency=Urgency.JOB_END,
    remedy=_ARRAY,
)
def array_is_whole(given: Given) -> Answer:
    """
    A software RAID has all its members.

    What it checks: the array is active, no member is marked failed, as many work as it should have.

    Why it matters: an array without spare members loses everything with the next disk.

    How to fix: replace the member.

    Applies to: Linux software RAID. A check or resync that runs is no fault; raid0 has nothing to lose but itself.

    Source: md(4).
    """
    state, failed = given["storage.md.state"], given.maybe("storage.md.failed") or ()
    members, working = given.maybe("storage.md.members"), given.maybe("storage.md.working")
    level, activity = given.maybe("storage.md.level") or "array", given.maybe("storage.md.activity")
    doing = f", {activity}" if activity else ""
    if state == "inactive":
        return fail("the array is not active", observed=state, expected="active")
    if failed:
        return fail(f"{level}: member {', '.join(failed[:6])} has failed{doing}", observed=len(failed), expected=0)
    if members is not None and working is not None and working < members:
        return fail(f"{level}: {working} of {members} members work{doing}", observed=working, expected=members)
    if members is None and level not in _WITHOUT_SPARE:
        return unknown(f"{level}: how many members work is not told", observed=state)
    return ok(f"{level} is whole{doing}", observed=state)
