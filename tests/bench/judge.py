"""
``./run bench judge``: what judging costs. Medians and spread of one run on one machine; nothing here is a test.

Measured: CPU time of an 8-GPU ``nvidia-smi -q -x`` parsed and judged; a million kernel log lines read, parsed and
judged, with the peak of memory; many nodes judged as a stream, with cost per node and what is held per node.
"""

from __future__ import annotations

import argparse
import gc
import io
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

from hwcheck.evidence import Evidence
from hwcheck.lines import lines
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers.segments import split_text
from tests.machines import as_xml, hgx_h200

LOG_LINES = 1_000_000


def evidence_of(text: str) -> Evidence:
    """Recognise a posted text."""
    (evidence,) = split_text(lines(io.BytesIO(text.encode())), "bench", Evidence())
    return evidence


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def show(name: str, samples: list[float], unit: str, scale: float = 1) -> None:
    """Print median and spread."""
    scaled = sorted(sample * scale for sample in samples)
    print(
        f"{name}: median {statistics.median(scaled):.2f} {unit} "
        f"(min {scaled[0]:.2f}, max {scaled[-1]:.2f}, n={len(scaled)})",
        flush=True,
    )


def bench_node(repeats: int) -> None:
    """Time one 8-GPU node from XML text to verdict."""
    supported = "\t\t<supported_clocks>\n" + "".join(
        f"\t\t\t<supported_graphics_clock>{mhz} MHz</supported_graphics_clock>\n" for mhz in range(1980, 200, -4)
    )
    text = as_xml(hgx_h200()).replace("\t</gpu>", supported + "\t\t</supported_clocks>\n\t</gpu>")
    pipeline = Pipeline(ProfileSet())
    pipeline.judge(evidence_of(text))
    print(f"8-GPU nvidia-smi -q -x: {len(text) >> 10} KiB, {text.count(chr(10))} lines")
    show(
        "  read, parsed and judged",
        [cpu(lambda: pipeline.judge(evidence_of(text))) for _ in range(repeats)],
        "ms CPU",
        1e3,
    )


def log_bytes() -> Iterator[bytes]:
    """Make a kernel log of a busy node: ordinary lines, a storm of Xids, link and peermem noise."""
    ordinary = (
        "systemd[1]: Started session-{n}.scope - Session {n} of User ops.",
        'audit: type=1400 audit(1700000{n}.123:99): apparmor="STATUS" operation="profile_load" pid={n}',
        "docker0: port 1(veth{n}) entered forwarding state",
        "perf: interrupt took too long (2516 > 2500), lowering kernel.perf_event_max_sample_rate to 79000",
    )
    storm = "NVRM: Xid (PCI:0000:18:00): 13, pid={n}, name=python, Graphics SM Warp Exception on (GPC 1, TPC {t}, SM 0)"
    for number in range(LOG_LINES):
        form = storm if number % 50 == 0 else ordinary[number % len(ordinary)]
        yield f"[{number / 10:12.6f}] {form.format(n=number % 100_000, t=number % 9)}\n".encode()


class Pipe(io.RawIOBase):
    """A file that is made while it is read, so that no copy of it counts as memory of hwcheck."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        super().__init__()
        self._parts, self._rest = parts, b""

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes."""
        while len(self._rest) < size:
            part = next(self._parts, None)
            if part is None:
                break
            self._rest += part
        out, self._rest = self._rest[:size], self._rest[size:]
        return out


def bench_log_child() -> None:
    """Read the log in a process of its own, so that its memory peak is its own."""
    pipeline = Pipeline(ProfileSet())
    making = cpu(lambda: [0 for _ in log_bytes()])
    start = time.process_time()
    (evidence,) = split_text(lines(Pipe(log_bytes())), "kern.log", Evidence())  # type: ignore[arg-type]
    verdict = pipeline.judge(evidence)
    spent = time.process_time() - start - making
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{LOG_LINES} kernel log lines: {spent:.2f} s CPU, peak {peak:.0f} MiB of the whole process, {verdict.verdict}"
    )


def bench_log(repeats: int) -> None:
    """Run the log bench in fresh processes."""
    for _ in range(repeats):
        subprocess.run([sys.executable, "-m", "tests.bench.judge", "--log-child"], check=True)


def fleet(count: int) -> Iterator[Evidence]:
    """Make nodes one by one: eight GPUs each, every tenth with a fault."""
    healthy = as_xml(hgx_h200())
    sick = as_xml(hgx_h200({3: {"remap_pending": "Yes"}}))
    for number in range(count):
        evidence = evidence_of(sick if number % 10 == 0 else healthy)
        evidence.node = f"gpu-{number:05d}"
        yield evidence


def bench_fleet(sizes: tuple[int, ...]) -> None:
    """Time nodes as a stream; hold per node what a summary holds, and say how much that is."""
    pipeline = Pipeline(ProfileSet())
    pipeline.judge(next(fleet(1)))
    for size in sizes:
        gc.collect()
        start = time.process_time()
        held = {verdict.node: (verdict.verdict, len(verdict.incidents)) for verdict in map(pipeline.judge, fleet(size))}
        spent = time.process_time() - start
        print(f"{size} nodes as a stream: {spent / size * 1e3:.2f} ms CPU a node ({len(held)} judged)", flush=True)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    count = 200
    kept = {verdict.node: (verdict.verdict, len(verdict.incidents)) for verdict in map(pipeline.judge, fleet(count))}
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(f"held per node of a stream: {grown / count:.0f} bytes ({len(kept)} nodes)")


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log-child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller fleet")
    arguments = parser.parse_args()
    if arguments.log_child:
        bench_log_child()
        return
    bench_node(5 if arguments.quick else 21)
    bench_log(1 if arguments.quick else 3)
    bench_fleet((100, 1000) if arguments.quick else (100, 1000, 10_000))


if __name__ == "__main__":
    main()
