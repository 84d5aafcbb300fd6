"""
One end of a measurement between two nodes; the controller starts the server, waits for its word, then the client.

The server says by a frame of kind ``hwcheck.pair`` that it listens, at which address and port, and what its port and
host are like. Everything of an end is one process group under the program that was sent: it ends with its deadline,
with the program, and with the connection to the controller, and its port is free then.
"""

import json
import os
import socket
import subprocess
import time

from hwcheck.sources import capture, frames, load_binding, load_figures, load_pair_tools, load_port, load_wire, program
from hwcheck.sources.source import LOAD, Context, Source

LISTENING = "hwcheck.pair"
OWN = "hwcheck.load"
_PATIENCE = 10.0  # seconds until a server listens
_LISTEN = "0A"  # state in /proc/self/net/tcp


def main(order, deadline=60.0, out=1):
    """
    Be one end, and send the stream.

    Args:
        order: ``role`` (serve, call), ``test``, ``on``, ``conditions``, ``device``, ``number``, ``pci``, ``interface``,
            ``gid``, ``gpu``, ``dmabuf``, ``seconds``, ``streams``, ``token``; of a server ``ports`` (first, count); of
            a client ``address``, ``port`` and ``other`` (what the server told).
        deadline: seconds.
        out: file descriptor of the stream.
    """
    started = time.monotonic()
    context = Context(uid=os.geteuid())
    program.begin(context, out)
    control = os.dup(out)  # the child's own output leads nowhere; a program that it starts does not inherit this one
    kind = load_pair_tools.KINDS.get(order["test"], OWN)
    source = Source("load-pair", kind, lambda context: take_part(order, context, control), child=True,
                    deadline=deadline, tier=LOAD)  # fmt: skip
    capture.run([source], context, out, deadline)
    program.finish(out, started)


def take_part(order, context, control):
    """
    Do this end's part, in a child of its own; yields what it has to say.

    Raises:
        Absent: the tool is not there.
    """
    load_binding.end_with_parent()
    own = order["test"] not in load_pair_tools.KINDS
    if not own:
        load_pair_tools.path_of(order["test"])
    told = load_port.around(order, context)
    if order["role"] == "serve":
        yield from _serve_wire(order, told, control) if own else _serve_tool(order, told, control)
        return
    conditions = {**order["conditions"], **load_port.together(told, order["other"])}
    yield from _call_wire(order, conditions) if own else _call_tool(order, conditions)


def _say(control, order, told, port):
    """Tell the controller that somebody listens."""
    address = load_port.address_of(order["interface"]) if order["interface"] else ""
    told = {**told, "port": port, "address": address or load_port.reached_at()}
    frames.send(control, LISTENING, "ok", json.dumps(told).encode())


def _serve_wire(order, told, control):
    with load_wire.listen(*order["ports"]) as server:
        _say(control, order, told, server.getsockname()[1])
        load_wire.serve(server, order["token"])
    yield b""


def _call_wire(order, conditions):
    """Add to each line of the client which interface carried it."""
    before = load_port.sent()
    lines = list(load_wire.call(order, conditions))
    name, rate = load_port.carrier(before, load_port.sent())
    for text in lines:
        record = json.loads(text)
        if "value" in record:
            record["conditions"].setdefault("transport", name)
            if order["interface"] and record["conditions"]["transport"] == name:
                record["conditions"]["transport_expected"] = order["interface"]
            if rate:
                record["conditions"].setdefault("client_rate", rate)
        yield load_figures.line(record)


def _header(order, conditions, line):
    known = {"test": order["test"], "on": order["on"], "role": order["role"], "command": " ".join(line)}
    if order["gpu"] is not None and order["test"] == "rdma.write":
        conditions = {**conditions, "memory": "gpu"}
    return load_figures.line({**known, "conditions": conditions})


def _serve_tool(order, told, control):
    """Start the server on the first free port, and tell when it listens."""
    first, count = order["ports"]
    port = next((port for port in range(first, first + count) if _is_free(port)), 0)
    if not port:
        raise OSError("no port is free from %d to %d" % (first, first + count - 1))
    line = load_pair_tools.words({**order, "port": port})
    yield _header(order, order["conditions"], line)
    with _started(line) as tool:
        until = time.monotonic() + _PATIENCE
        while tool.poll() is None and not _listens(port) and time.monotonic() < until:
            time.sleep(0.02)
        if tool.poll() is None and _listens(port):
            _say(control, order, told, port)
        elif tool.poll() is None:
            tool.kill()
            yield b"it did not listen in time\n"
        yield from iter(lambda: tool.stdout.read1(65536), b"")


def _call_tool(order, conditions):
    line = load_pair_tools.words(order)
    yield _header(order, conditions, line)
    with _started(line) as tool:
        yield from iter(lambda: tool.stdout.read1(65536), b"")
    state = load_port.look(order).get("state")
    if state and state != conditions.get("client_state"):
        after = {"client_state": "%s, then %s" % (conditions.get("client_state"), state)}
        yield b"\n" + load_figures.line({"test": order["test"], "on": order["on"], "conditions": after})


def _started(line):
    return subprocess.Popen(  # noqa: S603 - a program that was found, and words of our own
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=load_pair_tools.environment(), preexec_fn=load_binding.end_with_parent,  # noqa: PLW1509 - one thread
    )  # fmt: skip


def _is_free(port):
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(("", port))
        except OSError as error:
            import errno

            if error.errno == errno.EADDRINUSE:
                return False
    return True


def _listens(port):
    """Tell by the kernel's table whether anybody listens on a port; connecting would take the client's place."""
    for name in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(name, encoding="ascii") as file:
                rows = [row.split() for row in file]
        except OSError:
            continue
        if any(row[3:4] == [_LISTEN] and row[1].endswith(":%04X" % port) for row in rows):
            return True
    return False
