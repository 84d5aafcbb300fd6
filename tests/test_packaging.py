"""What pip and other projects see of hwcheck."""

import ast
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import hwcheck
from hwcheck.cli.main import main

# Names to import, where they differ from the name of the distribution.
IMPORTED_AS = {"pyyaml": "yaml", "clustershell": "ClusterShell"}


def imported_modules(folder: Path) -> set[str]:
    """Return the top-level names that the Python files below a folder import."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    return {name.split(".")[0] for name in found}


def test_version() -> None:
    """The installed metadata has the version that the package says."""
    assert hwcheck.__version__ == metadata.version("hwcheck")


def test_entry_point() -> None:
    """The command ``hwcheck`` starts the function that ``python -m hwcheck`` starts."""
    (entry,) = metadata.entry_points(group="console_scripts", name="hwcheck")
    assert entry.load() is main


def test_dependencies_are_those_imported(root: Path) -> None:
    """The package declares every library it imports, and none that it does not."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {requirement.split(">=")[0].lower() for requirement in project["dependencies"]}
    declared = {IMPORTED_AS.get(name, name) for name in names}
    assert declared == imported_modules(root / "hwcheck") - sys.stdlib_module_names - {"hwcheck"}


def test_wheel_has_every_file(root: Path, tmp_path: Path) -> None:
    """The wheel has each file of the package: profiles, catalogues, schemas, examples, ``py.typed``."""
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(root)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("hwcheck/")}
    files = {path for path in (root / "hwcheck").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {str(path.relative_to(root)) for path in files} == packed
    assert "hwcheck/py.typed" in packed


def test_changelog_tells_the_next_version(root: Path) -> None:
    """The changelog has a section for what is not released yet."""
    assert "\n## [Unreleased]\n" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
