"""
NVML asked in a child with a deadline: a driver that hangs must not hang a run.

A child that does not answer is killed; in state D it cannot be, and is left behind. It holds none of our files open, so
that neither the lease's lock nor the controller's connection waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from typing import Any, Callable
from weakref import WeakKeyDictionary

from .nvml_library import ADDRESS, UUID, Library, NvmlError
from .place import Json, Place, WriteError

SECONDS = 20.0
"""Without persistence the driver starts a GPU when it is opened: one to three seconds."""
_STARTED = b"."


class SilentError(WriteError):
    """NVML did not answer in time."""


_known: WeakKeyDictionary[Place, dict[str, Any]] = WeakKeyDictionary()
"""What was answered: a stage reads a GPU once for all its keys, and again after a write. "" stands for all GPUs."""


def state(place: Place, gpu: str) -> Json:
    """
    Return what a GPU is set to.

    Args:
        place: of the node.
        gpu: PCI address or UUID.

    Returns:
        See :meth:`Library.read`.

    Raises:
        NvmlError: it cannot be asked.
        SilentError: it did not answer.
    """
    known = _known.setdefault(place, {})
    for name in (gpu, ""):
        if isinstance(known.get(name), SilentError):
            raise known[name]
    if gpu not in known:
        known[gpu] = _ask(place, gpu, lambda library, handle: library.read(handle))
    return dict(known[gpu])


def call(place: Place, gpu: str, function: str, *values: int) -> None:
    """
    Call a setter.

    Raises:
        NvmlError, SilentError: as :func:`state`.
    """
    _known.setdefault(place, {}).pop(gpu, None)
    _ask(place, gpu, lambda library, handle: library.must(function, handle, *values))


def fabric(place: Place, gpu: str) -> int:
    """Return the state of a GPU's fabric registration; raises as :func:`state`."""
    return int(_ask(place, gpu, lambda library, handle: library.fabric(handle)))


def forget(place: Place) -> None:
    """Forget all answers: the driver was reloaded, or a GPU was reset."""
    _known.pop(place, None)


def is_gpu(name: str) -> bool:
    """Tell whether a subject can be a GPU's: PCI address or UUID."""
    return bool(ADDRESS.fullmatch(name) or UUID.fullmatch(name))


def _ask(place: Place, gpu: str, work: Callable[[Library, Any], Any]) -> Any:
    ours, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(place, gpu, work, its)
    os.close(its)
    try:
        data = _until_whole(ours)
    except SilentError as error:
        _known.setdefault(place, {})[gpu] = error
        raise
    finally:
        os.close(ours)
        _end(pid)
    if data is None:
        silent = SilentError(_words("NVML"))
        _known.setdefault(place, {})[""] = silent  # not even its start returned: no GPU can be asked
        raise silent
    answer = json.loads(data)
    if "error" in answer:
        raise NvmlError(answer["error"])
    return answer["value"]


def _child(place: Place, gpu: str, work: Callable[[Library, Any], Any], pipe: int) -> None:
    """Answer with a mark once NVML has started, then with one line of JSON; never returns."""
    try:
        signal.alarm(int(SECONDS) + 10)  # should the parent be killed meanwhile
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(pipe, 3)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.closerange(4, 4096)
        answer: Json
        try:
            library = Library(place)
            os.write(3, _STARTED)
            answer = {"value": work(library, library.handle(gpu))}
        except NvmlError as error:
            answer = {"error": error.code}
        os.write(3, json.dumps(answer).encode() + b"\n")
    finally:
        os._exit(0)


def _until_whole(pipe: int) -> bytes | None:
    """
    Read the answer.

    Returns:
        The line; None when NVML did not even start in time.

    Raises:
        SilentError: it started, and the GPU did not answer.
        WriteError: the child ended without an answer.
    """
    until, data = time.monotonic() + SECONDS, b""
    while not data.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            if data.startswith(_STARTED):
                raise SilentError(_words("the GPU's NVML"))
            return None
        part = os.read(pipe, 1 << 16)
        if not part:
            raise WriteError("NVML ended the process that asked it")
        data += part
    return data.lstrip(_STARTED)


def _words(what: str) -> str:
    return f"{what} did not answer in {SECONDS:g} s: the driver hangs, and as a rule only a reboot helps"


def _end(pid: int) -> None:
    until = time.monotonic() + 1.0
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < until:
        time.sleep(0.005)
