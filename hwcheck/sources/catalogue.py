"""All sources of the node program, gathered from the files of their areas, the most telling first."""

from hwcheck.sources import clock, gpu, host, kernel, memory, pci, platform, processor, rdma, services, storage

SOURCES = (
    gpu.SOURCES + services.SOURCES + kernel.SOURCES + pci.SOURCES + rdma.SOURCES + platform.SOURCES
    + processor.SOURCES + memory.SOURCES + clock.SOURCES + storage.SOURCES + host.SOURCES
)  # fmt: skip
