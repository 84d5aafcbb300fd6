"""
Kernel messages of interest, other than Xids and SXids: one row a message.

A new message is a new row here and, where it deserves a verdict, a row in :mod:`hwcheck.checks.kernel`. Patterns may name
the groups ``device`` (what it is about; ``peer`` is taken where that is empty) and ``detail``. Lines are cut to 1000
characters before they get here.
"""

# ruff: noqa: E501 - one message a row
from __future__ import annotations

import re
from typing import NamedTuple

ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"


class Rule(NamedTuple):
    """A kind of event, a word that every such line holds (a cheap test), and the pattern."""

    kind: str
    word: str
    pattern: re.Pattern[str]


def _aer(severity: str) -> str:
    """Match both lines of one report: the root port's and the device's."""
    return (
        rf"(?P<device>{ADDRESS}): (?:AER: )?PCIe Bus Error: severity={severity}(?:, type=(?P<detail>[\w ]{{1,40}}))?"
        rf"|AER: (?:Multiple )?{severity} error (?:message )?received(?:: | from )(?P<peer>{ADDRESS})"
    )


_MLX5 = rf"mlx5_core (?P<device>{ADDRESS})[^:]{{0,40}}: "

_ROWS = (
    # NVIDIA driver, outside of Xids
    ("nvrm.off_bus", "fallen off the bus", rf"NVRM: (?:GPU (?:at PCI:)?(?P<device>{ADDRESS}).{{0,40}}|.{{0,60}})fallen off the bus"),
    ("nvrm.init_failed", "RmInitAdapter", rf"NVRM: (?:GPU (?P<device>{ADDRESS}): )?RmInitAdapter failed!\s?\(?(?P<detail>[0-9a-fx:]{{0,40}})"),
    ("nvrm.no_device", "devices", r"NVRM: None of the NVIDIA (?P<detail>devices) were init"),
    ("nvrm.probe_failed", "failed with error", rf"(?:nvidia: probe of (?P<device>{ADDRESS})|nvidia (?P<peer>{ADDRESS}): probe with driver nvidia) failed with error (?P<detail>-?\d{{1,5}})"),
    ("nvrm.bad_region", "PCI I/O region", r"NVRM: This PCI I/O region assigned to your NVIDIA device (?P<detail>is invalid)"),
    # The message goes over three lines: which GPU, that it is not supported, by which driver.
    ("nvrm.unsupported", "NVIDIA GPU", rf"NVRM: The NVIDIA GPU (?P<device>{ADDRESS})(?: \(PCI ID: (?P<detail>[0-9a-f:]{{9}})\))?"),
    ("nvrm.unsupported", "not supported", r"NVRM: +installed in this (?:\w{1,10} ){0,2}system is not supported"),
    ("nvrm.gsp_limited", "Rate limiting GSP", rf"Rate limiting GSP RPC error prints for GPU at PCI:(?P<device>{ADDRESS})"),
    ("peermem.invalid_context", "peermem", r"nvidia-peermem .{0,80}invalid context"),
    # NICs
    (
        "mlx5.fatal",
        "mlx5_core",
        _MLX5 + r".{0,120}?(?P<detail>Fatal error \d+ detected|health compromised.{0,40}|handling bad device|"
        r"unrecoverable hardware error|Health issue observed,.{1,60}severity\([0-3]\)|synd 0x[1-9a-f][0-9a-f]?: .{1,60})",
    ),
    ("mlx5.timeout", "mlx5_core", _MLX5 + r".{0,120}?(?P<detail>timeout\. Will cause a leak of a command resource)"),
    ("mlx5.module", "Port module event", _MLX5 + r".{0,60}?Port module event\[error\]: (?P<detail>.{1,80})"),
    ("mlx5.hot", "igh temperature", _MLX5 + r".{0,60}?(?P<detail>[Hh]igh temperature.{0,60})"),
    ("mlx5.power", "insufficient power", _MLX5 + r".{0,80}?insufficient power on the PCIe slot \((?P<detail>\d+)W\)"),
    ("mlx5.link_down", "ink ", rf"mlx5_core (?P<device>{ADDRESS})(?: (?P<detail>[\w.-]{{1,32}}))?: (?:Port: \d+ )?[Ll]ink (?:down|DOWN)"),
    ("mlx5.link_up", "ink ", rf"mlx5_core (?P<device>{ADDRESS})(?: (?P<detail>[\w.-]{{1,32}}))?: (?:Port: \d+ )?[Ll]ink (?:up|UP)"),
    ("mlx5.probe_failed", "failed with error", rf"(?:mlx5_core: probe of (?P<device>{ADDRESS})|mlx5_core (?P<peer>{ADDRESS}): probe with driver mlx5_core) failed with error (?P<detail>-?\d{{1,5}})"),
    # PCI Express
    ("pcie.limited", "available PCIe bandwidth, limited", rf"(?P<device>{ADDRESS}).{{0,40}}?: (?P<detail>[\d.]{{1,10}} Gb/s available PCIe bandwidth, limited by [\d.]{{1,6}} GT/s PCIe x\d{{1,3}} link(?: at [0-9a-f:.]{{1,16}})?(?: \(capable of [^)]{{1,80}}\))?)"),
    ("pcie.contained", "DPC: ", rf"(?P<device>{ADDRESS}).{{0,40}}?DPC: containment event,? ?(?P<detail>.{{0,60}})"),
    ("pcie.slot_down", "pciehp", rf"(?P<device>{ADDRESS}).{{0,40}}?pciehp: (?P<detail>Slot\([^)]{{1,20}}\)): Link Down"),
    ("aer.fatal", "(Fatal)", _aer(r"Uncorrect(?:ed|able) \(Fatal\)")),
    ("aer.nonfatal", "(Non-Fatal)", _aer(r"Uncorrect(?:ed|able) \(Non-Fatal\)")),
    ("aer.corrected", "Correct", _aer(r"Correct(?:ed|able)")),
    # Memory and CPU. In a machine check status bit 61 says uncorrected: the first hex digit has its second bit set.
    ("mce.uncorrected", "Machine Check", r"CPU (?P<device>\d{1,5}): Machine Check(?: Exception)?: \S{1,20} (?P<detail>Bank \d{1,3}): [2367abefABEF][0-9a-fA-F]{15}"),
    ("mce.corrected", "Machine Check", r"CPU (?P<device>\d{1,5}): Machine Check(?: Exception)?: \S{1,20} (?P<detail>Bank \d{1,3}): [014589cdCD][0-9a-fA-F]{15}"),
    ("mce.logged", "Machine check events logged", r"\[Hardware Error\]: (?P<detail>Machine check events logged)"),
    ("ghes.fatal", "event severity", r"\[Hardware Error\]: event severity: (?P<detail>fatal|recoverable)"),
    ("ghes.corrected", "event severity", r"\[Hardware Error\]: event severity: (?P<detail>corrected)"),
    ("edac.uncorrected", "EDAC", r"EDAC (?P<device>MC\d{1,3}): (?:\d{1,9} )?UE (?P<detail>.{0,100})"),
    ("edac.corrected", "EDAC", r"EDAC (?P<device>MC\d{1,3}): (?:\d{1,9} )?CE (?P<detail>.{0,100})"),
    ("memory.poison", "Memory failure", r"Memory failure: 0x[0-9a-f]{1,16}: (?P<detail>recovery action for .{1,80})"),
    ("cpu.throttled", "clock throttled", r"CPU(?P<device>\d{1,5}): (?P<detail>.{0,20}temperature.{0,10} above threshold)"),
    # The kernel itself
    ("kernel.panic", "panic", r"Kernel panic - not syncing: (?P<detail>.{0,120})"),
    ("kernel.oops", "", r"(?P<detail>BUG: unable to handle .{0,80}|kernel BUG at \S{1,100}|Oops: [0-9a-f]{4} \[#\d+\]|general protection fault, .{0,60})"),
    ("kernel.hard_lockup", "LOCKUP", r"hard LOCKUP on cpu (?P<device>\d{1,5})"),
    ("kernel.soft_lockup", "soft lockup", r"soft lockup - CPU#(?P<device>\d{1,5}) stuck for (?P<detail>\d{1,6}s! \[[^\]]{1,60}\]?)"),
    ("kernel.hung_task", "blocked for more than", r"INFO: task (?P<detail>.{1,64}?):\d+ blocked for more than (?:\d+) seconds"),
    ("kernel.rcu_stall", "stall", r"rcu\w{0,12}:? .{0,60}?(?P<detail>self-detected stall|detected stalls)"),
    ("kernel.oom_cgroup", "cgroup out of memory", r"Memory cgroup out of memory: Kill(?:ed)? process \d+ \((?P<detail>[^)]{1,64})"),
    ("kernel.oom", "ut of memory", r"Out of memory.{0,40}: Kill(?:ed)? process \d+ \((?P<detail>[^)]{1,64})"),
    # Storage. Optical, floppy and loop devices report errors on every healthy server.
    ("fs.readonly", "read", r"(?:EXT4-fs|XFS|BTRFS\w*)[^(]{0,20}\(?(?:error \()?(?:device )?(?P<device>[\w-]{1,40})\)?.{0,120}(?:Remounting filesystem read-only|forced readonly)"),
    ("fs.readonly", "XFS", r"XFS \((?P<device>[\w-]{1,40})\): .{0,160}(?:[Ss]hutting down filesystem|Filesystem has been shut down)"),
    ("fs.damaged", "rror", r"EXT4-fs error \(device (?P<device>[\w-]{1,40})\): (?P<detail>.{0,100})"),
    ("fs.damaged", "XFS", r"XFS \((?P<device>[\w-]{1,40})\): (?P<detail>Metadata (?:CRC error|corruption) detected.{0,60})"),
    ("fs.damaged", "BTRFS", r"BTRFS (?:error|critical) \(device (?P<device>[\w-]{1,40})\):? (?P<detail>(?:corrupt|parent transid verify failed|bad tree block).{0,80})"),
    ("disk.io_error", "error", r"(?:I/O error,? (?:on )?dev|critical medium error, dev) (?P<device>(?!sr|fd|loop)[a-z][\w-]{1,40})"),
    ("nvme.down", "nvme", r"nvme (?P<device>nvme\d{1,3}): (?P<detail>controller is down|Device not ready; aborting|Removing after probe failure|Disabling device after reset failure|frozen state error detected)"),
    ("nvme.timeout", "timeout", r"nvme (?P<device>nvme\d{1,3}): I/O .{0,80}(?P<detail>timeout, (?:aborting|reset controller|completion polled))"),
    ("nfs.silent", "not responding", r"nfs: server (?P<device>\S{1,100}) not responding"),
)  # fmt: skip

RULES = tuple(Rule(kind, word, re.compile(pattern)) for kind, word, pattern in _ROWS)

INTEREST = re.compile(
    r"NVRM|SXid|nvidia-nvswitch|nvidia-peermem|mlx5_core|AER: |PCIe Bus Error|Hardware Error|EDAC MC\d|Memory failure"
    r"|clock throttled|panic - |BUG: unable|kernel BUG at|Oops: |general protection fault, |LOCKUP|soft lockup"
    r"|blocked for more than|detected stall|ut of memory|read-only|readonly|XFS \(|I/O error|critical medium error"
    r"|nvme nvme|not responding|nvidia: probe of|driver nvidia failed|PCIe bandwidth, limited|DPC: contain|pciehp|EXT4-fs error"
    r"|BTRFS (?:error|critical)|Linux version |PCI host bridge to bus|Run /init as init"
)
"""Finds the lines that any rule could want; everything else of a log is passed over without a further look."""


def event_of(message: str) -> tuple[str, str, str] | None:
    """Return kind, device and detail of a message; None when no rule knows it."""
    for rule in RULES:
        if rule.word not in message:
            continue
        match = rule.pattern.search(message)
        if match is not None:
            found = match.groupdict()
            device = found.get("device") or found.get("peer") or ""
            return rule.kind, device, (found.get("detail") or "").strip()
    return None
