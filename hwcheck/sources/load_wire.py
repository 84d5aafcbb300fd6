"""
TCP between two nodes, with nothing installed: latency, the first message against the rest, and bandwidth.

The server takes connections for as long as its client needs it. Each begins with a token that both ends were given, so
that nobody else finds an open door, and a letter: E echoes messages, S counts what comes, R reports the counts and
ends it. Bandwidth is what came at the server, in intervals; latency is half a round trip, as perftest counts it.
"""

import json
import socket
import threading
import time

from hwcheck.sources import load_figures

_TOKEN = 32
_MESSAGE, _MESSAGES, _BATCHES = 64, 2000, 20
_PIECE = 1 << 20
_INTERVAL = 0.25  # seconds
_SILENCE = 20.0  # seconds without a word after which either end gives up
_GIGABIT = 1e9 / 8


class WireError(Exception):
    """The other end went away, or said what is not understood."""


def listen(first, count):
    """
    Listen on the first free port of a range.

    Raises:
        WireError: none is free.
    """
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    for port in range(first, first + count):
        try:
            if family == socket.AF_INET6:
                return socket.create_server(("", port), family=family, backlog=64, dualstack_ipv6=True)
            return socket.create_server(("", port), backlog=64)
        except OSError:
            continue
    raise WireError("no port is free from %d to %d" % (first, first + count - 1))


def serve(server, token):
    """
    Serve one client until it has its report.

    Raises:
        WireError: it did not come, or went away.
    """
    counted, series, ended = {}, [], threading.Event()
    threading.Thread(target=_watch, args=(counted, series, ended), daemon=True).start()
    heard = time.monotonic()
    server.settimeout(1.0)
    while not ended.is_set():
        before = sum(counted.values())
        try:
            one, _ = server.accept()
        except socket.timeout:
            if sum(counted.values()) > before:
                heard = time.monotonic()
            if time.monotonic() - heard > _SILENCE:
                raise WireError("no client came in %g s, or it has gone" % _SILENCE) from None
            continue
        one.settimeout(5.0)
        letter = _letter(one, token)
        if letter:
            heard = time.monotonic()
            one.settimeout(_SILENCE)
            threading.Thread(target=_answer, args=(letter, one, counted, series, ended), daemon=True).start()
        else:
            one.close()


def _letter(one, token):
    """Return what a connection wants; "" for one that does not know the token."""
    try:
        first = _exactly(one, _TOKEN + 1)
    except (OSError, WireError):
        return ""
    return first[_TOKEN:].decode("ascii", "replace") if first[:_TOKEN] == token.encode() else ""


def _answer(letter, one, counted, series, ended):
    try:
        if letter == "E":
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                one.sendall(_exactly(one, _MESSAGE))
        elif letter == "S":
            buffer, key = bytearray(_PIECE), id(one)
            counted[key] = 0
            while True:
                size = one.recv_into(buffer)
                if not size:
                    break
                counted[key] += size
        elif letter == "R":
            one.sendall(json.dumps(series).encode() + b"\n")
            ended.set()
    except (OSError, WireError):
        return  # the client has what it wanted, or tells what went wrong
    finally:
        one.close()


def _watch(counted, series, ended):
    """Note how much has come, at even intervals while anything comes."""
    while not ended.wait(_INTERVAL):
        total = sum(list(counted.values()))
        if total and len(series) < 4000:
            series.append((time.monotonic(), total))


def call(order, conditions):
    """
    Be the client; yields the lines.

    Args:
        order: ``on``, ``address``, ``port``, ``token``, ``streams``, ``seconds``.
        conditions: for each line; what is known only afterwards is added by the caller's ``after``.
    """
    at, token, on = (order["address"], order["port"]), order["token"].encode(), order["on"]
    about = {key: conditions[key] for key in ("client", "server", "rail") if key in conditions}
    for test, measure in (("tcp.latency", _latency), ("tcp", _rate)):
        yield load_figures.line({"test": test, "on": on, "begins": True, "conditions": about})
        try:
            yield from measure(at, token, order, conditions)
        except (OSError, WireError, load_figures.FigureError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            yield load_figures.line({"test": test, "on": on, "error": why[:300], "conditions": about})


def _latency(at, token, order, conditions):
    """Send messages to and fro over a fresh connection; the first one pays for all that is cold."""
    with _connect(at, token, b"E") as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        message, found = b"." * _MESSAGE, []
        for _ in range(_MESSAGES):
            begun = time.perf_counter()
            one.sendall(message)
            _exactly(one, _MESSAGE)
            found.append((time.perf_counter() - begun) * 1e6 / 2)
    size = _MESSAGES // _BATCHES
    batches = [load_figures.median(found[start : start + size]) for start in range(0, _MESSAGES, size)]
    more = {"count": len(found), "size": _MESSAGE, "series": load_figures.series(found), **load_figures.spectrum(found)}
    yield load_figures.figure("tcp.latency", order["on"], "us", batches, {**conditions, **more})
    steady = load_figures.median(found[1:])
    first = {
        "first_us": load_figures.short(found[0]), "steady_us": load_figures.short(steady),
        "ratio": load_figures.short(found[0] / steady), "count": len(found), "transport": "tcp",
    }  # fmt: skip
    yield load_figures.figure("warmup", order["on"], "us", [found[0]], {**conditions, **first})


def _rate(at, token, order, conditions):
    """Send over several connections at once for some seconds, and ask the server what came."""
    streams, until = [], time.monotonic() + order["seconds"]
    for _ in range(order["streams"]):
        streams.append(_connect(at, token, b"S"))
    threads = [threading.Thread(target=_send, args=(one, until), daemon=True) for one in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with _connect(at, token, b"R") as one:
        points = _report(one)
    values = _rates(points, order["seconds"])
    yield load_figures.figure("tcp", order["on"], "Gb/s", values, {**conditions, "streams": order["streams"]})


def _send(one, until):
    piece = bytes(_PIECE)
    try:
        while time.monotonic() < until:
            one.sendall(piece)
    except OSError:
        pass  # too few points, or a low rate, tell it
    finally:
        one.close()


def _report(one):
    text = b""
    while not text.endswith(b"\n"):
        part = one.recv(65536)
        if not part or len(text) > 1 << 20:
            raise WireError("the server's report broke off")
        text += part
    return json.loads(text)


def _rates(points, seconds):
    """
    Return Gb/s of each interval, without the first, in which windows open, and without what came after the end.

    Raises:
        WireError: too few points.
    """
    points = [point for point in points if point[0] - points[0][0] <= seconds - _INTERVAL]
    pairs = list(zip(points, points[1:]))[1:]
    if not pairs:
        raise WireError("next to nothing came at the server")
    return [(later[1] - earlier[1]) / (later[0] - earlier[0]) / _GIGABIT for earlier, later in pairs]


def _connect(at, token, letter):
    one = socket.create_connection(at, timeout=10.0)
    one.settimeout(_SILENCE)
    one.sendall(token + letter)
    return one


def _exactly(one, size):
    data = b""
    while len(data) < size:
        part = one.recv(size - len(data))
        if not part:
            raise WireError("the partner has gone")
        data += part
    return data
