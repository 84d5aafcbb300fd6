"""
The main of the node program.

Sent as text and run by ``python3 -I -S -``; the request stands at the end of that text as a call of :func:`main`.
"""

import os
import select
import signal
import sys
import time

from hwcheck.sources import capture, frames, read
from hwcheck.sources.catalogue import SOURCES
from hwcheck.sources.source import LOAD, QUICK, Absent, Context, Denied

VERSION = "1"
_SETTLE = 0.5  # seconds between two sources that load the node


def main(tier=QUICK, off=(), root="", live=True, deadline=60.0, only=(), out=1):
    """
    Ask all sources of the tier and send the stream.

    Args:
        tier: ``quick``, ``deep`` for those and the slower ones, or ``load`` for what measures, alone.
        off: ids of sources that are switched off; said in the stream, so that nobody takes them for never known.
        root: prefix of all paths.
        live: False for an image: nothing is spawned.
        deadline: total seconds.
        only: ids to ask; empty for all.
        out: file descriptor of the stream.
    """
    started = time.monotonic()
    context = Context(root, live, off, os.geteuid())
    begin(context, out)
    chosen = [source for source in _of_tier(tier) if source.id not in context.off and (not only or source.id in only)]
    alone = [source for source in chosen if source.alone or tier == LOAD]
    capture.run([source for source in chosen if source not in alone], context, out, deadline)
    _one_by_one(alone, context, out, started + deadline)
    finish(out, started)


def begin(context, out):
    """Make this process end in order when it is told to, find tools as an operator would, and say hello."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # in order: no child outlives us
    read.confine(context.root)
    # a login over SSH that is not root's often has no sbin on its PATH, and the tools are there
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
    frames.send(out, frames.HELLO, "ok", _hello(context))


def finish(out, started):
    """Send the end frame, with the CPU time that all of it took."""
    usage = os.times()
    spent = "cpu=%.3f\nchildren_cpu=%.3f\n" % (usage.user + usage.system, usage.children_user + usage.children_system)
    frames.send(out, frames.END, "ok", spent.encode(), time.monotonic() - started)


def _of_tier(tier):
    if tier == LOAD:
        from hwcheck.sources import load_catalogue  # not sent with any other tier

        return load_catalogue.SOURCES
    return [source for source in SOURCES if tier != QUICK or source.tier == QUICK]


def _one_by_one(sources, context, out, last):
    """
    Ask sources that load the node, none beside another, with a pause for clocks and heat.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    for number, source in enumerate(sources):
        if number and context.live:
            _pause(out)
        left = last - time.monotonic()
        if left > 0:
            capture.run([source], context, out, left)
        else:
            frames.send(out, source.kind, "timeout", detail="the time was over before it began", command=source.id)


def _pause(out):
    poll = select.poll()
    poll.register(out, 0)
    if poll.poll(_SETTLE * 1000):
        raise BrokenPipeError


def _hello(context):
    """Say who answers: host name, boot, time, user, versions; nothing secret."""
    name = os.uname()
    rows = {
        "program": VERSION,
        "host": _line(context.root + "/etc/hostname") if context.root else name.nodename,
        "kernel": name.release if context.live and not context.root else "",
        "machine": name.machine,
        "boot_id": _line(context.root + "/proc/sys/kernel/random/boot_id") if context.live else "",
        "time": "%.6f" % time.time(),
        "monotonic": "%.6f" % time.monotonic(),
        "uid": str(context.uid),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "off": ",".join(sorted(context.off)),
        "live": "1" if context.live else "0",
        "vendor": _line(context.root + "/sys/class/dmi/id/sys_vendor"),
    }
    lines = ("%s=%s\n" % (key, str(text).replace("\n", " ")[:200]) for key, text in rows.items())
    return "".join(lines).encode("utf-8", "replace")


def _line(path):
    try:
        return read.read(path, 200).decode("utf-8", "replace").strip()
    except (Absent, Denied, OSError):
        return ""
