"""
Certify nodes of a run: what ``hwcheck certify`` and ``hwcheck accept`` do once a run is there.

A certificate is ``NODE.cert.json``, the same to print is ``NODE.cert.html``. Each appears whole or not at all; one of
an earlier run is replaced.
"""

from __future__ import annotations

import datetime as dt
import getpass
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hwcheck.certificate import Policy, fingerprint, make, sign
from hwcheck.checks import RELATIONS
from hwcheck.errors import NotCertifiedError
from hwcheck.evidence_dir import folder_name
from hwcheck.fleet import FLEET
from hwcheck.keyring import Keyring, own_keyring, read_private
from hwcheck.mechanisms import SEEN
from hwcheck.places import state_home, write_whole
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.remedies import listed
from hwcheck.report.certificate_html import certificate_html
from hwcheck.report.explain_changes import mechanisms_of
from hwcheck.sources.catalogue import SOURCES

_RANK = tuple(SEEN)
PUBLIC = 0o644
"""Mode of what is meant to be read by all."""


@dataclass(slots=True)
class Certified:
    """
    What came of certifying.

    Attributes:
        files: node → its certificate.
        refused: nodes that got none, each with what is in the way.
    """

    files: dict[str, Path] = field(default_factory=dict)
    refused: list[NotCertifiedError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Signer:
    """
    Who certifies, and for how long.

    Attributes:
        key: signs.
        who: user and host.
        valid_days: days from the run.
    """

    key: Ed25519PrivateKey
    who: str
    valid_days: int

    @property
    def fingerprint(self) -> str:
        """Name of the key."""
        return fingerprint(self.key.public_key().public_bytes_raw())


def certify(
    run: dict[str, Any],
    nodes: list[str],
    folder: Path,
    signer: Signer,
    profiles: ProfileSet,
    evidence: Mapping[str, str] | None = None,
    issued: dt.datetime | None = None,
) -> Certified:
    """
    Write a certificate for each node that passed.

    Args:
        run: JSON of a run, of its schema.
        nodes: names; empty for all of the run.
        folder: where to; made when it is not there.
        signer: key, name and validity.
        profiles: the layers by which the run was judged.
        evidence: node → :func:`hwcheck.certificate.evidence_hash` of what was read.
        issued: now; None to look at the clock.

    Raises:
        OSError: a file cannot be written; those of the nodes before are there.
    """
    done, taken = Certified(), set[str]()
    now = issued or dt.datetime.now(dt.UTC)
    folder.mkdir(parents=True, exist_ok=True)
    platforms = {node["name"]: node["platform"] for node in run["nodes"] if node["platform"] != FLEET}
    for name in nodes or platforms:
        stem = folder_name(name, taken)
        try:
            certificate = make(
                run, name, settings=policy_of(profiles, platforms.get(name, "")), who=signer.who, issued=now,
                valid_days=signer.valid_days, evidence_hash=(evidence or {}).get(name, ""),
            )  # fmt: skip
        except NotCertifiedError as error:
            done.refused.append(error)
            continue
        data = sign(certificate, signer.key)
        page = certificate_html(certificate, signer.fingerprint).encode()
        write_whole(folder / f"{stem}.cert.json", data, PUBLIC)
        write_whole(folder / f"{stem}.cert.html", page, PUBLIC)
        done.files[name] = folder / f"{stem}.cert.json"
    return done


def withdraw(folder: Path, nodes: Iterable[str]) -> list[str]:
    """
    Remove certificates of earlier runs of nodes that are about to be certified anew, or refused.

    Returns:
        Nodes that had one.

    Raises:
        OSError: one cannot be removed.
    """
    taken, found = set[str](), []
    for name in nodes:
        stem = folder_name(name, taken)
        there = [path for path in (folder / f"{stem}.cert.json", folder / f"{stem}.cert.html") if path.exists()]
        for path in there:
            path.unlink()
        found += [name] if there else []
    return found


def policy_of(profiles: ProfileSet, platform: str) -> Policy:
    """Say which checks of a platform are settings, where its bounds are from, and how sources were tried."""
    sources: dict[str, str] = {}
    for source in SOURCES:
        sources[source.kind] = max(sources.get(source.kind, source.note), source.note, key=_RANK.index)
    settings = {id: tuple(mechanisms_of(one.remedy)) for id, one in RELATIONS.items()}
    bounds: dict[str, str] = {}
    if platform:
        profile = profiles.profile(platform)
        for id, entry in profile.checks.items():
            told = listed(entry.data.get("remedy") or {}, "write")
            settings[id] = tuple(dict.fromkeys(one["mechanism"] for one in told))
        bounds = {id: " ".join(str(entry.data["source"]).split()) for id, entry in profile.bounds.items()}
    return Policy({id: names for id, names in settings.items() if names}, bounds, sources)


def signer_of(key: Path | None, valid_days: int) -> tuple[Signer, Keyring | None]:
    """
    Return who signs, by the key of a file or by our own, and the keyring where that key was made just now.

    Raises:
        UsageError: the key cannot be used.
    """
    who = f"{_user()}@{socket.gethostname()}"
    if key is not None:
        return Signer(read_private(key), who, valid_days), None
    ring = own_keyring(state_home())
    own, new = ring.own()
    return Signer(own, who, valid_days), ring if new else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
