"""Proof that nobody works on a node before it is put under load: by the evidence of who holds its devices."""

from __future__ import annotations

from collections.abc import Collection

from hwcheck.facts import NODE, Missing, Snapshot

DAEMONS = frozenset((
    "nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvsm_core", "nvidia-smi",
    "gpud", "node_exporter", "telegraf", "opensm", "ibacm",
))  # fmt: skip
"""Daemons of the driver and of monitoring, which hold devices all the time; 15 characters, as the kernel has them."""


def why_not_idle(snapshot: Snapshot, ignored: Collection[str] = ()) -> str:
    """
    Say who works on a node, or why nobody can tell; "" when it is idle.

    Args:
        snapshot: facts of the node, just read.
        ignored: more names of programs that are no work.
    """
    fact = snapshot.get(NODE, "process.holders")
    if isinstance(fact.value, Missing):
        return f"who uses its devices could not be told: {fact.value.detail or fact.value.reason}"
    at_work = [one for one in fact.value if one["name"] not in DAEMONS and one["name"] not in ignored]
    at_work += _on_gpus(snapshot, ignored, {int(one["pid"]) for one in fact.value})
    if not at_work:
        return ""
    shown = ", ".join(f"{one['name'] or '?'} ({one['pid']})" for one in at_work[:4])
    return f"it is not idle: {shown}{' and more' if len(at_work) > 4 else ''}"


def _on_gpus(snapshot: Snapshot, ignored: Collection[str], known: set[int]) -> list[dict[str, object]]:
    """Return what NVML says runs on the GPUs, each once; in a container the files of others are not seen."""
    found: dict[int, dict[str, object]] = {}
    for _, fact in snapshot.with_fact("gpu.processes"):
        for one in fact.value if fact.present else ():
            name = str(one.get("name") or "").rpartition("/")[2][:15]
            if one.get("pid") not in known and name not in DAEMONS and name not in ignored:
                found.setdefault(one.get("pid"), {"name": name, "pid": one.get("pid")})
    return list(found.values())
