"""What came of asking one node: its answers, or the reason why there are none. Loads no parser, see stream.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hwcheck.errors import TransportError
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.request import Request
from hwcheck.transports.stream import Answer
from hwcheck.transports.target import Target

FOLDER = PurePosixPath("raw")
LAB = "hwcheck lab"
"""What a simulated node says who made it."""

HELLO = "node.hello"
"""Kind of the first answer: what the node said of itself, and our clock around it."""


@dataclass(slots=True)
class Outcome:
    """
    What came of asking one node.

    Attributes:
        target: which node.
        answers: what its sources said, hello first, with those that it still owed; () when it did not answer at all.
        hello: what it said of itself.
        usage: CPU seconds it says it took.
        fault: why its stream broke off; "" where it did not.
        error: why it could not be reached; None when it answered.
        seconds: how long it took, connection included.
    """

    target: Target
    answers: tuple[Answer, ...] = ()
    hello: dict[str, str] = field(default_factory=dict)
    usage: dict[str, str] = field(default_factory=dict)
    fault: str = ""
    error: TransportError | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, target: Target, talk: Conversation, request: Request, seconds: float) -> Outcome:
        """Take what a finished conversation has brought."""
        decoder = talk.decoder
        rows = {**decoder.hello, "asked": f"{decoder.asked:.6f}", "heard": f"{decoder.heard:.6f}"}
        text = "".join(f"{key}={value}\n" for key, value in rows.items())
        answers = [Answer(HELLO, "ok", 0.0, "", "", text.encode()), *decoder.answers]
        if not decoder.ended:
            owed = request.owed(answer.kind for answer in decoder.answers)
            answers += [
                Answer(kind, "failed", 0.0, f"the node's stream: {talk.fault}, before this answer", "", b"")
                for kind in owed.elements()
            ]
        return cls(target, tuple(answers), decoder.hello, decoder.usage, talk.fault, None, seconds)

    @property
    def name(self) -> str:
        """What we call the node; its own name counts only where nobody gave one."""
        return self.target.name or self.hello.get("host", "")

    @property
    def simulated(self) -> bool:
        """Whether it says that it is a lab node."""
        return self.hello.get("vendor", "").startswith(LAB)

    @property
    def time(self) -> str:
        """When it was read, by its own clock, ISO 8601; "" when its clock makes no sense."""
        import datetime as dt  # noqa: PLC0415 - not needed before a node has answered

        try:
            taken = dt.datetime.fromtimestamp(float(self.hello.get("time", "")), dt.UTC)
        except (ValueError, OverflowError, OSError):
            return ""
        return taken.isoformat(timespec="seconds")

    def files(self) -> list[tuple[str, Answer]]:
        """
        Name the file of each answer in an evidence directory; a kind that came again is numbered.

        An answer without a word has none, except an empty one of a source that had nothing to say.
        """
        seen: Counter[str] = Counter()
        named = []
        for answer in self.answers:
            if not answer.payload and answer.status != "ok":
                named.append(("", answer))
                continue
            seen[answer.kind] += 1
            number = f".{seen[answer.kind]}" if seen[answer.kind] > 1 else ""
            named.append((str(FOLDER / (answer.kind + number)), answer))
        return named

    def broken(self) -> list[tuple[str, str]]:
        """Say what was not read to its end."""
        return [("the node's stream", self.fault)] if self.fault else []
