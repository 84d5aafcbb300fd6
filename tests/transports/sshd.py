"""A real sshd for tests: on a loopback address, with keys and config of its own, gone with its folder."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin")
MISSING = "no sshd on this machine (package openssh-server)"


@dataclass
class Server:
    """
    A running sshd.

    Attributes:
        port: on 127.0.0.1.
        key: private key that it lets in.
        known_hosts: file with its host key.
        log: what it logged.
    """

    folder: Path
    port: int = 0
    key: Path = field(default=Path())
    known_hosts: Path = field(default=Path())
    process: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> str:
        """Who may log in: whoever runs the tests."""
        return getpass.getuser()

    @property
    def log(self) -> str:
        """Return what it logged."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def config(self, more: str = "") -> Path:
        """Write an ssh_config that leads here, and nowhere else."""
        path = self.folder / "ssh_config"
        path.write_text(
            f"Host *\n  HostName 127.0.0.1\n  Port {self.port}\n  User {self.user}\n  IdentityFile {self.key}\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile none\n"
            f"  StrictHostKeyChecking yes\n  KexAlgorithms curve25519-sha256\n{more}"
        )
        return path

    def stop(self) -> None:
        """End it with all its sessions."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def make_key(path: Path, passphrase: str = "") -> Path:
    """Make a key pair."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True, stdin=subprocess.DEVNULL
    )
    return path


def start_sshd(folder: Path, wrapper: str = "", more: str = "") -> Server:
    """
    Start an sshd.

    Args:
        folder: for its files.
        wrapper: shell text that every command runs in; ``$SSH_ORIGINAL_COMMAND`` is what was asked. "" for none.
        more: lines of sshd_config.
    """
    assert SSHD is not None
    folder.mkdir(mode=0o700, exist_ok=True)
    server = Server(folder, free_port())
    host_key = make_key(folder / "host_key")
    server.key = make_key(folder / "user_key")
    (folder / "authorized_keys").write_text((folder / "user_key.pub").read_text())
    server.known_hosts = folder / "known_hosts"
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {host_key.with_suffix('.pub').read_text()}")
    command = f"ForceCommand sh -c {shlex.quote(wrapper)}\n" if wrapper else ""
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{server.port}\nHostKey {host_key}\nAuthorizedKeysFile {folder}/authorized_keys\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nUseDNS no\nPasswordAuthentication no\n"
        f"KbdInteractiveAuthentication no\n"
        f"MaxStartups 200:30:400\nPermitRootLogin yes\nLogLevel VERBOSE\n{more}{command}"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it separates privileges; made at boot otherwise
    argv = [SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
    server.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
            return server
        if server.process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"sshd did not start: {server.log}")
