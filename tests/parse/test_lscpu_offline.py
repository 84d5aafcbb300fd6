"""A garbled list of offline CPUs is a gap, and brings no check down."""

from __future__ import annotations

import io

from hwcheck.evidence import Evidence
from hwcheck.lines import lines
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers.segments import split_text

GARBLED = "$ lscpu\nArchitecture: x86_64\nCPU(s): 96\nOn-line CPU(s) list: 0-95\nOff-line CPU(s) list: 96-1\ufffd91\n"


def test_garbled_list_of_cpus_does_not_pass_or_crash() -> None:
    """Whether CPUs are offline cannot be told then."""
    (evidence,) = split_text(lines(io.BytesIO(GARBLED.encode())), "paste", Evidence())
    verdict = Pipeline(ProfileSet()).judge(evidence)
    (finding,) = [finding for finding in verdict.findings if finding.check == "cpu.topology"]
    assert str(finding.status) not in ("pass", "warn", "fail")
