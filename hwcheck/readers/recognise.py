"""What begins an output: the openers of all formats, the commands they answer to, and the forms of a shell prompt."""

from __future__ import annotations

import re

from hwcheck.parse import FORMATS, Format
from hwcheck.parse.log_prefix import ANYWHERE

PROMPT = re.compile(
    r"^(?:\([\w.-]{1,40}\) ?)?"
    r"(?:\[?[\w.-]{1,64}@[\w.-]{1,64}[^\]$#>|]{0,200}\]?[$#]|[\w.-]{1,64}:[~/][\w./~-]{0,200} ?[$#]|\$|#\s\$"
    r"|(?:ba)?sh-[0-9.]{1,8}[$#]|(?:PS )?[A-Za-z]:\\[^>|\"]{0,200}>)"
    r"(?:\s+(?P<command>\S.*)|(?P<windows>\S.*)|\s*)$"
)
ROOT_PROMPT = re.compile(r"^# (?P<command>[\w./-].*)$")
"""May be a comment or a heading as well: counts only where the command is one of those we know."""

SEPARATOR = re.compile(r"^(?:#{4,}|_{8,}|\*{3} (?P<path>\S.{0,200})|\s{0,3}(?:`{3,}|~{3,})[\w+.-]{0,30})\s*$")


def _by_rank(*, log: bool) -> list[Format]:
    chosen = (
        spec for spec in FORMATS.values() if spec.lines is log and spec.opens and not spec.opens.startswith("json:")
    )
    return sorted(chosen, key=lambda spec: spec.rank)


def _combined(specs: list[Format]) -> re.Pattern[str] | None:
    """Join all openers into one pattern; the group that matched names the format."""
    if not specs:
        return None
    return re.compile("|".join(f"(?P<f{index}>{spec.opens})" for index, spec in enumerate(specs)))


class Openers:
    """All formats, ready for recognition; made once, after every parser is imported."""

    def __init__(self) -> None:
        self.logs = [(spec, re.compile(spec.opens or "")) for spec in _by_rank(log=True)]
        self.specs = _by_rank(log=False)
        self.pattern = _combined(self.specs)
        self.commands = [spec for spec in FORMATS.values() if spec.command is not None]
        self.json = [
            (spec.opens[5:], spec) for spec in FORMATS.values() if spec.opens and spec.opens.startswith("json:")
        ]

    def log(self, line: str) -> Format | None:
        """Return the log format that a line is of."""
        return next((spec for spec, pattern in self.logs if pattern.match(line)), None)

    def other(self, line: str) -> Format | None:
        """Return the format that a line begins, JSON and logs aside."""
        match = self.pattern.match(line) if self.pattern else None
        # the group that closes last is the outer one, the format's own
        return self.specs[int(match.lastgroup[1:])] if match is not None and match.lastgroup else None

    def recognised(self, some: list[str]) -> int:
        """
        Count the lines that are a log's, begin a format, or hold a command we know.

        A log line that is known by its message alone does not count: it is known behind any host name.
        """
        return sum(1 for line in some if self._known(line))

    def _known(self, line: str) -> bool:
        log = self.log(line)
        return (log is not None and log.rank < ANYWHERE) or bool(self.other(line) or self.prompt(line))

    def prompt(self, line: str) -> Format | None:
        """Return the format of the command behind a shell prompt."""
        match = PROMPT.match(line)
        return self.asked_by(match["command"] or match["windows"] or "") if match else None

    def asked_by(self, command: str, *, whole: bool = False) -> Format | None:
        """Return the format a command prints; with ``whole`` the command must be the tool itself."""
        for spec in self.commands if command else ():
            found = spec.command.search(command) if spec.command is not None else None
            if found and not (whole and command[: found.start()].strip("./")):
                return spec
        return None


_openers: Openers | None = None


def openers() -> Openers:
    """Return the recognisers of all formats."""
    global _openers  # noqa: PLW0603 - compiled once; formats are fixed after import
    if _openers is None:
        _openers = Openers()
    return _openers
