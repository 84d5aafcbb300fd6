"""Take secrets out of text before it is sent: the values of words whose names say that they are one."""

_MARKS = (b"password", b"passwd", b"pbkdf2", b"token", b"secret", b"credential", b"apikey", b"api_key", b"key=")
_HIDDEN = b"<hidden>"


def hide(data):
    """
    Return the text with secret values replaced.

    ``token=abc`` becomes ``token=<hidden>``; after a marked word without ``=`` (``--auth-token abc``), or with a value
    in quotes that goes on, the rest of the line goes.
    """
    lower = data.lower()
    if not any(mark in lower for mark in _MARKS):
        return data
    return b"\n".join(_line(line) for line in data.split(b"\n"))


def _line(line):
    lower = line.lower()
    if not any(mark in lower for mark in _MARKS):
        return line
    words = line.split(b" ")
    for index, word in enumerate(words):
        lower = word.lower()
        if not any(mark in lower for mark in _MARKS):
            continue
        name, sign, value = word.partition(b"=")
        if not sign:
            return b" ".join([*words[: index + 1], _HIDDEN])
        words[index] = name + b"=" + _HIDDEN
        if value[:1] in (b'"', b"'") and (len(value) == 1 or value[-1:] != value[:1]):
            return b" ".join(words[: index + 1])
    return b" ".join(words)
