"""Read files below a root: whole, flattened to ``path: value`` lines, or under ``==> path <==`` headings."""

import os
import stat

from hwcheck.sources.source import Absent, Denied

CAP = 1 << 20
TOTAL_CAP = 16 << 20
_GLOB = frozenset("*?")
_HOPS = 40
_confined = [""]
_folders: "dict[str, str]" = {}


def confine(root):
    """
    Resolve every link below this root as the node itself would: an absolute link of an image stays in the image.

    Without it a link such as ``etc/hostname -> /etc/shadow`` in a mounted image would lead to this machine's file.
    """
    _confined[0] = root.rstrip("/")
    _folders.clear()


def inside(path):
    """
    Return the path with all links resolved below the confining root; unchanged when nothing is confined.

    Folders are resolved once: of the attributes of one device only the last component is looked at again.

    Raises:
        Absent: a ring of links.
    """
    root = _confined[0]
    if not root or not (path == root or path.startswith(root + "/")):
        return path
    folder, _, name = path.rpartition("/")
    if len(folder) <= len(root) or name in ("", ".", ".."):
        return _resolved(root, path)
    if folder not in _folders:
        _folders[folder] = _resolved(root, folder)
    plain = _folders[folder] + "/" + name
    try:
        os.readlink(plain)
    except OSError:
        return plain
    return _resolved(root, path)


def _resolved(root, path):
    todo, done, hops = path[len(root) :].split("/")[::-1], [], 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if done:
                done.pop()
            continue
        try:
            target = os.readlink(root + "/" + "/".join([*done, part]))
        except OSError:
            done.append(part)
            continue
        hops += 1
        if hops > _HOPS:
            raise Absent(path)
        if target.startswith("/"):
            done = []
        todo.extend(target.split("/")[::-1])
    return root + "/" + "/".join(done)


def _within(path):
    """Resolve a folder below the confining root; a ring of links leads nowhere."""
    try:
        return inside(path)
    except Absent:
        return "/dev/null"


def is_folder(path):
    """Tell whether a path, with its links resolved below the confining root, is a folder."""
    return os.path.isdir(_within(path))


def link(path):
    """
    Return where a link points, as it is written; the folders above it are resolved below the confining root.

    Raises:
        OSError: it is none.
    """
    folder, _, name = path.rpartition("/")
    return os.readlink(_within(folder) + "/" + name)


def read(path, cap=CAP):
    """
    Return the first ``cap`` bytes of a regular file or attribute.

    Never opens what could block or lead away: fifos, sockets and devices are absent here.

    Raises:
        Absent, Denied: there is none, or no permission.
        OSError: the driver behind an attribute answered with an error (EIO, EINVAL, ENODEV).
    """
    try:
        fd = os.open(inside(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
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
    Find the paths of a shell pattern below the root, sorted; ``*`` and ``?`` within one component, no brackets.

    Links inside a live sysfs are followed (class directories are made of them); the result keeps the path as asked.
    """
    found = [""]
    for part in pattern.strip("/").split("/"):
        nxt = []
        for base in found:
            if not _GLOB.intersection(part):
                if os.path.lexists(_within(root + (base or "/")) + "/" + part):
                    nxt.append(base + "/" + part)
                continue
            try:
                names = os.listdir(inside(root + (base or "/")))
            except (OSError, Absent):
                continue
            nxt.extend(base + "/" + name for name in sorted(names) if _matches(name, part))
        found = nxt
    return found


def _matches(name, pattern):
    """
    Match one path component against ``*`` (any text) and ``?`` (one character).

    By hand, since fnmatch would import ``re``: 8 ms of a program that takes 40.
    """
    first, *others = pattern.split("*")
    if not others:
        return len(name) == len(pattern) and _starts(name, pattern, 0)
    if not _starts(name, first, 0):
        return False
    at, last = len(first), others.pop()
    for piece in others:
        while at <= len(name) - len(piece) and not _starts(name, piece, at):
            at += 1
        if at > len(name) - len(piece):
            return False
        at += len(piece)
    return len(name) - at >= len(last) and _starts(name, last, len(name) - len(last))


def _starts(name, piece, at):
    return len(name) - at >= len(piece) and all(p in ("?", name[at + i]) for i, p in enumerate(piece))


def flat(context, patterns, binary=()):
    r"""
    Flatten attributes to lines ``path: value``, values on one line with ``\\n`` written out.

    A value that could not be read is said too: ``path: !denied``, ``path: !error ENODEV``. Names under ``binary`` are
    written as hexadecimal digits after ``hex:``.

    Raises:
        Absent: no pattern matches anything.
    """
    lines, total = [], 0
    for pattern in patterns:
        for path in expand(context.root, pattern):
            if is_folder(context.root + path):
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
                lines.append(path + " -> " + link(context.root + path))
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
            if is_folder(context.root + path):
                continue
            try:
                body = read(context.root + path, cap)
            except Denied:
                body = b"!denied\n"
            except Absent:
                continue
            except OSError as error:
                body = ("!error %s\n" % error.strerror).encode()
            heading = b"==> " + path.encode("utf-8", "replace") + b" <==\n"
            parts.append(heading + body + (b"" if body.endswith(b"\n") else b"\n"))
    if not parts:
        raise Absent(", ".join(patterns[:3]))
    return b"".join(parts)
