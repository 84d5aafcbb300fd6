"""What a certificate says, and which nodes get none."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hwcheck.certificate import evidence_hash, sign
from hwcheck.errors import NotCertifiedError
from tests.certificate.runs import GPUS, KEY, NOW, SOURCES, WAIVED, certificate, finding, run


def schema(name: str) -> dict[str, Any]:
    """Return a published schema."""
    read: dict[str, Any] = json.loads(resources.files("hwcheck.report").joinpath(name).read_text(encoding="utf-8"))
    return read


def refused(record: dict[str, Any], **changes: Any) -> NotCertifiedError:
    """Return why the node of a run is not certified."""
    with pytest.raises(NotCertifiedError) as caught:
        certificate(record, **changes)
    return caught.value


def test_the_runs_of_these_tests_are_runs() -> None:
    """What the tests make certificates of is of the schema of a run."""
    record = run(finding("pcie.acs", status="fail", waived=WAIVED))
    assert list(jsonschema.Draft202012Validator(schema("run.schema.json")).iter_errors(record)) == []


def test_it_fits_the_published_schema() -> None:
    """A signed certificate is of the schema that is published, which is one itself."""
    published = schema("certificate.schema.json")
    jsonschema.Draft202012Validator.check_schema(published)
    file = json.loads(sign(certificate(), KEY))
    assert list(jsonschema.Draft202012Validator(published).iter_errors(file)) == []


def test_it_says_which_machine() -> None:
    """Product and serial of the machine, of each GPU and adapter, versions, and the boot are in it."""
    made = certificate()
    assert made["identity"]["product"] == "PowerEdge XE9680"
    assert made["identity"]["serial"] == "7H2K9X3"
    assert [gpu["serial"] for gpu in made["identity"]["gpus"]] == ["1650000000000", "1650000000001"]
    assert made["identity"]["nics"][0]["guid"] == "a088:c203:0012:3456"
    assert made["versions"]["driver"] == "580.105.08"
    assert made["boot_id"] == "b00710ca-0000-4000-8000-000000000001"


def test_it_lists_settings_with_their_mechanisms() -> None:
    """Of all that passed, those that hwcheck can set are listed; a waived one too, as waived."""
    made = certificate(run(finding("pcie.acs", "0000:15:01.0", "fail", waived=WAIVED, observed="on")))
    assert [(one["check"], one["subject"], one["observed"], one["waived"]) for one in made["settings"]] == [
        ("clocks.persistence", GPUS[0], True, False),
        ("clocks.persistence", GPUS[1], True, False),
        ("pcie.acs", "0000:15:01.0", "on", True),
    ]
    assert made["seen"]["mechanisms"] == {"gpu": "lab", "pci_bits": "lab"}


def test_a_figure_stands_with_its_bound_and_where_that_is_from() -> None:
    """A measured value has unit, conditions, verdict, the bound it was held against and the bound's source."""
    (row,) = certificate()["baselines"]
    assert (row["measurement"], row["value"], row["unit"]) == ("hwcheck.hbm.copy", 3890.5, "GB/s")
    assert (row["judged"], row["bound"], row["source"]) == ("pass", ">= 3600 GB/s", "measured on 24 GPUs")
    assert row["conditions"]["samples"] == [3890.5, 3889.0]


def test_it_says_what_it_does_not_know() -> None:
    """Sources that gave nothing, checks that did not apply and warnings are in it."""
    made = certificate(run(finding("power.limit", GPUS[0], "warn")))
    assert made["coverage"]["untold"] == [{"source": "dcb", "why": "absent"}]
    assert [one["check"] for one in made["coverage"]["skipped"]] == ["imex.domain"]
    assert [one["check"] for one in made["warnings"]] == ["power.limit"]


def test_marks_of_what_was_used() -> None:
    """Each source that was read has its mark, and the least of all marks is said."""
    seen = certificate()["seen"]
    assert seen["sources"] == {"nvml": "lab", "kernel.log": "iron"}
    assert seen["least"] == "lab"


def test_a_lab_node_says_so() -> None:
    """The certificate of a simulated node says that it is one."""
    record = run()
    record["nodes"][0]["simulated"] = True
    assert certificate(record)["simulated"] is True


def test_days_count_from_the_run() -> None:
    """A certificate made late holds no longer than one made at once."""
    late = certificate(issued=NOW + dt.timedelta(days=30))
    assert late["valid_until"] == certificate()["valid_until"] == "2030-07-30T11:30:00+00:00"


def test_it_ends_with_the_first_waiver() -> None:
    """What rests on a waiver counts as long as the waiver, its last day included."""
    waived = {**WAIVED, "expires": "2030-06-01"}
    made = certificate(run(finding("pcie.acs", status="fail", waived=waived)))
    assert made["valid_until"] == "2030-06-02T00:00:00+00:00"
    assert made["waivers"][0]["owner"] == "ops"


@pytest.mark.parametrize(
    ("issued", "words"),
    [
        (NOW + dt.timedelta(days=91), "more than 90 days ago"),
        (NOW - dt.timedelta(days=1), "one of the two clocks is wrong"),
    ],
    ids=["old run", "clock jumped"],
)
def test_a_run_of_another_time_is_refused(issued: dt.datetime, words: str) -> None:
    """A run that is too old, or of the future, certifies nothing."""
    error = refused(run(), issued=issued)
    assert words in str(error)
    assert not error.failed


def test_an_expired_waiver_is_refused() -> None:
    """A run that rests on a waiver is of no use after it."""
    record = run(finding("pcie.acs", status="fail", waived={**WAIVED, "expires": "2030-04-30"}))
    assert "the waiver of pcie.acs expired" in str(refused(record))


def test_causes_come_first_and_consequences_are_counted() -> None:
    """The list of what is in the way has one line for an incident, then the other fails, then what is unknown."""
    remedy = {"kind": "act", "role": None, "disturbs": "node", "text": "Power-cycle the node."}
    record = run(
        finding("power.limit", GPUS[0], "unknown"),
        finding("xid.79", GPUS[1], "fail", remedy=remedy),
        finding("gpu.access", GPUS[1], "unknown"),
        finding("nvlink.active", GPUS[1], "fail"),
        finding("hbm.remap_failure", GPUS[0], "fail"),
        finding("hbm.remap_failure", GPUS[1], "fail"),
    )
    first = len(record["findings"]) - 6
    record["incidents"] = [{"lead": first + 1, "follows": [first + 2, first + 3], "text": "it fell off the bus"}]
    error = refused(record)
    assert error.failed
    assert error.reasons == (
        f"fail xid.79 on {GPUS[1]}: xid.79 is fail (2 more findings follow from it). To do: Power-cycle the node.",
        f"fail hbm.remap_failure on {GPUS[0]}, {GPUS[1]}: hbm.remap_failure is fail",
        f"unknown power.limit on {GPUS[0]}: power.limit is unknown",
    )


def test_what_was_not_told_is_in_the_way() -> None:
    """Without kernel log, or with NVML broken off, a pass is not certified; nor without a boot id."""
    record = run()
    record["nodes"][0]["about"]["sources"] = {**SOURCES, "kernel.log": "denied", "nvml": "timeout"}
    record["nodes"][0]["about"]["boot_id"] = ""
    error = refused(record)
    assert error.reasons == (
        "not told: the GPUs (NVML or nvidia-smi): timeout",
        "not told: the kernel log: denied",
        "not told: which boot it was",
    )
    assert not error.failed


def test_a_run_of_a_few_families_is_refused() -> None:
    """A pass of ``--only thermal`` says nothing about HBM or Xids."""
    record = run()
    record["findings"] = [one for one in record["findings"] if one["check"].startswith("thermal")]
    assert refused(record).reasons == ("not judged: driver, gpu, hbm, pcie, xid",)


@pytest.mark.parametrize("nodes", [0, 2], ids=["not there", "twice"])
def test_a_node_is_in_the_run_once(nodes: int) -> None:
    """A name that the run has not, or has twice, is refused."""
    record = run()
    record["nodes"] = record["nodes"] * nodes
    assert "the run" in refused(record).reasons[0]


def test_texts_of_a_node_are_made_printable() -> None:
    """Escapes, reading direction marks and lone surrogates of a node are spelled out, and long texts cut."""
    record = run()
    record["nodes"][0]["about"]["product"] = "X\x1b[31m\u202eY\ud800" + "z" * 500
    product = certificate(record)["identity"]["product"]
    assert product.startswith("X\\x1b[31m\\u202eY\\ud800zzz")
    assert product.isprintable()
    assert len(product) < 350
    assert sign(certificate(record), KEY)


def test_the_hash_of_evidence_is_that_of_sha256sum(tmp_path: Path) -> None:
    """Anyone can work out the evidence hash with sha256sum, from the files in the order of their names."""
    files = {"raw/nvml": b"1\n", "manifest.json": b"{}\n", "raw/kernel.log": b""}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    told = subprocess.run(["sha256sum", *sorted(files)], cwd=tmp_path, capture_output=True, check=True).stdout
    assert evidence_hash(files) == hashlib.sha256(told).hexdigest()
    assert evidence_hash({**files, "raw/nvml": b"2\n"}) != evidence_hash(files)
