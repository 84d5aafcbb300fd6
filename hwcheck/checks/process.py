"""Processes that hold a GPU."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, ok, relation, skip

SHOWN = 3


@relation("process.leftover", needs=("gpu.processes",))
def processes_on_gpu(given: Given) -> Answer:
    """
    Processes on a GPU are listed.

    What it checks: nothing by itself: it says which processes the listing shows on the GPU.

    Why it matters: a process left over from a dead job holds memory and keeps a GPU from being reset. Whether a process
    should be there only the scheduler knows, so this is never a fault.

    How to fix: where no job runs on the node, end the process, then look at the job's epilog.

    Applies to: listings with a process section. Inside a container other processes are not shown.

    Source: nvidia-smi table and -q; reset steps of the NVIDIA GPU debug guidelines.
    """
    processes = given["gpu.processes"]
    if not processes:
        return ok("no process holds the GPU", observed=0)
    names = [f"{process.get('name') or '?'} ({process.get('pid')})" for process in processes[:SHOWN]]
    more = f" and {len(processes) - SHOWN} more" if len(processes) > SHOWN else ""
    return skip(f"in use by {', '.join(names)}{more}", observed=len(processes))
