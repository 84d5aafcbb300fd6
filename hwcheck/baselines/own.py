"""hwcheck's own measurements: which check judges each, by which bound of a profile, and which source takes it again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hwcheck.findings import Finding, Status

PREFIX = "hwcheck."
"""Begins the name of each measurement of hwcheck's own: ``hwcheck.h2d@0000:18:00.0``."""
RETEST = "near the edge: measure again before acting"
"""Stands in the message of a finding whose figure is so close to its bound that chance decides."""
NEAR = 0.03


class Own(NamedTuple):
    """
    One of hwcheck's own tests.

    Attributes:
        check: id of the check that judges it.
        bound: name of the bound in a profile.
        source: id of the source that measures it.
        higher_is_better: False for a latency.
    """

    check: str
    bound: str
    source: str
    higher_is_better: bool = True

    @property
    def unit(self) -> str:
        """Unit of its figures."""
        return ("Gb/s" if self.check == "baseline.tcp" else "GB/s") if self.higher_is_better else "us"


OWN = {
    "hbm.copy": Own("baseline.hbm_copy", "baseline.hbm.copy", "load-hbm"),
    "h2d": Own("baseline.h2d", "baseline.h2d", "load-host-copy"),
    "d2h": Own("baseline.d2h", "baseline.d2h", "load-host-copy"),
    "p2p": Own("baseline.p2p", "baseline.p2p.write", "load-peers"),
    "launch": Own("baseline.launch", "baseline.launch", "load-latency", higher_is_better=False),
    "launch.tail": Own("baseline.launch_tail", "baseline.launch.tail", "load-latency", higher_is_better=False),
    "copy.small.tail": Own(
        "baseline.copy_small_tail", "baseline.copy.small.tail", "load-latency", higher_is_better=False
    ),
    "copy.small": Own("baseline.copy_small", "baseline.copy.small", "load-latency", higher_is_better=False),
    "cpu.memory": Own("baseline.cpu_memory", "baseline.cpu.memory", "load-cpu-memory"),
    "os.jitter": Own("baseline.os_jitter", "baseline.os.jitter", "load-jitter", higher_is_better=False),
    "disk.read": Own("baseline.disk", "baseline.disk.read", "load-disk"),
    "disk.write": Own("baseline.disk", "baseline.disk.write", "load-disk"),
    "disk.latency": Own("baseline.disk", "baseline.disk.latency", "load-disk", higher_is_better=False),
    "tcp": Own("baseline.tcp", "baseline.tcp", ""),
}
"""Test → how it is judged. Peers share the bound of nvbandwidth's writes, host copies that of its copy engine."""


def split(subject: str) -> tuple[str, str]:
    """Take a measurement's name apart: ``hwcheck.h2d@0000:18:00.0`` → ``h2d``, ``0000:18:00.0``; "" for another's."""
    name, _, on = subject.partition("@")
    return (name.removeprefix(PREFIX), on) if name.startswith(PREFIX) else ("", "")


def sources_to_repeat(findings: Iterable[Finding]) -> tuple[str, ...]:
    """
    Name the sources to ask once more: those of failed, doubtful and close figures, each once.

    A second run that says the same is believed. What could not be measured at all is asked again too.
    """
    checks = {own.check: own.source for own in OWN.values() if own.source}
    again = [
        checks[finding.check]
        for finding in findings
        if finding.check in checks
        and (finding.status in (Status.FAIL, Status.WARN, Status.UNKNOWN) or RETEST in finding.message)
    ]
    return tuple(dict.fromkeys(again))
