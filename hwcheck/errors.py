"""
The errors hwcheck raises on purpose; anything else that escapes is a bug.

::

    HwcheckError
    ├── UsageError     flags, targets or files named on the command line are wrong        exit 2
    ├── ProfileError   a profile, site layer or waiver file does not load                 exit 2
    ├── PlanError      checks contradict each other, or a plan file cannot be used             exit 2
    ├── MachineError   this machine cannot do its part: a full disk, no right to write         exit 2
    ├── StoreError     runs cannot be kept or asked for: unreachable, newer, damaged, full     exit 2
    ├── EvidenceError  an evidence directory or bundle cannot be used as one              exit 2
    ├── TransportError a node cannot be reached or did not answer; becomes a line of the report    exit 3
    ├── CertificateError a certificate is not what was signed, or not in date                      exit 1
    ├── NotCertifiedError a node cannot be certified, and why                                 exit 1 or 3
    └── ParseError     a text is of a known format but cannot be understood; caught at
                       the border of parsing, where it becomes a Missing(unparsable)

A sick machine is no error: it is a finding. A value that could not be had is no error either: it is a
:class:`hwcheck.facts.Missing`.
"""

from __future__ import annotations


class HwcheckError(Exception):
    """Root of the errors that are told to the user without a traceback."""


class UsageError(HwcheckError):
    """What was asked for on the command line cannot be done."""


class MachineError(HwcheckError):
    """The machine that hwcheck runs on cannot do its part; says nothing about any node."""


class ProfileError(HwcheckError):
    """
    A YAML layer (profile, site, waivers) is wrong.

    Args:
        message: what is wrong, one sentence.
        path: the file.
        line: 1-based line, where known.
    """

    def __init__(self, message: str, path: str = "", line: int | None = None) -> None:
        self.path, self.line = path, line
        where = f"{path}:{line}: " if line else f"{path}: " if path else ""
        super().__init__(where + message)


class PlanError(HwcheckError):
    """Two checks want different values for one key, or a plan file is not what it says."""


class StoreError(HwcheckError):
    """
    The store of runs cannot be used.

    Args:
        message: the reason, one sentence.
        aside: file in which a run waits that could not be kept; "" where nothing waits.
    """

    def __init__(self, message: str, aside: str = "") -> None:
        self.aside = aside
        super().__init__(message)


class EvidenceError(HwcheckError):
    """An evidence directory, a bundle or a posted file cannot be read as evidence at all."""


class TransportError(HwcheckError):
    """
    A node cannot be reached, or what answered is not the node program.

    Args:
        message: the reason, one sentence.
        advice: what to do about it; "" when the reason says it.
        passing: the node hung up or was slow before anything was read, as one does whose sshd has too many logins at
            once, or that a loaded controller asks; asking once more may help.
    """

    def __init__(self, message: str, advice: str = "", *, passing: bool = False) -> None:
        self.advice, self.passing = advice, passing
        super().__init__(message)


class ParseError(HwcheckError):
    """
    A text of a known format does not say what it should.

    Args:
        message: what was expected and not found.
        line: 1-based line in the file the text came from, where known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class CertificateError(HwcheckError):
    """A certificate is not what was signed, is signed by another key, or is not in date."""


class NotCertifiedError(HwcheckError):
    """
    A node cannot be certified.

    Args:
        node: its name.
        reasons: what is in the way, causes first; one sentence each.
        failed: something fails; False where it only could not be told.
    """

    def __init__(self, node: str, reasons: list[str], *, failed: bool) -> None:
        self.node, self.reasons, self.failed = node, tuple(reasons), failed
        super().__init__(f"{node or 'a node without a name'} is not certified: {'; '.join(reasons)}")
