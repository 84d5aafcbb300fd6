"""Which PCIe ports lie between two devices, by the kernel's paths (root port first, the device itself last)."""

from __future__ import annotations

from collections.abc import Iterable

Path = tuple[str, ...]


def between_gpu_and_peer(gpus: Iterable[Path], adapters: Iterable[Path]) -> set[str]:
    """
    Return the ports whose access control decides over peer traffic of a GPU.

    Args:
        gpus: paths of GPUs.
        adapters: paths of network adapters.

    Returns:
        For each GPU and each other GPU or adapter under the same switch: the ports below the one they share. What
        meets only in the root complex passes the CPU anyway.
    """
    firsts = list(gpus)
    ports: set[str] = set()
    for number, gpu in enumerate(firsts):
        for peer in (*firsts[number + 1 :], *adapters):
            shared = 0
            while shared < min(len(gpu), len(peer)) - 1 and gpu[shared] == peer[shared]:
                shared += 1
            if shared:
                ports |= {*gpu[shared:-1], *peer[shared:-1]}
    return ports
