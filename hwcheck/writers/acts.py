"""
Acts: what is done and not set. Each is journalled before it begins, so that a resumed run knows what is still to do.

=============  ====================================================================================================
restart        ``systemctl restart UNIT``; also undoes: the old setting counts from the next start as well
start          ``systemctl start UNIT``
reload_units   ``systemctl daemon-reload``
reboot         ``systemctl reboot``, a moment after the answer is on its way; at most :data:`MOST_REBOOTS` in a day
=============  ====================================================================================================

More acts register themselves with :func:`act` in the module that knows their order (driver reload, GPU reset).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Callable

from . import journal as journals
from .place import Json, Place, WriteError

MOST_REBOOTS = 3
"""Reboots of a node by hwcheck within a day; one that needs more has something that no reboot cures."""
_DAY = 86400.0
_GOING_DOWN = 600.0
"""Seconds within which a node that was told to reboot is gone; one that is still there then has not obeyed."""
_REBOOT = "import os, time; time.sleep(1.5); os.execvp('systemctl', ['systemctl', 'reboot'])"
_LONG = 300.0

ACTS: dict[str, Callable[[Place, str], None]] = {}


def act(name: str) -> Callable[[Callable[[Place, str], None]], Callable[[Place, str], None]]:
    """Register an act."""

    def register(body: Callable[[Place, str], None]) -> Callable[[Place, str], None]:
        ACTS[name] = body
        return body

    return register


@act("restart")
def restart(place: Place, unit: str) -> None:
    """Restart a unit that runs; one that is stopped takes the new setting at its next start anyway."""
    place.run(["systemctl", "try-restart", unit], _LONG)


@act("start")
def start(place: Place, unit: str) -> None:
    """Start a unit."""
    place.run(["systemctl", "start", unit], _LONG)


@act("reload_units")
def reload_units(place: Place, _unit: str) -> None:
    """Let systemd read its files."""
    place.run(["systemctl", "daemon-reload"])


@act("reboot")
def reboot(place: Place, _target: str) -> None:
    """
    Reboot, once this process has answered.

    Raises:
        WriteError: it has been rebooted too often lately.
    """
    recent = reboots_of_today(place)
    if recent > MOST_REBOOTS:
        raise WriteError(f"hwcheck has rebooted this node {recent - 1} times within a day; that is for hands now")
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    words = [sys.executable, "-I", "-S", "-c", _REBOOT, place.boot_id()]
    os.posix_spawn(sys.executable, words, os.environ, file_actions=null, setsid=True)


def call_off_reboot(place: Place, journal: Json) -> None:
    """
    Call a reboot off that a run has begun and that has not come yet: what it was for is taken back.

    Raises:
        WriteError: it can no longer be held up; the node is asked again once it is back.
    """
    for one in journal["acts"]:
        if one["do"] != "reboot" or one["state"] != "begun" or one.get("boot_id") != place.boot_id():
            continue
        waiting = _waiting_reboots(place.boot_id())
        for pid in waiting:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if not waiting and journals.age(one["at"]) < _GOING_DOWN:
            raise WriteError("the node is about to reboot; ask again once it is back")
        one["state"] = "called off"


def _waiting_reboots(boot_id: str) -> list[int]:
    """Return the processes that wait to reboot this node, which its boot tells from other roots of this machine."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read(4096).split(b"\0")
            except OSError:
                continue
            if words[-3:-1] == [_REBOOT.encode(), boot_id.encode()]:
                found.append(int(name))
    return found


def reboots_of_today(place: Place) -> int:
    """Count reboots that runs of the last day have begun on this node."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - _DAY))
    return sum(
        str(done.get("at", "")) >= since
        for journal in journals.all_of(place)
        for done in journal["acts"]
        if done["do"] == "reboot" and done["state"] in ("begun", "done")
    )


def carry_out(place: Place, journal: Json, wanted: Callable[[Json], bool]) -> list[str]:
    """
    Carry out the pending acts of a journal, in its order; the journal is written before and after each.

    Returns:
        What went wrong, one sentence an act; the others go on.
    """
    wrong = []
    for one in journal["acts"]:
        if one["state"] not in ("pending", "begun") or not wanted(one):
            continue
        if one["do"] == "reboot" and one["state"] == "begun" and one.get("boot_id") != place.boot_id():
            one["state"] = "done"
            journals.save(place, journal)
            continue
        one.update(state="begun", at=journals.now(), boot_id=place.boot_id())
        journals.save(place, journal)
        try:
            ACTS[one["do"]](place, one["target"])
        except (OSError, WriteError) as error:
            one.update(state="failed", why=str(error))
            wrong.append(f"{one['do']} {one['target']}: {error}")
        else:
            one["state"] = "begun" if one["do"] == "reboot" else "done"
        journals.save(place, journal)
    return wrong
