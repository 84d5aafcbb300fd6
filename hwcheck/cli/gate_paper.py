"""The certificate of a node for ``hwcheck gate``: where it lies, who must have signed it, and whether it counts."""

from __future__ import annotations

import argparse
import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from hwcheck.certificate import fingerprint
from hwcheck.certificate.canonical import MAX_BYTES
from hwcheck.errors import UsageError
from hwcheck.gate.decision import NOT_READY, UNTOLD, Answer, of_certificate
from hwcheck.keyring import own_keyring, read_file, read_public
from hwcheck.places import state_home

CERTIFICATE = "etc/hwcheck/certificate.json"
KEY = "etc/hwcheck/certificate.pub"


@dataclass(slots=True)
class Paper:
    """
    A certificate that was looked at.

    Attributes:
        path: where it lies.
        certificate: what it says; empty where it is none.
        answer: what is against it; None when it counts.
        digest: of the file; "" when there is none.
        key: fingerprint of the key that it must be signed by; "" when there is none.
        keeps_clock: the clock is in doubt: what is remembered of it must stay.
    """

    path: Path
    certificate: dict[str, Any] = field(default_factory=dict)
    answer: Answer | None = None
    digest: str = ""
    key: str = ""
    keeps_clock: bool = False

    @staticmethod
    def places(arguments: argparse.Namespace, root: str) -> tuple[Path, Path]:
        """Return where the certificate of this machine lies, and the key."""
        below = Path(root or "/")
        return arguments.certificate or below / CERTIFICATE, arguments.key or below / KEY

    @classmethod
    def here(cls, arguments: argparse.Namespace, root: str, jump: float) -> Self:
        """Look at the certificate of this machine, or of the one below a root."""
        path, key = cls.places(arguments, root)
        return cls._look(path, key, jump)

    @classmethod
    def of_other(cls, arguments: argparse.Namespace, node: str) -> Self:
        """
        Look at the certificate of another node, which lies here.

        Raises:
            UsageError: no folder was named.
        """
        folder = arguments.certificate
        if folder is None or not folder.is_dir():
            raise UsageError("for other nodes --certificate is a folder that holds NODE.cert.json of each")
        if node in ("", ".", "..") or "/" in node or "\0" in node:
            return cls(folder, answer=Answer(UNTOLD, "a node of this name can have no certificate file"))
        return cls._look(folder / f"{node}.cert.json", arguments.key, 0.0)

    @classmethod
    def _look(cls, path: Path, key: Path | None, jump: float) -> Self:
        paper = cls(path)
        if not os.path.lexists(path):
            paper.answer = Answer(NOT_READY, f"not certified: there is no {path}")
            return paper
        try:
            data = read_file(path, MAX_BYTES)
        except UsageError as error:
            paper.answer = Answer(UNTOLD, f"the certificate cannot be read: {error}")
            return paper
        paper.digest = sha256(data).hexdigest()
        try:
            public = _pinned(key)
        except (UsageError, OSError) as error:
            paper.answer = Answer(UNTOLD, f"the certificate cannot be verified: {error}")
            return paper
        paper.key = fingerprint(public)
        paper.certificate, paper.answer = of_certificate(data, public, dt.datetime.now(dt.UTC), jump)
        paper.keeps_clock = bool(jump) and paper.answer is not None and paper.answer.word == UNTOLD
        return paper

    def explained(self) -> Iterator[str]:
        """Say what it is, as lines."""
        yield f"certificate {self.path}, to be signed by {self.key or 'a key that is not here'}"
        if self.certificate:
            run, gpus = self.certificate["run"], len(self.certificate["identity"]["gpus"])
            dates = f"made {self.certificate['issued']}, valid until {self.certificate['valid_until']}"
            by = f"by {self.certificate['who']} from run {run['name'] or run['time']}"
            yield f"of {self.certificate['node']} with {gpus} GPUs, {dates}, {by}"
            yield f"{len(self.certificate['settings'])} settings compared with it"


def _pinned(path: Path | None) -> bytes:
    """
    Read the key that must have signed; the one pinned on this machine where none is named.

    Raises:
        UsageError: there is none, or another user could have put it there.
    """
    if path is None:
        return own_keyring(state_home()).pin()
    key = read_public(path)
    about = path.stat()
    if about.st_mode & 0o022 or about.st_uid not in (0, os.geteuid()):
        raise UsageError(f"{path}: others may write this key; chmod 644 and chown it")
    return key
