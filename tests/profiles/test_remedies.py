"""What a layer lets hwcheck write: values from what is expected, opt-in by layer, refusals with file and line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from hwcheck.checks.expected import remedy_of
from hwcheck.errors import ProfileError
from hwcheck.findings import Remedy
from hwcheck.profiles import ProfileSet


def site(folder: Path, text: str) -> ProfileSet:
    """Load a site layer over the shipped ones."""
    path = folder / "site.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return ProfileSet([path])


def remedy(profiles: ProfileSet, check: str, platform: str = "hgx-h200") -> Remedy:
    """Return the remedy of a check."""
    made = remedy_of(profiles.profile(platform).checks[check].data)
    assert made is not None
    return made


def own(folder: Path, write: str, expect: str = "{equals: 0}", fact: str = "sysctl.swappiness") -> ProfileSet:
    """Load a site's own check with this write."""
    text = f"""\
checks:
  sysctl.ours:
    fact: {fact}
    title: Ours
    expect: {expect}
    why: what we have measured here
    source: site standard 3
    remedy:
      kind: write
      text: Set it as wanted.
      write:
{indent(write, "        ")}
"""
    path = folder / "site.yaml"
    path.write_text(text, encoding="utf-8")
    return ProfileSet([path])


@pytest.mark.parametrize(
    ("fact", "expect", "value"),
    [
        ("sysctl.swappiness", "{equals: 10}", "10"),
        ("sysctl.swappiness", "{at_least: 262144}", "262144"),
        ("sysctl.swappiness", "{one_of: [5, 6]}", "5"),
        ("gpu.persistence_mode", "{equals: true}", "1"),
        ("gpu.mig.mode", "{equals: false}", "0"),
        ("cpu.governor", "{equals: performance}", "performance"),
    ],
)
def test_the_value_is_what_is_expected(fact: str, expect: str, value: str, tmp_path: Path) -> None:
    """One declaration, two faces: the write takes it from the check."""
    profiles = own(tmp_path, "{mechanism: sysctl, key: vm.swappiness}", expect, fact)
    assert [write.value for write in remedy(profiles, "sysctl.ours").writes] == [value]


def test_a_wish_is_written_rather_than_a_demand(tmp_path: Path) -> None:
    """What is only tolerated is not what is set."""
    text = "checks: {sysctl.max_map_count: {expect: {at_least: 100000}, why: ours to say, source: site standard}}"
    assert remedy(site(tmp_path, text), "sysctl.max_map_count").writes[0].value == "262144"


@pytest.mark.parametrize("expect", ["{at_most: 5}", "{none_of: [1]}", "{between: [1, 2]}"])
def test_an_expectation_without_a_value_needs_one(expect: str, tmp_path: Path) -> None:
    """A bound from above names no value; the error names file and line."""
    with pytest.raises(ProfileError, match=r"site\.yaml:\d+: check sysctl\.ours: .*needs a value"):
        own(tmp_path, "{mechanism: sysctl, key: vm.swappiness}", expect).profile("base")
    profiles = own(tmp_path, "{mechanism: sysctl, key: vm.swappiness, value: 2}", expect)
    assert remedy(profiles, "sysctl.ours").writes[0].value == "2"


def test_a_value_that_the_check_would_not_accept_is_refused(tmp_path: Path) -> None:
    """It would be written again and again and never pass; where the check judges another thing, it may differ."""
    write = "{mechanism: sysctl, key: vm.swappiness, value: 7}"
    with pytest.raises(ProfileError, match="the check itself does not accept"):
        own(tmp_path, write).profile("base")
    profiles = own(tmp_path, write.replace("}", ", indirect: true}"))
    assert remedy(profiles, "sysctl.ours").writes[0].value == "7"


@pytest.mark.parametrize(
    ("write", "line", "words"),
    [
        ("mechanism: sysctl\nkey: vm.swappiness\nvalue: on", 14, "value: True is no word; in YAML quote"),
        ("mechanism: sysctl\nkey: vm.swappiness\nvalue: 1.5", 14, "neither text nor integer"),
        ('mechanism: sysctl\nkey: vm.swappiness\nvalue: "a\\nb"', 14, "one printable line"),
        ("mechanism: sysfs\nkey: vm.swappiness", 12, "no such mechanism: sysfs; there are sysctl"),
        ("mechanism: sysctl\nkey: on", 13, "key: True is no word"),
        ("mechanism: sysctl", 11, "write has no key"),
        ("mechanism: sysctl\nkey: x\nwhen: now", 14, "when: not known"),
        ("mechanism: sysctl\nkey: x\nopt_in: please", 14, "not of type bool"),
        ("mechanism: sysctl\nkey: x\nrefused_by: pci.nothing", 14, "no such fact"),
        ("- {mechanism: sysctl, key: x}\n- {mechanism: sysctl, key: y, value: no}", 13, "value: False is no word"),
    ],
)  # fmt: skip
def test_a_wrong_write_is_refused_with_its_line(write: str, line: int, words: str, tmp_path: Path) -> None:
    """Before anything is judged or written."""
    with pytest.raises(ProfileError, match=rf"site\.yaml:{line}: check sysctl\.ours: .*{words}"):
        own(tmp_path, write)


def test_an_act_that_nobody_can_do_is_refused(tmp_path: Path) -> None:
    """As a mechanism that no writer has."""
    text = "checks:\n  service.reload_needed:\n    remedy:\n      act: {do: pray}\n"
    with pytest.raises(ProfileError, match=r"site\.yaml:4: .*no such act: pray"):
        site(tmp_path, text)


def test_a_site_opts_in_by_its_layer(tmp_path: Path) -> None:
    """One key of every write of the check below; the rest of the remedy stays."""
    profiles = site(tmp_path, "checks: {pcie.aspm: {remedy: {write: {opt_in: false}}}}")
    made, shipped = remedy(profiles, "pcie.aspm"), remedy(ProfileSet(), "pcie.aspm")
    assert {write.opt_in for write in made.writes} == {False}
    assert [write.key for write in made.writes] == [write.key for write in shipped.writes]
    assert made.text == shipped.text
    assert True in {write.opt_in for write in shipped.writes}


def test_a_site_opts_in_by_name(tmp_path: Path) -> None:
    """Checks that stand in code have no entry: the layer names them, or their family."""
    profiles = site(tmp_path, "opt_in: [numa.irqs, pcie]")
    assert profiles.profile("hgx-h200").opt_in == {"numa.irqs", "pcie"}
    assert profiles.profile("hgx-h200").hash != ProfileSet().profile("hgx-h200").hash


def test_a_remedy_with_a_kind_stands_for_itself(tmp_path: Path) -> None:
    """A site that says how to fix replaces all of it; one that deletes the write keeps the words."""
    text = "checks: {cpu.governor: {remedy: {kind: hands, text: Ask the firmware team.}}}"
    assert remedy(site(tmp_path, text), "cpu.governor").writes == ()
    profiles = site(tmp_path, "checks: {cpu.governor: {remedy: {write: null}}}")
    assert remedy(profiles, "cpu.governor").writes == ()
    assert remedy(profiles, "cpu.governor").kind == "write"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("checks: {memory.thp: {remedy: {disturbs: node}}}", "no kind or no text"),
        ("checks: {hbm.total: {remedy: {write: {opt_in: false}}}}", "no write or act of a lower layer"),
    ],
)
def test_half_a_remedy_is_refused(text: str, words: str, tmp_path: Path) -> None:
    """There is nothing below that it could be laid over."""
    with pytest.raises(ProfileError, match=words):
        site(tmp_path, text).profile("hgx-h200")


def test_without_a_figure_nothing_is_written(tmp_path: Path) -> None:
    """A floor that the site decides: it brings the figure, and with it the write."""
    assert remedy(ProfileSet(), "sysctl.rmem_max").writes == ()
    text: Any = "checks: {sysctl.rmem_max: {expect: {at_least: 67108864}, why: bootstrap of NCCL, source: site}}"
    assert remedy(site(tmp_path, text), "sysctl.rmem_max").writes[0].value == "67108864"
