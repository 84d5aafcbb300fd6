"""
The capture engine: ask all sources, send each answer as it comes, wait for nobody beyond the deadline.

Children are started first and run beside the file reads. Each has its own pipe and process group. What a child wrote
before its deadline is sent as truncated evidence of a timeout, not thrown away.
"""

import os
import select
import signal
import time

from hwcheck.sources import frames
from hwcheck.sources.source import Absent, Denied, Instead

OUTPUT_CAP = 32 << 20
_GRACE = 0.3  # seconds between SIGKILL and giving a child up
_BEAT = 1.0  # seconds of silence at most
_PIECES = 64  # reads of 64 KiB before the others, and the deadlines, are looked at again
_KIND = b"!kind "


class Child:
    """One forked child of a source: its pid, pipe and what it has written."""

    __slots__ = ("chunks", "deadline", "eof", "fd", "pid", "size", "source", "started")

    def __init__(self, source, pid, fd, started):
        self.source, self.pid, self.fd, self.started = source, pid, fd, started
        self.deadline = started + source.deadline
        self.chunks, self.size, self.eof = [], 0, False


def run(sources, context, out, total_deadline=60.0):
    """
    Ask the sources and send a frame for each.

    Args:
        sources: in order of importance.
        context: root and user.
        out: file descriptor of the stream.
        total_deadline: seconds after which every open child is a timeout.
    """
    began = time.monotonic()
    children, direct = [], []
    try:
        for source in sources:
            if not context.live and (source.argv is not None or source.child):
                continue  # an image: nothing is spawned, no driver is asked
            if source.root and context.uid != 0:
                frames.send(out, source.kind, "denied", detail="needs root", command=" ".join(source.argv or ()))
            elif source.argv is not None or source.child:
                children.append(_start(source, context))
            else:
                direct.append(source)
        for source in direct:
            _ask(source, context, out)
            _collect(children, out, began + total_deadline, block=False)
        beat = began
        while children:
            _collect(children, out, began + total_deadline, block=True)
            if time.monotonic() - beat > _BEAT:  # a program between us and the reader may only notice when it writes
                beat = time.monotonic()
                frames.send(out, frames.BEAT, "ok")
    finally:  # whoever asked is gone, or wants us to end: what hangs in a tool would stay for ever
        for child in children:
            _kill(child.pid)


def _ask(source, context, out):
    start = time.monotonic()
    status, detail, payload = "ok", "", b""
    try:
        payload = source.ask(context)
    except Absent as error:
        status, detail = "absent", "%s: not there" % error
    except Denied as error:
        status, detail = "denied", str(error)
    except OSError as error:
        status, detail = "failed", "%s: %s" % (error.filename or source.id, error.strerror)
    except Exception as error:  # what no source foresaw (memory, a hostile number) must not end those after it
        status, detail = "failed", "%s: %s" % (type(error).__name__, error)
    frames.send(out, source.kind, status, payload, time.monotonic() - start, detail, source.id)


def _start(source, context):
    reader, writer = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(source, context, writer)
    os.close(writer)
    os.set_blocking(reader, False)
    return Child(source, pid, reader, started)


def _child(source, context, writer):
    """Become the command, or run the call; the exit status says how it ended. Never returns."""
    status = 1
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        if source.argv is not None:
            _become(source.argv, writer)
        os.dup2(null, 1)
        answer = source.ask(context)
        if isinstance(answer, Instead):
            _run_instead(answer, writer)
        for part in (answer,) if isinstance(answer, bytes) else answer:
            frames.write_all(writer, part)
        status = 0
    except FileNotFoundError:
        status = 127
    except PermissionError:
        status = 126
    except Absent as error:
        frames.write_all(writer, str(error).encode("utf-8", "replace"))
        status = 127
    except Denied as error:
        frames.write_all(writer, str(error).encode("utf-8", "replace"))
        status = 126
    except BaseException as error:  # the child must end here whatever happens
        frames.write_all(writer, ("%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace"))
    finally:
        os._exit(status)


def _become(argv, writer):
    """Become a command that prints into the pipe. Never returns."""
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    os.environ["LC_ALL"] = "C"
    os.execvp(argv[0], argv)


def _run_instead(answer, writer):
    """Name the other kind in the first line, then become the command. Never returns."""
    name = answer.argv[0]
    if not any(os.access(os.path.join(folder, name), os.X_OK) for folder in os.get_exec_path()):
        raise Absent("%s, and no %s" % (answer.why, name))
    frames.write_all(writer, b"%s%s\n" % (_KIND, answer.kind.encode()))
    _become(answer.argv, writer)


def _collect(children, out, last, block):
    """Read what has come, send frames of children that are done or late, and drop them from the list."""
    now = time.monotonic()
    wait = max(0.0, min(min(child.deadline, last) for child in children) - now) if children and block else 0.0
    poll = select.poll()
    poll.register(out, 0)  # tells when nobody reads us any more; a node may wait long for its next answer
    by_fd = {}
    for child in children:
        if not child.eof:
            poll.register(child.fd, select.POLLIN | select.POLLHUP)
            by_fd[child.fd] = child
    for fd, _ in poll.poll(min(wait, 0.25) * 1000):
        if fd == out:
            raise BrokenPipeError
        _drain(by_fd[fd])
    now = time.monotonic()
    for child in list(children):
        if child.eof:
            code = _reap(child.pid, max(0.0, min(child.deadline, last) - now))
            _finish(child, code, out)
        elif now >= min(child.deadline, last):
            _give_up(child, out)
        else:
            continue
        os.close(child.fd)
        children.remove(child)


def _drain(child):
    """Read what is there, a bounded part of it: one that writes as fast as we read must not outlive its deadline."""
    for _ in range(_PIECES):
        try:
            data = os.read(child.fd, 65536)
        except BlockingIOError:
            return
        if not data:
            child.eof = True
            return
        if child.size < OUTPUT_CAP:
            child.chunks.append(data)
        child.size += len(data)


def _reap(pid, patience):
    """Wait briefly for a child that has closed its pipe; returns its exit code, or None when it does not end."""
    end = time.monotonic() + min(patience, 1.0)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            _kill(pid)
            return None
        time.sleep(0.005)


def _kill(pid):
    for kill in (os.killpg, os.kill):  # one just forked has no group yet
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
        return


def _give_up(child, out):
    """Kill the group of a child that is late; one that does not die is left behind, and said."""
    _kill(child.pid)
    end = time.monotonic() + _GRACE
    done = 0
    while not done and time.monotonic() < end:
        done, _ = os.waitpid(child.pid, os.WNOHANG)
        if not done:
            time.sleep(0.01)
    _drain(child)
    seconds = time.monotonic() - child.started
    detail = "no answer in %.2g s" % seconds
    if not done:
        detail += "; the process cannot be killed (state %s) and was left behind" % _state(child.pid)
    _send(child, "timeout", detail, seconds, out)


def _state(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read(512).rpartition(b") ")[2][:1].decode("ascii", "replace")
    except OSError:
        return "unknown"


def _finish(child, code, out):
    seconds = time.monotonic() - child.started
    _, text = _answer(child)
    if child.size > OUTPUT_CAP:
        _send(child, "truncated", "more than %d MiB of output" % (OUTPUT_CAP >> 20), seconds, out)
    elif code == 0 or (code is not None and code > 0 and _is_tool(child) and code not in (126, 127)):
        # a tool that exits non-zero still has said something (ibstat after ibpanic): the parser judges the text
        said = "" if code == 0 else "exit status %d" % code
        _send(child, "ok" if text or code == 0 else "failed", said, seconds, out)
    elif code == 127:
        _send(child, "absent", _words(text) or "not installed", seconds, out, keep=False)
    elif code == 126:
        _send(child, "denied", _words(text) or "not permitted", seconds, out, keep=False)
    else:
        ended = "killed by signal %d" % -code if code is not None and code < 0 else _words(text) or "ended badly"
        _send(child, "failed", ended, seconds, out)


def _answer(child):
    """Return the kind and the text of what a child wrote; a command in place of a call names its kind before it."""
    text = b"".join(child.chunks)
    if not text.startswith(_KIND):
        return child.source.kind, text
    line, _, text = text.partition(b"\n")
    return line[len(_KIND) :].decode("ascii", "replace"), text


def _is_tool(child):
    return child.source.argv is not None or b"".join(child.chunks[:1]).startswith(_KIND)


def _words(text):
    return text[-200:].decode("utf-8", "replace").strip()


def _send(child, status, detail, seconds, out, keep=True):
    kind, text = _answer(child)
    command = " ".join(child.source.argv or (child.source.id,))
    frames.send(out, kind, status, text if keep else b"", seconds, detail, command)
