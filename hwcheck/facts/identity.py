"""
One GPU under several names: index, PCI address, UUID, serial.

Tools name a GPU differently (``GPU2`` in ``topo -m``, a UUID in ``nvlink -s``, a PCI address without function in an
Xid line). After parsing, every GPU subject is renamed to its PCI address where any output ties the names together.

Rules, from what real outputs do:

* The PCI address is the key. Within one output two subjects are two GPUs, whatever else they share.
* A UUID or index ties two subjects of different outputs, unless one output shows it on two GPUs (redacted captures
  give all GPUs one UUID). Serial numbers never tie: the two GPUs of a GB200 board share one.
* CUDA device numbers are no nvidia-smi index; no parser may put one into ``gpu.index``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hwcheck.facts.snapshot import Snapshot
from hwcheck.facts.subjects import Subject, pci_address
from hwcheck.facts.values import Facet

_TIES = ("gpu.uuid", "gpu.index")


def unify_gpus(snapshot: Snapshot, seen_in: dict[Subject, set[int]]) -> None:
    """
    Rename GPU subjects to one name per GPU, in place.

    Args:
        snapshot: freshly parsed facts of one node.
        seen_in: GPU subject → identities of the outputs it occurs in.
    """
    gpus = snapshot.subjects("gpu")
    leader: dict[Subject, Subject] = {gpu: gpu for gpu in gpus}
    for name in _TIES:
        holders: dict[Any, list[Subject]] = defaultdict(list)
        for gpu in gpus:
            value = snapshot.value(name, gpu)
            if value is not None:
                holders[value].append(gpu)
        for value, same in holders.items():
            if len(same) > 1 and _ties(name, value, same, seen_in):
                best = min((leader[gpu] for gpu in same), key=_rank)
                for gpu in same:
                    _join(leader, gpu, best)
    for gpu in gpus:
        target = leader[gpu]
        if target != gpu:
            for (fact_name, facet), fact in snapshot.facts.pop(gpu).items():
                snapshot.put(target, fact_name, fact, Facet(facet))
    for gap in snapshot.gaps:
        if gap.about is not None:
            gap.about = frozenset(leader.get(subject, subject) for subject in gap.about)


def _ties(name: str, value: Any, same: list[Subject], seen_in: dict[Subject, set[int]]) -> bool:
    """Tell whether these subjects can be one GPU: no output shows two of them, at most one PCI address."""
    if name == "gpu.uuid" and not str(value).strip("GPU-0"):
        return False  # a redacted all-zero UUID
    outputs: set[int] = set()
    for gpu in same:
        mine = seen_in.get(gpu, set())
        if outputs & mine:
            return False
        outputs |= mine
    return sum(pci_address(gpu.id) is not None for gpu in same) <= 1


def _join(leader: dict[Subject, Subject], gpu: Subject, best: Subject) -> None:
    old = leader[gpu]
    for other, its_leader in leader.items():
        if its_leader == old:
            leader[other] = best


def _rank(gpu: Subject) -> tuple[int, str]:
    if pci_address(gpu.id):
        return 0, gpu.id
    return (1 if gpu.id.startswith("GPU") and gpu.id[3:].isdigit() else 2), gpu.id
