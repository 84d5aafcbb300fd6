"""What the guides show works: layers load, inventories are read, commands exist, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from hwcheck.cli.main import build_parser
from hwcheck.profiles import ProfileSet
from hwcheck.transports.target import Target
from hwcheck.transports.variables import target_of

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*GUIDES, *sorted((ROOT / "docs/reference").glob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
_COMMAND = re.compile(r"^\$ (?:.*\| )?(?:\./run )?hwcheck (.*)$")


def layers() -> list[tuple[str, str]]:
    """List the site layers that the guides show, by file and name."""
    blocks = [(guide.name, block) for guide in GUIDES for block in fenced(guide, "yaml")]
    return [(f"{name}:{yaml.safe_load(block)['name']}", block) for name, block in blocks if block.startswith("name: ")]


def fenced(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def commands() -> list[str]:
    """List the hwcheck commands that the guides show, without comments and redirections."""
    lines = [line for guide in GUIDES for block in fenced(guide, "console") for line in block.splitlines()]
    found = (_COMMAND.match(re.split(r"\s+(?:#|>|\|)", line)[0]) for line in lines)
    return sorted({match[1] for match in found if match is not None and "..." not in match[1]})


@pytest.mark.parametrize("layer", [block for _, block in layers()], ids=[name for name, _ in layers()])
def test_layer_loads(layer: str, tmp_path: Path) -> None:
    """A layer loads on every platform, and each of its entries is there afterwards, from this layer."""
    file = tmp_path / "site.yaml"
    file.write_text(layer, encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(layer)
    profiles = ProfileSet([file])
    for name in profiles.platforms:
        profile = profiles.profile(name)
        for id, entry in {**data.get("checks", {}), **data.get("bounds", {})}.items():
            merged = profile.checks.get(id) or profile.bounds.get(id)
            if entry is None:
                assert merged is None
            else:
                assert merged is not None
                assert data["name"] in merged.layers.values()


def test_inventory_is_read() -> None:
    """The variables of the inventory in the site guide are ones that hwcheck takes."""
    (block,) = [one for one in fenced(ROOT / "docs/site-overlay.md", "yaml") if one.startswith("# inventory.yaml")]
    group = yaml.safe_load(block)["all"]["children"]["rack_17"]
    targets = [target_of(name, {**group["vars"], **(own or {})}, Target("")) for name, own in group["hosts"].items()]
    assert [target.failure_domain for target in targets] == ["rack-17", "rack-17"]
    profile = ProfileSet().over(targets[1].site, "gpu-002").profile("hgx-h200")
    assert profile.bounds["clocks.idle"].data["value"] == 100


@pytest.mark.parametrize("command", commands())
def test_command_is_one_that_hwcheck_has(command: str) -> None:
    """A command of a guide is parsed: verb, options and their values exist."""
    assert build_parser().parse_args(shlex.split(command)).run is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    """A relative link of a page leads to a file of the checkout."""
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
