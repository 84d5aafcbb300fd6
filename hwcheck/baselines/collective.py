"""The command line of nccl-tests over several nodes, for a launcher that is there on the first of them."""

from __future__ import annotations

from collections.abc import Sequence

PROGRAM = "all_reduce_perf"
_SIZES = ("-b", "1G", "-e", "8G", "-f", "2", "-g", "1")
_TOLD = {"NCCL_DEBUG": "INFO"}
"""In the log NCCL then says of each channel which transport it took; the parser reads it."""


def environment(adapters: Sequence[str] = ()) -> dict[str, str]:
    """
    Return what the ranks need in their environment; a launcher passes it on.

    Args:
        adapters: RDMA devices that NCCL is to use, by their exact names; () for its own choice.
    """
    return _TOLD | ({"NCCL_IB_HCA": "=" + ",".join(adapters)} if adapters else {})


def collective_lines(hosts: Sequence[str], gpus: int, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """
    Plan an all-reduce over all GPUs of several nodes, one rank each.

    Args:
        hosts: names by which the nodes reach each other; the first one launches.
        gpus: of each node; all have the same number.
        names: of the environment that the ranks need.

    Returns:
        Launcher → its command line. ``srun`` starts in an allocation of its own, ``mpirun`` (Open MPI) logs in by SSH.

    Raises:
        ValueError: fewer than two nodes, a name twice, or no GPU.
    """
    if len(hosts) < 2 or len(set(hosts)) < len(hosts) or gpus < 1:
        raise ValueError("a collective needs two nodes of different names, and a GPU on each")
    told = [word for name in names for word in ("-x", name)]
    return {
        "mpirun": (
            "mpirun", "--allow-run-as-root", "--np", str(len(hosts) * gpus), "--map-by", f"ppr:{gpus}:node",
            "--host", ",".join(f"{host}:{gpus}" for host in hosts), *told, PROGRAM, *_SIZES,
        ),
        "srun": (
            "srun", f"--nodes={len(hosts)}", f"--nodelist={','.join(hosts)}", f"--ntasks-per-node={gpus}",
            f"--gpus-per-node={gpus}", "--exclusive", "--kill-on-bad-exit=1", "--export=ALL", PROGRAM, *_SIZES,
        ),
    }  # fmt: skip
