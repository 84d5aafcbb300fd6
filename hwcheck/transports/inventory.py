"""
Inventories, read by Ansible itself: ``ansible-inventory --list``, with its plugins, group variables and vaults.

What it says is kept in the cache while the inventory's files are the same: starting Ansible takes half a second and
more. An inventory with a program or plugin in it may say something else each time, and one with passwords must not be
written anywhere: neither is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwcheck.errors import UsageError
from hwcheck.transports import cache
from hwcheck.transports.variables import SECRETS, matters

TIMEOUT = 120
MAX_FILES = 5000
_PLAIN = (".yml", ".yaml", ".json", ".ini", ".cfg", "")
_VAULT, _UNSAFE = "__ansible_vault", "__ansible_unsafe"


@dataclass(frozen=True, slots=True)
class Query:
    """
    What to ask Ansible for.

    Attributes:
        inventories: as for ``-i``: files, folders, or lists with a comma.
        limit: pattern of hosts; "" for all.
        vault: options of the vault, passed on.
    """

    inventories: tuple[str, ...]
    limit: str = ""
    vault: tuple[str, ...] = ()


def read_inventory(query: Query) -> dict[str, dict[str, Any]]:
    """
    Return the hosts in the inventory's order, each with those of its variables that concern us.

    Raises:
        UsageError: no such file, no Ansible, nothing parsed, or a pattern that matches nothing.
    """
    for inventory in query.inventories:
        if "," not in inventory and not Path(inventory).exists():
            raise UsageError(f"no such inventory: {inventory}")
    key = _key(query)
    kept = cache.load(key) if key else None
    if kept is not None:
        hosts: dict[str, dict[str, Any]] = dict(json.loads(kept))
        return hosts
    hosts = _hosts(_ask(query))
    if not hosts:
        raise UsageError(
            f"no host in {', '.join(query.inventories)}" + (f" matches {query.limit}" if query.limit else "")
        )
    secret = any(name in variables for variables in hosts.values() for name in SECRETS)
    if key and not secret:
        cache.keep(key, json.dumps(list(hosts.items())).encode())
    return _unlocked(hosts, query)


def _ask(query: Query) -> dict[str, Any]:
    argv = [_tool("ansible-inventory"), "--list"]
    for inventory in query.inventories:
        argv += ["-i", inventory]
    if query.limit:
        argv += ["--limit", query.limit]
    out = _run([*argv, *query.vault])
    try:
        listed = json.loads(out)
    except ValueError as error:
        raise UsageError(f"ansible-inventory gave no JSON: {error}") from error
    return listed if isinstance(listed, dict) else {}


def _run(argv: list[str], given: str | None = None) -> str:
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
            argv, input=given, stdin=subprocess.DEVNULL if given is None else None, capture_output=True, text=True,
            env=environment, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageError(f"{Path(argv[0]).name} did not end in {TIMEOUT} s") from None
    except OSError as error:
        raise UsageError(f"cannot start {argv[0]}: {error.strerror}") from error
    if done.returncode:
        words = " ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise UsageError(f"{Path(argv[0]).name} failed: {words[-600:] or done.returncode}")
    return done.stdout


def _tool(name: str) -> str:
    """Find a command of Ansible: beside our own Python, else on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if found is None:
        raise UsageError(f"an inventory is read by {name}, which is not installed: pip install 'hwcheck[ansible]'")
    return found


def _hosts(listed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Put the hosts in the order of their groups: the variables alone come sorted by name."""
    variables = listed.get("_meta", {}).get("hostvars", {})
    order: dict[str, None] = {}
    seen: set[str] = set()

    def walk(group: str) -> None:
        if group in seen:
            return
        seen.add(group)
        about = listed.get(group) or {}
        for child in about.get("children", ()):
            walk(child)
        order.update(dict.fromkeys(about.get("hosts", ())))

    walk("all")
    order.update(dict.fromkeys(variables))
    return {
        host: {name: _plain(value) for name, value in variables.get(host, {}).items() if matters(name)}
        for host in order
    }


def _plain(value: Any) -> Any:
    """Take off the marks that older versions put around values that they will not evaluate; neither do we."""
    if isinstance(value, dict):
        if set(value) == {_UNSAFE}:
            return value[_UNSAFE]
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _unlocked(hosts: dict[str, dict[str, Any]], query: Query) -> dict[str, dict[str, Any]]:
    """Decrypt variables that are vaults of their own; the list shows them locked. One password of many hosts: once."""
    opened: dict[str, str] = {}
    for host, variables in hosts.items():
        for name, value in variables.items():
            if not isinstance(value, dict) or set(value) != {_VAULT}:
                continue
            locked = str(value[_VAULT])
            if locked not in opened:
                try:
                    opened[locked] = _run([_tool("ansible-vault"), "decrypt", "--output", "-", *query.vault], locked)
                except UsageError as error:
                    raise UsageError(f"host {host}: {name} is locked: {error}") from error
            variables[name] = opened[locked]
    return hosts


def _key(query: Query) -> str:
    """Return the name that the answer is kept under; "" where it must not be kept."""
    digest = hashlib.sha256(repr((query, sys.prefix, str(Path.cwd()), sorted(_settings().items()))).encode())
    for count, path in enumerate(_files(query)):
        try:
            about = path.stat()
            program = os.access(path, os.X_OK) or path.suffix not in _PLAIN
            if count > MAX_FILES or program or (path.suffix in (".yml", ".yaml") and _is_plugin(path)):
                return ""
        except OSError:
            return ""
        digest.update(f"{path} {about.st_size} {about.st_mtime_ns} {about.st_ino}\n".encode())
    return f"inventory-{digest.hexdigest()[:32]}"


def _files(query: Query) -> Iterator[Path]:
    """Go through all files that Ansible may read for this inventory."""
    for inventory in query.inventories:
        if "," in inventory:
            continue
        path = Path(inventory).resolve()
        home = path if path.is_dir() else path.parent
        if path.is_file():
            yield path
        for folder in (path if path.is_dir() else None, home / "group_vars", home / "host_vars"):
            if folder is not None and folder.is_dir():
                yield from sorted(file for file in folder.rglob("*") if file.is_file())
    for config in (os.environ.get("ANSIBLE_CONFIG", ""), "ansible.cfg", "~/.ansible.cfg", "/etc/ansible/ansible.cfg"):
        file = Path(config).expanduser()
        if config and file.is_file():
            yield file.resolve()


def _settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("ANSIBLE_")}


def _is_plugin(path: Path) -> bool:
    with path.open("rb") as file:
        return any(line.startswith(b"plugin:") for line in file.read(4096).splitlines())
