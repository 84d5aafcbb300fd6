"""
Kernel parameters.

Source: ``sysctl -a``, ``sysctl KEY...``, ``sysctl -p``.
Shape: ``sysctl.values`` of the node: dotted name → text as printed; some also as a fact of their own. Of three ARP
    parameters of an interface the greater of its own value and of ``all`` is the effective one.
Units: as the kernel has them.
Missing: ``cannot stat ... No such file`` is a key this kernel does not have: no entry; ``permission denied`` likewise.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Reason, Subject, whole
from hwcheck.facts.names.sysctl import KEYS, PER_INTERFACE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ROOTS = r"(?:abi|debug|dev|fs|kernel|net|sunrpc|user|vm)"
_LINE = re.compile(rf"^({_ROOTS}\.[A-Za-z0-9_.:/@-]{{1,120}}) ?= ?(.{{0,400}})$")
_DENIED = re.compile(rf"^sysctl: permission denied on key ['\"]?({_ROOTS}\.[\w.]{{1,120}})")


@fmt(
    "sysctl",
    "sysctl",
    gives=("sysctl.*",),
    opens=rf"{_ROOTS}\.[a-z0-9_]+(?:\.[A-Za-z0-9_:/@-]+)* = \S",
    continues=rf"^{_ROOTS}\.[A-Za-z0-9_.:/@-]+ ?=|^sysctl: ",
    command=r"(?:^|[\s/|;&])sysctl(?:\s|$)",
)
def sysctl(output: Output, facts: FactSink) -> None:
    """Read every parameter as text, and the few that are judged as numbers."""
    values: dict[str, str] = {}
    interfaces: list[tuple[str, str, int]] = []
    for number, line in enumerate(output.lines, output.first_line):
        denied = _DENIED.match(line[:300])
        if denied and denied[1] in KEYS:
            facts.missing(NODE, KEYS[denied[1]][0], Reason.DENIED, "permission denied", number)
        found = _LINE.match(line[:600])
        if not found:
            continue
        key, text = found[1], found[2].strip()
        values[key] = text
        if key in KEYS:
            name, index = KEYS[key]
            facts.read(NODE, name, whole, text if not index else " ".join(text.split()[index : index + 1]), number)
        elif key.startswith("net.ipv4.conf."):
            interfaces.append((key, text, number))
    if values:
        facts.put(NODE, "sysctl.values", values, output.first_line)
    for key, text, number in interfaces:
        _of_interface(key, text, values, number, facts)


def _of_interface(key: str, text: str, values: dict[str, str], line: int, facts: FactSink) -> None:
    name, _, leaf = key.removeprefix("net.ipv4.conf.").rpartition(".")
    if leaf not in PER_INTERFACE or name in ("all", "default", "lo", ""):
        return
    netdev = Subject("netdev", name.replace("/", "."))
    own = facts.read(netdev, f"sysctl.{leaf}", whole, text, line)
    of_all = values.get(f"net.ipv4.conf.all.{leaf}", "")
    if own is not None and of_all.isdecimal() and len(of_all) < 10:
        facts.put(netdev, f"sysctl.{leaf}", max(own, int(of_all)), line, Facet.EFFECTIVE)
