"""
The log of what NVML was asked and answered: JSON lines of ``hwcheck.nvml/1``, each sent as it comes.

What was said before a call hangs is kept; so the node comes first, and then one GPU after the other.
"""

from hwcheck.sources import nvml_calls

_OLDER = (2, 13, 25)  # INVALID_ARGUMENT, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH: an older driver
_UNKNOWN = (2, 3)  # INVALID_ARGUMENT, NOT_SUPPORTED
_FIELDS, _STATE = "nvmlDeviceGetFieldValues", "nvmlDeviceGetNvLinkState"
_MOST_LINKS = 36
_MOST_DEVICES = 64


def log(nvml):
    """Ask everything; yields the lines of the log (``hwcheck.nvml/1``) as they come."""
    yield b'{"format": "hwcheck.nvml/1"}\n'
    code = nvml.function("nvmlInit_v2|nvmlInit")()
    yield _line("nvmlInit_v2", None, (), code, True)
    if code:
        return
    count = 0
    for call in nvml.node_calls:
        code, value = nvml.ask(None, call)
        if call[1] == "nvmlSystemGetDriverVersion" and not code:
            nvml.for_driver(value)
        if call[1] == "nvmlDeviceGetCount_v2" and not code:
            count = min(value, _MOST_DEVICES)
        yield _line(call[1], None, (), code, value)
    for device in range(count):
        handle = nvml.c.c_void_p()
        code = nvml.function("nvmlDeviceGetHandleByIndex_v2")(device, nvml.c.byref(handle))
        yield _line("nvmlDeviceGetHandleByIndex_v2", device, (), code, True)
        if not code:
            yield from _device(nvml, device, handle)


def _device(nvml, device, handle):
    """Ask one device."""
    last = {(call[1], call[3]): call for call in nvml.calls}
    answered = set()
    for call in nvml.calls:
        group, name, _, args = call[:4]
        if not nvml.wanted(group, name) or (name, args) in answered:
            continue
        code, value = nvml.ask(handle, call)
        if code not in _OLDER or last[name, args] is call:
            answered.add((name, args))
            yield _line(name, device, args, code, value)
    links = {}
    for group in sorted({field[0] for field in nvml.fields}):
        fields = [field for field in nvml.fields if field[0] == group and nvml.wanted(group, field[1], _FIELDS)]
        answers = nvml.field_values(handle, [field[2:4] for field in fields]) if fields else ()
        for (_, name, _, _, args), (code, value) in zip(fields, answers):
            yield _line(_FIELDS, device, args, code, value)
            if name.endswith("_LINK_COUNT") and not code:
                links[group] = min(value, _MOST_LINKS)
    for group, count in sorted(links.items()):
        if count:
            yield from _links(nvml, device, handle, group, count)
    for name in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"):
        if nvml.wanted("processes", name):
            yield _line(name, device, (), *nvml.processes(handle, name))


def _links(nvml, device, handle, group, count):
    """Ask each link: one line a question, the answers in a list; an error stands in it by its name."""
    probe = 0
    if group == "nvlink" and nvml.wanted(_STATE):
        ask, states = nvml.function(_STATE), []
        for link in range(count):
            cell = nvml.c.c_uint()
            code = ask(handle, link, nvml.c.byref(cell))
            states.append(error_name(code) if code else cell.value)
        yield _line(_STATE, device, ("links",), 0, states)
        probe = states.index(1) if 1 in states else 0
    fields = [field for field in nvml.link_fields if field[0] == group and nvml.wanted(field[1], _FIELDS)]
    known = nvml.field_values(handle, [(field[2], probe) for field in fields]) if fields else ()
    for (_, _, number, _, args), (code, _) in zip(fields, known):
        if code in _UNKNOWN:  # each generation has counters of its own: what one link does not know no link does
            yield _line(_FIELDS, device, (*args, "links"), code, None)
            continue
        answers = nvml.field_values(handle, [(number, link) for link in range(count)])
        values = [error_name(code) if code else value for code, value in answers]
        yield _line(_FIELDS, device, (*args, "links"), 0, values)


def error_name(code):
    """Name a return code as nvml.h does."""
    names = nvml_calls.ERRORS.split()
    if 0 <= code < len(names):
        return "NVML_ERROR_" + names[code]
    return "NVML_ERROR_UNKNOWN" if code == 999 else "NVML_ERROR_%d" % code


def _line(call, device, args, code, value):
    """Write one line of the log."""
    answer = '"error": "%s"' % error_name(code) if code else '"value": ' + _json(value)
    where = "null" if device is None else str(device)
    text = '{"call": "%s", "device": %s, "args": %s, %s}\n' % (call, where, _json(list(args)), answer)
    return text.encode("utf-8", "replace")


def _json(value):
    """Write a value as JSON; the json module costs more to import than all of this."""
    if value is True:
        return "true"
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (_json(key), _json(item)) for key, item in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(_json, value))
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"%s"' % "".join(char if char >= " " else "\\u%04x" % ord(char) for char in text)
    return repr(value)
