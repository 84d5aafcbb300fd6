"""What ``nvidia-smi nvlink``, ``c2c`` and ``topo -m`` tell: links of a GPU, and who reaches whom."""

from hwcheck.facts.registry import declare

declare(
    "gpu",
    """
    nvlink.links        | tuple |      | NVLinks of nvlink -s; records of link (number), active (bool), speed (GB/s raw, one direction; None when inactive)
    nvlink.active_count | int   |      | number of NVLinks that are up; 0 when nvlink -s says that all are inactive
    nvlink.errors       | tuple |      | error counters of nvlink -e; records of link (number), counter (name as printed), value
    c2c.links           | tuple |      | chip-to-chip links of c2c -s; records of link (number), active (bool), speed (GB/s, one direction; None when inactive)
    topo.cpu_affinity   | str   |      | CPUs near the GPU, topo -m: ranges such as 0-55,112-167
    topo.numa_affinity  | str   |      | NUMA nodes near the GPU, topo -m: number, list or range
    topo.gpu_numa       | int   |      | NUMA node that the GPU's own memory forms (Grace superchips), topo -m
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare(
    "node",
    """
    topo.matrix | dict | | matrix of topo -m; record of gpus (names as printed), nics (column → RDMA device), cells (row name → column name → NV18, SYS, NODE, PHB, PXB, PIX or X)
    """,  # noqa: E501 - as above
)
