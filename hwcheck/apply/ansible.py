"""
One play on many nodes by ansible-runner. The only importer of it.

Ansible is given names of nodes, of the run and of folders; values that come from a node lie in files that our action
plugin reads itself. Connections are the inventory's own; nodes that were named on the command line get an inventory.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from hwcheck.apply.words import plain
from hwcheck.errors import UsageError

Event = Callable[[str, str], None]
"""Called with a node and what has happened to it: ``begun``, ``ok``, ``failed``, ``unreachable``."""


@dataclass(slots=True)
class NodeResult:
    """
    What a play has come to on one node.

    Attributes:
        ok: the module ended well.
        changed: something was written.
        begun: something may have been written, however it ended.
        unreachable: Ansible did not get there.
        why: what went wrong.
        results: of each step, see the module.
        left: undo: what was not taken back.
    """

    ok: bool = False
    changed: bool = False
    begun: bool = False
    unreachable: bool = False
    why: str = "Ansible said nothing about this node"
    results: list[dict[str, Any]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def playbooks() -> Path:
    """Return the folder of our playbooks: beside the package in a checkout, inside of it when installed."""
    package = Path(str(files("hwcheck")))
    for folder in (package / "ansible" / "playbooks", package.parent / "playbooks"):
        if (folder / "apply.yml").is_file():
            return folder
    raise UsageError("hwcheck's playbooks are not installed with it; install hwcheck again")


def missing() -> str:
    """Say what lacks for running plays; "" when nothing does."""
    try:
        import ansible_runner  # noqa: F401, PLC0415 - 0.15 s, and only changes need it
    except ImportError:
        return "ansible-runner is not installed (pip install 'hwcheck[ansible]')"
    if _program() is None:
        return "ansible-playbook is not installed (pip install 'hwcheck[ansible]')"
    return ""


def _program() -> str | None:
    beside = Path(sys.executable).with_name("ansible-playbook")
    return str(beside) if beside.exists() else shutil.which("ansible-playbook")


class Play:
    """
    Runs our playbook.

    Args:
        inventories: of the command line; () where it names nodes.
        hosts: node → its connection variables, where no inventory has them.
        words: further words for ansible-playbook (vault files).
        forks: nodes at once.
        become_password: of sudo, where it was asked for; nodes with one of their own keep that.
        environment: settings of Ansible that the command line asks for.

    Raises:
        UsageError: Ansible is not installed.
    """

    def __init__(
        self, inventories: tuple[str, ...], hosts: dict[str, Any], words: tuple[str, ...] = (), forks: int = 32,
        become_password: str | None = None, environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        lacks = missing()
        if lacks:
            raise UsageError(lacks)
        self._inventories = inventories
        self._hosts = hosts
        self._words = words
        self._forks = forks
        self._password = become_password
        self._more = dict(environment or {})

    def run(
        self, nodes: list[str], variables: dict[str, Any], on_event: Event, *, check: bool = False
    ) -> dict[str, NodeResult]:
        """
        Run the play on some nodes.

        Args:
            nodes: names.
            variables: hwcheck_* of ``apply.yml``; none comes from a node.
            on_event: told as it goes.
            check: say what would be done.
        """
        import ansible_runner  # noqa: PLC0415 - see missing()

        found = {node: NodeResult() for node in nodes}
        with tempfile.TemporaryDirectory(prefix="hwcheck-play-") as folder:
            (Path(folder) / "limit").write_text("\n".join(nodes) + "\n", encoding="utf-8")
            words = [*self._words, *self._password_file(folder), "--forks", str(self._forks)]
            words += ["--check", "--diff"] if check else []
            ansible_runner.run(
                private_data_dir=folder, playbook=str(playbooks() / "apply.yml"), inventory=self._inventory(folder),
                extravars=variables, limit=f"@{folder}/limit", cmdline=shlex.join(words), envvars=self._environment(),
                quiet=True, event_handler=_Listener(found, on_event), suppress_env_files=True, rotate_artifacts=1,
            )  # fmt: skip
            _explain(found, Path(folder))
        return found

    def _password_file(self, folder: str) -> list[str]:
        """Hand sudo's password over by a file that nobody else may read, and that goes with the folder."""
        if self._password is None:
            return []
        file = Path(folder) / "become"
        file.touch(mode=0o600)
        file.write_text(self._password + "\n", encoding="utf-8")
        return ["--become-password-file", str(file)]

    def _inventory(self, folder: str) -> list[str] | str:
        if self._inventories:
            return [str(Path(path).resolve()) if Path(path).exists() else path for path in self._inventories]
        file = Path(folder) / "hosts.yaml"
        file.touch(mode=0o600)
        file.write_text(inventory_of(self._hosts), encoding="utf-8")
        return str(file)

    def _environment(self) -> dict[str, str]:
        here = playbooks()
        program = _program() or ""
        return {
            "ANSIBLE_LIBRARY": str(here / "library"),
            "ANSIBLE_ACTION_PLUGINS": str(here / "action_plugins"),
            "ANSIBLE_MODULE_UTILS": str(here / "module_utils"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_GATHERING": "explicit",
            "ANSIBLE_RETRY_FILES_ENABLED": "0",
            "ANSIBLE_NOCOWS": "1",
            "PATH": f"{Path(program).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            **self._more,
        }


def inventory_of(hosts: dict[str, Any]) -> str:
    """Write an inventory in YAML; what might be taken for a template, as a password may, is tagged as none."""
    import yaml  # noqa: PLC0415 - only where nodes come from the command line

    class Dumper(yaml.SafeDumper):
        """Tags texts with a brace."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        tag = "!unsafe" if "{" in value else "tag:yaml.org,2002:str"
        return dumper.represent_scalar(tag, value, style='"' if tag == "!unsafe" else None)

    Dumper.add_representer(str, text)
    return yaml.dump({"all": {"hosts": hosts}}, Dumper=Dumper)


class _Listener:
    """Takes ansible-runner's events; returns False so that no file is kept for each of them."""

    def __init__(self, found: dict[str, NodeResult], on_event: Event) -> None:
        self._found = found
        self._on_event = on_event

    def __call__(self, event: dict[str, Any]) -> bool:
        data = event.get("event_data") or {}
        node = data.get("host")
        result = self._found.get(str(node))
        if result is None:
            return False
        told = data.get("res") or {}
        match event.get("event"):
            case "runner_on_start":
                self._on_event(str(node), "begun")
            case "runner_on_ok":
                self._take(result, told, ok=True)
                self._on_event(str(node), "ok")
            case "runner_on_failed":
                self._take(result, told, ok=False)
                self._on_event(str(node), "failed")
            case "runner_on_unreachable":
                result.unreachable, result.why = True, plain(told.get("msg", "unreachable"))
                self._on_event(str(node), "unreachable")
        return False

    @staticmethod
    def _take(result: NodeResult, told: dict[str, Any], *, ok: bool) -> None:
        result.ok, result.changed, result.begun = ok, bool(told.get("changed")), bool(told.get("begun"))
        result.why = "" if ok else _why(told)
        result.results = [one for one in told.get("results") or [] if isinstance(one, dict)]
        shown = told.get("diff") or []
        result.differences = [str(one.get("prepared", "")) for one in shown if isinstance(one, dict)]


def _why(told: dict[str, Any]) -> str:
    """Return why a task failed; of a module without an answer, the last line that its shell or Python wrote."""
    lines = str(told.get("module_stderr") or told.get("module_stdout") or "").strip().splitlines()
    why = plain(told.get("why") or told.get("msg") or "failed")
    return plain(f"{plain(lines[-1])[:200]} ({why})") if lines else why


def _explain(found: dict[str, NodeResult], folder: Path) -> None:
    """Where Ansible itself stopped, give its last words to the nodes that it said nothing about."""
    silent = [result for result in found.values() if not result.ok and not result.unreachable and not result.results]
    logs = sorted(folder.glob("artifacts/*/stdout"))
    if not silent or not logs:
        return
    lines = [plain(line) for line in logs[-1].read_text(encoding="utf-8", errors="replace").splitlines()]
    last = next((line for line in reversed(lines) if "ERROR" in line or "error" in line), "")
    for result in silent:
        if result.why.startswith("Ansible said nothing") and last:
            result.why = last
