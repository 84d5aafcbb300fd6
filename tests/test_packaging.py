"""What pip and other projects see of hwcheck."""

import ast
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import hwcheck
from hwcheck.cli.start import main

# Names to import, where they differ from the name of the distribution.
IMPORTED_AS = {"pyyaml": "yaml", "clustershell": "ClusterShell", "ansible-runner": "ansible_runner"}

VARIABLES = {
    "ansible_python_interpreter": sys.executable,
    "hwcheck_become": False,
    "hwcheck_settings": [{"mechanism": "sysctl", "key": "vm.swappiness", "value": "77"}],
}


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
    """The package declares every library it imports, and no other; ansible-core and testinfra bring programs to it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["ansible"], *extras["suite"]]
    names = {requirement.split(">=")[0].lower() for requirement in needed} - {"ansible-core", "pytest-testinfra"}
    declared = {IMPORTED_AS.get(name, name) for name in names}
    assert declared == imported_modules(root / "hwcheck") - sys.stdlib_module_names - {"hwcheck"}


def files_below(folder: Path) -> set[str]:
    """Return the paths of all files of a folder, those that a link leads to included."""
    found: set[str] = set()
    for where, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]  # caches of tools
        found.update(str((Path(where) / name).relative_to(folder)) for name in names)
    return found


def build(root: Path, folder: Path, *kind: str) -> None:
    """Build the archives of a source folder."""
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "build", *kind, "--no-isolation", "--outdir", str(folder), str(root)]
    subprocess.run(words, check=True, capture_output=True)


def wanted_in_wheel(root: Path) -> set[str]:
    """Return what a wheel has to have: the package, and with it the playbooks and roles."""
    wanted = {f"hwcheck/{name}" for name in files_below(root / "hwcheck")}
    for name in ("playbooks", "roles"):
        wanted |= {f"hwcheck/ansible/{name}/{file}" for file in files_below(root / name)}
    return wanted


def test_wheel_has_every_file(root: Path, tmp_path: Path) -> None:
    """The wheel has each file of the package, each playbook, module and role; nothing in it is a link."""
    build(root, tmp_path, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("hwcheck/")}
        links = [info.filename for info in archive.infolist() if (info.external_attr >> 16) & 0o170000 == 0o120000]
    assert packed == wanted_in_wheel(root)
    assert links == []
    assert {
        "hwcheck/py.typed",
        "hwcheck/ansible/playbooks/apply.yml",
        "hwcheck/ansible/playbooks/module_utils/hwcheck_writers/stages.py",
    } <= packed


@pytest.mark.slow
def test_wheel_of_the_source_archive_is_the_same(root: Path, tmp_path: Path) -> None:
    """A wheel that is built from the source archive has the same files, so the archive lacks none."""
    build(root, tmp_path, "--sdist", "--wheel")
    build(root, tmp_path / "direct", "--wheel")
    names = []
    for folder in (tmp_path, tmp_path / "direct"):
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names.append(archive.namelist())
    assert sorted(names[0]) == sorted(names[1])
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive_:
        members = archive_.getnames()
    assert len(members) == len(set(members))


@pytest.mark.slow
def test_wheel_works_where_it_is_unpacked(root: Path, tmp_path: Path) -> None:
    """Away from the checkout hwcheck finds its own playbooks, and Ansible its modules, beside the package."""
    pytest.importorskip("ansible")
    build(root, tmp_path, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")  # noqa: S202 - we built it
    code = "from hwcheck.apply.ansible import playbooks; print(playbooks())"
    words = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    said = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout
    here = Path(said.strip())
    assert here == tmp_path / "site" / "hwcheck" / "ansible" / "playbooks"
    environment |= {
        "ANSIBLE_LIBRARY": str(here / "library"), "ANSIBLE_ACTION_PLUGINS": str(here / "action_plugins"),
        "ANSIBLE_MODULE_UTILS": str(here / "module_utils"), "ANSIBLE_LOCAL_TEMP": str(tmp_path / "ansible"),
    }  # fmt: skip
    words = [
        str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local", "--check",
        "-e", json.dumps(VARIABLES), str(here / "apply.yml"),
    ]  # fmt: skip
    done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=1" in done.stdout


def test_changelog_tells_the_next_version(root: Path) -> None:
    """The changelog has a section for what is not released yet."""
    assert "\n## [Unreleased]\n" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
