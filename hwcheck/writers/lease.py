"""
Who may change this node now: one run at a time, told by name to everybody else.

``/run/hwcheck/lease.json`` lives in memory, so it ends with the boot it was taken in. It does not run out: a run that
was killed leaves the node half changed, and a person decides whether to resume or to undo it; both use the run's own
name. Beside it, ``lock`` is held while a stage runs, for the orphan of a killed controller may still be at work.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .place import Json, Place, WriteError

FOLDER = "/run/hwcheck"
FILE = FOLDER + "/lease.json"


@contextmanager
def locked(place: Place, seconds: float = 30.0) -> Iterator[None]:
    """
    Keep other stages away from this node.

    Raises:
        WriteError: another one is still at work.
    """
    if place.is_image:
        yield
        return
    os.makedirs(place.real(FOLDER), mode=0o700, exist_ok=True)
    fd = os.open(place.real(FOLDER) + "/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(place, fd, seconds)
        yield
    finally:
        os.close(fd)


def _wait(place: Place, fd: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                held = current(place)
                who = f"run {held['run']} of {held.get('holder')}" if held else "somebody without a lease"
                raise WriteError(f"{who} is at work on this node and did not end within {seconds:g} s") from None
            time.sleep(0.1)
        else:
            return


def current(place: Place) -> Json | None:
    """Return the lease of this boot; None when there is none."""
    text = place.text(FILE)
    try:
        held = json.loads(text) if text else None
    except ValueError:
        held = None
    if not isinstance(held, dict) or not isinstance(held.get("run"), str):
        return None
    return held if held.get("boot_id") == place.boot_id() else None


def take(place: Place, run: str, holder: str) -> None:
    """
    Take the lease; a run that has it already keeps it.

    Raises:
        WriteError: another run has it, or /run cannot be written.
    """
    if place.is_image:
        return
    held = current(place)
    if held is not None and held["run"] != run:
        raise WriteError(
            f"held by run {held['run']} of {held.get('holder')} since {held.get('since')}; "
            f"hwcheck apply --resume {held['run']} goes on with it, hwcheck rollback {held['run']} undoes it"
        )
    mine = {
        "run": run, "holder": holder, "boot_id": place.boot_id(),
        "since": held["since"] if held else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip
    place.replace(FILE, json.dumps(mine).encode(), 0o600, *place.owner())


def demand(place: Place, run: str) -> None:
    """
    Make sure that this run has the lease.

    Raises:
        WriteError: it has not, or the node was rebooted since.
    """
    held = current(place)
    if not place.is_image and (held is None or held["run"] != run):
        raise WriteError("the lease is gone: the node was rebooted, or another run took over; prepare again")


def release(place: Place, run: str) -> None:
    """Give the lease back, if it is this run's."""
    held = current(place)
    if held is not None and held["run"] == run:
        place.remove(FILE)
