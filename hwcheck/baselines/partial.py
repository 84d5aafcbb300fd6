"""
Acceptance after a part was swapped: what is measured anew, and what an earlier acceptance still vouches for.

The whole node is judged, since that is cheap and a hand in a chassis moves more than it meant to. Measured is only what
the part takes part in; every other figure is carried over, as long as no other part has changed as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hwcheck.baselines.own import OWN, split
from hwcheck.baselines.pairs import RDMA_TESTS
from hwcheck.errors import UsageError

GPU, NIC, CABLE = "gpu", "nic", "cable"
_FORM = re.compile(r"(?:(cable)\s+)?(?:(gpu|nic)(\d{1,3})|([a-z][a-z0-9_]{1,30}))", re.IGNORECASE)
_OF_GPU = tuple(dict.fromkeys(
    OWN[test].source for test in ("hbm.copy", "h2d", "d2h", "p2p", "launch", "copy.small")
))  # fmt: skip
_WHO = {GPU: ("uuid", "serial"), NIC: ("guid",)}
"""What tells one part of a kind from another of the same model."""


class Part(NamedTuple):
    """
    What was swapped.

    Attributes:
        kind: ``gpu``, ``nic`` or ``cable``.
        id: number as nvidia-smi or the order of RDMA devices counts, or the name of a device.
    """

    kind: str
    id: str

    def __str__(self) -> str:
        """Write it as it is asked for."""
        name = f"{GPU if self.kind == GPU else NIC}{self.id}" if self.id.isdigit() else self.id
        return f"cable {name}" if self.kind == CABLE else name


def read_part(text: str) -> Part:
    """
    Read ``gpu2``, ``nic3``, ``mlx5_4`` or ``cable mlx5_4``.

    Raises:
        UsageError: it is none of these.
    """
    match = _FORM.fullmatch(" ".join(text.split()))
    if match is None or (match[1] and (match[2] or "").lower() == GPU):
        raise UsageError(f"--after {text}: name a part: gpu2, nic3, mlx5_4, cable mlx5_4")
    kind = CABLE if match[1] else GPU if (match[2] or "").lower() == GPU else NIC
    return Part(kind, str(int(match[3])) if match[3] else match[4])


def sources_for(part: Part) -> tuple[str, ...]:
    """Return the sources of the load that a part takes part in; of a cable and an adapter the tests between nodes."""
    return _OF_GPU if part.kind == GPU else RDMA_TESTS


def subject_of(part: Part, about: Mapping[str, Any]) -> str:
    """
    Return the part's id on a node: PCI address of a GPU, name of an RDMA device.

    Raises:
        UsageError: the node has no such part.
    """
    if part.kind == GPU:
        found = [one["id"] for one in about.get("gpus", ()) if str(one.get("index")) == part.id]
    else:
        names = [one["id"] for one in about.get("nics", ())]
        found = [name for number, name in enumerate(names) if part.id in (name, str(number))]
    if not found:
        raise UsageError(f"there is no {part} here")
    return str(found[0])


def is_touched(part: Part, subject: str, measurement: str) -> bool:
    """
    Tell whether a measurement is had anew after the part was swapped.

    Args:
        part: what was swapped.
        subject: of the part, :func:`subject_of`.
        measurement: its subject, ``hwcheck.p2p@0000:18:00.0>0000:2a:00.0``.
    """
    test, on = split(measurement)
    if test not in OWN:
        return True  # what another tool measured is of the whole node
    if part.kind == GPU:
        return subject in on.split(">")
    return test == "tcp" or subject in on


def other_changes(part: Part, subject: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """
    Name what has changed beside the part that was swapped: other parts, and the cohort (driver, BIOS, kernel).

    A part of which nobody can tell which one it is counts as changed: no serial is no proof.

    Args:
        part: what was swapped.
        subject: its id.
        before: what the node was at its last acceptance (:func:`hwcheck.describe.describe`).
        now: what it is.
    """
    found = []
    for kind, key in ((GPU, "gpus"), (NIC, "nics")):
        old, new = ({one["id"]: one for one in about.get(key, ())} for about in (before, now))
        swapped = {subject} if part.kind == kind else set()
        ids = sorted((old.keys() | new.keys()) - swapped)
        found += [id for id in ids if not _is_same(kind, old.get(id, {}), new.get(id, {}))]
    old_cohort, new_cohort = (str(about.get("cohort") or "") for about in (before, now))
    return found + [f"its cohort ({old_cohort} → {new_cohort})"] * (old_cohort != new_cohort)


def _is_same(kind: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    told = [(before.get(name), now.get(name)) for name in _WHO[kind]]
    return all(old == new for old, new in told) and any(old for old, _ in told)
