"""
What load tools measured: a subject ``measurement``, a value in one unit, and the conditions it was had under.

The subject is named ``<tool>.<test>``: ``nccl.all_reduce``, ``nvbandwidth.host_to_device_memcpy_ce``; a second result
of the same test in one text gets ``@<line>`` behind it. Each measurement has one of the four value names, or
``result.error``.
"""

from hwcheck.facts.registry import declare

declare(
    "measurement",
    """
    result.busbw      | float | GB/s | NCCL bus bandwidth at the largest message
    result.bandwidth  | float | GB/s | copy bandwidth of the slowest GPU or pair; where only a sum is told, of all
    result.line_rate  | float | Gb/s | RDMA bandwidth, best average over message sizes
    result.latency    | float | us   | latency of the slowest pair, or the typical one at the smallest message
    result.error      | str   |      | how a measuring tool broke off
    result.conditions | dict  |      | known conditions; keys: see CONDITIONS below
    """,
)

declare(
    "node",
    """
    platform.gpu_names    | tuple | | GPU product names that measuring tools print, each once
    cuda.init_error       | str   | | CUDA did not initialise: its words
    cuda.device_count     | int   | | devices that CUDA detected (deviceQuery)
    cuda.query_result     | str   | | last line of deviceQuery: PASS or FAIL
    rdma.gpu_memory_error | str   | | perftest could not register GPU memory: error number, and the way asked for
    dcgm.tests            | tuple | | dcgmi diag; records of name, outcome (pass, warn, ...), gpus, text, line, excerpt
    dcgm.health           | str   | | dcgmi health: Healthy, Warning, Failure
    dcgm.health_text      | str   | | incidents that dcgmi health lists
    dcgm.nvlinks          | tuple | | dcgmi nvlink -s; records of gpu (DCGM number), up, down, disabled (link counts)
    """,
)

declare(
    "gpu",
    """
    hbm.bus_width  | int | bit | width of the memory bus as CUDA reports it; 1024 for each HBM stack
    hbm.cuda_total | int | MiB | global memory as CUDA reports it; less than nvidia-smi's total by what the driver keeps
    """,
)

CONDITIONS = {
    "ranks": "NCCL ranks, one GPU each: counted, or computed from busbw / algbw",
    "hosts": "host names that the ranks run on; None where the list of ranks is not complete",
    "size": "message size in B that the value belongs to",
    "validated": "the results were compared with the right ones; False where #wrong is N/A, None where not told",
    "wrong": "wrong elements, summed over all rows",
    "failed": "the tool's own verdict on out of bounds values, only where it is FAILED: 4 FAILED",
    "peak": "highest busbw in GB/s over all sizes, with peak_size in B",
    "average": "the tool's average over all sizes, in the value's unit",
    "dtype": "element type",
    "gpu_names": "GPU product names in the list of ranks",
    "gpus": "GPUs in the matrix",
    "statistic": "min (slowest of the samples) or sum (only a total is told)",
    "samples": "cells of the matrix that hold a figure; min, median, max over them, worst = [row, column]",
    "counts": "one-way, both-ways, or read+write: what the figure counts",
    "p2p": "peer-to-peer access was enabled for the test; else the copies went through host memory",
    "device": "RDMA device",
    "qps": "queue pairs",
    "link_type": "IB or Ethernet",
    "memory": "host or gpu: where the RDMA buffers are",
    "cpu_frequency_doubted": "perftest says that the CPU frequency it computes with may be wrong",
    "peak_share": "share of the peak that the tool computes from clock and bus width, in percent",
}
"""Keys of ``result.conditions``; only those that the text tells are there."""
