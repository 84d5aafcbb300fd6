"""
RoCE settings of the adapters, and ``dcb`` of iproute2; all of it is the driver's, and gone with it.

PFC is what ``qos/pfc`` of the interface shows, the DSCP map lies in ``live/dcb/INTERFACE``. Sources: dcb-pfc(8),
dcb-app(8), dcb-ets(8) of iproute2 6; drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c: the first DSCP entry switches
the interface to trust DSCP, the last one that goes switches it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hwcheck.lab.actor.place import Node, ToolError, say

_NET = "/sys/class/net"
_BOOT = "qos"
PRIORITIES = 8


def reset(node: Node) -> None:
    """Let the adapters have what they had after the boot."""
    for path, value in node.live(_BOOT).items():
        if path.startswith("/"):
            node.put(path, value.replace("|", "\n"))
        else:
            node.keep(f"dcb/{path}", f"dscp={value}\n")


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``dcb``."""
    flags = {word for word in words if word.startswith("-")}
    plain = [word for word in words if not word.startswith("-")]
    if len(plain) < 2 or "dev" not in plain:
        raise ToolError("dcb: the lab knows pfc, app and ets, each with show or set and dev", 1)
    at = plain.index("dev")
    known, verb, device, rest = plain[0], plain[1], plain[at + 1], plain[at + 2 :]
    if not node.live_text(f"dcb/{device}"):
        raise ToolError("Attribute read: Operation not supported", 1)
    try:
        act = _VERBS[known, verb]
    except KeyError:
        raise ToolError(f'dcb: What is "{known} {verb}"?', 1) from None
    if verb == "show":
        rows, table = act(node, device, rest)
        say(json.dumps(table) if flags & {"-j", "--json", "-jp"} else "\n".join(rows))
        return 0
    with node.locked():
        act(node, device, rest)
    return 0


Shown = tuple[list[str], dict[str, object]]


def _pfc(node: Node, device: str) -> list[bool]:
    rows = [row.split() for row in node.text(f"{_NET}/{device}/qos/pfc").splitlines()]
    on = {int(row[0]) for row in rows if row[1:] == ["1"]}
    if not rows:
        on = {int(word) for word in node.live(f"dcb/{device}").get("pfc", "").split()}
    return [priority in on for priority in range(PRIORITIES)]


def _show_pfc(node: Node, device: str, _rest: list[str]) -> Shown:
    flags = _pfc(node, device)
    words = " ".join(f"{priority}:{'on' if flag else 'off'}" for priority, flag in enumerate(flags))
    table: dict[str, object] = {"pfc_cap": 8, "macsec_bypass": False, "delay": 0, "prio_pfc": flags}
    return ["pfc-cap 8 macsec-bypass off delay 0 ", f"prio-pfc {words} "], table


def _set_pfc(node: Node, device: str, rest: list[str]) -> Shown:
    flags = _pfc(node, device)
    if rest[:1] != ["prio-pfc"]:
        raise ToolError(f'dcb: What is "{" ".join(rest[:1])}"?')
    for word in rest[1:]:
        priority, _, state = word.partition(":")
        if state not in ("on", "off"):
            raise ToolError(f'Expected "on" or "off", not "{state}"')
        for one in range(PRIORITIES) if priority == "all" else [_number(priority, PRIORITIES - 1)]:
            flags[one] = state == "on"
    if node.exists(f"{_NET}/{device}/qos/pfc"):
        text = "\n".join(f"{priority} {int(flag)}" for priority, flag in enumerate(flags))
        node.put(f"{_NET}/{device}/qos/pfc", text)
    else:
        node.change(f"dcb/{device}", pfc=" ".join(str(one) for one, flag in enumerate(flags) if flag))
    return [], {}


def _number(text: str, most: int) -> int:
    if not text.isdigit() or int(text) > most:
        raise ToolError(f"Value is out of range: {text}")
    return int(text)


def _map(node: Node, device: str) -> dict[int, int]:
    pairs = (word.split(":") for word in node.live(f"dcb/{device}").get("dscp", "").split())
    return {int(dscp): int(priority) for dscp, priority in pairs}


def _show_app(node: Node, device: str, _rest: list[str]) -> Shown:
    found = _map(node, device)
    if node.text(f"{_NET}/{device}/qos/trust", "dscp") != "dscp" or not found:
        return ["ethtype-prio 0:0 "], {"ethtype_prio": [[0, 0]]}
    pairs = [[dscp, found[dscp]] for dscp in found]
    return ["dscp-prio " + " ".join(f"{dscp}:{priority}" for dscp, priority in pairs) + " "], {"dscp_prio": pairs}


def _change_app(verb: str) -> Callable[[Node, str, list[str]], Shown]:
    def change(node: Node, device: str, rest: list[str]) -> Shown:
        found = _map(node, device)
        if verb == "flush":
            found.clear()
        elif rest[:1] != ["dscp-prio"]:
            raise ToolError(f'dcb: the lab knows dscp-prio, not "{" ".join(rest[:1])}"')
        for word in rest[1:]:
            dscp, _, priority = word.partition(":")
            key, value = _number(dscp, 63), _number(priority, PRIORITIES - 1)
            if verb == "del":
                if found.get(key) != value:
                    raise ToolError("Attribute write: No such file or directory")
                del found[key]
            else:
                found[key] = value
        text = " ".join(f"{dscp}:{found[dscp]}" for dscp in sorted(found))
        node.change(f"dcb/{device}", dscp=text)
        if node.exists(f"{_NET}/{device}/qos/trust"):
            node.put(f"{_NET}/{device}/qos/trust", "dscp" if found else "pcp")
        return [], {}

    return change


_ETS: dict[str, list[str]] = {
    "tc-bw": ["0"] * PRIORITIES, "pg-bw": ["0"] * PRIORITIES, "tc-tsa": ["vendor"] * PRIORITIES,
    "prio-tc": ["1", "0", *map(str, range(2, PRIORITIES))],
}  # fmt: skip
"""As mlx5 has it after a load: priority 0 in traffic class 1 and 1 in 0, all classes scheduled by the firmware."""


def _ets(node: Node, device: str) -> dict[str, list[str]]:
    return {key: node.live(f"dcb/{device}").get(key, " ".join(value)).split() for key, value in _ETS.items()}


def _show_ets(node: Node, device: str, _rest: list[str]) -> Shown:
    found = _ets(node, device)
    rows = ["willing off ets-cap 8 cbs off "]
    rows += [
        f"{key} " + " ".join(f"{at}:{word}" for at, word in enumerate(words)) + " " for key, words in found.items()
    ]
    table: dict[str, object] = {"willing": False, "ets_cap": 8, "cbs": False}
    for key, words in found.items():
        table[key.replace("-", "_")] = [int(word) if word.isdigit() else word for word in words]
    return rows, table


def _set_ets(node: Node, device: str, rest: list[str]) -> Shown:
    found, key = _ets(node, device), ""
    for word in rest:
        if word in found:
            key = word
            continue
        at, sign, value = word.partition(":")
        if not key or not sign:
            raise ToolError(f'dcb: What is "{word}"?')
        for one in range(PRIORITIES) if at == "all" else [_number(at, PRIORITIES - 1)]:
            found[key][one] = value
    node.change(f"dcb/{device}", **{name: " ".join(words) for name, words in found.items()})
    return [], {}


_VERBS: dict[tuple[str, str], Callable[[Node, str, list[str]], Shown]] = {
    ("pfc", "show"): _show_pfc, ("pfc", "set"): _set_pfc, ("app", "show"): _show_app, ("ets", "show"): _show_ets,
    ("ets", "set"): _set_ets, **{("app", verb): _change_app(verb) for verb in ("add", "replace", "del", "flush")},
}  # fmt: skip
