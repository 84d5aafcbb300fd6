"""
Placement of a service as systemd takes it: values that a unit would not start with are refused.

Source: systemd.exec(5), CPUAffinity=, NUMAPolicy=, NUMAMask= and exit status 242 (NUMA_POLICY): a unit whose policy and
mask do not go together does not start. set_mempolicy(2): bind and interleave want nodes, default and local none; a mask
alone is a preference, and systemd takes one node for that (numa-util.c). A list that systemd cannot read is left out
with a warning, which turns a bind into one without nodes.
"""

from __future__ import annotations

import re

from .forms import cpus, members
from .place import Place

POLICIES = ("default", "preferred", "bind", "interleave", "local")
_LIST = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:[ ,]+\d{1,6}(?:-\d{1,6})?)*")
_THERE = {"NUMAMask": "/sys/devices/system/node/online", "CPUAffinity": "/sys/devices/system/cpu/possible"}
_WORDS = {"NUMAMask": "all", "CPUAffinity": "numa"}


def not_understood(place: Place, name: str, value: str) -> str:
    """Say why a property cannot have a value here; "" when it can, or is none of placement."""
    if name == "NUMAPolicy" and value not in POLICIES:
        return f"NUMAPolicy can be {', '.join(POLICIES)}; not {value!r}"
    if name not in _THERE or value == _WORDS[name]:
        return ""
    if not _LIST.fullmatch(value):
        return f"{name} is a list of numbers, or {_WORDS[name]}; not {value[:80]!r}"
    there = "" if place.is_image else place.text(_THERE[name]) or ""
    missing = members(_commas(value)) - members(there) if there else set()
    return f"{name}={value}: this node has {there} and no {min(missing)}" if missing else ""


def mismatch(policy: str | None, mask: str | None) -> str:
    """Say why a policy and a mask do not go together; "" when they do. None is what no file says."""
    if policy in ("bind", "interleave") and not mask:
        return f"NUMAPolicy={policy} needs a NUMAMask, without which the unit does not start"
    if policy in ("default", "local") and mask:
        return f"NUMAPolicy={policy} takes no NUMAMask ({mask}), with which the unit does not start"
    if policy in ("preferred", None) and mask and (mask == "all" or len(members(_commas(mask))) != 1):
        return f"NUMAMask={mask} needs NUMAPolicy=bind or interleave: one node alone can be preferred"
    return ""


def _commas(value: str) -> str:
    return cpus(",".join(value.replace(",", " ").split()))
