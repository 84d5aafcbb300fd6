"""Layers of a profile: what loads, how they merge, and what is refused with the line it stands on."""

from pathlib import Path
from textwrap import dedent

import pytest

from hwcheck.errors import ProfileError
from hwcheck.parse import FORMATS
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.layers import Layer, check_layer
from hwcheck.profiles.remedies import wanted_text
from hwcheck.profiles.yaml_lines import load_yaml


def _layer(text: str) -> Layer:
    data, lines = load_yaml(dedent(text), "site.yaml")
    return Layer("site", "site.yaml", data, lines)


def _site(folder: Path, text: str) -> ProfileSet:
    path = folder / "site.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return ProfileSet([path])


def test_a_site_replaces_one_expectation_and_keeps_the_rest(tmp_path: Path) -> None:
    """Maps merge key by key; the entry says which layer set what."""
    profiles = _site(
        tmp_path,
        """
        name: our-site
        checks:
          gpu.mig:
            expect: {equals: true}
            why: our inference nodes are sliced on purpose
            source: site standard 12
        """,
    )
    entry = profiles.profile("hgx-h200").checks["gpu.mig"]
    assert entry.data["expect"] == {"equals": True}
    assert entry.data["fact"] == "gpu.mig.mode"
    assert entry.data["severity"] == "warn"
    assert entry.layers["expect"] == "our-site"
    assert entry.layers["fact"] == "base"


def test_an_expectation_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """Half of an old expectation under a new one would mean nothing."""
    text = "checks: {thermal.tlimit: {expect: {at_least: 10}, why: cold aisle rule, source: site standard 3}}"
    entry = _site(tmp_path, text).profile("base").checks["thermal.tlimit"]
    assert entry.data["expect"] == {"at_least": 10}


def test_null_deletes_a_check_a_key_and_a_bound(tmp_path: Path) -> None:
    """A site may switch off what it does not want judged."""
    profiles = _site(
        tmp_path,
        """
        checks:
          gpu.mig: null
          thermal.tlimit: {prefer: null, why: one level is enough, source: site standard 3}
        bounds:
          gpu.count: null
        """,
    )
    profile = profiles.profile("hgx-h100")
    assert "gpu.mig" not in profile.checks
    assert "prefer" not in profile.checks["thermal.tlimit"].data
    assert "gpu.count" not in profile.bounds


def test_a_site_may_add_a_check_of_its_own(tmp_path: Path) -> None:
    """A new id is welcome when it brings its fact; it is then complete or refused."""
    text = """
        checks:
          firmware.our_vbios:
            fact: gpu.vbios
            title: VBIOS
            expect: {one_of: ["96.00.BC.00.01", "96.00.BC.00.02"]}
            why: the versions we have tested
            source: site standard 7
        """
    assert "firmware.our_vbios" in _site(tmp_path, text).profile("base").checks
    with pytest.raises(ProfileError, match=r"firmware\.our_vbios has no title"):
        _site(tmp_path, text.replace("title: VBIOS", "confidence: C")).profile("base")


def test_the_hash_follows_the_content(tmp_path: Path) -> None:
    """Two runs with one hash were judged by the same demands."""
    text = "checks: {gpu.mig: {severity: fail}}"
    assert ProfileSet().profile("base").hash == ProfileSet().profile("base").hash
    assert _site(tmp_path, text).profile("base").hash != ProfileSet().profile("base").hash


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\nchecks:\n  gpu.mig:\n    expct: {equals: false}\n", 3, "expct"),
        ("name: x\nchekcs: {}\n", None, "chekcs"),
        ("checks:\n  gpu.mig:\n    expect: {equalz: 1}\n    why: because of it\n    source: here\n", 3, "equalz"),
        (
            "checks:\n  gpu.mig:\n    expect: {equals: 1, at_least: 2}\n    why: because of it\n    source: here\n",
            3,
            "one of",
        ),
        ("checks:\n  gpu.mig:\n    expect: {at_least: two}\n    why: because of it\n    source: here\n", 3, "number"),
        (
            "checks:\n  gpu.mig:\n    expect: {between: [9, 1]}\n    why: because of it\n    source: here\n",
            3,
            "lower first",
        ),
        ("checks:\n  gpu.mig:\n    expect: {matches: '('}\n    why: because of it\n    source: here\n", 3, "pattern"),
        ("checks:\n  gpu.mig:\n    expect: {one_of: []}\n    why: because of it\n    source: here\n", 3, "list"),
        ("checks:\n  gpu.mig:\n    fact: gpu.mig.moed\n", 3, "no such fact"),
        ("checks:\n  gpu.mig:\n    expect: {equals: true}\n", 2, "why"),
        ("checks:\n  gpu.mig:\n    severity: disaster\n", 3, "disaster"),
        ("checks:\n  gpu.mig:\n    remedy: {kind: pray, text: for a long time}\n", 3, "pray"),
        ("checks:\n  gpus.mig:\n    severity: warn\n", 1, "gpus.mig"),
        ("bounds:\n  gpu.count:\n    value: 8\n", 2, "why"),
        ("checks:\n  gpu.mig:\n    when: [{fact: gpu.nmae, equals: x}]\n", 3, "no such fact"),
        ("checks:\n  gpu.mig:\n    when: [{fact: gpu.name, eqals: x}]\n", 3, "no such operator"),
        ("checks:\n  gpu.mig:\n    when: [{fcat: gpu.name, equals: x}]\n", 3, "given schemas"),
        ("checks:\n  gpu.mig:\n    when: [{fact: gpu.name, at_least: 3}]\n", 3, "cannot be said"),
        (
            "checks:\n  gpu.x:\n    fact: gpu.name\n    when: [{fact: rdma.port.rate, equals: 3}]\n",
            4,
            "belongs to a port",
        ),
        ("bounds:\n  gpu.count: {value: 8, why: it has eight, source: x}\n", 2, "x"),
    ],
)
def test_a_wrong_layer_is_refused_with_its_line(text: str, line: int | None, words: str) -> None:
    """The message names file, line and word, as a compiler would."""
    with pytest.raises(ProfileError, match=words.replace(".", r"\.")) as caught:
        check_layer(_layer(text))
    assert caught.value.path == "site.yaml"
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("checks:\n  gpu.mgi:\n    severity: warn\n", "gpu.mgi"),
        ("bounds:\n  gpu.cuont: {value: 8, why: it has eight, source: our racks}\n", "gpu.cuont"),
    ],
)
def test_a_slip_in_an_id_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """An entry for a check that exists nowhere would silently demand nothing."""
    with pytest.raises(ProfileError, match=words) as caught:
        _site(tmp_path, text)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("checks: {}\nchecks: {}\n", 2, "key twice"),
        ("checks: [\n", 2, "no valid YAML"),
        ("a: &x 1\nb: *x\n", 2, "aliases"),
        (
            "bounds:\n  gpu.count: {value: 2026-01-01, why: it has eight, source: our racks}\n",
            None,
            "no check can compare",
        ),
        (
            "checks:\n  thermal.tlimit: {expect: {at_least: .nan}, why: none at all, source: here}\n",
            None,
            "no check can",
        ),
        ("- 1\n", 1, "is a map"),
        ("", 1, "is a map"),
        ("a: !!python/object:os.system 1\n", 1, "no valid YAML"),
        ("a: \x07\n", None, "no valid YAML"),
    ],
)
def test_what_is_no_plain_yaml_map_is_refused(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    """Doubled keys, aliases, tags and garbage do not load."""
    with pytest.raises(ProfileError, match=words) as caught:
        _site(tmp_path, text)
    assert caught.value.line == line


def test_a_file_that_is_not_there_or_no_text_is_a_profile_error(tmp_path: Path) -> None:
    """The command line turns these into exit code 2, without a traceback."""
    with pytest.raises(ProfileError, match="cannot be read"):
        ProfileSet([tmp_path / "nowhere.yaml"])
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ProfileError, match="cannot be read"):
        ProfileSet([tmp_path / "binary.yaml"])


def test_an_unknown_profile_names_those_there_are() -> None:
    """A slip on the command line is answered with the list."""
    with pytest.raises(ProfileError, match="hgx-h200"):
        ProfileSet().profile("hgx-h20")


def test_a_wanted_value_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    """A quoted number would fail every healthy GPU; the line is the site's."""
    text = """
        checks:
          hbm.total:
            expect: {equals: "143771"}
            why: the usual size
            source: site standard 9
        """
    with pytest.raises(ProfileError, match="type int") as caught:
        _site(tmp_path, text).profile("hgx-h200")
    assert caught.value.line == 4


def test_null_takes_a_condition_and_a_remedy_away(tmp_path: Path) -> None:
    """Every key of a check may be deleted by the layer above."""
    text = "checks: {gpu.persistence: {unless: null, remedy: null}}"
    entry = _site(tmp_path, text).profile("base").checks["gpu.persistence"]
    assert not {"unless", "remedy"} & set(entry.data)


def test_what_a_site_expects_is_written_even_where_a_lower_layer_prefers_otherwise(tmp_path: Path) -> None:
    """A floor that is preferred below is no value for a site that expects more, or less."""
    for figure in (400000, 100000):
        site = tmp_path / "site.yaml"
        site.write_text(
            "name: s\nchecks:\n  sysctl.max_map_count:\n    why: the site wants it\n    source: the site\n"
            f"    expect: {{equals: {figure}}}\n",
            encoding="utf-8",
        )
        entry = ProfileSet([site]).profile("hgx-h200").checks["sysctl.max_map_count"]
        assert wanted_text(entry.data) == str(figure)


def test_a_site_says_what_must_have_been_read(tmp_path: Path) -> None:
    """One more source is required, one of the shipped is not; the hash of the profile tells."""
    site = tmp_path / "site.yaml"
    site.write_text(
        "name: site\nrequires: {time sources: [chronyc.tracking, chronyc.tracking.csv], the PCI tree: null}\n", "utf-8"
    )
    shipped, ours = ProfileSet().profile("hgx-h200"), ProfileSet([site]).profile("hgx-h200")
    assert ours.requires["time sources"] == ("chronyc.tracking", "chronyc.tracking.csv")
    assert set(shipped.requires) - set(ours.requires) == {"the PCI tree"}
    assert shipped.hash != ours.hash


def test_what_the_shipped_layers_require_are_kinds_that_can_be_read() -> None:
    """A name that nothing prints would keep every node from its certificate."""
    for name in ProfileSet().platforms:
        for kinds in ProfileSet().profile(name).requires.values():
            assert set(kinds) <= set(FORMATS)
