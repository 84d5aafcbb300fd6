"""Drives, arrays, mounts and space."""

from hwcheck.facts.registry import declare

declare(
    "disk",
    """
    storage.nvme.model      | str   |   | model
    storage.nvme.serial     | str   |   | serial number
    storage.nvme.firmware   | str   |   | firmware revision
    storage.nvme.state      | str   |   | state of the controller: live, new, resetting, connecting, deleting, dead
    storage.nvme.transport  | str   |   | pcie, tcp, rdma, fc
    storage.nvme.address    | str   |   | PCI address, or that of the target
    storage.smart.warning   | int   |   | critical warning bits: 1 spare, 2 temperature, 4 reliability, 8 read only, 16 backup, 32 persistent memory
    storage.smart.temperature | int | C | composite temperature
    storage.smart.spare     | int   | % | spare blocks left
    storage.smart.spare_threshold | int | % | spare blocks below which the drive warns
    storage.smart.used      | int   | % | rated life used; may pass 100
    storage.smart.media_errors | int | | unrecovered data errors since manufacture
    storage.md.level        | str   |   | raid level; empty for an array that is not active
    storage.md.state        | str   |   | active, inactive, active (read-only), active (auto-read-only)
    storage.md.members      | int   |   | members the array should have
    storage.md.working      | int   |   | members that work
    storage.md.failed       | tuple |   | names of members marked failed
    storage.md.activity     | str   |   | recovery, resync, check or reshape with its progress; empty for none
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare("node", "storage.root | str | | type of the root file system; overlay in containers and live images")
declare(
    "mount",
    """
    storage.mount.device    | str   |     | device or remote path
    storage.mount.type      | str   |     | file system type
    storage.mount.options   | tuple |     | options of the file system itself
    storage.mount.read_only | bool  |     | mounted read-only; next boot: as /etc/fstab says
    storage.mount.forced    | bool  |     | mounted for writing, but the kernel turned the file system read-only
    storage.mount.needed    | bool  |     | next boot: /etc/fstab demands it, boot waits for it
    storage.space.size      | int   | MiB | size of the file system
    storage.space.used      | int   | %   | space used, as df says
    storage.inodes.used     | int   | %   | inodes used, as df -i says
    """,
)
