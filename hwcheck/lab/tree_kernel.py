"""Kernel, modules, boot loader, services and packages of a lab node, as files of /proc, /sys, /etc, /boot and /lib."""

from __future__ import annotations

import struct

from hwcheck.lab.actor.power import TRIGGER
from hwcheck.lab.actor.process import LIMITS
from hwcheck.lab.machine import Machine
from hwcheck.lab.render import Link, Planter

_SIZES = {"nvidia": 14_000_000, "mlx5_core": 2_600_000}
_UNLIMITED = 2**64 - 1
PARAMETERS = 'EnableStreamMemOPs: 1\nGrdmaPciTopoCheckOverride: 0\nEnableGpuFirmware: 18\nRegistryDwords: ""\n'
"""Of NVIDIA's module, as the lab's nodes load it."""


def plant(machine: Machine, files: Planter) -> None:
    """Add all of it."""
    for part in (_now, _modules, _module_files, _next, _services, _packages, _imex):
        part(machine, files)
    for path, text in machine.files.items():
        files.put(path, text)


def _now(machine: Machine, files: Planter) -> None:
    kernel = machine.kernel
    files.put("/proc/cmdline", kernel.arguments)
    for key, value in kernel.sysctls.items():
        files.put("/proc/sys/" + key.replace(".", "/"), value)
    for name in ("all", "default", "lo"):
        for leaf, number in (("arp_announce", 0), ("arp_ignore", 0), ("rp_filter", 2)):
            files.put(f"/proc/sys/net/ipv4/conf/{name}/{leaf}", number)
    files.put("/proc/sys/kernel/osrelease", kernel.release)
    files.put("/proc/sys/kernel/tainted", kernel.taint)
    files.put("/proc/sys/kernel/random/boot_id", machine.boot_id)
    files.put("/proc/sys/kernel/hung_task_detect_count", kernel.hung)
    files.put(TRIGGER, "", 0o200)
    files.put("/proc/uptime", f"{machine.uptime}.52 {machine.uptime * machine.processor.count}.10")
    records = (
        f"{4 if 'NVRM: Xid' in text else 6},{number},{int(at * 1e6)},-;{text}\n"
        for number, (at, text) in enumerate(kernel.log)
    )
    files.put("/dev/kmsg", "".join(records))


def _modules(machine: Machine, files: Planter) -> None:
    rows = []
    for name, version in machine.kernel.modules.items():
        mark = " (OE)" if version else ""
        rows.append(f"{name} {_SIZES.get(name, 100_000)} 1 - Live 0x0000000000000000{mark}")
        here = f"/sys/module/{name}"
        if version:
            files.put(f"{here}/version", version)
            files.put(f"{here}/taint", "OE")
        else:
            files.put(f"{here}/taint", "\n")
        files.put(f"{here}/srcversion", f"{sum(name.encode()) * 7919:024X}")
        files.put(f"{here}/initstate", "live")
    files.put("/proc/modules", "\n".join(rows))
    loaded = machine.kernel.modules.get("nvidia")
    if not loaded:
        return
    files.put(
        "/proc/driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX Open Kernel Module for {machine.arch}  {loaded}  Release Build  (lab@lab)\n"
        "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n",
    )
    files.put("/proc/driver/nvidia/params", PARAMETERS)


def _module_files(machine: Machine, files: Planter) -> None:
    folder = f"/lib/modules/{machine.kernel.release}"
    index = []
    for name, version in machine.kernel.module_files.items():
        path = f"updates/dkms/{name}.ko"
        index.append(f"{path}:\n")
        files.put(f"{folder}/{path}", module_file(version, machine.kernel.release))
    files.put(f"{folder}/modules.dep", "".join(index))


def module_file(version: str, release: str) -> bytes:
    """Return the smallest ELF file that says these things in its section .modinfo."""
    fields = (f"version={version}", "license=Dual MIT/GPL", f"vermagic={release} SMP mod_unload", "srcversion=5A1E0000")
    info = "".join(f"{field}\0" for field in fields).encode()
    names = b"\0.modinfo\0.shstrtab\0"
    at = 64 + len(info)
    table = at + len(names) + -(at + len(names)) % 8
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    sections = [bytes(64)]
    for name, offset, size in ((1, 64, len(info)), (10, at, len(names))):
        sections.append(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0))
    return head + info + names + bytes(table - at - len(names)) + b"".join(sections)


def _next(machine: Machine, files: Planter) -> None:
    kernel = machine.kernel
    image = f"/boot/vmlinuz-{kernel.release}"
    arguments = kernel.next_arguments.partition(" ")[2]
    wanted = " ".join(word for word in arguments.split() if not word.startswith(("root=", "ro")))
    files.put(image, "lab\n")
    if machine.os == "rhel":
        _entry(machine, image, arguments, files)
    else:
        files.put("/boot/grub/grub.cfg", (
            'set default="0"\n'
            f"menuentry 'Ubuntu' --class ubuntu {{\n\tlinux\t{image} {arguments}\n"
            f"\tinitrd\t/boot/initrd.img-{kernel.release}\n}}\n"
        ))  # fmt: skip
        files.put(
            "/etc/default/grub", f'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="{wanted}"\nGRUB_CMDLINE_LINUX=""\n'
        )
    for path, text in kernel.drop_ins.items():
        files.put(path, text)
    files.put("/etc/modprobe.d/nvidia.conf", "options nvidia NVreg_EnableStreamMemOPs=1\n")
    for path, text in {**machine.limits, **machine.unit_drop_ins}.items():
        files.put(path, text)
    files.put("/etc/systemd/system.conf", "[Manager]\n#DefaultLimitMEMLOCK=8M\n")


def _entry(machine: Machine, image: str, arguments: str, files: Planter) -> None:
    """Write the entry of the Boot Loader Specification, and what later kernels inherit."""
    release = machine.kernel.release
    identity = f"{sum(machine.name.encode()):032x}"
    files.put("/etc/machine-id", identity)
    files.put(f"/boot/loader/entries/{identity}-{release}.conf", (
        f"title Red Hat Enterprise Linux ({release}) 9.6 (Plow)\nversion {release}\nlinux {image}\n"
        f"initrd /boot/initramfs-{release}.img\noptions {arguments}\ngrub_users $grub_users\n"
        "grub_arg --unrestricted\ngrub_class rhel\n"
    ))  # fmt: skip
    files.put("/etc/kernel/cmdline", arguments)


def _services(machine: Machine, files: Planter) -> None:
    for name, service in machine.services.items():
        path = f"/usr/lib/systemd/system/{name}.service"
        files.put(path, (
            f"[Unit]\nDescription={name} of the lab\n[Service]\nExecStart={service.command or f'/usr/sbin/{name}'}\n"
            f"EnvironmentFile=-/etc/default/{name}\n"
            "LimitMEMLOCK=infinity\nLimitNOFILE=1048576\n[Install]\nWantedBy=multi-user.target\n"
        ))  # fmt: skip
        if service.enabled == "enabled":
            files.link(f"/etc/systemd/system/multi-user.target.wants/{name}.service", path)
        if service.pid:
            files.put(f"/sys/fs/cgroup/system.slice/{name}.service/cgroup.procs", service.pid)
            limit = "unlimited" if service.memlock == _UNLIMITED else str(service.memlock)
            files.put(f"/proc/{service.pid}/limits", LIMITS.format(files=1048576, memlock=limit))


def _packages(machine: Machine, files: Planter) -> None:
    arch = "amd64" if machine.arch == "x86_64" else "arm64"
    rows = (
        f"Package: {name}\nStatus: install ok installed\nMaintainer: lab\nArchitecture: {arch}\nVersion: {version}\n"
        "Description: of the lab\n"
        for name, version in machine.packages.items()
    )
    if machine.os == "ubuntu":  # the data base of rpm is none that a lab could write
        files.put("/var/lib/dpkg/status", "\n".join(rows))
    for gpu in machine.gpus if "nvidia" in machine.kernel.modules else ():
        files.put(f"/dev/nvidia{gpu.state['minor']}", "", 0o666)
    folder = f"/usr/lib/{machine.arch}-linux-gnu"
    for name in ("libnvidia-ml.so", "libcuda.so", "libnvidia-cfg.so"):
        files.tree[f"{folder}/{name}.1"] = Link(f"{name}.{machine.libraries}")
        files.put(f"{folder}/{name}.{machine.libraries}", "lab\n")


def _imex(machine: Machine, files: Planter) -> None:
    if machine.imex is None:
        return
    files.put("/etc/nvidia-imex/nodes_config.cfg", "\n".join(machine.imex.nodes))
    files.put("/etc/nvidia-imex/config.cfg", "LOG_LEVEL=4\nIMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg\n")
    for number in range(machine.imex.channels):
        files.put(f"/dev/nvidia-caps-imex-channels/channel{number}", "", 0o666)
