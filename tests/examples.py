"""
The two nodes that ``./run demo`` judges, made by a script so that nobody edits them by hand.

``python -m tests.examples`` writes them to hwcheck/examples. All names and numbers are made up; the forms are those of
the tools. The faulty node has one GPU off the bus, one with a row remap that waits for a reset, a dead rail and a clock
that runs 22 ms off.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.machines import Gpu, Machine, as_xml, hgx_h200

TARGET = Path(__file__).resolve().parent.parent / "hwcheck" / "examples"
LOST = 5
DRIVER = "570.124.06"


def _log(*, faulty: bool) -> str:
    rows = [
        (0.0, "Linux version 6.8.0-60-generic (buildd@lcy02) (gcc 13.3.0) #63-Ubuntu SMP PREEMPT_DYNAMIC"),
        (0.0, "Command line: BOOT_IMAGE=/vmlinuz-6.8.0-60-generic root=/dev/md0 ro iommu=pt"),
        (1.204, "PCI host bridge to bus 0000:00"),
        (9.871, "mlx5_core 0000:1a:00.0: firmware version: 28.43.2566"),
        (9.902, "mlx5_core 0000:1a:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)"),
        (11.350, ("mlx5_core 0000:1a:00.0: mlx5_pcie_event:301:(pid 12): "
                  "Detected insufficient power on the PCIe slot (27W).")),
        (14.118, "nvidia-nvlink: Nvlink Core is being initialized, major device number 235"),
        (14.320, "nvidia-nvswitch0: using MSI"),
        (14.502, f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build"),
    ]  # fmt: skip
    if faulty:
        gpus = hgx_h200().gpus
        lost, worn = gpus[LOST].address[4:-2].lower(), gpus[2].address[4:-2].lower()
        rows += [
            (302211.441, (f"NVRM: Xid (PCI:{worn}): 48, pid=44120, name=python3, "
                          "DBE (double bit error) ECC Error (address: 0x00000010a6c2f4c0).")),
            (302211.447, (f"NVRM: Xid (PCI:{worn}): 63, pid=44120, name=python3, "
                          "Row Remapper: New row (0x0000000010a6c2f4) marked for remapping, reset gpu to activate.")),
            (302211.460, (f"NVRM: Xid (PCI:{worn}): 94, pid=44120, name=python3, "
                          "Contained: SM (0x1). RST: No, D-RST: No")),
            (391870.012, f"NVRM: Xid (PCI:{lost}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
            (391870.013, f"NVRM: GPU {lost}.0: GPU has fallen off the bus."),
            (391881.870, "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up"),
            (391881.874, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up"),
        ]  # fmt: skip
    return "".join(f"[{at:12.6f}] {text}\n" for at, text in rows)


def _ibstat(*, faulty: bool) -> str:
    lines: list[str] = []
    for number in range(8):
        down = faulty and number == 4
        lines += [
            f"CA 'mlx5_{number}'",
            "\tCA type: MT4129",
            "\tNumber of ports: 1",
            "\tFirmware version: 28.43.2566",
            "\tHardware version: 0",
            f"\tNode GUID: 0xa088c20300a1b20{number}",
            f"\tSystem image GUID: 0xa088c20300a1b20{number}",
            "\tPort 1:",
            f"\t\tState: {'Down' if down else 'Active'}",
            f"\t\tPhysical state: {'Polling' if down else 'LinkUp'}",
            f"\t\tRate: {40 if down else 400}",
            f"\t\tBase lid: {65535 if down else 120 + number}",
            "\t\tLMC: 0",
            f"\t\tSM lid: {0 if down else 1}",
            "\t\tCapability mask: 0xa651e848",
            f"\t\tPort GUID: 0xa088c20300a1b20{number}",
            "\t\tLink layer: InfiniBand",
        ]
    return "\n".join(lines) + "\n"


def _topo(gpus: list[Gpu]) -> str:
    names = [f"GPU{number}" for number in range(len(gpus))]
    lines = ["\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for number, gpu in enumerate(gpus):
        cells = [" X " if other == number else "NV18" for other in range(len(gpus))]
        half = ("0-55,112-167", "0") if gpu.index < 4 else ("56-111,168-223", "1")  # four a socket
        lines.append("\t".join([f"GPU{number}", *cells, *half, "N/A"]))
    return "\n".join(lines) + "\n"


def _nvlink(gpus: list[Gpu]) -> str:
    lines = []
    for number, gpu in enumerate(gpus):
        lines.append(f"GPU {number}: {gpu['name']} (UUID: {gpu.uuid})")
        lines += [f"\t Link {link}: 26.562 GB/s" for link in range(18)]
    return "\n".join(lines) + "\n"


def _chrony(*, faulty: bool) -> str:
    offset = "0.022104551" if faulty else "0.000004709"
    return "\n".join(
        [
            "Reference ID    : C0000201 (ntp1.example.org)",
            "Stratum         : 3",
            "Ref time (UTC)  : Tue Mar 03 09:10:11 2026",
            f"System time     : {offset} seconds slow of NTP time",
            "Last offset     : +0.000004989 seconds",
            "RMS offset      : 0.000021751 seconds",
            "Frequency       : 2.192 ppm fast",
            "Residual freq   : +0.001 ppm",
            "Skew            : 0.026 ppm",
            "Root delay      : 0.000411626 seconds",
            "Root dispersion : 0.000870010 seconds",
            "Update interval : 256.9 seconds",
            "Leap status     : Normal",
        ]
    ) + "\n"  # fmt: skip


def node(name: str, *, faulty: bool) -> dict[str, str]:
    """Return the files of one example: path → content."""
    worn = {"remap_pending": "Yes", "remap_uncorrected": 1, "banks": (3071, 1, 0, 0, 0)}
    machine = hgx_h200({2: worn} if faulty else {})
    if faulty:
        machine = Machine([gpu for gpu in machine.gpus if gpu.index != LOST], DRIVER)
    texts = {
        "nvidia-smi.xml": as_xml(machine),
        "nvidia-smi.gpu-lines": _nvlink(machine.gpus),
        "nvidia-smi.topo": _topo(machine.gpus),
        "kernel.log": _log(faulty=faulty),
        "ibstat": _ibstat(faulty=faulty),
        "chronyc.tracking": _chrony(faulty=faulty),
        "modinfo": f"{DRIVER}\n",
        "nv-fabricmanager.version": f"Fabric Manager version is : {DRIVER}\n",
    }
    sources = [
        {
            "id": kind, "file": f"raw/{kind}", "status": "ok", "time": "2026-03-03T09:15:02+00:00",
            "command": COMMANDS[kind],
        }
        for kind in texts
    ]  # fmt: skip
    manifest = {"format": "hwcheck.evidence/1", "node": name, "simulated": True, "sources": sources}
    files = {f"raw/{kind}": text for kind, text in texts.items()}
    return files | {"manifest.json": json.dumps(manifest, indent=1) + "\n"}


COMMANDS = {
    "nvidia-smi.xml": "nvidia-smi -q -x",
    "nvidia-smi.gpu-lines": "nvidia-smi nvlink -s",
    "nvidia-smi.topo": "nvidia-smi topo -m",
    "kernel.log": "dmesg",
    "ibstat": "ibstat",
    "chronyc.tracking": "chronyc tracking",
    "modinfo": "modinfo -F version nvidia",
    "nv-fabricmanager.version": "nv-fabricmanager --version",
}
EXAMPLES = {
    "hgx-h200-faulty": node("gpu-017", faulty=True),
    "hgx-h200-healthy": node("gpu-018", faulty=False),
}


def main() -> None:
    """Write both examples."""
    for name, files in EXAMPLES.items():
        for path, text in files.items():
            place = TARGET / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
