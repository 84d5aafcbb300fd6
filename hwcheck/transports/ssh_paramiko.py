"""
SSH without a process: paramiko in the threads of the fan-out. The default, about 10 ms of CPU a node.

Host keys are always checked. Every step has a deadline, also against a server that accepts and stays silent.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

import paramiko

from hwcheck.errors import TransportError
from hwcheck.lines import clean
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.clock import Clock
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.known_hosts import AUTHORITY, REVOKED, HostKey, fingerprint, read_known_hosts
from hwcheck.transports.request import Request
from hwcheck.transports.ssh_config import USE_OPENSSH, HostConfig, host_config
from hwcheck.transports.ssh_login import authenticate
from hwcheck.transports.target import Target

_PIECE = 1 << 16
_LOG = logging.getLogger("paramiko")
_LOG.addHandler(
    logging.NullHandler()
)  # what it would print of a node that hangs up is in the node's line of the report
_LOG.propagate = False


class ParamikoTransport:
    """
    Reads nodes over SSH.

    Args:
        connect_timeout: seconds for each step until the node has let us in.
        known_hosts: more files with host keys.
        config_file: in place of the usual ssh_config files.
    """

    def __init__(
        self, connect_timeout: float = 10.0, known_hosts: tuple[Path, ...] = (), config_file: Path | None = None
    ) -> None:
        self._timeout = connect_timeout
        self._known_hosts = known_hosts
        self._file = config_file

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
        began = time.monotonic()
        config = host_config(target, self._known_hosts, self._file)
        clock = Clock(last, config.connect_timeout or self._timeout)
        sock = _connect(config, clock)
        try:
            with cancel.closing(lambda: _hang_up(sock)):
                return _session(sock, config, target, request, clock, began)
        except _RAISED as error:
            raise _reason(error) from error
        finally:
            _hang_up(sock)
            sock.close()

    def close(self) -> None:
        """Nothing stays open between nodes."""


def _connect(config: HostConfig, clock: Clock) -> socket.socket:
    limit = clock.step("connecting")
    try:
        return socket.create_connection((config.host, config.port), limit)
    except TimeoutError as error:
        raise TransportError(f"no connection to {config.host} port {config.port} in {limit:.3g} s") from error
    except socket.gaierror as error:
        raise TransportError(f"the name {config.host} is not known: {error.strerror}") from error
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise TransportError(f"no connection to {config.host} port {config.port}: {words.lower()}") from error


def _session(
    sock: socket.socket, config: HostConfig, target: Target, request: Request, clock: Clock, began: float
) -> Conversation:
    keys = read_known_hosts(config.known_hosts).of(config.known_as)
    transport = paramiko.Transport(sock)
    try:
        limit = clock.step("waiting for the SSH server")
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = limit
        _prefer(transport, keys)
        _shake_hands(transport, limit)
        _check_host_key(transport.get_remote_server_key(), keys, config)
        authenticate(transport, config, target, clock)
        channel = transport.open_session(timeout=clock.step("opening a session"))
        talk = Conversation(request.program(), target.python, target.become, request.heard)
        channel.settimeout(clock.step("starting the program"))
        channel.exec_command(talk.command)
        ended = _pump(channel, talk, clock.last)
        status = _exit_status(channel, clock.last) if ended else None
        late = time.monotonic() >= clock.last
        talk.finish(status, late=clock.last - began if late else 0.0)
        return talk
    finally:
        _hang_up(sock)  # first: then closing does not wait for the node, and the transport's thread ends at once
        transport.close()


def _shake_hands(transport: paramiko.Transport, limit: float) -> None:
    began = time.monotonic()
    silence = f"something accepts connections but does not speak SSH within {limit:.3g} s"
    try:
        transport.start_client(timeout=limit)
    except (paramiko.SSHException, EOFError) as error:
        closed = isinstance(error, EOFError) or "banner" in str(error)
        if closed and time.monotonic() - began < limit / 2:
            raise TransportError("the SSH server closes the connection at once", passing=True) from error
        if closed or "Timeout" in str(error):
            raise TransportError(silence, passing=True) from error
        raise
    if not transport.initial_kex_done:  # paramiko comes back from its own time limit without a word
        raise TransportError(silence, passing=True)


def _hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


# ------------------------------------------------------------------------------------------------------------ host key


def _prefer(transport: paramiko.Transport, keys: list[HostKey]) -> None:
    """Ask for the types of host key that we know, so that a known host does not show one that we never saw."""
    known = {key.type for key in keys}
    if "ssh-rsa" in known:
        known |= {"rsa-sha2-512", "rsa-sha2-256"}
    options = transport.get_security_options()
    types = list(options.key_types)
    options.key_types = sorted(types, key=lambda name: (name not in known, types.index(name)))


def _check_host_key(key: Any, known: list[HostKey], config: HostConfig) -> None:
    """
    Compare the host key that a server shows with those we know.

    Raises:
        TransportError: it is unknown, another one, or revoked.
    """
    shown, kind = key.get_base64(), key.get_name()
    of_host = f"{config.known_as} ({kind} {fingerprint(key.asbytes())})"
    if any(line.marker == REVOKED and line.key == shown for line in known):
        raise TransportError(f"the host key of {of_host} is revoked in known_hosts")
    plain = [line for line in known if not line.marker]
    if any(line.key == shown for line in plain):
        return
    port = f"-p {config.port} " if config.port != 22 else ""
    if any(line.type == kind for line in plain):
        raise TransportError(
            f"the host key of {of_host} is not the one in known_hosts: installed anew, or another machine answers",
            f"Find out which. If it was installed anew: ssh-keygen -R '{config.known_as}', then add its new key.",
        )
    if any(line.marker == AUTHORITY for line in known):
        raise TransportError(
            f"{config.known_as} is known by a certificate authority, which the built-in client cannot check",
            USE_OPENSSH,
        )
    raise TransportError(
        f"the host key of {of_host} is unknown",
        f"Add it: ssh-keyscan {port}-t {kind.removeprefix('ssh-')} {config.host} >> ~/.ssh/known_hosts, and compare "
        "the fingerprint with the node's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on its console).",
    )


# --------------------------------------------------------------------------------------------------------------- bytes


def _pump(channel: paramiko.Channel, talk: Conversation, last: float) -> bool:
    """Move bytes both ways; returns True when the output ended by itself, False on the end frame or the deadline."""
    channel.settimeout(0.0)
    # An event of our own: channel.fileno() makes a pipe that paramiko's thread may write to after it was closed, by
    # then perhaps into the connection of another node.
    news = threading.Event()
    channel.in_buffer.set_event(news)
    channel.in_stderr_buffer.set_event(news)
    todo, open_ = bytearray(talk.begin()), True
    while (left := last - time.monotonic()) > 0:
        full = False
        while todo and not full:
            try:
                del todo[: channel.send(bytes(todo[:_PIECE]))]
            except TimeoutError:
                full = True  # the window is full: no event tells when it opens
        if open_ and talk.sent_all and not todo:
            channel.shutdown_write()
            open_ = False
        news.wait(min(left, 0.02 if full else 60.0))
        while channel.recv_stderr_ready():
            todo += talk.hear(channel.recv_stderr(_PIECE))
        if channel.recv_ready():
            if not talk.take(channel.recv(_PIECE)):
                return False
        elif channel.eof_received or channel.closed:
            return True
    return False


def _exit_status(channel: paramiko.Channel, last: float) -> int | None:
    channel.status_event.wait(max(0.0, min(1.0, last - time.monotonic())))
    return channel.exit_status if channel.exit_status >= 0 else None


_RAISED = (paramiko.SSHException, OSError, EOFError)


def _reason(error: Exception) -> TransportError:
    words = clean(str(error)).strip()
    return TransportError(f"the SSH connection broke: {words or type(error).__name__}", passing=True)
