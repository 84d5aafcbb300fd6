"""
What the site's ssh_config says of a host, for the paramiko back end; what that cannot honour is refused by name.

Files: ``~/.ssh/config``, then ``/etc/ssh/ssh_config``; options of the command line and the inventory go before both. Of
an option the first value counts, as in OpenSSH. ``Include`` at the top of a file is followed.
"""

from __future__ import annotations

import functools
import getpass
import glob
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from hwcheck.errors import TransportError, UsageError
from hwcheck.transports.target import Target

USE_OPENSSH = "Use the OpenSSH back end, which honours all of ssh_config: --ssh openssh."
USER_FILE, SYSTEM_FILE = Path("~/.ssh/config"), Path("/etc/ssh/ssh_config")
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_SYSTEM_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_HONOURED = {
    "hostname", "user", "port", "identityfile", "identitiesonly", "identityagent", "connecttimeout",
    "userknownhostsfile",
    "globalknownhostsfile", "hostkeyalias", "stricthostkeychecking",
}  # fmt: skip
_NO_MATTER = {
    "batchmode", "checkhostip", "clearallforwardings", "compression", "controlmaster", "controlpath", "controlpersist",
    "escapechar", "exitonforwardfailure", "forwardagent", "forwardx11", "forwardx11trusted", "gssapiauthentication",
    "gssapidelegatecredentials", "hashknownhosts", "loglevel", "passwordauthentication", "permitlocalcommand",
    "preferredauthentications", "pubkeyauthentication", "requesttty", "sendenv", "serveralivecountmax",
    "serveraliveinterval", "setenv", "tcpkeepalive", "updatehostkeys", "visualhostkey", "addkeystoagent",
}  # fmt: skip
"""Options without a meaning for one short command that asks nobody anything."""
_REFUSED = {
    "proxyjump": "none", "proxycommand": "none", "certificatefile": "none", "pkcs11provider": "none", "bindaddress": "",
    "bindinterface": "", "addressfamily": "any", "knownhostscommand": "none",
}  # fmt: skip
"""Options that change who is reached or how, and the value that asks for nothing."""


@dataclass(frozen=True, slots=True)
class HostConfig:
    """
    How to reach a host.

    Attributes:
        host, port, user: what to connect to, and as whom.
        known_as: name that its host key is kept under.
        keys: files of private keys to try, in order.
        use_agent: ask the agent for keys too.
        known_hosts: files with host keys.
        connect_timeout: seconds; 0 where the config does not say.
    """

    host: str
    port: int
    user: str
    known_as: str
    keys: tuple[Path, ...]
    use_agent: bool
    known_hosts: tuple[Path, ...]
    connect_timeout: float = 0.0


def host_config(target: Target, known_hosts: tuple[Path, ...] = (), file: Path | None = None) -> HostConfig:
    """
    Work out how to reach a node.

    Args:
        target: the node; what it says itself goes before ssh_config.
        known_hosts: more files with host keys.
        file: in place of the two usual files (``-F``).

    Raises:
        TransportError: an option that this back end cannot honour, or a config that it does not understand.
    """
    for name, value in target.options:
        if name.lower() not in _HONOURED | _NO_MATTER | _REFUSED.keys():
            raise TransportError(
                f"the SSH option {name}={value} cannot be honoured by the built-in client", USE_OPENSSH
            )
        if name.lower() == "stricthostkeychecking" and value.lower() not in ("yes", "true", "ask"):
            raise TransportError(
                f"the SSH option {name}={value} is not honoured: host keys are always checked",
                "Add the host keys to known_hosts (ssh-keyscan, and compare the fingerprints). " + USE_OPENSSH,
            )
    options = _look_up(target, file)
    for name, nothing in _REFUSED.items():
        value = options.get(name, "")
        value = value[0] if isinstance(value, list) else value
        if value.lower() not in ("", nothing):
            raise TransportError(
                f"ssh_config says {name} {value}, which the built-in client cannot honour", USE_OPENSSH
            )
    agent = str(options.get("identityagent", "SSH_AUTH_SOCK"))
    if agent.lower() not in ("none", "ssh_auth_sock"):
        raise TransportError(
            f"ssh_config says identityagent {agent}, which the built-in client cannot honour", USE_OPENSSH
        )
    return _config(target, options, known_hosts, use_agent=agent.lower() != "none")


def _config(target: Target, options: dict[str, Any], more: tuple[Path, ...], *, use_agent: bool) -> HostConfig:
    port = target.port or _number(options, "port", 22)
    host = str(options.get("hostname", target.host))
    known_as = str(options.get("hostkeyalias", "")) or (host if port == 22 else f"[{host}]:{port}")
    only = str(options.get("identitiesonly", "no")).lower() == "yes"
    users = str(options.get("userknownhostsfile", " ".join(_KNOWN_HOSTS))).split()
    systems = str(options.get("globalknownhostsfile", " ".join(_SYSTEM_KNOWN_HOSTS))).split()
    return HostConfig(
        host,
        port,
        target.user or str(options.get("user", "")) or getpass.getuser(),
        known_as,
        _keys(target, [str(path) for path in options.get("identityfile", ())]),
        use_agent and not only,
        (*(Path(path).expanduser() for path in (*users, *systems) if path.lower() != "none"), *more),
        float(_number(options, "connecttimeout", 0)),
    )


def _keys(target: Target, configured: list[str]) -> tuple[Path, ...]:
    """Return the key files there are; one that the inventory names must be there."""
    named = [Path(path).expanduser() for path in target.key_files]
    for path in named:
        if not path.is_file():
            raise TransportError(f"there is no key file {path}")
    others = configured or [f"~/.ssh/{name}" for name in _DEFAULT_KEYS]
    return (*named, *(path for path in (Path(other).expanduser() for other in others) if path.is_file()))


def _number(options: dict[str, Any], name: str, default: int) -> int:
    try:
        return int(options.get(name, default))
    except ValueError:
        raise TransportError(f"ssh_config says {name} {options[name]}, which is no number") from None


def _look_up(target: Target, file: Path | None) -> dict[str, Any]:
    try:
        return dict(_parsed(target.options, file, _written(file)).lookup(target.host))
    except paramiko.ConfigParseError as error:
        raise TransportError(f"ssh_config is not understood: {error}", USE_OPENSSH) from error


def _written(file: Path | None) -> int:
    """Return when a config that was named was last written; the usual ones do not change in one run."""
    try:
        return file.stat().st_mtime_ns if file is not None else 0
    except OSError:
        return 0


@functools.lru_cache(maxsize=64)
def _parsed(options: tuple[tuple[str, str], ...], file: Path | None, written: int) -> Any:
    """Parse the config once for all hosts that share their options, and again when it was written anew."""
    del written
    text = "Host *\n" + "".join(f"{name} {value}\n" for name, value in options)
    for path in (file,) if file is not None else (USER_FILE.expanduser(), SYSTEM_FILE):
        text += "Host *\n" + read_config(path, must=file is not None)
    return paramiko.SSHConfig.from_text(text)


def read_config(path: Path, *, must: bool = False, depth: int = 0) -> str:
    """
    Return a config with its includes.

    Raises:
        UsageError: a file that was named is not there.
        TransportError: an Include inside of a Host or Match block, or rings of includes.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        if must:
            raise UsageError(f"{path}: {error.strerror}") from error
        return ""
    out: list[str] = []
    inside = False
    for line in lines:
        words = line.replace("=", " ", 1).split()
        keyword = words[0].lower() if words else ""
        inside = inside or keyword in ("host", "match")
        if keyword != "include":
            out.append(line)
            continue
        if inside or depth > 8:
            raise TransportError(f"{path}: Include inside of a Host block is not understood", USE_OPENSSH)
        for pattern in words[1:]:
            full = path.parent / Path(pattern.strip('"')).expanduser()
            for name in sorted(glob.glob(str(full))):  # noqa: PTH207 - a pattern that may be absolute
                out += (read_config(Path(name), depth=depth + 1), "Host *")
    return "\n".join(out) + "\n"
