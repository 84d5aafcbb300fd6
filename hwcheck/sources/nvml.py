"""
NVML through ctypes: loads the library and makes the calls of :mod:`hwcheck.sources.nvml_calls`.

pynvml is not used on the node. To compile its 8,000 lines there costs 70 ms of CPU at each start (this module and its
table cost a tenth), its numbers are those of one header, while some field ids moved within R580, and not all of its
structs are the header's (13.615: the unrepairable-memory flag would read 0 always). Ours are checked against nvml.h.

The library is loaded and asked in a child only: any of these calls may hang in the driver.
"""

from hwcheck.sources import nvml_calls
from hwcheck.sources.source import Absent

LIBRARY = "libnvidia-ml.so.1"
_PLACES = (
    "",  # wherever the loader looks
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/",  # driver container of the GPU operator
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu/",
    "/run/nvidia/driver/usr/lib64/",
    "/home/kubernetes/bin/nvidia/lib64/",  # Container-Optimized OS
)
_INSUFFICIENT_SIZE = 7
_MOST_PROCESSES = 4096


def load():
    """
    Load the library.

    Raises:
        Absent: it is nowhere.
        ImportError: this Python has no ctypes.
        OSError: it is there and cannot be loaded.
    """
    from ctypes import CDLL

    for place in _PLACES:
        try:
            return CDLL(place + LIBRARY)
        except OSError as error:
            if "cannot open shared object file" not in str(error):
                raise
    raise Absent(LIBRARY)


class Nvml:
    """The library with the ways to call it; ``off`` are calls, fields and groups that are not asked."""

    def __init__(self, library, off=()):
        import ctypes
        import struct

        self.c, self.s, self.library = ctypes, struct, library
        self.off = frozenset(name.replace("nvml.", "", 1) for name in off)
        self.constants = {name: int(value) for name, value in _rows(nvml_calls.CONSTANTS)}
        self.node_calls = _calls(nvml_calls.NODE_CALLS)
        self.calls = _calls(nvml_calls.CALLS)
        self.fields = [_field(row, self.constants) for row in _rows(nvml_calls.FIELDS)]
        self.link_fields = [_field(row, self.constants) for row in _rows(nvml_calls.LINK_FIELDS)]

    def wanted(self, *names):
        """Tell whether none of these names is switched off."""
        return not self.off.intersection(names)

    def function(self, symbols):
        """Return the first of these symbols that the library exports, or what answers FUNCTION_NOT_FOUND."""
        for symbol in symbols.split("|"):
            try:
                return getattr(self.library, symbol)
            except AttributeError:
                continue
        return lambda *_: 13

    def for_driver(self, version):
        """Put in this driver's ids for those that moved; leave out what it has under a number that nobody knows."""
        moved = {name: int(number) for name, number in _rows(nvml_calls.MOVED)}
        try:
            branch = tuple(int(part) for part in version.split(".")[:2])
        except ValueError:
            branch = (0, 0)
        if (575, 0) <= branch <= (580, 65):
            self.fields = [(g, name, moved.get(name, number), *more) for g, name, number, *more in self.fields]
        elif branch < (580, 82):
            self.fields = [field for field in self.fields if field[1] not in moved]

    def ask(self, handle, call):
        """Make one call; returns (return code, value)."""
        _, _, symbols, args, form, parts = call
        function = self.function(symbols)
        before = [] if handle is None else [handle]
        before += [self.constants[arg] for arg in args]
        if form in ("text", "version"):
            size = int(parts[0])
            buffer = self.c.create_string_buffer(size)
            code = function(*before, buffer, size) if form == "text" else function(*before, buffer)
            return code, _text(buffer.raw)
        if form == "outs":
            names = [part.partition(":")[0] for part in parts]
            cells = [self.c.c_uint() for _ in parts]
            code = function(*before, *[self.c.byref(cell) for cell in cells])
            return code, {name: cell.value for name, cell in zip(names, cells)}
        if form.startswith("{"):
            return self.fill(function, before, form, parts)
        buffer = self.c.create_string_buffer(8)
        code = function(*before, buffer)
        return code, self.s.unpack_from("@" + form, buffer.raw)[0]

    def fill(self, function, before, form, parts):
        """Let the library fill a struct in; returns (return code, field → value)."""
        fields = [part.partition(":") for part in parts[:-1]]
        layout = "@" + ("I" if form[1:] else "") + "".join(_TYPES.get(t[-1], t[-1]).join(_cut(t)) for _, _, t in fields)
        layout += "0Q" if "Q" in layout else "0I" if "I" in layout else ""  # padding at the end, as the compiler has it
        size = self.s.calcsize(layout)
        buffer = self.c.create_string_buffer(size + 64)  # a longer struct of a newer library does no harm
        if form[1:]:
            self.s.pack_into("@I", buffer, 0, size | int(form[1:]) << 24)
        code = function(*before, buffer)
        values = list(self.s.unpack_from(layout, buffer.raw))[1 if form[1:] else 0 :]
        answer = {}
        for name, _, kind in fields:
            count = int(kind[:-1]) if kind[-1] == "I" and kind[:-1] else 0
            raw = values[:count] if count else values[0]
            del values[: count or 1]
            answer[name] = _text(raw) if kind[-1] == "s" else _uuid(raw) if kind[-1] == "U" else raw
            if kind[-1] == "X":
                answer[name] = raw.hex()
        return code, answer

    def field_values(self, handle, wanted):
        """
        Ask several field values at once.

        Args:
            handle: device.
            wanted: (id, scope) pairs.

        Returns:
            (return code, value) for each; where the whole call fails its code stands for all.
        """
        layout = "@IIqqii8s"
        size = self.s.calcsize(layout)
        buffer = self.c.create_string_buffer(size * len(wanted))
        for index, (field, scope) in enumerate(wanted):
            self.s.pack_into("@II", buffer, index * size, field, scope)
        code = self.function("nvmlDeviceGetFieldValues")(handle, len(wanted), buffer)
        if code:
            return [(code, 0)] * len(wanted)
        found = []
        for index in range(len(wanted)):
            _, _, _, _, kind, code, raw = self.s.unpack_from(layout, buffer.raw, index * size)
            form = "dIQQqiH"[kind] if 0 <= kind < 7 else "Q"
            found.append((code, self.s.unpack_from("@" + form, raw)[0]))
        return found

    def processes(self, handle, name):
        """List the processes of a device: pid and program, arguments left out."""
        function, count = self.function(name), 64
        while True:
            number = self.c.c_uint(count)
            buffer = self.c.create_string_buffer(24 * count)
            code = function(handle, self.c.byref(number), buffer)
            if code != _INSUFFICIENT_SIZE or count >= _MOST_PROCESSES:
                break
            count = min(max(number.value + 16, count * 2), _MOST_PROCESSES)
        if code:
            return code, None
        pids = [self.s.unpack_from("@I", buffer.raw, 24 * i)[0] for i in range(min(number.value, count))]
        return 0, [{"pid": pid, "name": self.program(pid)} for pid in pids]

    def program(self, pid):
        """Return the program of a process, or ""."""
        buffer = self.c.create_string_buffer(256)
        code = self.function("nvmlSystemGetProcessName")(self.c.c_uint(pid), buffer, 256)
        return "" if code else (_text(buffer.raw).split() or [""])[0]


_TYPES = {"U": "s", "X": "s"}


def _cut(kind):
    """Split ``16U`` so that the letter of :mod:`struct` can be put in: ``["16", ""]``."""
    return [kind[:-1], ""]


def _rows(text):
    return [line.split() for line in text.strip().split("\n")]


def _calls(text):
    """Read rows of CALLS: (group, name, symbols, args, form, parts)."""
    found = []
    for group, call, form, *parts in _rows(text):
        function, _, args = call.rstrip(")").partition("(")
        name, _, symbols = function.partition("=")
        found.append((group, name, symbols or name, tuple(args.split(",")) if args else (), form, parts))
    return found


def _field(row, constants):
    """Read a row of FIELDS: (group, name, id, scope, args of the log)."""
    group, name, number = row
    number, _, scope = number.partition("/")
    return group, name, int(number), constants[scope] if scope else 0, (name, scope) if scope else (name,)


def _text(raw):
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _uuid(raw):
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
