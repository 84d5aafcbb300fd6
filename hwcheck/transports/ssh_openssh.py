"""
SSH by the OpenSSH client: certificates, jump hosts and whatever else the site's ssh_config says. 140 ms of CPU a node.

The same bytes and the same decoder as the built-in client. A connection is shared within a run (ControlMaster); the
sockets lie in a folder of our own, and the masters are ended with the run.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from hwcheck.errors import TransportError, UsageError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.process import converse
from hwcheck.transports.request import Request
from hwcheck.transports.target import PARAMIKO, Target

PERSIST = 60
"""Seconds that a shared connection outlives its last user; also what is left of it after a SIGKILL of hwcheck."""
_LONGEST_FOLDER = 40
"""Characters: a socket's path may have 108, and ssh adds 40 for the host and 17 while it makes it."""
_HOST_KEY_ADVICE = (
    "Add it: ssh-keyscan HOST >> ~/.ssh/known_hosts, and compare the fingerprint with the node's own; or connect once "
    "by hand with ssh."
)
_BLAMES = (
    ("Host key verification failed", "the host key is unknown or not the one in known_hosts", _HOST_KEY_ADVICE),
    (r"No \S+ host key is known", "the host key is unknown or not the one in known_hosts", _HOST_KEY_ADVICE),
    (r"Permission denied \([^)]*\)", "login refused", "Let the user in by a key; see what ssh says with -v."),
    ("Could not resolve hostname", "the name is not known", ""),
    ("Connection refused|No route to host|Network is unreachable", "no connection", ""),
    ("Connection timed out|Operation timed out", "no connection", ""),
    ("banner exchange", "something accepts connections but does not speak SSH", ""),
)
_PASSING = re.compile("banner exchange|kex_exchange_identification|Connection (?:closed|reset) by")
"""Hung up, or slow, before the login: asking once more may help."""


class OpensshTransport:
    """
    Reads nodes over the ``ssh`` command.

    Args:
        connect_timeout: seconds until the node has let us in.
        known_hosts: more files with host keys.
        config_file: in place of the usual ssh_config files (``-F``).

    Raises:
        UsageError: there is no ``ssh``.
    """

    def __init__(
        self, connect_timeout: float = 10.0, known_hosts: tuple[Path, ...] = (), config_file: Path | None = None
    ) -> None:
        ssh = shutil.which("ssh")
        if ssh is None:
            raise UsageError("--ssh openssh needs the ssh command (package openssh-client)")
        self._ssh = ssh
        self._timeout = connect_timeout
        self._known_hosts = known_hosts
        self._file = config_file
        self._folder = _make_folder()

    def collect(self, target: Target, request: Request, last: float, cancel: Cancel) -> Conversation:
        """
        Read one node.

        Args:
            target: which, and how to get in.
            request: what to read.
            last: deadline, by the monotonic clock.
            cancel: ends it from outside.

        Raises:
            TransportError: why it could not be reached.
        """
        if target.password is not None:
            raise TransportError("ansible_password cannot be honoured by the OpenSSH client, which asks nobody",
                                 "Use a key, or the built-in client: --ssh paramiko.")  # fmt: skip
        if target.connection == PARAMIKO:
            raise TransportError("ansible_connection is paramiko and --ssh is openssh", "Leave one of them out.")
        began = time.monotonic()
        talk = Conversation(request.program(), target.python, target.become, request.heard)
        status = converse((*self._argv(target), talk.command), talk, last, cancel)
        late = time.monotonic() >= last
        try:
            talk.finish(status, late=last - began if late else 0.0)
        except TransportError as error:
            raise (_reason(talk.words, status) or error) from None
        return talk

    def _argv(self, target: Target) -> tuple[str, ...]:
        options = [
            *target.options,  # of an option the first value counts
            ("BatchMode", "yes"),
            ("ConnectTimeout", str(max(1, round(self._timeout)))),
            ("ControlMaster", "auto"),
            ("ControlPath", f"{self._folder}/%C"),
            ("ControlPersist", str(PERSIST)),
            ("ClearAllForwardings", "yes"),
            ("ForwardAgent", "no"),
            ("LogLevel", "ERROR"),
            ("PermitLocalCommand", "no"),
            ("RequestTTY", "no"),
        ]
        if self._known_hosts:
            files = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", *map(str, self._known_hosts))
            options.append(("UserKnownHostsFile", " ".join(files)))
        argv = [self._ssh]
        if self._file is not None:
            argv += ["-F", str(self._file)]
        for name, value in options:
            argv += ["-o", f"{name}={value}"]
        if target.port:
            argv += ["-p", str(target.port)]
        if target.user:
            argv += ["-l", target.user]
        for key in target.key_files:
            argv += ["-i", key]
        return (*argv, "--", target.host)

    def close(self) -> None:
        """End the shared connections and remove their sockets."""
        with contextlib.suppress(OSError):
            for socket in Path(self._folder).iterdir():
                _end_master(self._ssh, str(socket))
        shutil.rmtree(self._folder, ignore_errors=True)


def _make_folder() -> str:
    """Make a folder for sockets that nobody else can enter, with a path short enough for them."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for place in (runtime, tempfile.gettempdir()):
        if place and len(place) + len("/hwcheck-12345678") <= _LONGEST_FOLDER and os.access(place, os.W_OK):
            return tempfile.mkdtemp(prefix="hwcheck-", dir=place)  # 0700
    return tempfile.mkdtemp(prefix="hwcheck-", dir="/tmp")


def _end_master(ssh: str, socket: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - a fixed list; the host is a word that ssh wants and does not use
            [ssh, "-O", "exit", "-o", f"ControlPath={socket}", "--", "hwcheck"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=5, check=False,
        )  # fmt: skip


def _reason(words: str, status: int | None) -> TransportError | None:
    """Say in our words what ssh itself complained about; None when ssh got in."""
    passing = bool(_PASSING.search(words))
    for pattern, reason, advice in _BLAMES:
        if re.search(pattern, words):
            return TransportError(f"{reason}: {words}", advice, passing=passing)
    return TransportError(f"ssh ended: {words or 'not a word'}", passing=passing) if status == 255 else None
