"""Faults of the host: CPU, time, services, limits, storage."""

from __future__ import annotations

from hwcheck.lab.faults import X86, fault
from hwcheck.lab.faults_fabric import stop
from hwcheck.lab.machine import Machine

_LOW = 65536


@fault("cpu.governor", on=X86, stays=True, fix="write", how="attribute", figures=("launch", "copy.small"))
def governor_powersave(machine: Machine, part: int) -> None:
    """The CPU frequency governor is powersave, and the preference balanced."""
    del part
    machine.processor.governor, machine.processor.preference = "powersave", "balance_performance"


@fault("cpu", part=0, fix="act", how="reboot")
def cpus_offline(machine: Machine, part: int) -> None:
    """Four CPUs are offline."""
    machine.processor.offline = tuple(range(4 + 4 * part, 8 + 4 * part))


@fault("memory", "cpu", "kernel.machine_check", part=0)
def machine_check(machine: Machine, part: int) -> None:
    """A CPU reports an uncorrected machine check."""
    machine.say(f"mce: [Hardware Error]: CPU {part}: Machine Check: 0 Bank 7: fe00000000800400")


@fault("time.chrony", stays=True, fix="write", how="chrony")
def chrony_unsynchronised(machine: Machine, part: int) -> None:
    """Chrony runs but has never synchronised: the only server that it knows does not exist."""
    del part
    machine.clock.leap, machine.clock.offset = "Not synchronised", 0.0
    machine.clock.servers = ("192.0.2.123",)


@fault("time.chrony", fix="act", how="restart chrony")
def clock_off(machine: Machine, part: int) -> None:
    """The clock is 20 ms off."""
    del part
    machine.clock.offset = 0.020


@fault("service.state", "time.chrony", fix="act", how="start chrony")
def chrony_dead(machine: Machine, part: int) -> None:
    """Chrony is dead."""
    del part
    machine.clock.running = False
    stop(machine, "chronyd" if machine.os == "rhel" else "chrony", "failed")


@fault("time.ptp_offset", deep=True)
def ptp_far(machine: Machine, part: int) -> None:
    """The PTP clock is 54 microseconds from its master."""
    del part
    machine.clock.ptp_offset = 54_310


@fault("service.state", "service", fix="act", how="start slurmd")
def scheduler_down(machine: Machine, part: int) -> None:
    """The scheduler's daemon failed."""
    del part
    stop(machine, "slurmd", "failed")


@fault("limits.service_memlock", stays=True, fix="write", how="unit_property")
def memlock_64k(machine: Machine, part: int) -> None:
    """Jobs may lock 64 kB of memory: a drop-in of the scheduler's unit says so."""
    del part
    machine.services["slurmd"].memlock = _LOW
    machine.unit_drop_ins["/etc/systemd/system/slurmd.service.d/50-low.conf"] = "[Service]\nLimitMEMLOCK=64K\n"


@fault("limits.login_memlock", stays=True, fix="write", how="limits")
def login_memlock(machine: Machine, part: int) -> None:
    """Users may lock 64 kB of memory when they log in."""
    del part
    machine.limits["/etc/security/limits.d/30-old.conf"] = "* - memlock 64\n"


@fault("storage.mounts", also=("storage.read_only",), fix="act", how="reboot")
def root_read_only(machine: Machine, part: int) -> None:
    """The kernel turned the root file system read-only after an error."""
    del part
    machine.mounts[0].super_options = "ro,errors=remount-ro"
    machine.say("EXT4-fs (nvme0n1p2): Remounting filesystem read-only")


@fault("storage.fstab", stays=True)
def mount_missing(machine: Machine, part: int) -> None:
    """A file system that /etc/fstab demands is not mounted."""
    del part
    machine.files["/etc/fstab"] = (
        "/dev/nvme0n1p2 / ext4 defaults 0 1\n/dev/nvme0n1p1 /boot/efi vfat defaults 0 2\n"
        "/dev/nvme0n1p3 /scratch xfs defaults 0 2\n"
        "/dev/md0 /data xfs defaults 0 2\n"
    )


@fault("storage", part=0)
def nvme_dead(machine: Machine, part: int) -> None:
    """An NVMe drive does not answer any more."""
    machine.drives[part].state = "dead"
