"""The shipped example nodes: what ``./run demo`` shows."""

from __future__ import annotations

from hwcheck.findings import NodeVerdict, Status
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers import read_paths
from tests.examples import EXAMPLES, TARGET


def judged(name: str) -> NodeVerdict:
    """Judge one example."""
    (evidence,) = read_paths([str(TARGET / name)])
    return Pipeline(ProfileSet()).judge(evidence)


def test_examples_are_as_the_script_makes_them() -> None:
    """The files in the package are those that tests/examples.py writes: nobody edited them by hand."""
    for name, files in EXAMPLES.items():
        found = {str(p.relative_to(TARGET / name)): p.read_text() for p in (TARGET / name).rglob("*") if p.is_file()}
        assert found == files


def test_healthy_example_has_no_alarm() -> None:
    """The healthy HGX H200 passes in each area that it shows, without a warning or an open question."""
    verdict = judged("hgx-h200-healthy")
    assert {f.status for f in verdict.findings} == {Status.PASS, Status.SKIP}
    assert {"gpu", "hbm", "fabric", "nvlink", "pcie", "rdma", "time", "xid", "sxid", "driver"} <= {
        f.family for f in verdict.findings if f.status is Status.PASS
    }


def test_faulty_example_names_both_lead_faults() -> None:
    """Of the faulty node two incidents are told, led by the lost GPU and by the memory error, and the lone faults."""
    verdict = judged("hgx-h200-faulty")
    leads = [(verdict.findings[i.lead].check, verdict.findings[i.lead].subject.id) for i in verdict.incidents]
    assert leads == [("xid.79", "0000:ab:00.0"), ("xid.48", "0000:3a:00.0")]
    alone = {f.check for f in verdict.findings if f.status in (Status.FAIL, Status.WARN)}
    assert {"rdma.port_down", "time.chrony", "hbm.remap_pending", "gpu.count"} <= alone
