"""
The talk with one node: the command that starts the program, sudo's question, and the stream that comes back.

The same for all transports; they only move bytes. With a password the program is held back until sudo has either asked
or let the command run: a sudo that asks for nothing would hand the password to Python as the first line of its program.
"""

from __future__ import annotations

import re
import secrets
import shlex
import time
from collections.abc import Callable

from hwcheck.errors import TransportError
from hwcheck.lines import clean
from hwcheck.transports.stream import Answer, Decoder, StreamError
from hwcheck.transports.target import Become

MAX_ERRORS = 64 << 10
PYTHON = "python3"
_ADVICE = (
    "Give the password (--ask-become-pass, or ansible_become_password), or allow the command without one: see "
    "sudoers(5), NOPASSWD."
)
_SHELL_ADVICE = "Log in by hand: the user's shell, or a login script, ends before the program could start."
_BLAMES = (
    (
        "sudo: (?:a password is required|no tty present|a terminal is required)|incorrect password|no password was",
        "sudo asks for a password",
        _ADVICE,
    ),
    (
        "not in the sudoers file|not allowed to (?:execute|run)|may not run sudo",
        "sudo does not allow this user to run the program",
        "Add the user to sudoers, or read without --become.",
    ),
    (
        "sudo: you must have a tty",
        "sudo wants a terminal (requiretty)",
        "Set !requiretty for this user in sudoers.",
    ),
    (
        "sudo: (?:command )?not found|sudo: No such file",
        "sudo is not installed on the node",
        "Log in as root, or read without --become.",
    ),
    (
        r"hwcheck needs Python [\d.]+, this is [\w.+]+",
        "",
        "Name a newer one: --node-python, or ansible_python_interpreter.",
    ),
)
"""What standard error says, what that means ("": just that), and what to do."""


class Conversation:
    """
    One run of the node program.

    Args:
        program: its text.
        python: what runs it.
        become: by sudo, or as the user who logs in.
        heard: called with each answer as it comes; None for nobody.

    Attributes:
        argv: the command, for a process.
        decoder: what came back.
        fault: why the stream ended before its end; "" where it did not.
    """

    def __init__(
        self, program: bytes, python: str = "", become: Become | None = None,
        heard: Callable[[Answer], None] | None = None,
    ) -> None:  # fmt: skip
        self._program = program
        self._python = python or PYTHON
        self._become = become
        self._ask = f"[{secrets.token_hex(8)}] "
        self._ready = f"[{secrets.token_hex(8)}]"
        self._errors = bytearray()
        self._answered = self._sent = False
        self.argv = self._argv()
        self.decoder = Decoder(heard)
        self.fault = ""

    def _argv(self) -> tuple[str, ...]:
        run = (self._python, "-I", "-S", "-")
        if self._become is None:
            return run
        user = () if self._become.user == "root" else ("-u", self._become.user)
        if self._become.password is None:
            return ("sudo", "-n", *user, "--", *run)
        # -k: sudo asks even when it has seen the password before; whether it asked is then known for certain
        tell = f'echo "{self._ready}" >&2; exec "$0" -I -S -'
        return ("sudo", "-k", "-S", "-p", self._ask, *user, "--", "sh", "-c", tell, self._python)

    @property
    def command(self) -> str:
        """The command for the shell of a node."""
        return shlex.join(self.argv)

    @property
    def sent_all(self) -> bool:
        """Whether the program has been handed out: after it, there is nothing more to say."""
        return self._sent

    def begin(self) -> bytes:
        """Return what to send at once."""
        if self._become is not None and self._become.password is not None:
            return b""
        return self._send()

    def _send(self) -> bytes:
        self._sent = True
        self.decoder.asked = time.time()
        return self._program

    def hear(self, data: bytes) -> bytes:
        """
        Take what came on standard error; return what to send now.

        Raises:
            TransportError: sudo asks again, so the password was wrong.
        """
        if len(self._errors) < MAX_ERRORS:
            self._errors += data[:MAX_ERRORS]
        if self._sent:
            return b""
        text = bytes(self._errors)
        asked = text.count(self._ask.encode())
        if asked > 1:
            raise TransportError("sudo does not accept the password", "Check the password and whom it is for.")
        if asked and not self._answered:
            self._answered = True
            assert self._become is not None  # noqa: S101 - nobody else asks
            return (self._become.password or "").encode() + b"\n"
        return self._send() if self._ready.encode() in text else b""

    def take(self, data: bytes) -> bool:
        """Take what came on standard output; returns False when there is nothing more to wait for."""
        try:
            self.decoder.feed(data)
        except StreamError as error:
            self.fault = str(error)
            return False
        return not self.decoder.ended

    @property
    def words(self) -> str:
        """What the node said on standard error, for a message; without our marks."""
        text = self._errors.decode("utf-8", "replace").replace(self._ask, "").replace(self._ready, "")
        return " ".join(clean(line).strip() for line in text.splitlines() if line.strip())[-300:]

    def finish(self, status: int | None, *, late: float = 0.0) -> Decoder:
        """
        End the talk; what has come counts when the node has at least said hello.

        Args:
            status: exit status of the command; None when unknown.
            late: seconds after which it was cut off; 0 when it ended by itself.

        Raises:
            TransportError: not even a hello has come; says why.
        """
        if not self.decoder.hello:
            raise self._blame(status, late)
        if not self.decoder.ended and not self.fault:
            self.fault = f"did not end within {late:.3g} s" if late else "ended before its end"
        return self.decoder

    def _blame(self, status: int | None, late: float) -> TransportError:
        words = self.words
        for pattern, reason, advice in _BLAMES:
            match = re.search(pattern, words)
            if match:
                return TransportError(reason or match[0], advice)
        python = re.escape(self._python)
        if re.search(rf"{python}['\"]?: (?:command )?not found|{python}['\"]?: No such file", words) or status == 127:
            advice = (
                "Name its Python: --node-python, or ansible_python_interpreter. It needs 3.9 or newer, nothing else."
            )
            return TransportError(f"{self._python} not found on the node", advice)
        noise = self.decoder.noise
        came = f"instead of evidence came {noise!r}" if noise else ""
        if late:
            step = "no answer" if self._sent else "sudo did not let the program start"
            said = "; ".join(filter(None, (words, came)))
            return TransportError(f"{step} in {late:.3g} s" + (f": {said}" if said else ""))
        if self.fault or noise:
            advice = "" if self.fault else _SHELL_ADVICE
            return TransportError((self.fault or came) + (f" ({words})" if words else ""), advice)
        ended = f"ended with status {status}" if status is not None else "ended"
        reason = f"the node program {ended} without an answer: {words or 'not a word'}"
        return TransportError(reason, passing=status is None)
