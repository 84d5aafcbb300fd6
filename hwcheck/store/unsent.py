"""
Runs that could not be kept, in files beside the store: ``$XDG_STATE_HOME/hwcheck/unsent/STORE/RUN.json``.

One folder for each store, since a run must not end up in another one. The next run that is kept takes them in.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from hwcheck.errors import MachineError, StoreError
from hwcheck.places import state_home, write_whole
from hwcheck.store.address import Address
from hwcheck.store.writing import NameTakenError, Parcel

_NEVER = ".damaged"


def put_aside(given: Parcel, address: Address) -> Path:
    """
    Write a run to a file for its owner alone, whole or not at all.

    Raises:
        OSError: the disk takes nothing more either.
        MachineError: this user has no home.
    """
    folder = _folder(address)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = {**given.record.to_json(), "journals": given.journals}
    told["run"] = {**told["run"], "run": given.name}
    target = folder / f"{quote(given.name, safe='')[:150]}-{given.digest[:8]}.json"
    write_whole(target, json.dumps(told, ensure_ascii=True, default=str).encode())
    return target


def take_in(address: Address, keep: Callable[[Path], None]) -> tuple[list[Path], list[str]]:
    """
    Keep what waits for a store, and remove the files of what is kept.

    Args:
        address: of the store.
        keep: keeps one file; raises StoreError.

    Returns:
        The files that are kept now, and what is wrong with others. One that will never be kept is put out of the way;
        a store that fails meanwhile leaves the rest for the next time.
    """
    taken: list[Path] = []
    wrong: list[str] = []
    try:
        folder = _folder(address)
        waiting = sorted(folder.glob("[!.]*.json"))
    except (MachineError, OSError):
        return taken, wrong
    if not waiting:
        return taken, wrong
    with _alone(folder) as is_alone:
        for path in waiting if is_alone else ():
            try:
                keep(path)
                path.unlink(missing_ok=True)
                taken.append(path)
            except FileNotFoundError:
                continue  # another process has just kept it
            except (ValueError, LookupError, TypeError, AttributeError, NameTakenError) as error:
                path.replace(path.with_name(path.name + _NEVER))
                wrong.append(f"{path}{_NEVER} cannot be kept: {error}")
            except (StoreError, OSError) as error:
                return taken, [*wrong, f"{path} still waits: {error}"]
    return taken, wrong


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Tell whether no other process is at it."""
    with (folder / ".lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _folder(address: Address) -> Path:
    return state_home() / "unsent" / address.key
