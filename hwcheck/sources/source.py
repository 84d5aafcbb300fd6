"""
What a source is: one thing to read, its tier, how it is asked and how long it may take.

Three ways to ask:

* files: read in this process (procfs and sysfs attributes that no driver can hold up);
* command: spawned in a process group of its own, with a deadline;
* call: a function run in a forked child, for whatever may hang in a driver (NVML, some sysfs files). It answers with
  bytes, or with pieces of them, each of which is sent at once and so outlives a later hang, or with :class:`Instead`.

A child that does not answer is killed with its group. One that cannot be killed (state D, or it ignores signals and
holds its pipe) is left behind and said; nobody waits for it.
"""

QUICK, DEEP, LOAD = "quick", "deep", "load"


class Source:
    """
    Attributes:
        id: what is asked; also the key to switch it off (``--off``).
        kind: format of the answer, a key of hwcheck.parse.FORMATS.
        tier: ``quick``, ``deep`` or ``load`` (it measures, and loads the node while it does).
        ask: function(context) → bytes for files and calls; None for a command.
        argv: command line; None for files and calls.
        child: run ``ask`` in a forked child.
        deadline: seconds.
        root: True when an answer needs root; without it the answer is denied, which is said.
        note: seen on iron, in recordings, or in the lab only: ``iron``, ``recorded``, ``lab``.
        alone: asked after all others and by itself: beside it they would see its work (a context on every GPU).
        instead: format that may come in place of ``kind``, where ``ask`` answers with an :class:`Instead`; "" for none.
    """

    __slots__ = ("alone", "argv", "ask", "child", "deadline", "id", "instead", "kind", "note", "root", "tier")

    def __init__(
        self, id, kind, ask=None, argv=None, tier=QUICK, child=False, deadline=10.0, root=False, note="lab",
        alone=False, instead="",
    ):  # fmt: skip
        self.id, self.kind, self.ask, self.argv, self.tier, self.alone = id, kind, ask, argv, tier, alone
        self.child, self.deadline, self.root, self.note, self.instead = child, deadline, root, note, instead


class Absent(Exception):
    """There is no such thing on this node; the text says what was looked for."""


class Denied(Exception):
    """It is there, but may not be read."""


class Instead:
    """
    What a call may answer: run this command in place of it.

    Attributes:
        kind: format of what the command prints.
        argv: command line, found on PATH.
        why: what the call could not get; stands before "and no ..." where the command is not there either.
    """

    __slots__ = ("argv", "kind", "why")

    def __init__(self, kind, argv, why):
        self.kind, self.argv, self.why = kind, argv, why


class Context:
    """
    What an ``ask`` function may know.

    Attributes:
        root: prefix of all paths; "" on the node itself, a mounted image or a lab tree otherwise.
        live: the root is of a running node (sysfs and procfs are there); False for an image: nothing is spawned.
        off: ids that are switched off.
        uid: effective user id.
    """

    __slots__ = ("live", "off", "root", "uid")

    def __init__(self, root="", live=True, off=(), uid=0):
        self.root, self.live, self.off, self.uid = root, live, frozenset(off), uid
