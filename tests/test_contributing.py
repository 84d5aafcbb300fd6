"""The examples of CONTRIBUTING.md, run as they stand: adding a check touches one file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.machines import as_xml, hgx_h200


@pytest.fixture
def blocks(root: Path) -> dict[str, str]:
    """Return the example blocks, by the file name in their first line."""
    found = re.findall(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", (root / "CONTRIBUTING.md").read_text(), re.DOTALL)
    return dict(found)


def check(folder: Path, *arguments: str, package: Path | None = None) -> dict[str, Any]:
    """Judge a machine with 2048 MiB reserved and 500 MiB in use by nobody; return check → first finding."""
    (folder / "node.xml").write_text(as_xml(hgx_h200({0: {"reserved": 2048, "used": 500}}, count=1)))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hwcheck",
            "check",
            "--evidence",
            str(folder / "node.xml"),
            "--format",
            "json",
            *arguments,
        ],
        cwd=package or folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    findings: dict[str, Any] = {}
    for finding in json.loads(done.stdout)["findings"]:
        findings.setdefault(finding["check"], finding)
    return findings


def test_requirement_is_one_yaml_file(blocks: dict[str, str], tmp_path: Path) -> None:
    """The YAML example makes a new check that warns, with its remedy, without touching Python."""
    assert "hbm.reserved" not in check(tmp_path)
    site = tmp_path / "site.yaml"
    site.write_text(blocks["site.yaml"])
    finding = check(tmp_path, "--site", str(site))["hbm.reserved"]
    assert (finding["status"], finding["observed"], finding["subject"]) == ("warn", 2048, "0000:18:00.0")
    assert "driver version" in finding["remedy"]["text"]


@pytest.mark.slow
def test_relation_is_one_python_file(blocks: dict[str, str], tmp_path: Path, root: Path) -> None:
    """The Python example, dropped into a copy of the package, is found, judges, and is explained."""
    shutil.copytree(root / "hwcheck", tmp_path / "hwcheck", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "hwcheck/checks/memory_use.py").write_text(blocks["hwcheck/checks/memory_use.py"])
    finding = check(tmp_path, package=tmp_path)["hbm.idle_use"]
    assert (finding["status"], finding["observed"]) == ("warn", 500)
    page = subprocess.run(
        [sys.executable, "-m", "hwcheck", "explain", "hbm.idle_use"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "No HBM is in use while no process is on the GPU" in page
    assert "leak of a crashed job" in page
