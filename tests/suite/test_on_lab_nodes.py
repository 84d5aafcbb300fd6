"""The suite on lab nodes, by the back ends of testinfra, with a test file of the site."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.lab import nodes
from hwcheck.lab.host.lab import HostLab, missing

pytestmark = [pytest.mark.lab, pytest.mark.slow]
SITE = """
def test_nvlink(finding):
    assert finding("nvlink.active")

def test_gpus(snapshot):
    assert len(snapshot.subjects("gpu")) == 8

def test_copy(baseline):
    assert baseline("hbm.copy").min > 3000

def test_a_slip(finding):
    assert finding("nvlink.actve")

def test_as_ever(host):
    assert host.file("/etc/hostname").exists
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLab]:
    """Start a healthy node and one without some of its NVLinks."""
    lacks = missing()
    if lacks:
        pytest.skip(f"the lab's host form needs {'; '.join(lacks)}")
    made = HostLab(tmp_path_factory.mktemp("suite"))
    nodes.up(made.home, "good-1", "hgx-h200", [])
    nodes.up(made.home, "bad-1", "hgx-h200", ["nvlinks-dead"])
    failed = made.up(["good-1", "bad-1"])
    assert not failed, failed
    yield made
    made.down()


def config(lab: HostLab) -> Path:
    """Write the ssh_config of the lab."""
    path = lab.home / "ssh_config"
    hosts = "".join(f"Host {name}\n  HostName {address}\n" for name, address in lab.running().items())
    path.write_text(
        f"{hosts}Host *\n  Port {lab.port}\n  User root\n  IdentityFile {lab.folder / 'client_key'}\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {lab.folder / 'known_hosts'}\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("by", ["ssh", "paramiko", "ansible"])
def test_the_suite_tells_a_broken_node_by_every_back_end(by: str, lab: HostLab, tmp_path: Path) -> None:
    """Its NVLink family is red, all of the healthy node are green or skipped; tests of the site run beside them."""
    (tmp_path / "test_site.py").write_text(SITE, encoding="utf-8")
    reach = ["--hosts=ansible://all", f"--ansible-inventory={lab.inventory}"]
    if by != "ansible":
        reach = [f"--hosts={by}://good-1,{by}://bad-1", f"--ssh-config={config(lab)}"]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore",
             "--junitxml=result.xml"]  # fmt: skip
    words += ["--pyargs", "hwcheck.suite", "test_site.py", *reach]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    told = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert (tmp_path / "result.xml").exists(), told.stdout[-2000:] + told.stderr[-2000:]
    results = outcomes(tmp_path / "result.xml")
    red = {name for name, outcome in results.items() if outcome == "failed"}
    assert red == {
        f"test_family[{by}://bad-1-nvlink]", f"test_nvlink[{by}://bad-1]",
        f"test_a_slip[{by}://bad-1]", f"test_a_slip[{by}://good-1]",
    }, told.stdout[-3000:]  # fmt: skip
    assert results[f"test_copy[{by}://good-1]"] == "skipped"
    assert results[f"test_gpus[{by}://good-1]"] == results[f"test_as_ever[{by}://good-1]"] == "passed"


def outcomes(file: Path) -> dict[str, str]:
    """Read a JUnit file: name of the test → passed, failed or skipped."""
    found = {}
    for case in ET.parse(file).getroot().iter("testcase"):  # noqa: S314 - of the pytest we have just run
        kinds = {child.tag for child in case}
        found[case.get("name", "")] = (
            "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        )
    return found
