"""Talks with one node, by processes that play the node: sudo, silence, floods, deaths."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from hwcheck.errors import TransportError
from hwcheck.transports import local
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.fan_out import FanOut, Limits
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.process import converse
from hwcheck.transports.request import Request
from hwcheck.transports.target import LOCAL, Become, Target

HELLO = "printf 'HWC1 hello ok 0 10 - -\\nhost=gpu-1'"
UNAME = "printf 'HWC1 uname ok 0 5 - -\\nLinux'"
END = "printf 'HWC1 end ok 0 0 - -\\n'"
PASSWORD = "hunter2"  # noqa: S105 - of a test
NOTHING = Request(only=("none of them",))
SUDO = """#!/bin/sh
# a sudo that asks as the real one does; the first line of its rules says whether, and which password is right
rules='%s'
while [ $# -gt 0 ]; do
    case $1 in
        -n) never=1 ;; -k) ;; -S) ;; -p) prompt=$2; shift ;; -u) shift ;;
        --) shift; break ;;
    esac
    shift
done
case $rules in
    free) exec "$@" ;;
    refuse) echo 'gpu is not in the sudoers file.' >&2; exit 1 ;;
esac
[ -z "$never" ] || { echo 'sudo: a password is required' >&2; exit 1; }
for try in 1 2 3; do
    printf '%%s' "$prompt" >&2
    IFS= read -r given || exit 1
    [ "$given" != "$rules" ] || exec "$@"
    echo 'Sorry, try again.' >&2
done
exit 1
"""


def play(script: str, seconds: float = 10.0, program: bytes = b"") -> Conversation:
    """Talk with a shell script in place of a node."""
    talk = Conversation(program)
    began = time.monotonic()
    last = began + seconds
    status = converse(("sh", "-c", script), talk, last, Cancel())
    talk.finish(status, late=seconds if time.monotonic() >= last else 0.0)
    return talk


def test_a_whole_stream_is_taken() -> None:
    """Hello, an answer, the end."""
    talk = play(f"cat >/dev/null; {HELLO}; {UNAME}; {END}")
    assert talk.decoder.ended
    assert talk.fault == ""
    assert [answer.payload for answer in talk.decoder.answers] == [b"Linux"]


def test_what_login_scripts_print_is_passed_over() -> None:
    """A banner on standard output, with escapes and without a line end, hides no evidence."""
    talk = play(f"printf 'Welcome!\\n\\033[31mHWC\\033[0m> '; cat >/dev/null; {HELLO}; {UNAME}; {END}; echo bye")
    assert talk.fault == ""
    assert talk.decoder.hello["host"] == "gpu-1"
    assert [answer.payload for answer in talk.decoder.answers] == [b"Linux"]


def test_a_banner_and_then_silence_is_told_with_the_banner() -> None:
    """Whoever reads the report sees what the node said last."""
    with pytest.raises(TransportError, match=r"no answer in 0\.5 s: instead of evidence came 'Press a key'"):
        play("echo 'Press a key'; sleep 60", 0.5)


def test_the_end_frame_ends_the_talk_not_the_end_of_the_output() -> None:
    """A left-over child that holds the pipe open keeps nobody waiting, and a node that goes on sending is cut."""
    began = time.monotonic()
    play(f"{HELLO}; {END}; yes")
    play(f"{HELLO}; {END}; sleep 60")
    assert time.monotonic() - began < 5


def test_a_node_that_dies_half_way_keeps_what_had_come() -> None:
    """The fault says that the rest is missing."""
    talk = play(f"{HELLO}; {UNAME}; printf 'HWC1 lspci ok 0 500 - -\\nhalf'; kill -9 $$")
    assert [answer.kind for answer in talk.decoder.answers] == ["uname"]
    assert talk.fault == "ended before its end"


def test_what_a_dead_node_still_owed_is_unknown() -> None:
    """Each answer that did not come is one that was asked and not told."""
    request = Request()
    talk = play(f"{HELLO}; kill -9 $$")
    outcome = Outcome.of(Target("gpu-1"), talk, request, 1.0)
    owed = {answer.kind for answer in outcome.answers if answer.status == "failed"}
    assert owed == set(request.owed(()))
    assert outcome.broken() == [("the node's stream", "ended before its end")]


def test_garbage_after_the_hello_keeps_what_had_come() -> None:
    """A stream that turns into something else is a fault, not a crash."""
    talk = play(f"{HELLO}; {UNAME}; echo 'Segmentation fault'; sleep 60")
    assert talk.fault == "instead of evidence came 'Segmentation fault'"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "not a word"),
        ("echo 'Welcome to the cluster'; cat >/dev/null", "instead of evidence came 'Welcome to the cluster'"),
        ("echo 'sh: 1: python3: not found' >&2; exit 127", "python3 not found on the node"),
        ("exit 127", "python3 not found on the node"),
        ("echo 'hwcheck needs Python 3.9, this is 3.6' >&2; exit 1", "hwcheck needs Python 3.9, this is 3.6"),
        ("echo 'Traceback: boom' >&2; exit 1", "Traceback: boom"),
        ("echo 'sudo: a password is required' >&2; exit 1", "sudo asks for a password"),
        ("yes garbage", "instead of evidence came"),
        ("echo 'This account is not available.'; exit 1", "came 'This account is not available.'"),
        ("printf '\\033[31mred' >&2; exit 3", "status 3 without an answer: red"),
    ],
)
def test_no_hello_is_no_evidence_and_says_why(script: str, words: str) -> None:
    """A node that never began is unreachable, with the reason."""
    with pytest.raises(TransportError) as error:
        play(script)
    assert words in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("script", ["sleep 60", "trap '' TERM; sleep 60 & wait", f"{HELLO}; sleep 60"])
def test_silence_ends_with_the_deadline(script: str) -> None:
    """Without a hello it is no answer; with one it is a fault."""
    began = time.monotonic()
    try:
        told = play(script, 0.5).fault
    except TransportError as error:
        told = str(error)
    assert told == ("did not end within 0.5 s" if script.startswith(HELLO) else "no answer in 0.5 s")
    assert time.monotonic() - began < 3


def test_a_flood_on_standard_error_holds_up_nothing() -> None:
    """Both outputs are drained together, and only a part of the flood is kept."""
    talk = play(f"head -c 5000000 /dev/zero | tr '\\0' x >&2; {HELLO}; {END}")
    assert talk.decoder.ended
    assert len(talk.words) <= 300


def test_a_node_that_does_not_read_its_program_holds_up_nothing() -> None:
    """Its answer is taken all the same."""
    assert play(f"{HELLO}; {END}", program=b"x" * 5_000_000).decoder.ended


def test_cancelling_ends_a_talk_at_once() -> None:
    """Whatever the node does."""
    cancel = Cancel()
    talk = Conversation(b"")
    threading.Timer(0.2, cancel.stop).start()
    began = time.monotonic()
    converse(("sh", "-c", "trap '' TERM INT; sleep 60"), talk, began + 30, cancel)
    assert time.monotonic() - began < 3
    with pytest.raises(TransportError, match="interrupted"):
        converse(("sh", "-c", "sleep 60"), talk, began + 30, cancel)


def test_cancelling_leaves_no_tool_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that never answers ends with the program that asked it, at Ctrl-C as at the deadline of a node."""
    tool = tmp_path / "systemctl"
    tool.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 4321\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fan = FanOut([Target("", connection=LOCAL)], local.collect, Request(only=("units",)), Limits(1, 15))
    fan.start()
    for _ in range(200):
        if (tmp_path / "pid").exists() and (pid := (tmp_path / "pid").read_text()):
            break
        time.sleep(0.05)
    fan.stop()
    for _ in range(100):
        if not Path(f"/proc/{pid.strip()}").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{pid.strip()}").exists()


def test_a_command_that_is_not_there_is_told(cancel: Cancel) -> None:
    """With the reason of the system."""
    with pytest.raises(TransportError, match="cannot start no-such-command"):
        converse(("no-such-command",), Conversation(b""), time.monotonic() + 5, cancel)


# ---------------------------------------------------------------------------------------------------------------- sudo


def by_sudo(rules: str, password: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Read this machine by a sudo with these rules."""
    path = folder / "sudo"
    path.write_text(SUDO % rules)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    target = Target("", connection=LOCAL, become=Become(password=password))
    (outcome,) = FanOut([target], local.collect, NOTHING, Limits(1, 15))
    return outcome


@pytest.mark.parametrize(
    ("rules", "password"),
    [("free", None), ("free", "hunter2"), ("hunter2", "hunter2"), ("with 'quotes\"", "with 'quotes\"")],
)
def test_sudo_lets_us_in(rules: str, password: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a password, with one that it asks for, and with one that it does not ask for."""
    outcome = by_sudo(rules.replace("'", "'\\''"), password, tmp_path, monkeypatch)
    assert outcome.error is None
    assert outcome.fault == ""


@pytest.mark.parametrize(
    ("rules", "password", "words"),
    [
        ("hunter2", None, "sudo asks for a password"),
        ("hunter2", "wrong", "sudo does not accept the password"),
        ("refuse", None, "sudo does not allow this user"),
        ("refuse", "hunter2", "sudo does not allow this user"),
    ],
)
def test_a_sudo_that_refuses_is_told_as_such(
    rules: str, password: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason, and what to do; never the password."""
    error = by_sudo(rules, password, tmp_path, monkeypatch).error
    assert words in str(error)
    assert error is not None
    assert error.advice
    assert "wrong" not in str(error) + error.advice


def test_the_password_is_in_no_argument_and_no_representation() -> None:
    """Everybody on a machine can read the arguments of a process."""
    become = Become(password=PASSWORD)
    talk = Conversation(b"program", become=become)
    assert "hunter2" not in talk.command
    assert "hunter2" not in repr(Target("gpu-1", become=become, password=PASSWORD))
    assert talk.begin() == b""  # the program waits until sudo has spoken
