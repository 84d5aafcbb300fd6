"""The published schema of a run, against real outputs."""

from __future__ import annotations

import copy
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hwcheck.cli.main import main
from hwcheck.profiles import ProfileSet
from hwcheck.report.json_run import dump, run_object
from tests.report.samples import faulty, healthy, hostile

SCHEMA = json.loads(resources.files("hwcheck.report").joinpath("run.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PROFILE = {"name": "auto", "hash": "0123456789abcdef"}

SMI = """\
$ nvidia-smi -q
==============NVSMI LOG==============
Driver Version                            : 570.148.08
Attached GPUs                             : 1
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H200
    Persistence Mode                      : Disabled
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
"""
LOG = """\
[  100.1] NVRM: Xid (PCI:0000:18:00): 79, pid=1, name=x, GPU has fallen off the bus.
[  100.2] NVRM: Xid (PCI:0000:18:00): 45, pid=1, name=x, Ch 00000001
"""
CUT = "GPU 00000000:18:00.0\n    Product Name                          : NVIDIA H200\n    Pers"


def sample() -> dict[str, Any]:
    """Return a run of sample verdicts, as a reader of the JSON gets it."""
    run = run_object([faulty(), healthy()], "hwcheck 1.0", PROFILE, "2030-01-01T00:00:00+00:00")
    return json.loads(dump(run))  # type: ignore[no-any-return]


def test_schema_is_one() -> None:
    """The schema itself is valid."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [SMI, LOG, SMI + LOG, CUT, "nothing known\n"])
def test_real_outputs_fit(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the command line prints as json and jsonl fits, waived findings too."""
    evidence, waivers = tmp_path / "posted.txt", tmp_path / "waivers.yaml"
    evidence.write_text(text)
    waivers.write_text("- {check: 'gpu.*', owner: ops, reason: known, expires: 2999-12-31}\n")
    for form in ("json", "jsonl"):
        main(["check", "--evidence", str(evidence), "--format", form, "--waivers", str(waivers)])
        VALIDATOR.validate(json.loads(capsys.readouterr().out))


def test_sample_verdicts_fit() -> None:
    """A run with one of everything fits; so do texts that try to break out, but for the waiver's date."""
    VALIDATOR.validate(sample())
    run = run_object([hostile()], "hwcheck 1.0", PROFILE, "2030-01-01T00:00:00+00:00")
    run["nodes"][0]["confidence"] = "none"
    VALIDATOR.validate(json.loads(dump(run)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("extra",), 1),
        (("schema",), "hwcheck.run/2"),
        (("verdict",), "ok"),
        (("nodes", 0, "extra"), 1),
        (("nodes", 0, "confidence"), "certain"),
        (("nodes", 0, "coverage", "warn"), -1),
        (("findings", 0, "check"), "weather.rain"),
        (("findings", 0, "status"), "failed"),
        (("findings", 0, "urgency"), None),
        (("findings", 0, "evidence", "line"), 0),
        (("findings", 0, "remedy", "kind"), "pray"),
        (("findings", -1, "urgency"), "now"),
        (("incidents", 0, "follows"), []),
        (("measurements", 0, "value"), "fast"),
    ],
)
def test_wrong_runs_are_refused(path: tuple[str | int, ...], value: object) -> None:
    """A key too many, a word that is none of ours, a fail without urgency."""
    run = copy.deepcopy(sample())
    *way, last = path
    part: Any = run
    for key in way:
        part = part[key]
    part[last] = value
    assert not VALIDATOR.is_valid(run)


def test_families_are_those_of_the_profiles() -> None:
    """A family added to the profiles' schema is added here too."""
    pattern = SCHEMA["$defs"]["check"]["pattern"]
    assert ProfileSet().families == set(pattern[pattern.index("(") + 1 : pattern.index(")")].split("|"))
