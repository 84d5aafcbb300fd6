"""Verdicts that have one of everything, made by hand: the reports are tested apart from what judges."""

from __future__ import annotations

import io

from rich.console import Console

from hwcheck.facts import NODE, NOT_COLLECTED, Missing, Origin, Reason, Subject, gpu_at
from hwcheck.findings import Finding, Incident, Measurement, NodeVerdict, Remedy, Status, Urgency

GPUS = [gpu_at(f"0000:{bus}:00.0") for bus in ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")]
SWITCH = Subject("switch", "0000:05:00.0")
POWER_CYCLE = Remedy("act", "Drain and power-cycle the node; a reset does not bring the GPU back.", disturbs="node")
PERSIST = Remedy(
    "write", "Run nvidia-persistenced with --persistence-mode.", role="gpu_persistence", disturbs="nothing"
)
SWAP = Remedy("hands", "Let the job end, then reset the GPU; open an RMA if the total stays wrong.", disturbs="gpu")
LOG = "dmesg.txt"


def failed(check: str, subject: Subject, message: str, line: int, excerpt: str, **more: object) -> Finding:
    """Make a failing finding with evidence in a kernel log."""
    origin = Origin("kernel.log", LOG, line, excerpt)
    values = {"urgency": Urgency.NOW, "remedy": POWER_CYCLE, "origin": origin, **more}
    return Finding(check, subject, Status.FAIL, message, **values)  # type: ignore[arg-type]


def _bad() -> list[Finding]:
    off = "[ 912.402] NVRM: Xid (PCI:0000:2a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    total = Origin("nvidia-smi.q", "smi-q.txt", 161, "Total                             : 71884 MiB")
    mode = Origin("nvidia-smi.q", "smi-q.txt", 15, "Persistence Mode                      : Disabled")
    return [
        failed("xid.79", GPUS[1], "Xid 79 (GPU has fallen off the bus), 1 line at 912.402", 7, off),
        failed("sxid.20034", SWITCH, "SXid 20034 (LTSSM Fault Up) on port 33, 2 lines", 9, "SXid: 20034, Link 33"),
        Finding(
            "hbm.total", GPUS[0], Status.FAIL, "Memory total is 71884 MiB", Urgency.JOB_END,
            observed=71884, expected="143771 MiB", origin=total, remedy=SWAP,
        ),
        *(
            Finding(
                "gpu.persistence", gpu, Status.WARN, "Persistence mode is no, expected yes", Urgency.MAINTENANCE,
                observed=False, expected="yes", origin=mode, remedy=PERSIST,
            )
            for gpu in GPUS
        ),
        *(
            Finding("pcie.gpu_width", gpu, Status.WARN, f"PCIe width is x{8 * n}", Urgency.NOTE, origin=mode)
            for n, gpu in enumerate(GPUS[:2], 1)
        ),
    ]  # fmt: skip


def _untold() -> list[Finding]:
    source = Origin("nvidia-smi.csv", "power.csv")
    late = Missing(Reason.TIMEOUT, "no answer in 30 s")
    gap = Finding(
        "evidence.complete", NODE, Status.UNKNOWN, "nvidia-smi --query-gpu (CSV): timeout: no answer in 30 s",
        Urgency.NOTE, observed="timeout", origin=source, gap=late,
    )  # fmt: skip
    text = "Power limit: could not be told, gpu.power.limit timeout: no answer in 30 s"
    own = "all-reduce 310 GB/s; cannot be held against the floor: the ranks are not known"
    return [
        gap,
        *(Finding("power.limit", gpu, Status.UNKNOWN, text, Urgency.NOTE, origin=source, gap=late) for gpu in GPUS),
        Finding(
            "baseline.result", Subject("measurement", "nccl.all_reduce"), Status.UNKNOWN, own, Urgency.NOTE,
            origin=Origin("nccl-tests", "nccl.txt", 44, "# Avg bus bandwidth    : 310.2"),
        ),
    ]  # fmt: skip


def _good() -> list[Finding]:
    note = "3 lines of smi-q.txt not understood, the first is line 1: 'hello'"
    return [
        Finding("evidence.read", NODE, Status.PASS, "read: nvidia-smi -q, kernel log (2 times)"),
        *(Finding("gpu.ecc_mode", gpu, Status.PASS, "ECC mode is yes", observed=True, expected="yes") for gpu in GPUS),
        *(Finding("hbm.banks", gpu, Status.PASS, "3072 row-remap banks", observed=3072) for gpu in GPUS[2:]),
        Finding("gpu.count", NODE, Status.PASS, "8 GPUs"),
        Finding("imex.domain", NODE, Status.SKIP, "applies only when fabric.kind is nvlink-domain"),
        Finding("rdma.port_state", NODE, Status.SKIP, "no port in the evidence", gap=NOT_COLLECTED),
        Finding("numa.layout", NODE, Status.SKIP, "numa.nodes not collected (NUMA nodes)", gap=NOT_COLLECTED),
        Finding(
            "thermal.memory",
            GPUS[0],
            Status.SKIP,
            "gpu.temperature.memory absent (HBM temperature)",
            gap=Missing(Reason.ABSENT, "N/A"),
        ),
        Finding("evidence.leftovers", NODE, Status.SKIP, note, observed=3),
    ]


def faulty() -> NodeVerdict:
    """Return a node with two fails of one cause, a third, warnings, gaps, a waiver, passes and skips."""
    waived = Finding("time.chrony", NODE, Status.WARN, "chronyd has no source", Urgency.MAINTENANCE)
    waived.waived = {"owner": "ops@site", "reason": "no NTP in the lab network", "expires": "2030-01-31"}
    findings = [*_bad(), waived, *_untold(), *_good()]
    incident = Incident(0, (1,), "The GPU fell off the bus; its NVLinks went down with it (0000:2a:00.0).")
    measured = Measurement("nccl.all_reduce", "nccl.all_reduce", 310.2, "GB/s", {"ranks": None})
    return NodeVerdict("gpu-017", "hgx-h200", "pci-id", findings, [incident], [measured], simulated=True)


def healthy() -> NodeVerdict:
    """Return a node of which nothing is wrong."""
    return NodeVerdict("gpu-018", "hgx-h200", "name", _good())


def hostile() -> NodeVerdict:
    """Return a node whose every text tries to be obeyed."""
    evil = "[bold]x[/bold] \x1b[31mred\x1b]0;title\x07 \u202egnp.exe :smile: \ud800 ]]> <a&b> \x00" + "long" * 600
    origin = Origin("kernel.log", evil, 1, evil)
    remedy = Remedy("act", evil)
    findings = [
        Finding("gpu.access", Subject("gpu", evil), status, evil, Urgency.NOW, evil, "y" * 9000, origin, remedy)
        for status in (Status.FAIL, Status.WARN, Status.UNKNOWN)
    ]
    findings.append(Finding("gpu.access", Subject("gpu", evil), Status.PASS, evil))
    findings.append(Finding("evidence.leftovers", NODE, Status.SKIP, evil))
    waived = Finding("gpu.mig", NODE, Status.WARN, evil, Urgency.NOTE)
    waived.waived = {"owner": evil, "reason": evil, "expires": evil}
    measured = Measurement(evil, evil, 1.0, evil, {})
    return NodeVerdict(evil, evil, evil, [*findings, waived], [Incident(0, (1,), evil)], [measured])


def console(width: int) -> Console:
    """Make a console that is no terminal and writes into memory."""
    return Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False, force_terminal=False)


def text_of(target: Console) -> str:
    """Return what was written to a console of :func:`console`."""
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()
