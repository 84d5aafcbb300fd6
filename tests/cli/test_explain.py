"""``hwcheck explain`` answers for everything that has a name."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from hwcheck.checks import RELATIONS
from hwcheck.cli.main import main
from hwcheck.errors import UsageError
from hwcheck.facts import NAMES
from hwcheck.knowledge import sxids, xids
from hwcheck.mechanisms import MECHANISMS
from hwcheck.parse import FORMATS
from hwcheck.profiles import ProfileSet
from hwcheck.report.explain import explain
from hwcheck.report.explain_check import check_ids
from hwcheck.report.page import HEADINGS, Page, Table, paragraphs, render_page, sections_of


@pytest.fixture(scope="module")
def profiles() -> ProfileSet:
    """Load the shipped layers once."""
    return ProfileSet()


def shown(page: Page, width: int = 80) -> str:
    """Render a page as plain text."""
    file = io.StringIO()
    render_page(page, Console(file=file, width=width, markup=False, highlight=False, emoji=False))
    return file.getvalue()


def flat(text: str) -> str:
    """Join the lines of a rendered page."""
    return " ".join(text.split())


def test_every_check_is_explained(profiles: ProfileSet) -> None:
    """Each id that a finding can have tells what, why, how to fix, where it applies, and its source."""
    lacking = {}
    for id in check_ids(profiles):
        sections = explain([id], profiles).sections
        missing = [heading for heading in HEADINGS if not sections.get(heading)]
        if missing:
            lacking[id] = missing
    assert {} == lacking


def test_every_finding_id_is_known(profiles: ProfileSet) -> None:
    """The list holds the ids of all layers, relations and codes, and the engine's own."""
    ids = set(check_ids(profiles))
    assert {"evidence.complete", "xid.79", "xid.unlisted", "sxid.20034", "hbm.total", "driver.fabric_manager"} <= ids
    assert {f"xid.{code}" for code in xids()} | {f"sxid.{code}" for code in sxids()} <= ids
    for name in profiles.layers:
        assert set(profiles.profile(name).checks) <= ids
    assert {id for relation in RELATIONS.values() for id in relation.ids or (relation.id,)} <= ids


def test_check_of_the_profiles_shows_each_platform(profiles: ProfileSet) -> None:
    """The wanted value stands with layer, confidence and source for every platform."""
    text = flat(shown(explain(["hbm.total"], profiles)))
    assert re.search(r"143771 MiB hgx-h200 A \[\d+\] hgx-h200", text)
    assert re.search(r"81559 MiB hgx-h100 A \[\d+\] hgx-h100", text)


def test_relation_shows_the_figures_it_uses(profiles: ProfileSet) -> None:
    """A relation's bounds are found, also those that a function of its module asks for."""
    text = flat(shown(explain(["nvlink.active"], profiles)))
    assert "nvlink.links:" in text
    assert "fabric.kind:" in text


@pytest.mark.parametrize("words", [["xid", "79"], ["xid.79"], ["Xid", "79"], ["XID 79"]])
def test_codes_are_found_in_every_spelling(words: list[str], profiles: ProfileSet) -> None:
    """``xid 79`` and ``xid.79`` are one thing."""
    page = explain(words, profiles)
    assert "xid.79" == page.name
    text = flat(shown(page))
    assert "GPU has fallen off the bus" in text
    assert "power-cycle the node" in text
    assert "Seen once, it is a fail; act: now." in text


def test_application_error_is_told_apart(profiles: ProfileSet) -> None:
    """An Xid of an application is a warning by itself, and the page says so."""
    assert "Seen once, it is a warning." in flat(shown(explain(["xid", "31"], profiles)))


def test_switch_error(profiles: ProfileSet) -> None:
    """An SXid says whom it hits."""
    assert "on a trunk port every GPU of the partition" in flat(shown(explain(["sxid", "20034"], profiles)))


def test_nvlink5_codes_are_decoded(profiles: ProfileSet) -> None:
    """The decoding of Xid 144 to 150 is a table of units and status words."""
    for code in range(144, 151):
        (table,) = [
            block for block in explain([f"xid.{code}"], profiles).sections["Decoding"] if isinstance(block, Table)
        ]
        assert table.rows
    assert "Decoding" not in explain(["xid.79"], profiles).sections


def test_profiles_show_rules_and_origin(profiles: ProfileSet) -> None:
    """A profile tells how it is recognised, and from which layer each figure comes."""
    text = flat(shown(explain(["hgx-h200"], profiles)))
    assert "10de:2335/10de:18be" in text
    assert re.search(r"hbm\.total 143771 MiB hgx-h200 A \[\d+\]", text)
    assert re.search(r"hbm\.remap_pending no base A \[\d+\]", text)


def test_all_profiles_sources_facts_bounds_and_families_have_pages(profiles: ProfileSet) -> None:
    """Whatever has a name has a page, and it fits 80 columns but for words that cannot be broken."""
    bounds = {id for layer in profiles.layers.values() for id in (layer.data.get("bounds") or {})}
    for name in (*profiles.layers, *FORMATS, *NAMES, *bounds, *profiles.families):
        page = explain([name], profiles)
        assert page.sections, name
        assert all(len(line) <= 80 for line in shown(page).splitlines()), name


def test_source_says_what_it_gives(profiles: ProfileSet) -> None:
    """A source lists its facts, and is found by what people call it too."""
    text = flat(shown(explain(["nvidia-smi.q"], profiles)))
    assert "gpu.memory.total MiB" in text
    assert "nvidia-smi.q" == explain(["nvidia-smi -q"], profiles).name


def test_fact_says_who_gives_and_who_asks(profiles: ProfileSet) -> None:
    """A fact lists its sources and its checks."""
    text = flat(shown(explain(["gpu.memory.total"], profiles)))
    assert "nvidia-smi.xml" in text
    assert "hbm.total" in text


def test_unknown_word_gets_suggestions(profiles: ProfileSet, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip is answered with the nearest names and exit code 2."""
    with pytest.raises(UsageError, match=r"did you mean .*hbm\.total"):
        explain(["hbm.totl"], profiles)
    with pytest.raises(UsageError, match=r"xid\.79"):
        explain(["79"], profiles)
    assert 2 == main(["explain", "qqqqqq"])
    assert "nothing is called 'qqqqqq'" in capsys.readouterr().err
    assert 2 == main(["explain", "\x1b[31m" + "x" * 5000])
    assert "\x1b" not in capsys.readouterr().err


def test_a_mechanism_says_how_it_was_tried(profiles: ProfileSet) -> None:
    """Keys, values, when they count, and which checks write by it: those of YAML, of code, and what is worked out."""
    for name in MECHANISMS:
        assert f"Seen: {MECHANISMS[name].seen} (tried on" in flat(shown(explain(["mechanism", name], profiles))), name
    text = flat(shown(explain(["kernel_argument"], profiles)))
    assert "at the next boot" in text
    assert "kernel.next_arguments, pcie.aspm, pcie.aspm_policy" in text


def test_a_family_keeps_its_page_and_points_to_the_mechanism(profiles: ProfileSet) -> None:
    """``explain gpu`` is the family, as before there were mechanisms."""
    text = flat(shown(explain(["gpu"], profiles)))
    assert "gpu (family of checks)" in text
    assert "hwcheck explain mechanism gpu" in text


@pytest.mark.parametrize("id", ["sysctl.numa_balancing", "sysctl.persistence", "pcie.aspm_policy"])
def test_a_check_that_writes_says_how_that_was_tried(id: str, profiles: ProfileSet) -> None:
    """A lab of our own making proves nothing about iron, and the page says so."""
    text = flat(shown(explain([id], profiles)))
    assert re.search(r"- [a-z_, ]+ seen: lab \(tried on simulated nodes of our own making, on no real one\)", text)


def test_a_check_that_needs_hands_claims_nothing_of_the_kind(profiles: ProfileSet) -> None:
    """Nothing is written, so nothing was tried."""
    assert "seen:" not in flat(shown(explain(["hbm.total"], profiles)))


def test_a_source_says_how_its_reading_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """Of posted texts alone, which the node program never asks for, there is nothing to say."""
    assert 0 == main(["explain", "sysctl.dropins"])
    assert "Seen: iron (tried on real machines)" in capsys.readouterr().out
    assert 0 == main(["explain", "devicequery"])
    assert "Seen:" not in capsys.readouterr().out


def test_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the page on standard output and ends with 0."""
    assert 0 == main(["explain", "xid", "79"])
    assert capsys.readouterr().out.startswith("xid.79  (GPU error)\nXid 79: GPU has fallen off the bus\n")


def test_docstrings_are_taken_apart() -> None:
    """Headings open sections; lines of a paragraph are joined, items, labels and tables are kept."""
    text = "What it checks: one\ntwo ``three``.\n\n- a\n  b\n- c\n\nSource: x"
    assert {"What it checks": ["one two three.", "- a b", "- c"], "Source": ["x"]} == sections_of(text)
    assert ["Source: a b", "Units: c"] == list(paragraphs("Source: a\n  b\nUnits: c"))


@pytest.mark.parametrize(("words", "id"), [(["xid", "12345"], "xid.unlisted"), (["SXid", "99999"], "sxid.unlisted")])
def test_a_code_of_no_catalogue_is_explained(profiles: ProfileSet, words: list[str], id: str) -> None:
    """Who meets an unlisted code is told that it is in no catalogue, and how such a code is judged."""
    text = flat(shown(explain(words, profiles)))
    assert "in no catalogue" in text
    assert id in text
    assert "ask vendor support" in text


def test_a_number_that_is_no_code_is_not_explained(profiles: ProfileSet) -> None:
    """Absurd numbers and other words are still unknown."""
    for words in (["xid", "9" * 40], ["xid", "twelve"], ["xid", "١٢"]):
        with pytest.raises(UsageError):
            explain(words, profiles)


def test_what_the_driver_asks_for_is_not_called_information(profiles: ProfileSet) -> None:
    """Xid 154 is judged by the action it names."""
    text = flat(shown(explain(["xid", "154"], profiles)))
    assert "nformation only" not in text
    assert "nformational only" not in text
    assert "any other is a fail" in text


def test_a_site_layer_is_explained_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the site's layer, its own check has a page, and its value of a shipped bound is told as the site's."""
    layer = tmp_path / "site.yaml"
    layer.write_text(
        "name: our-site\nbounds:\n  roce.traffic_class: {value: 106, why: our fabric, source: our switches}\n"
        "checks:\n  hbm.ours:\n    fact: gpu.memory.reserved\n    title: HBM kept\n    expect: {at_most: 1024}\n"
        "    remedy: {kind: hands, text: Look at the driver.}\n    why: More is odd.\n    source: ours\n",
        encoding="utf-8",
    )
    told = []
    for name in ("roce.traffic_class", "hbm.ours"):
        assert main(["explain", name, "--site", str(layer)]) == 0
        told.append(flat(capsys.readouterr().out))
    assert "106 our-site" in told[0]
    assert "at most 1024 MiB our-site" in told[1]
