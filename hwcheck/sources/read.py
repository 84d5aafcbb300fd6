"""Read files below a root: whole, flattened to ``path: value`` lines, or under ``==> path <==`` headings."""

import os
import stat

from hwcheck.sources.source import Absent, Denied

CAP = 1 << 20
TOTAL_CAP = 16 << 20
_GLOB = frozenset("*?[")


def read(path, cap=CAP):
    """
    Return the first ``cap`` bytes of a regular file or attribute.

    Never opens what could block or lead away: fifos, sockets and devices are absent here.

    Raises:
        Absent, Denied: there is none, or no permission.
        OSError: the driver behind an attribute answered with an error (EIO, EINVAL, ENODEV).
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Absent(path) from None
    except (PermissionError, NotADirectoryError, IsADirectoryError) as error:
        raise (Denied(path) if isinstance(error, PermissionError) else Absent(path)) from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Absent(path)
        parts, left = [], cap
        while left > 0:
            part = os.read(fd, min(left, 65536))
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except PermissionError:
        raise Denied(path) from None
    finally:
        os.close(fd)


def expand(root, pattern):
    """
    Find the paths of a shell pattern below the root, sorted; ``*`` and ``?`` within one component.

    Links inside a live sysfs are followed (class directories are made of them); the result keeps the path as asked.
    """
    found = [""]
    for part in pattern.strip("/").split("/"):
        nxt = []
        for base in found:
            if not _GLOB.intersection(part):
                if os.path.lexists(root + base + "/" + part):
                    nxt.append(base + "/" + part)
                continue
            try:
                names = os.listdir(root + (base or "/"))
            except OSError:
                continue
            nxt.extend(base + "/" + name for name in sorted(names) if _matches(name, part))
        found = nxt
    return found


def _matches(name, pattern):
    """Match one path component; a leading dot is not hidden in sysfs."""
    import fnmatch

    return fnmatch.fnmatchcase(name, pattern)


def flat(context, patterns, binary=()):
    """
    Flatten attributes to lines ``path: value``, values on one line with ``\\n`` written out.

    A value that could not be read is said too: ``path: !denied``, ``path: !error ENODEV``. Names under ``binary`` are
    written as hexadecimal digits after ``hex:``.

    Raises:
        Absent: no pattern matches anything.
    """
    lines, total = [], 0
    for pattern in patterns:
        for path in expand(context.root, pattern):
            if os.path.isdir(context.root + path):
                continue
            line = path + ": " + value(context.root + path, path.rsplit("/", 1)[-1] in binary)
            total += len(line)
            if total > TOTAL_CAP:
                lines.append("!truncated")
                return ("\n".join(lines) + "\n").encode("utf-8", "replace")
            lines.append(line)
    if not lines:
        raise Absent(", ".join(patterns[:3]))
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def value(path, binary=False):
    """Return one attribute as one line of text."""
    try:
        data = read(path, 8192)
    except Denied:
        return "!denied"
    except Absent:
        return "!absent"
    except OSError as error:
        import errno

        return "!error " + errno.errorcode.get(error.errno, str(error.errno))
    if binary:
        return "hex:" + data.hex()
    return data.decode("utf-8", "replace").rstrip("\n").replace("\\", "\\\\").replace("\n", "\\n")


def links(context, patterns):
    """Flatten symbolic links to lines ``path -> target``; for which device is behind which name."""
    lines = []
    for pattern in patterns:
        for path in expand(context.root, pattern):
            try:
                lines.append(path + " -> " + os.readlink(context.root + path))
            except OSError:
                continue
    if not lines:
        raise Absent(", ".join(patterns[:3]))
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def sections(context, patterns, cap=CAP):
    """
    Join whole files under ``==> path <==`` headings, in the order of the patterns.

    Raises:
        Absent: none of them is there.
    """
    parts = []
    for pattern in patterns:
        for path in expand(context.root, pattern):
            if os.path.isdir(context.root + path):
                continue
            try:
                body = read(context.root + path, cap)
            except Denied:
                body = b"!denied\n"
            except Absent:
                continue
            except OSError as error:
                body = ("!error %s\n" % error.strerror).encode()
            parts.append(b"==> " + path.encode("utf-8", "replace") + b" <==\n" + body + (b"" if body.endswith(b"\n") else b"\n"))
    if not parts:
        raise Absent(", ".join(patterns[:3]))
    return b"".join(parts)
