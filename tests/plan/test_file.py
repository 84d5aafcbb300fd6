"""The plan file: what is written is read again, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hwcheck.errors import PlanError
from hwcheck.findings import Act, Write
from hwcheck.plan import NodePlan, Plan
from hwcheck.plan.file import digest, dump_plan, load_plan, plan_object, read_plan
from tests.plan.made import balancing, finding, plan

HOSTILE = "{{ lookup('pipe', 'id') }}\u202e\x1b[31m\"'"


def whole() -> Plan:
    """Make a plan that has something under each key."""
    node = plan(
        finding("sysctl.numa_balancing", writes=(balancing(irreversible=True),)),
        finding("kernel.iommu", writes=(Write("kernel_argument", "iommu", "pt"),)),
        finding("pcie.acs", writes=(Write("pci_bits", "acs_redirect", "off", opt_in=True, subject=HOSTILE),)),
        finding("service.state", acts=(Act("start", "slurmd.service"),)),
        finding("pcie.link"),
    )
    lost = NodePlan("gpu-002", "base", refused="could not be reached", failure_domain="rack 7")
    return Plan("hwcheck 1", {"name": "auto", "hash": "0123"}, "2026-01-01T00:00:00+00:00", (node, lost))


def changed(change: Any) -> str:
    """Return the text of the plan after a change of its object; the hash is made anew."""
    told = plan_object(whole())
    change(told)
    return json.dumps({**told, "hash": digest(told)})


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Steps, acts, what is left out and what a node smuggles into a name: all of it, unchanged."""
    path = tmp_path / "plan.json"
    path.write_text(dump_plan(whole()), encoding="utf-8")
    assert read_plan(path) == whole()


def test_the_file_follows_the_published_schema() -> None:
    """As the schema of runs, it is part of the package; a node stands on a line of its own."""
    schema = json.loads(resources.files("hwcheck.report").joinpath("plan.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    text = dump_plan(whole())
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    assert [line.strip()[:18] for line in text.splitlines()].count('{"name": "gpu-001"') == 1
    assert text.isascii()
    assert "\x1b" not in text


def test_a_plan_of_no_node_is_a_plan() -> None:
    """An empty list of nodes is written and read."""
    empty = replace(whole(), nodes=())
    assert load_plan(dump_plan(empty), "plan.json") == empty


def test_a_step_for_the_node_is_short() -> None:
    """What the node is given of a step: eight keys, all of them text but what was seen."""
    step = whole().nodes[0].steps[0].for_node()
    assert list(step) == ["id", "subject", "mechanism", "key", "value", "seen", "disturbs", "restart"]
    assert set(step["seen"]) == {"running", "next boot"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("[]", "no plan of schema"),
        ('{"schema": "hwcheck.run/1"}', "but hwcheck.run/1"),
        ('{"schema": "hwcheck.plan/2"}', "but hwcheck.plan/2"),
        ('{"schema": "hwcheck.plan/1", "schema": "hwcheck.plan/1"}', "twice"),
        ("[" * 100_000, "no JSON"),
        (dump_plan(whole()).replace('"value": "0"', '"value": "1"'), "changed since it was written"),
        (changed(lambda told: told["nodes"][0]["steps"][0].update(value=True)), r"steps\.\d\.value"),
        (changed(lambda told: told["nodes"][0]["steps"][0].update(command="id")), "command"),
        (changed(lambda told: told["nodes"][0]["acts"][0].update(do="rm")), "'rm'"),
        (changed(lambda told: told.pop("nodes")), "nodes"),
    ],
    ids=["empty", "a list", "a run", "another version", "a key twice", "deep", "edited", "a boolean", "a new key",
         "another act", "cut"],
)  # fmt: skip
def test_what_is_no_plan_is_refused(text: str, words: str) -> None:
    """With the file and what is wrong, before any node is asked."""
    with pytest.raises(PlanError, match=words) as caught:
        load_plan(text, "plan.json")
    assert str(caught.value).startswith("plan.json: ")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """As are those that cannot be read."""
    with pytest.raises(PlanError, match="No such file"):
        read_plan(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="decode"):
        read_plan(tmp_path / "plan.json")
