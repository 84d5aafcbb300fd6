"""
``ib_write_bw`` and ``ib_send_lat`` of a lab node: a server and a client over a real TCP port, figures from both ends.

Each end knows what it can: the port's rate and state, the PCIe link of the adapter and of its port, MaxReadReq, and
for memory of a GPU whether ACS sends it up to the root complex. The ends tell each other over TCP, as perftest
exchanges its queue pairs, and the worse one decides. Sources: perftest 4.5 to 24.x, two recorded runs on ConnectX-7
(392 Gb/s, 1.27 us); what MaxReadReq, ACS, far CPUs and far interrupts cost is the lab's own guess.
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import time

from hwcheck.lab.actor.place import Node, ToolError, say

Able = dict[str, float | str]
"""What an end can: ``rate`` in Gb/s, ``us`` of latency, ``layer`` of the link; ``test`` is what it runs."""
_PORT = 18515
_LINE = "-" * 87
_SHARE = 0.981  # of the line rate: 392.4 of 400 Gb/s
_TYPICAL = 1.27  # us
_PATIENCE = 5.0  # seconds that a client waits for its server
_RATES = {"2.5": 2.0, "5.0": 4.0, "8.0": 7.88, "16.0": 15.75, "32.0": 31.51, "64.0": 60.5}
"""GT/s as /sys spells it → Gb/s of one lane."""
_HELP = (
    "  --use_cuda=<cuda device id> Use CUDA specific device for GPUDirect RDMA testing\n"
    "  --use_cuda_dmabuf Use CUDA DMA-BUF for GPUDirect RDMA testing"
)
_FLAGS = ("-F", "-U", "-a", "--report_gbits", "--use_cuda_dmabuf", "-R", "-b", "--perform_warm_up")
_ACS_AT, _REDIRECTS = 0x14E, 0x0C


def run(node: Node, tool: str, words: list[str]) -> int:
    """Be one of the two."""
    if "--help" in words or "-h" in words:
        say(f"Usage:\n  {tool}            start a server and wait for connection\n{_HELP}")
        return 0
    options, peer = _options(words)
    device = options.get("-d") or next(iter(node.names("/sys/class/infiniband")), "")
    able = _able(node, device, options)
    other = _meet(int(options.get("-p", _PORT)), peer, {**able, "test": tool})
    if other["test"] != tool:
        raise ToolError("Failed to exchange data between server and clients")
    (_latency if tool == "ib_send_lat" else _bandwidth)(options, device, able, other)
    return 0


def _options(words: list[str]) -> tuple[dict[str, str], str]:
    options, peer, rest = {}, "", iter(words)
    for word in rest:
        if word in _FLAGS:
            options[word] = "1"
        elif word.startswith("--"):
            name, _, value = word.partition("=")
            options[name] = value
        elif word.startswith("-"):
            options[word[:2]] = word[2:] or next(rest, "")
        else:
            peer = word
    return options, peer


def _able(node: Node, device: str, options: dict[str, str]) -> Able:
    """Look what this end can."""
    port = f"/sys/class/infiniband/{device}/ports/{options.get('-i', '1')}"
    if not node.exists(port):
        raise ToolError(f" IB device {device or 'mlx5_0'} not found\n Unable to find the Infiniband/RoCE device")
    if not node.text(f"{port}/state").startswith("4"):
        raise ToolError(
            " Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device"
        )
    at = f"/sys/class/infiniband/{device}/device"
    rate = min(float(node.text(f"{port}/rate", "0").split()[0]) * _SHARE, _pcie(node, at))
    far = _is_far(node, at)
    us = _TYPICAL + (0.45 if far else 0) + (0.25 if node.text("/proc/sys/kernel/numa_balancing") == "1" else 0)
    if _irqs_are_far(node, at):
        us += 0.9
    if "--use_cuda" in options:
        rate *= 0.3 if _redirects(node, at) else 1.0
    return {"rate": rate * (0.8 if far else 1.0), "us": us, "layer": node.text(f"{port}/link_layer", "InfiniBand")}


def _pcie(node: Node, at: str) -> float:
    """Return Gb/s of the adapter's link, by the lesser of both ends; small read requests keep half of it idle."""
    lanes = min(int(node.text(f"{end}/current_link_width", "16")) for end in (at, f"{at}/.."))
    lane = min(_RATES.get(node.text(f"{end}/current_link_speed").split()[0], 31.51) for end in (at, f"{at}/.."))
    control = _word(node, f"{at}/config", 0x68)
    request = 128 << (control >> 12 & 7)
    return lanes * lane * 0.91 * (1.0 if request >= 2048 else 0.75 if request >= 1024 else 0.6)


def _redirects(node: Node, at: str) -> bool:
    return bool(_word(node, f"{at}/../config", _ACS_AT) & _REDIRECTS)


def _word(node: Node, path: str, at: int) -> int:
    try:
        with open(node.real(path), "rb") as file:
            file.seek(at)
            return int(struct.unpack("<H", file.read(2))[0])
    except (OSError, struct.error):
        return 0x5000


def _is_far(node: Node, at: str) -> bool:
    """Tell whether this program runs on CPUs that are all of another NUMA node than the adapter."""
    here, near = os.sched_getaffinity(0), _cpus(node.text(f"{at}/local_cpulist"))
    everywhere = _cpus(node.text("/sys/devices/system/cpu/online"))
    bound = len(here) > 2 and here < everywhere  # what nobody has bound has the CPUs of the machine below
    return bound and not here & near


def _irqs_are_far(node: Node, at: str) -> bool:
    near = _cpus(node.text(f"{at}/local_cpulist"))
    placed = [node.text(f"/proc/irq/{irq}/smp_affinity_list") for irq in node.names(f"{at}/msi_irqs")]
    return bool(placed) and all(not _cpus(text) & near for text in placed)


def _cpus(text: str) -> set[int]:
    runs = [run.partition("-") for run in text.split(",")]
    return {cpu for low, _, high in runs if low.isdigit() for cpu in range(int(low), int(high or low) + 1)}


def _meet(port: int, peer: str, able: Able) -> Able:
    """Exchange what both ends can; a server waits for one client."""
    if not peer:
        say(f"\n{'*' * 36}\n* Waiting for client to connect... *\n{'*' * 36}")
        with socket.create_server(("", port)) as server:
            line, _ = server.accept()
    else:
        line = _connect(peer, port)
    with line, line.makefile("rwb") as stream:
        line.settimeout(_PATIENCE)
        try:
            stream.write(json.dumps(able).encode() + b"\n")
            stream.flush()
            other: Able = json.loads(stream.readline())
        except (OSError, ValueError):
            raise ToolError(
                "ethernet_read_keys: Couldn't read remote address\n Unable to read to socket/rdma_cm"
            ) from None
    return other


def _connect(peer: str, port: int) -> socket.socket:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection((peer, port), timeout=_PATIENCE)
        except OSError:
            if time.monotonic() > until:
                raise ToolError(
                    f"Couldn't connect to {peer}:{port}\nUnable to open file descriptor for socket connection"
                ) from None
            time.sleep(0.05)


def _head(title: str, device: str, able: Able, options: dict[str, str]) -> None:
    if "--use_cuda" in options:
        say(f"initializing CUDA\nUsing {'DMA-BUF' if '--use_cuda_dmabuf' in options else 'CUDA'} for GPU memory")
    kind = "IB" if able["layer"] == "InfiniBand" else "Ethernet"
    say(f"{_LINE}\n                    {title} Test\n Dual-port       : OFF\t\tDevice         : {device}\n"
        f" Number of qps   : {options.get('-q', '1')}\t\tTransport type : IB\n"
        f" Connection type : RC\t\tUsing SRQ      : OFF\n"
        f" PCIe relax order: ON\n Mtu             : 4096[B]\n Link type       : {kind}\n Max inline data : 0[B]\n"
        f" rdma_cm QPs\t : OFF\n Data ex. method : Ethernet\n{_LINE}\n"
        f" local address: LID 0x01 QPN 0x004a PSN 0xbe352e\n"
        f" remote address: LID 0x02 QPN 0x0049 PSN 0x4601da\n{_LINE}")  # fmt: skip


def _bandwidth(options: dict[str, str], device: str, able: Able, other: Able) -> None:
    size = int(options.get("-s", 65536))
    rate = min(float(able["rate"]), float(other["rate"])) * random.uniform(0.997, 1.0)  # noqa: S311 - noise
    count = int(options.get("-n", 5000))
    gbits = "--report_gbits" in options
    value = rate if gbits else rate * 1e9 / 8 / 2**20
    unit = "Gb/sec" if gbits else "MB/sec"
    _head("RDMA_Write BW", device, able, options)
    say(f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]")
    peak = 0.0 if "-D" in options else value * 1.0002
    say(f" {size:<10d} {count:<14d} {peak:<18.2f} {value:<18.2f} {rate * 1e3 / 8 / size:<.6f}\n{_LINE}")


def _latency(options: dict[str, str], device: str, able: Able, other: Able) -> None:
    count = max(5, int(options.get("-n", 1000)))
    typical = max(float(able["us"]), float(other["us"]))
    first = [typical + 9.0 / 2**number for number in range(6)]  # caches of translations fill
    rest = [typical * random.uniform(0.98, 1.04) for _ in range(count - 6)]  # noqa: S311 - noise
    samples = (first + rest)[:count]
    ordered = sorted(samples)
    _head("Send Latency", device, able, options)
    if "-U" in options:
        say("#, usec")
        for number, sample in enumerate(samples, 1):
            say(f"{number}, {sample:g}")
    mean = sum(samples) / count
    spread = (sum((sample - mean) ** 2 for sample in samples) / count) ** 0.5
    marks = [ordered[int(count * share)] for share in (0.99, 0.999)]
    cells = [ordered[0], ordered[-1], ordered[count // 2], mean, spread, *marks]
    say(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
        "99% percentile[usec]   99.9% percentile[usec] ")  # fmt: skip
    say(f" {options.get('-s', '2'):<7} {count:<11} " + "   ".join(f"{cell:<10.2f}" for cell in cells) + f"\n{_LINE}")
