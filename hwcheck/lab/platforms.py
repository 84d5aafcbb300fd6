"""
Healthy machines of the platforms that the lab knows, made from ``data/<platform>.yaml``.

Every identifier (serial numbers, UUIDs, GUIDs, addresses) is made up from the node's name, the same each time. What is
the same on all platforms stands here: services, processes, parameters; figures stand in the YAML files.
"""

from __future__ import annotations

import copy
import hashlib
from functools import cache
from importlib import resources
from typing import Any

import yaml

from hwcheck.lab import bus
from hwcheck.lab.devices import Drive, Function, Gpu, Nic
from hwcheck.lab.machine import Clock, Imex, Kernel, Machine, Mount, Process, Processor, Service

SYSTEMS = ("ubuntu", "rhel")
PLATFORMS = ("hgx-h200", "hgx-h100", "hgx-b200", "gb200")
LINKS = 18
PERSISTENCED = "/usr/bin/nvidia-persistenced --user nvidia-persistenced"
_UPTIME = 432_000
_DRIVER_MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm")
_MODULE_FILES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem")
_KERNEL_MODULES = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_umad", "nvme")
_SYSCTLS = {
    "kernel.numa_balancing": "0", "vm.max_map_count": "1048576", "vm.min_free_kbytes": "135168",
    "vm.zone_reclaim_mode": "0", "vm.swappiness": "10", "vm.overcommit_memory": "0", "vm.nr_hugepages": "0",
    "net.core.somaxconn": "4096", "net.core.rmem_max": "268435456", "net.core.wmem_max": "268435456",
    "net.core.netdev_max_backlog": "10000", "net.ipv4.tcp_rmem": "4096\t131072\t268435456",
    "net.ipv4.tcp_wmem": "4096\t16384\t268435456", "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_available_congestion_control": "reno cubic", "net.ipv4.tcp_max_syn_backlog": "4096",
    "net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.neigh.default.gc_thresh1": "4096",
    "net.ipv4.neigh.default.gc_thresh2": "8192", "net.ipv4.neigh.default.gc_thresh3": "16384",
    "fs.inotify.max_user_instances": "8192", "fs.inotify.max_user_watches": "1048576",
    "fs.file-max": "9223372036854775807", "kernel.threads-max": "8254321", "kernel.pid_max": "4194304",
    "kernel.dmesg_restrict": "1", "kernel.hung_task_timeout_secs": "120", "kernel.panic_on_oops": "1",
    "kernel.softlockup_panic": "0", "kernel.hung_task_panic": "0",
}  # fmt: skip
"""What runs on every node; numa_balancing follows the drop-in, the rest is the kernel's default or the drop-in's."""
_DROP_INS = {
    "/etc/sysctl.d/60-gpu-node.conf": (
        "kernel.numa_balancing = 0\nvm.max_map_count = 1048576\nvm.min_free_kbytes = 135168\nvm.swappiness = 10\n"
        "net.core.rmem_max = 268435456\nnet.core.wmem_max = 268435456\nnet.core.netdev_max_backlog = 10000\n"
        "net.ipv4.tcp_rmem = 4096 131072 268435456\nnet.ipv4.tcp_wmem = 4096 16384 268435456\n"
        "net.ipv4.neigh.default.gc_thresh1 = 4096\nnet.ipv4.neigh.default.gc_thresh2 = 8192\n"
        "net.ipv4.neigh.default.gc_thresh3 = 16384\nfs.inotify.max_user_instances = 8192\n"
        "kernel.panic_on_oops = 1\n"
    )
}


@cache
def figures(platform: str) -> dict[str, Any]:
    """
    Return the figures of a platform.

    Raises:
        KeyError: the lab does not know it.
    """
    if platform not in PLATFORMS:
        raise KeyError(platform)
    text = (resources.files("hwcheck.lab") / "data" / f"{platform}.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    base = copy.deepcopy(figures(found["extends"])) if "extends" in found else {}
    for key, value in found.items():
        base[key] = {**base.get(key, {}), **value} if isinstance(value, dict) else value
    return base


def build(platform: str, name: str, boot: int = 0, system: str = "ubuntu") -> Machine:
    """
    Make a healthy machine.

    Args:
        platform: one of :data:`PLATFORMS`.
        name: host name; identifiers follow from it.
        boot: how often it was rebooted.
        system: one of :data:`SYSTEMS`.

    Raises:
        KeyError: the lab does not know the platform.
    """
    told = figures(platform)
    if system == "rhel":
        told = {**told, "kernel": {**told["kernel"], "release": f"5.14.0-570.12.1.el9_6.{told['arch']}"}}
    seed = hashlib.sha256(name.encode()).hexdigest()
    processor = Processor(**told["processor"])
    functions: dict[str, Function] = {}
    tray = told["layout"] == "tray"
    places = (bus.tray if tray else bus.hgx)(told, functions)
    machine = Machine(
        name=name, platform=platform, product=told["product"], arch=told["arch"],
        boot_id=_uuid(f"{seed} boot {boot}"), uptime=_UPTIME, driver=told["driver"], cuda=told["cuda"],
        gpus=[_gpu(index, place, told, seed) for index, place in enumerate(places)], functions=functions,
        nics=_nics(told, functions, seed), processor=processor, memory=list(told["memory"]), numa_cpus=[],
        numa_distances=[], kernel=_kernel(told, boot), services=_services(told), processes=[], clock=Clock(),
        drives=[Drive("nvme0", next(a for a, f in functions.items() if f.kind == "010802"))], mounts=_mounts(),
        imex=_imex() if tray else None, edac=[(0, 0)] * processor.sockets, libraries=told["driver"],
        packages=_packages(told), versions={"fabric-manager": told["driver"], "imex": told["driver"]},
        limits={"/etc/security/limits.d/20-gpu-node.conf": "* soft memlock unlimited\n* hard memlock unlimited\n"},
        unit_drop_ins={"/etc/systemd/system/slurmd.service.d/10-limits.conf": "[Service]\nLimitMEMLOCK=infinity\n"},
    )  # fmt: skip
    if system == "rhel":
        machine.os = system
        machine.services = {{"chrony": "chronyd", "ssh": "sshd"}.get(k, k): v for k, v in machine.services.items()}
    _numa(machine, tray)
    _interrupts(machine)
    _run_services(machine)
    if tray:
        machine.clock.source = "arch_sys_counter"
    boot_up(machine)
    return machine


def boot_up(machine: Machine) -> None:
    """Let the kernel's arguments, and the module files on disk, take effect, as at a boot."""
    kernel = machine.kernel
    words = kernel.arguments.split()
    is_free = not kernel.firmware_keeps_aspm and "pcie_aspm=off" not in words
    wanted = next((word.partition("=")[2] for word in words if word.startswith("pcie_aspm.policy=")), "default")
    policy = wanted if is_free else "default"
    kernel.aspm_policy = kernel.aspm_policy.replace("[", "").replace("]", "").replace(policy, f"[{policy}]", 1)
    passthrough = "iommu=pt" in words or "iommu.passthrough=1" in words
    for function in machine.functions.values():
        if policy == "performance":
            function.aspm = 0
        if function.group_type:
            function.group_type = "identity" if passthrough else "DMA-FQ"
    version = kernel.module_files.get("nvidia", "")
    kernel.modules |= dict.fromkeys(_DRIVER_MODULES, version) if version else {}
    machine.driver = version or machine.driver
    for gpu in machine.gpus:
        gpu.state["gsp_firmware"] = machine.driver


def _uuid(text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def _gpu(index: int, address: str, told: dict[str, Any], seed: str) -> Gpu:
    """Fill in what NVML knows of a GPU that idles after a start without errors."""
    state: dict[str, Any] = {
        "minor": index, "uuid": "GPU-" + _uuid(f"{seed} gpu {index}"),
        "serial": f"16{int(seed[:9], 16) % 10**10:010d}{index}",
        "module_id": index + 1, "gsp_firmware": told["driver"], "persistence": 1, "virtualization_mode": 0,
        "compute_mode": 0, "mig_mode": 0, "mig_pending": 0, "performance_state": 0, "utilization": 0,
        "recovery_action": 0, "reset_required": 0, "drain_recommended": 0, "memory_used": 0, "ecc_mode": 1,
        "ecc_pending": 1, "ecc_sram_threshold": 0, "repair_channel_pending": 0, "repair_tpc_pending": 0,
        "unrepairable": 0, "remap_corrected": 0, "remap_uncorrected": 0, "remap_pending": 0, "remap_failure": 0,
        "event_reasons": "0x1", "counter_sw_power_cap": 7_015_662_857_000, "counter_sw_thermal": 0,
        "counter_hw_thermal": 0, "counter_hw_power_brake": 0, "pcie_gen_max": 5, "pcie_gen_device_max": 5,
        "pcie_width_max": 16, "pcie_rollovers": 0, "nvlink_states": [1] * LINKS, "fabric_state": 3,
        "fabric_status": 0, "fabric_clique": 0, "fabric_cluster": "00000000-0000-0000-0000-000000000000",
        "c2c_mode": 0,
    }  # fmt: skip
    state |= {f"ecc_{age}_{what}": 0 for age in ("volatile", "aggregate") for what in _ERRORS}
    blackwell = told["gpu"]["architecture"] >= 10
    state |= dict.fromkeys(_BLACKWELL_ERRORS if blackwell else _HOPPER_ERRORS, [0] * LINKS)
    state |= copy.deepcopy(told["gpu"])
    top = state["clock_max_sm"]
    state["supported_sm_clocks"] = list(range(top, state["clock_sm"] - 1, -15))
    if "platform_host" in state:
        state["platform_module"] = index + 1
    return Gpu(index, address, {key: value for key, value in state.items() if value is not None})


_ERRORS = ("sram_corrected", "sram_parity", "sram_secded", "dram_corrected", "dram_uncorrected")
_HOPPER_ERRORS = ("nvlink_replay", "nvlink_recovery", "nvlink_crc")
_BLACKWELL_ERRORS = ("nvlink_rx_errors", "nvlink_recovery_ok", "nvlink_recovery_failed", "nvlink_effective_errors")


def _nics(told: dict[str, Any], functions: dict[str, Function], seed: str) -> list[Nic]:
    nics: list[Nic] = []
    for address in [a for a, f in functions.items() if f.kind == "020700"]:
        index = len(nics)
        nic = Nic(f"mlx5_{index}", address, f"ibs{index}", int(seed[:10], 16) << 20 | index << 4 | 0xA088 << 48)
        if told["fabric"] == "Ethernet":
            nic.layer, nic.netdev, nic.mtu = "Ethernet", f"ens{index}np0", 9000
            functions[address].kind = "020000"
        nics.append(nic)
    return nics


def _kernel(told: dict[str, Any], boot: int) -> Kernel:
    release = told["kernel"]["release"]
    arguments = f"BOOT_IMAGE=/boot/vmlinuz-{release} root=/dev/nvme0n1p2 {told['kernel']['arguments']}"
    driver = told["driver"]
    log = [
        (0.0, f"Linux version {release} (buildd@lab) (gcc 13.3.0) #63 SMP PREEMPT_DYNAMIC"),
        (0.0, f"Command line: {arguments}"),
        (4.1, f"DMI: hwcheck lab {told['product']}, BIOS 2.04 06/01/2026"),
        (14.2, f"nvidia: loading out-of-tree module taints kernel, boot {boot + 1} of this lab node"),
        (16.9, f"NVRM: loading NVIDIA UNIX Open Kernel Module for {told['arch']}  {driver}  Release Build"),
        (31.0, "systemd[1]: Startup finished"),
    ]
    versions = dict.fromkeys(_DRIVER_MODULES, driver) | dict.fromkeys(_KERNEL_MODULES, "")
    return Kernel(
        release,
        arguments,
        arguments,
        dict(_SYSCTLS),
        dict(_DROP_INS),
        versions,
        dict.fromkeys(_MODULE_FILES, driver),
        log,
    )


def _services(told: dict[str, Any]) -> dict[str, Service]:
    names = ["nvidia-persistenced", "slurmd", "munge", "chrony", "irqbalance", "ssh", "containerd", "nvidia-dcgm"]
    names.append("nvidia-fabricmanager" if told["layout"] == "hgx" else "nvidia-imex")
    if told.get("nvlink5") and told["layout"] == "hgx":
        names.append("nvlsm")
    found = {name: Service() for name in names}
    found["nvidia-persistenced"].command = PERSISTENCED + " --persistence-mode --verbose"
    found["irqbalance"].command = "/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS"
    return found


def _run_services(machine: Machine) -> None:
    """Give each unit its main process; the GPUs' device files are held by persistenced alone."""
    devices = tuple(f"/dev/nvidia{gpu.index}" for gpu in machine.gpus)
    for number, (name, service) in enumerate(machine.services.items()):
        service.pid = 1200 + 37 * number
        holds = devices if name == "nvidia-persistenced" else ()
        machine.processes.append(Process(service.pid, name[:15], devices=holds, started=3000 + number))


def _packages(told: dict[str, Any]) -> dict[str, str]:
    driver = told["driver"]
    branch = driver.partition(".")[0]
    name = f"nvidia-fabricmanager-{branch}" if told["layout"] == "hgx" else f"nvidia-imex-{branch}"
    return {
        f"nvidia-driver-{branch}-server-open": f"{driver}-0ubuntu0.24.04.1",
        f"nvidia-dkms-{branch}-server-open": f"{driver}-0ubuntu0.24.04.1",
        name: f"{driver}-1", "datacenter-gpu-manager-4-core": "1:4.4.1-1", "rdma-core": "50.0-2ubuntu0.2",
        "slurmd": "23.11.4-1.2ubuntu5", "containerd": "1.7.28-0ubuntu1~24.04.1",
    }  # fmt: skip


def _mounts() -> list[Mount]:
    return [
        Mount("/", "ext4", "/dev/nvme0n1p2", super_options="rw,errors=remount-ro"),
        Mount("/boot/efi", "vfat", "/dev/nvme0n1p1", super_options="rw,fmask=0077"),
        Mount("/scratch", "xfs", "/dev/nvme0n1p3", "rw,noatime", "rw,attr2,inode64"),
    ]


def _imex() -> Imex:
    return Imex({f"10.12.0.{number}": ("READY", "580.173.02") for number in range(1, 19)})


def _numa(machine: Machine, tray: bool) -> None:  # noqa: FBT001 - the layout
    """Lay out CPU nodes, and behind them one memory node and seven empty ones for each GPU of a Grace machine."""
    processor = machine.processor
    machine.numa_cpus = [processor.cpus_of(socket) for socket in range(processor.sockets)]
    if not tray:
        machine.numa_distances = ["10 21", "21 10"]
        return
    count = 2 + 8 * len(machine.gpus)
    for gpu in machine.gpus:
        gpu.state["numa_node"] = 2 + 8 * gpu.index
        machine.memory += [gpu.state["memory_total"] >> 20, *[0] * 7]
        machine.numa_cpus += [""] * 8
    machine.numa_distances = [" ".join(str(_distance(a, b)) for b in range(count)) for a in range(count)]


def _distance(one: int, other: int) -> int:
    if one == other:
        return 10
    sides = [(node if node < 2 else (node - 2) // 16) for node in (one, other)]
    if max(one, other) < 2:
        return 40
    if min(one, other) < 2:
        return 80 if sides[0] == sides[1] else 120
    return 11 if (one - 2) // 8 == (other - 2) // 8 else 160


def _interrupts(machine: Machine) -> None:
    number = 140
    for nic in machine.nics:
        numa = machine.functions[nic.address].numa
        first = int(machine.processor.cpus_of(numa).partition("-")[0])
        nic.irqs = {number + step: first + step for step in range(4)}
        number += 4
