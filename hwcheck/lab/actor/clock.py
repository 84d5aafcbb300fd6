"""
chrony of a lab node: it synchronises with the servers of its configuration that the lab has.

``live/chrony`` holds what the daemon has: ``leap``, ``offset``, ``stratum``, ``reference``, ``servers``. Sources:
chrony.conf(5), ``sourcedir`` and ``confdir`` of Debian's chrony.conf; chronyc(1).
"""

from __future__ import annotations

from hwcheck.lab.actor.place import Node, ToolError, say

SERVERS = ("ntp1.lab.internal", "ntp2.lab.internal")
_NETWORK = "10.0.0."
_WORDS = ("server", "peer", "pool")
_MAIN = ("/etc/chrony/chrony.conf", "/etc/chrony.conf")
_MORE = {"confdir": "/*.conf", "sourcedir": "/*.sources", "include": ""}
_STEPPED = "0.000012000"
_UNITS = ("chrony.service", "chronyd.service")


def exists(server: str) -> bool:
    """Tell whether the lab's network has a time server of that name or address."""
    return server in SERVERS or server.startswith(_NETWORK)


def configured(node: Node) -> list[str]:
    """Return the servers of the files that chrony reads."""
    rows = [row.split() for path in _MAIN for row in node.text(path).splitlines()]
    patterns = [folder + _MORE[row[0]] for row in rows if row and row[0] in _MORE for folder in row[1:]]
    paths = dict.fromkeys(path for pattern in patterns for path in node.expand(pattern))
    rows += [row.split() for path in paths for row in node.text(path).splitlines()]
    return list(dict.fromkeys(row[1] for row in rows if len(row) > 1 and row[0] in _WORDS))


def start(node: Node) -> None:
    """Read the configuration anew; the first updates step the clock."""
    _synchronise(node, configured(node), steps=True)


def _synchronise(node: Node, servers: list[str], *, steps: bool) -> None:
    """Synchronise where a server answers; whoever has none that answers stays as it is, without a reference."""
    known = node.live("chrony")
    if any(map(exists, servers)):
        was = known.get("leap") == "Normal"
        first = next(server for server in servers if exists(server))
        offset = known.get("offset", _STEPPED) if was and not steps else _STEPPED
        node.change("chrony", leap="Normal", offset=offset, stratum="3", first=first, servers=" ".join(servers))
    else:
        node.change("chrony", leap="Not synchronised", offset="0.000000000", first="", servers=" ".join(servers))


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``chronyc``."""
    states = [node.live(f"units/{unit}").get("ActiveState") for unit in _UNITS]
    if "active" not in states:
        say("506 Cannot talk to daemon")
        return 1
    order = " ".join(word for word in words if not word.startswith("-"))
    for known, act in _ORDERS.items():
        if order == known or (known == "waitsync" and order.startswith(known)):
            return act(node)
    raise ToolError(f"the lab's chronyc knows {', '.join(_ORDERS)} only", 2)


def _tracking(node: Node) -> int:
    clock = node.live("chrony")
    there = clock["leap"] != "Not synchronised"
    offset = float(clock["offset"])
    say(
        f"{clock['reference'] if there else '00000000'},{clock['first'] if there else ''},"
        f"{clock['stratum'] if there else 0},1780304102.1,{offset:.9f},{offset / 2:.9f},0.000003000,-1.500,0.001,0.020,"
        f"0.000400000,0.000200000,64.4,{clock['leap']}"
    )
    return 0


def _sources(node: Node) -> int:
    clock = node.live("chrony")
    offset = float(clock["offset"])
    for server in clock["servers"].split():
        there = exists(server) and clock["leap"] != "Not synchronised"
        mark = "?" if not there else "*" if server == clock["first"] else "+"
        reach = "377" if there else "0"
        say(f"^,{mark},{server},2,6,{reach},33,{offset:.9f},{offset:.9f},0.000100000")
    return 0


def _reload(node: Node) -> int:
    """Read the .sources files; what stands in .conf files needs a restart."""
    with node.locked():
        _synchronise(node, configured(node), steps=False)
    say("200 OK")
    return 0


def _step(node: Node) -> int:
    with node.locked():
        if node.live("chrony")["leap"] != "Not synchronised":
            node.change("chrony", offset=_STEPPED)
    say("200 OK")
    return 0


def _wait(node: Node) -> int:
    there = node.live("chrony")["leap"] != "Not synchronised"
    say(f"try: 1, refid: {'0A000101' if there else '00000000'}, correction: 0.0, skew: 0.020")
    return 0 if there else 1


_ORDERS = {
    "tracking": _tracking, "sources": _sources, "reload sources": _reload, "makestep": _step, "waitsync": _wait,
    "online": _reload, "burst": _reload,
}  # fmt: skip
