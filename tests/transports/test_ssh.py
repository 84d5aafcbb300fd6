"""Both SSH back ends against a real sshd, and against servers that are none."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from hwcheck.errors import TransportError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.fan_out import FanOut, Limits
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.ssh_openssh import OpensshTransport
from hwcheck.transports.ssh_paramiko import ParamikoTransport
from hwcheck.transports.target import Become, Target
from tests.transports.sshd import MISSING, SSHD, Server, free_port, make_key, start_sshd
from tests.transports.test_conversation import SUDO

needs_sshd = pytest.mark.skipif(SSHD is None, reason=MISSING)
pytestmark = [pytest.mark.lab, needs_sshd]

KINDS = {"paramiko": ParamikoTransport, "openssh": OpensshTransport}
NOTHING = Request(only=("none of them",))


@contextlib.contextmanager
def transport(kind: str, config: Path, connect_timeout: float = 5.0) -> Iterator[Any]:
    """Make a back end, and end it."""
    made = KINDS[kind](connect_timeout, (), config)
    try:
        yield made
    finally:
        made.close()


def ask(
    kind: str, config: Path, *targets: Target, request: Request = NOTHING, connect: float = 5.0, host: float = 20.0
) -> list[Outcome]:
    """Ask nodes."""
    with transport(kind, config, connect) as made:
        return sorted(FanOut(targets, made.collect, request, Limits(16, host)), key=lambda outcome: outcome.name)


def reason(kind: str, config: Path, target: Target | None = None, **more: Any) -> str:
    """Return why a node could not be reached."""
    (outcome,) = ask(kind, config, target or Target("gpu-1"), **more)
    assert outcome.error is not None
    assert str(outcome.error).isprintable()
    return f"{outcome.error} {outcome.error.advice}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_is_read(kind: str, sshd: Server) -> None:
    """All quick sources answer, and the stream ends."""
    (outcome,) = ask(kind, sshd.config(), Target("gpu-1"), request=Request())
    assert outcome.error is None
    assert outcome.fault == ""
    assert outcome.name == "gpu-1"
    assert {"node.hello", "proc-cmdline"} <= {answer.kind for answer in outcome.answers}
    assert float(outcome.hello["time"]) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_many_nodes_are_read_at_once(kind: str, sshd: Server) -> None:
    """Each has its own line, whatever happened to the others."""
    targets = [Target(f"gpu-{number:02}") for number in range(12)]
    dead = Target("gpu-99", port=free_port())
    outcomes = ask(kind, sshd.config(), *targets, dead)
    assert [outcome.name for outcome in outcomes] == [*(target.name for target in targets), "gpu-99"]
    assert [outcome.name for outcome in outcomes if outcome.error is not None] == ["gpu-99"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_port_without_a_server_is_told(kind: str, sshd: Server) -> None:
    """Connection refused."""
    assert "connection refused" in reason(kind, sshd.config(), Target("gpu-1", port=free_port())).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_nobody_knows_is_told(kind: str, tmp_path: Path) -> None:
    """The name server's answer, not a time-out."""
    config = tmp_path / "config"
    config.write_text("")
    assert "is not known" in reason(kind, config, Target("no-such-host.invalid"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_host_key_is_refused(kind: str, sshd: Server, tmp_path: Path) -> None:
    """The sentence says how to add it; nothing was sent to the node."""
    config = tmp_path / "config"
    config.write_text(sshd.config().read_text().replace(str(sshd.known_hosts), str(tmp_path / "none")))
    text = reason(kind, config)
    assert "host key" in text
    assert "ssh-keyscan" in text
    assert "fingerprint" in text
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_another_host_key_is_refused(kind: str, sshd: Server, tmp_path: Path) -> None:
    """A machine in the middle, or one that was installed anew: both are told."""
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{sshd.port} {other}")
    config = tmp_path / "config"
    config.write_text(sshd.config().read_text().replace(str(sshd.known_hosts), str(known)))
    assert "not the one in known_hosts" in reason(kind, config)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_not_let_in_is_told(kind: str, sshd: Server, tmp_path: Path) -> None:
    """Login refused, as whom."""
    config = tmp_path / "config"
    config.write_text(sshd.config().read_text().replace(str(sshd.key), str(make_key(tmp_path / "stranger"))))
    assert "login" in reason(kind, config)
    assert "refused" in reason(kind, config)


def test_a_key_with_a_passphrase_is_named(sshd: Server, tmp_path: Path) -> None:
    """Nobody is asked for it; the agent is the way."""
    config = tmp_path / "config"
    config.write_text(sshd.config().read_text().replace(str(sshd.key), str(make_key(tmp_path / "locked", "secret"))))
    assert "locked is protected by a passphrase" in reason("paramiko", config)


def test_the_key_of_the_inventory_goes_before_others(sshd: Server, tmp_path: Path) -> None:
    """And one that is not there is told."""
    config = tmp_path / "config"
    config.write_text(sshd.config().read_text().replace(f"IdentityFile {sshd.key}", ""))
    (outcome,) = ask("paramiko", config, Target("gpu-1", key_files=(str(sshd.key),)))
    assert outcome.error is None
    assert "there is no key file" in reason("paramiko", config, Target("gpu-1", key_files=(str(tmp_path / "none"),)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_python_that_is_not_there_is_told(kind: str, sshd: Server) -> None:
    """With the option that names another."""
    text = reason(kind, sshd.config(), Target("gpu-1", python="/opt/none/python3"))
    assert "/opt/none/python3 not found on the node" in text
    assert "--node-python" in text


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An sshd whose node behaves as the address of the inventory asks: it is the first word of its Python's path."""
    folder = tmp_path_factory.mktemp("odd")
    hello = "printf 'HWC1 hello ok 0 10 - -\\nhost=gpu-1'"
    wrapper = (
        "case $SSH_ORIGINAL_COMMAND in "
        f"/dies*) {hello}; printf 'HWC1 lspci ok 0 500 - -\\nhalf'; kill -9 $$;; "
        f"/floods*) {hello}; yes garbage;; "
        f"/stays*) {hello}; printf 'HWC1 end ok 0 0 - -\\n'; yes;; "
        "/silent*) sleep 60;; "
        f"/stderr*) head -c 4000000 /dev/zero >&2; {hello}; printf 'HWC1 end ok 0 0 - -\\n';; "
        "*) PATH=" + str(folder) + ':$PATH; echo banner >&2; eval "$SSH_ORIGINAL_COMMAND";; esac'
    )
    sudo = folder / "sudo"
    sudo.write_text(SUDO % "hunter2")
    sudo.chmod(0o755)
    server = start_sshd(folder / "ssh", wrapper)
    yield server
    server.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_sick_nodes_are_each_told_and_keep_nobody_waiting(kind: str, odd: Server) -> None:
    """One dies half-way, one floods, one does not stop, one is silent; the healthy one beside them is read."""
    names = ("dies", "floods", "stays", "silent", "stderr")
    targets = [Target(name, python=f"/{name}/python") for name in names]
    began = time.monotonic()
    outcomes = {o.name: o for o in ask(kind, odd.config(), Target("well"), *targets, host=8)}
    assert time.monotonic() - began < 20
    assert outcomes["well"].error is None
    assert outcomes["well"].fault == ""
    assert outcomes["dies"].fault == "ended before its end"
    assert "instead of evidence came" in outcomes["floods"].fault
    assert outcomes["stays"].fault == ""
    assert outcomes["stderr"].fault == ""
    assert "no answer in 8 s" in str(outcomes["silent"].error)


@pytest.mark.parametrize("kind", KINDS)
def test_sudo_over_ssh(kind: str, odd: Server) -> None:
    """The password goes to sudo and the program to Python; a wrong one is told."""
    right, wrong, none = (Target(str(n), become=Become(password=p)) for n, p in enumerate(("hunter2", "wrong", None)))
    outcomes = ask(kind, odd.config(), right, wrong, none)
    assert outcomes[0].error is None
    assert "does not accept the password" in str(outcomes[1].error)
    assert "asks for a password" in str(outcomes[2].error)
    assert "hunter2" not in odd.log


def test_openssh_leaves_no_master_behind(sshd: Server) -> None:
    """The shared connections end with the run, and their folder is gone."""
    with transport("openssh", sshd.config()) as made:
        list(FanOut([Target("gpu-1"), Target("gpu-2")], made.collect, NOTHING, Limits()))
        folder = made._folder
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        assert list(Path(folder).iterdir())
    assert not Path(folder).exists()
    for _ in range(50):
        masters = [path for path in Path("/proc").glob("[0-9]*") if folder in _command(path)]
        if not masters:
            break
        time.sleep(0.1)
    assert masters == []


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("kind", KINDS)
def test_an_interruption_ends_all_at_once(kind: str, odd: Server) -> None:
    """Leaving the loop early is what Ctrl-C does: connections, processes and threads are gone quickly."""
    with transport(kind, odd.config()) as made:
        targets = [Target(f"gpu-{number}", python="/silent/python") for number in range(4)]
        fan = FanOut([Target("well"), *targets], made.collect, NOTHING, Limits(8, 60))
        began = time.monotonic()
        for outcome in fan:
            assert outcome.name == "well"
            break
        fan.stop()
        assert time.monotonic() - began < 10


# --------------------------------------------------------------------------------------- servers that do not speak SSH


class Listener:
    """Accepts connections and plays a server; counts what it accepted."""

    def __init__(self, say: bytes, *, hang_up: bool = False) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._say, self._hang_up = say, hang_up
        self.port = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._socket.accept()
                self._open.append(sock)
                with contextlib.suppress(OSError):
                    sock.sendall(self._say)
                    if self._hang_up:
                        sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        """Listen."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
        for sock in self._open:
            sock.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("say", "hang_up"),
    [(b"", False), (b"", True), (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20, False), (b"SSH-2.0-OpenSSH_9.2\r\n", False),
     (b"SSH-2.0-x\r\n" + bytes(5000), True), (b"x" * 200_000, False)],
    ids=["silent", "hangs up", "http", "silent after its banner", "garbage after its banner", "floods"],
)  # fmt: skip
def test_what_is_no_ssh_server_is_told_in_time(kind: str, say: bytes, hang_up: bool, sshd: Server) -> None:  # noqa: FBT001 - a table of cases
    """A server that accepts and stays silent, or talks of something else, does not hang us."""
    with Listener(say, hang_up=hang_up) as listener:
        began = time.monotonic()
        text = reason(kind, sshd.config(), Target("gpu-1", port=listener.port), connect=1.0, host=5.0)
        assert time.monotonic() - began < 8
        assert text


def test_cancelling_closes_a_connection_that_waits(sshd: Server) -> None:
    """Also while the server is silent."""
    cancel = Cancel()
    with Listener(b"") as listener, transport("paramiko", sshd.config(), 30.0) as made:
        threading.Timer(0.3, cancel.stop).start()
        began = time.monotonic()
        with pytest.raises(TransportError):
            made.collect(Target("gpu-1", port=listener.port), NOTHING, began + 60, cancel)
        assert time.monotonic() - began < 5
