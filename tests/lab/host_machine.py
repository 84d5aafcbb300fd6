"""What tests of the lab's host form share: a small node, a login, and what the machine itself looks like meanwhile."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from pathlib import Path

from hwcheck.lab.host.attributes import LOG
from hwcheck.lab.host.lab import HostLab

BOOT = "3d6f0a52-7c0b-4f0e-9f8a-2a6b1c9d4e01"
FILES = {
    "root/etc/hostname": "small\n",
    "root/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1\n",
    "root/proc/modules": "nvidia 1 0 - Live 0x0\n",
    "root/proc/self/mountinfo": "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,errors=remount-ro\n",
    "root/proc/sys/kernel/random/boot_id": BOOT + "\n",
    "root/proc/sys/kernel/osrelease": "6.8.0-lab\n",
    "root/proc/sys/vm/swappiness": "60\n",
    "root/proc/sys/net/ipv4/tcp_rmem": "4096 131072 6291456\n",
    "root/proc/irq/77/smp_affinity_list": "0-3\n",
    "root/sys/module/pcie_aspm/parameters/policy": "[default] performance powersave\n",
    "root/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "root/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
    "root/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "performance powersave\n",
    "root/sys/devices/system/cpu/online": "0-191\n",
    "root/sys/devices/pci0000:00/0000:00:01.0/config": "\0" * 256,
    "root/usr/lib/sysctl.d/10-node.conf": "vm.swappiness = 60\n",
    "root/lib/modules/6.8.0-lab/modules.dep": "\n",
    "root/dev/kmsg": "6,1,0,-;lab\n",
    "bin/nvidia-smi": "#!/bin/sh\necho smi of the lab\n",
    "nvml/driver_version": "580.95.05\n",
}


def plant(home: Path, name: str) -> Path:
    """Make the folder of a small node."""
    for path, text in FILES.items():
        file = home / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (home / name / "bin/nvidia-smi").chmod(0o755)
    return home / name


def login(lab: HostLab, name: str, script: str) -> str:
    """Run a shell script on a node; returns what it printed, standard error too."""
    known, key = lab.folder / "known_hosts", lab.folder / "client_key"
    options = [
        f"UserKnownHostsFile={known}",
        "IdentitiesOnly=yes",
        "BatchMode=yes",
        "ConnectTimeout=10",
        "LogLevel=ERROR",
    ]
    words = [word for option in options for word in ("-o", option)]
    done = subprocess.run(
        ["ssh", "-F", "none", "-i", str(key), *words, "-p", str(lab.port),
         f"root@{lab.running()[name]}", f"exec 2>&1; {script}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.stdout


def keepers() -> set[int]:
    """Return the processes that belong to a lab: keepers and all below them, nodes included."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"hwcheck.lab.host" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def mounts() -> str:
    """Return the machine's mounts, as this process sees them."""
    return Path("/proc/self/mountinfo").read_text(encoding="utf-8")


def settings() -> dict[str, str]:
    """Read settings of the machine: sysctls that stay as they are by themselves, and attributes that nodes have."""
    found = {}
    for base, _, names in os.walk("/proc/sys"):
        if base.startswith(("/proc/sys/fs", "/proc/sys/kernel/random", "/proc/sys/net/ipv6/route")):
            continue  # counters and random numbers
        for name in names:
            try:
                found[f"{base}/{name}"] = Path(base, name).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
    for path in (
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/module/pcie_aspm/parameters/policy",
        "/etc/hostname",
    ):
        if Path(path).exists():
            found[path] = Path(path).read_text(encoding="utf-8")
    found.pop("/proc/sys/kernel/ns_last_pid", None)
    found.pop("/proc/sys/kernel/pty/nr", None)
    return found


def fingerprint(node: Path) -> dict[str, str]:
    """Return what a node's folder holds, the attribute log and sshd's own log apart: path → hash and mode."""
    found = {}
    for base, folders, names in os.walk(node):
        for name in [*folders, *names]:
            path = Path(base, name)
            if name == LOG or path == node / "root/var/log/sshd.log":
                continue
            about = path.lstat()
            what = str(path.readlink()) if path.is_symlink() else ""
            if path.is_file() and not path.is_symlink():
                what = sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(node))] = f"{about.st_mode:o} {what}"
    return found
