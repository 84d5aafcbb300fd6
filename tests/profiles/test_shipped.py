"""The shipped layers: they load, every number says why and whence, and nothing in them is dead."""

from pathlib import Path
from typing import Any

import pytest

import hwcheck.checks
from hwcheck.baselines import OWN
from hwcheck.checks.expected import compile_entry
from hwcheck.engine import Judge
from hwcheck.facts import NAMES, Snapshot
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.expectation import OPERATORS, Expectation
from hwcheck.profiles.layers import Layer, check_layer

SHIPPED = ProfileSet()
CHECKS = Path(hwcheck.checks.__file__).parent
LAYERS = sorted(SHIPPED.layers)
PLATFORMS = sorted(SHIPPED.platforms)
NUMERIC = ("at_least", "at_most", "above", "below", "between")


def _layer(name: str) -> Layer:
    return SHIPPED.layers[name]


def _operands(wanted: dict[str, Any]) -> list[Any]:
    ((_, operand),) = wanted.items()
    return operand if isinstance(operand, list) else [operand]


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_valid(name: str) -> None:
    """Schema, fact names and operators are right, as is demanded of a site's layer."""
    check_layer(_layer(name))


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_named_as_its_file(name: str) -> None:
    """``extends: x`` and ``--profile x`` find x.yaml."""
    assert _layer(name).path == f"{name}.yaml"


@pytest.mark.parametrize("name", LAYERS)
def test_every_wanted_value_says_why_and_whence(name: str) -> None:
    """A threshold without a reason and a source is an opinion."""
    checks = _layer(name).data.get("checks") or {}
    for id, entry in checks.items():
        if entry and ("expect" in entry or "prefer" in entry):
            assert len(entry["why"]) > 15, id
            assert len(entry["source"]) > 8, id
            assert entry["confidence"] in ("A", "B", "C"), id
    for id, bound in (_layer(name).data.get("bounds") or {}).items():
        assert bound["value"] in (None, "unset") or bound["confidence"] in ("A", "B", "C"), id


@pytest.mark.parametrize("name", PLATFORMS)
def test_platform_merges_and_compiles(name: str) -> None:
    """Every platform gives a judge that can be asked; of an empty node it says that nothing could be judged."""
    profile = SHIPPED.profile(name)
    assert profile.title != name
    for entry in profile.checks.values():
        compile_entry(entry)
    findings = Judge(profile).findings(Snapshot())
    assert {finding.check for finding in findings if finding.status != "skip"} == {"evidence.judged"}


@pytest.mark.parametrize("name", LAYERS)
def test_wanted_values_are_of_the_facts_type(name: str) -> None:
    """A number never equals a text: an expectation of the wrong type would fail every healthy node."""
    merged = SHIPPED.profile(name).checks
    for id, entry in merged.items():
        spec = NAMES[entry.data["fact"]]
        for key in ("expect", "prefer"):
            wanted = entry.data.get(key)
            if not wanted:
                continue
            types = {float: (int, float), int: (int,)}.get(spec.type, (spec.type,))
            assert all(type(value) in types for value in _operands(wanted)), (id, key)
            assert spec.type in (int, float) or not set(wanted) & set(NUMERIC), (id, key)


@pytest.mark.parametrize("name", LAYERS)
def test_conditions_can_be_asked(name: str) -> None:
    """Each condition names a declared fact of the same subject (or the node), or a bound that some platform has."""
    bounds = {id for layer in SHIPPED.layers.values() for id in (layer.data.get("bounds") or {})}
    for id, entry in SHIPPED.profile(name).checks.items():
        scope = NAMES[entry.data["fact"]].scope
        for condition in [*entry.data.get("when", ()), *entry.data.get("unless", ())]:
            operators = set(condition) & set(OPERATORS)
            assert len(operators) == 1, id
            Expectation.of({key: condition[key] for key in operators})
            if "fact" in condition:
                assert NAMES[condition["fact"]].scope in (scope, "node"), id
            else:
                assert condition["bound"] in bounds, id


REPORTED = {
    "cpu.idle_latency", "cpu.smt", "cpu.turbo", "firmware.bios", "kernel.hugepages", "kernel.init_on_alloc",
    "kernel.iommu_argument", "kernel.isolcpus", "limits.container_memlock", "memory.page_size", "memory.swap",
    "memory.thp",
    "roce.cnp_dscp", "roce.cnp_prio", "roce.default_tos", "roce.mtu", "sysctl.neighbours", "sysctl.netdev_max_backlog",
    "sysctl.overcommit_memory", "sysctl.rmem_max", "sysctl.somaxconn", "sysctl.swappiness", "sysctl.tcp_rmem",
    "sysctl.tcp_wmem", "sysctl.wmem_max", "sysctl.zone_reclaim_mode",
}  # fmt: skip
"""Contested tunables and those that are the site's decision: told with their value, judged only by a site layer."""


def test_checks_without_a_figure_are_reported_on_purpose() -> None:
    """A check that no layer gives a figure for is dead, unless it only reports what is contested or the site's."""
    with_figure = {
        id
        for layer in SHIPPED.layers.values()
        for id, entry in (layer.data.get("checks") or {}).items()
        if entry and ("expect" in entry or "prefer" in entry)
    }
    assert set(SHIPPED.profile("base").checks) - with_figure == REPORTED


@pytest.mark.parametrize("name", PLATFORMS)
def test_platform_overrides_only_known_checks(name: str) -> None:
    """A platform brings figures; the check itself is declared once, below it."""
    known = set(SHIPPED.profile(str(_layer(name).data["extends"])).checks)
    assert set(_layer(name).data.get("checks") or {}) <= known


def test_no_two_platforms_claim_one_board() -> None:
    """Product names and PCI ids tell platforms apart."""
    for key in ("pci", "names"):
        claims = [item.lower() for match in SHIPPED.platforms.values() for item in match[key]]
        assert len(claims) == len(set(claims))


@pytest.mark.parametrize("name", PLATFORMS)
def test_match_figures_equal_the_wanted_ones(name: str) -> None:
    """What tells a platform apart must not contradict what it is then judged by."""
    profile, match = SHIPPED.profile(name), SHIPPED.platforms[name]
    assert profile.checks["hbm.total"].data.get("expect", {}).get("equals") == match.get("memory_total")
    assert profile.bound_values.get("hbm.banks") == match.get("banks")


def test_numbers_that_are_easily_got_wrong() -> None:
    """Figures about which much public advice is false."""
    h200 = SHIPPED.profile("hgx-h200")
    assert h200.checks["hbm.total"].data["expect"] == {"equals": 143771}
    assert h200.bound_values["hbm.banks"] == 3072
    assert h200.bound_values["driver.minimum"] == "550.90.07"
    assert SHIPPED.profile("hgx-h100").bound_values["hbm.banks"] == 2560
    assert SHIPPED.profile("h100-nvl").bound_values["power.default"] == [310, 400]
    assert "pcie.min_width" not in SHIPPED.profile("gh200").bound_values
    assert SHIPPED.profile("gb200").bound_values["fabric.kind"] == "nvlink-domain"


def test_every_bound_of_a_platform_is_read() -> None:
    """A bound that no relation and no condition asks for is dead."""
    sources = "".join(path.read_text(encoding="utf-8") for path in CHECKS.glob("*.py"))
    asked = {
        condition.get("bound")
        for layer in SHIPPED.layers.values()
        for entry in (layer.data.get("checks") or {}).values()
        for condition in [*(entry or {}).get("when", ()), *(entry or {}).get("unless", ())]
    }
    asked |= {own.bound for own in OWN.values()}
    for name in PLATFORMS:
        for id in _layer(name).data.get("bounds") or {}:
            assert f'"{id}"' in sources or id in asked, (name, id)
