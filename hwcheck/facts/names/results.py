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
    result.pair       | dict  |      | between two nodes; record of test, client, server, rail, value, unit, marked
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
    "carried_from": "run of an earlier acceptance that measured it; a part was swapped since that it does not touch",
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
    "samples": "cells of the matrix that hold a figure; min, median, max over them, worst = [row, column]; or repeats, "
    "whose median the value is",
    "counts": "one-way, both-ways, or read+write: what the figure counts",
    "p2p": "peer-to-peer access was enabled for the test; else the copies went through host memory",
    "device": "RDMA device",
    "qps": "queue pairs",
    "link_type": "IB or Ethernet",
    "memory": "host or gpu: where the RDMA buffers are; pinned: host memory of hwcheck's own copies",
    "cpu_frequency_doubted": "perftest says that the CPU frequency it computes with may be wrong",
    "peak_share": "share of the peak that the tool computes from clock and bus width, in percent",
    # hwcheck's own tests (tier load)
    "error": "why there is no figure: the call and CUDA's error, or that it began and did not end",
    "values": "all repeats, in the value's unit",
    "spread": "median absolute deviation of the repeats as a share of their median, in percent",
    "retested": "the first figure was doubtful (spread, clocks), this is the second",
    "seconds": "length of the window that the witnesses watched, in s",
    "sm_clock": "lowest SM clock seen while copies were in flight, in MHz; sm_clock_max its maximum",
    "sm_clock_max": "see sm_clock",
    "memory_clock": "lowest memory clock seen while copies were in flight, in MHz; memory_clock_max its maximum",
    "memory_clock_max": "see memory_clock",
    "throttled": "what held the clocks down meanwhile: sw_power_cap, hw_slowdown, sync_boost, sw_thermal, hw_thermal, "
    "hw_power_brake",
    "strangers": "other processes on the GPU before or after (pid and program)",
    "mig": "MIG is on: CUDA shows a share of the GPU, and that was measured",
    "ecc_errors": "uncorrected memory errors that were counted meanwhile",
    "remapped_rows": "rows of GPU memory that were remapped meanwhile",
    "pcie_gen": "PCIe generation of the GPU's link under load; pcie_gen_max what GPU and slot can do",
    "pcie_gen_max": "see pcie_gen",
    "pcie_width": "lanes of the GPU's PCIe link under load; pcie_width_max what GPU and slot can do",
    "pcie_width_max": "see pcie_width",
    "temperature": "highest GPU temperature seen, in C",
    "looks": "how often NVML was asked while work was in flight",
    "unwatched": "why NVML told nothing of the GPU",
    "xids": "lines of the kernel log with an Xid or SXid that came meanwhile",
    "log_unread": "why the kernel log was not read",
    "interrupts": "the interrupts that came most often meanwhile, by name",
    "numa_node": "NUMA node of the GPU, or that was measured",
    "numa_bound": "this process ran on that node's CPUs and took its memory there; False: the kernel refused",
    "numa_refused": "the kernel's word for what it refused of the binding",
    "numa_unknown": "why the binding could not even be tried",
    "busy": "share of all CPUs that worked in the moment before, in percent",
    "runaways": "programs (pid and name) that ran, or waited for a CPU, each time they were looked at before",
    "load_average": "of one minute, before",
    "governor": "frequency governor of the first CPU",
    "threads": "processes that worked at once",
    "count": "single measurements behind the spectrum",
    "p50": "middle of all single measurements, in us; p99, p999 (99.9 %) and max likewise",
    "p99": "see p50",
    "p999": "see p50",
    "series": "time series of the single measurements in us, thinned out: the highest of each stretch",
    "host_p50": "what the host waited for the same, round trip, in us; host_p99, host_p999, host_max likewise",
    "host_p99": "see host_p50",
    "host_p999": "see host_p50",
    "host_max": "see host_p50",
    "gpudirect": "the NIC read and wrote GPU memory itself",
    "transport": "what carried the data, by the tool's own log; transport_expected what should have",
    "transport_expected": "see transport",
    "where": "folder that was written to",
    "depth": "requests in flight",
    # between two nodes
    "client": "node that sent",
    "server": "node that received",
    "rail": "position of the adapters: PCI address and port, or host",
    "link_rate": "Gb/s that the link should have: the most that any port of this rail has",
    "client_rate": "Gb/s that the client's port ran at; server_rate the server's",
    "server_rate": "see client_rate",
    "client_state": "state of the client's port, before and after; server_state the server's",
    "server_state": "see client_state",
    "rdma_users": "other processes of both ends that had an RDMA device open (pid and program)",
    "streams": "TCP connections at once",
    "first_us": "the first message, in us; steady_us the median of those after it, ratio the first to these",
    "steady_us": "see first_us",
    "ratio": "see first_us",
}
"""Keys of ``result.conditions``; only those that the text tells are there."""
