"""Faults of the kernel's settings: parameters, arguments, what the next boot brings."""

from __future__ import annotations

from hwcheck.lab.faults import fault
from hwcheck.lab.machine import Machine

_BALANCING = "kernel.numa_balancing"


@fault("sysctl.numa_balancing", "sysctl.persistence", fix="write", how="sysctl", figures=("launch", "copy.small"))
def numa_balancing(machine: Machine, part: int) -> None:
    """Somebody switched NUMA balancing on until the next reboot."""
    del part
    machine.kernel.sysctls[_BALANCING] = "1"


@fault("sysctl.overridden", "sysctl.numa_balancing", stays=True, figures=("launch", "copy.small"))
def sysctl_overridden(machine: Machine, part: int) -> None:
    """A drop-in of another package switches NUMA balancing on again."""
    del part
    machine.kernel.drop_ins["/etc/sysctl.d/99-vendor.conf"] = f"{_BALANCING} = 1\n"
    machine.kernel.sysctls[_BALANCING] = "1"


@fault("kernel.next_arguments", "kernel.loader_stale", stays=True, fix="write", how="kernel_argument")
def arguments_lost(machine: Machine, part: int) -> None:
    """The boot loader's entry has lost the arguments of this boot."""
    del part
    words = machine.kernel.next_arguments.split()
    machine.kernel.next_arguments = " ".join(
        word for word in words if "iommu" not in word and "init_on_alloc" not in word
    )


@fault("kernel.crash", "kernel.taint", fix="act", how="reboot")
def kernel_oops(machine: Machine, part: int) -> None:
    """The kernel had an oops in a driver."""
    del part
    machine.kernel.taint |= 1 << 7
    machine.say("BUG: unable to handle page fault for address: ffffb0a1c0de0000")
    machine.say("Oops: 0002 [#1] PREEMPT SMP NOPTI")


@fault("kernel.stalls", fix="act", how="reboot")
def soft_lockup(machine: Machine, part: int) -> None:
    """A CPU hung in the kernel for 26 seconds."""
    machine.kernel.taint |= 1 << 14
    machine.say(f"watchdog: BUG: soft lockup - CPU#{part} stuck for 26s! [kworker/{part}:1:4711]")


@fault("kernel.nouveau", also=("driver",), fix="act", how="reboot")
def nouveau_loaded(machine: Machine, part: int) -> None:
    """The driver nouveau is loaded beside NVIDIA's."""
    del part
    machine.kernel.modules["nouveau"] = ""
