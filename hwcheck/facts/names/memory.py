"""Main memory: totals, swap, pages out of use, error counters of the memory controllers."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    memory.total              | int   | MiB | memory the kernel has; on Grace with that of the GPUs once the driver has added it
    memory.available          | int   | MiB | memory new programs can have without swapping
    memory.swap               | int   | MiB | swap space; 0 for none
    memory.corrupted          | int   | KiB | memory the kernel took out of use after errors, since boot
    memory.edac.controllers   | int   |     | memory controllers that count errors
    memory.edac.corrected     | int   |     | corrected errors over all controllers since the counters began
    memory.edac.uncorrected   | int   |     | uncorrected errors over all controllers since the counters began
    memory.edac.seconds       | int   | s   | time the counters run; the shortest of all controllers
    memory.edac.modules       | tuple |     | modules with errors: records of name (label, or controller and place), corrected, uncorrected
    """,  # noqa: E501 - one name a line, for search and for explain
)
