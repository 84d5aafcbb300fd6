"""Log in over paramiko: with the keys of files, of the agent, then with a password where one was given."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from pathlib import Path
from typing import Any

import paramiko

from hwcheck.errors import TransportError
from hwcheck.transports.clock import Clock
from hwcheck.transports.ssh_config import HostConfig
from hwcheck.transports.target import Target


def authenticate(transport: paramiko.Transport, config: HostConfig, target: Target, clock: Clock) -> None:
    """
    Log in: with the keys of files, of the agent, then with a password where one was given.

    Raises:
        TransportError: nothing lets us in.
    """
    tried: list[str] = []
    problems: list[str] = []
    with _Agent(use=config.use_agent) as agent_keys:
        for name, load in (*((path.name, functools.partial(_load, path)) for path in config.keys), *agent_keys):
            transport.auth_timeout = clock.step("logging in")
            try:
                more = transport.auth_publickey(config.user, load())
            except (paramiko.PasswordRequiredException, TypeError):  # a TypeError is how cryptography says it
                problems.append(f"{name} is protected by a passphrase; ssh-add it")
                continue
            except paramiko.BadAuthenticationType as error:
                problems.append(f"the server allows only {', '.join(map(str, error.allowed_types)) or 'nothing'}")
                break
            except paramiko.AuthenticationException as error:
                if "imeout" in str(error):
                    raise TransportError("the SSH server did not answer the login in time", passing=True) from error
                tried.append(name)
                continue
            except (ValueError, paramiko.SSHException, OSError) as error:
                if not transport.is_active():
                    problems.append(f"the server hung up: {error}")
                    break
                problems.append(f"{name} cannot be used: {error}")
                continue
            if not more:
                return
            problems.append(f"the server also wants {', '.join(map(str, more))}")
        if target.password is not None and transport.is_active() and _by_password(transport, config, target):
            return
    told = f" (tried {', '.join(tried)})" if tried else " (no key to try)" if not problems else ""
    why = "; ".join(problems[:3])
    raise TransportError(
        f"login as {config.user} refused{told}{': ' + why if why else ''}",
        f"Let {config.user} in by a key (ssh-copy-id, or ssh-add for the agent), or name another user or key.",
    )


def _by_password(transport: paramiko.Transport, config: HostConfig, target: Target) -> bool:
    try:
        return not transport.auth_password(config.user, target.password or "")
    except paramiko.AuthenticationException:
        return False


@functools.lru_cache(maxsize=256)
def _load(path: Path) -> Any:
    """Load a private key once for all nodes, with the certificate beside it, where there is one."""
    with _LOADING:
        return paramiko.PKey.from_path(path)


_LOADING = threading.Lock()


class _Agent(contextlib.AbstractContextManager[list[tuple[str, Any]]]):
    """The keys of the agent; each thread talks to it by a connection of its own."""

    def __init__(self, *, use: bool) -> None:
        self._agent = paramiko.Agent() if use and os.environ.get("SSH_AUTH_SOCK") else None

    def __enter__(self) -> list[tuple[str, Any]]:
        if self._agent is None:
            return []
        return [(f"agent key {number}", lambda key=key: key) for number, key in enumerate(self._agent.get_keys(), 1)]

    def __exit__(self, *error: object) -> None:
        if self._agent is not None:
            self._agent.close()
