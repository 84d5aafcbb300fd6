"""GPUs: NVML, or nvidia-smi where the library is missing; a first kernel through CUDA in the deep tier."""

from hwcheck.sources import cuda, nvml, nvml_log
from hwcheck.sources.source import DEEP, Absent, Instead, Source

_XML = "nvidia-smi.xml"


def _nvml(context):
    """
    Ask NVML, and say each answer as it comes.

    nvidia-smi finds the library in places where the loader does not look (other prefixes), and needs no ctypes; so it
    runs in place of this where NVML cannot be had.
    """
    try:
        library = nvml.load()
    except (Absent, ImportError, OSError) as error:
        words = "%s: %s" % (nvml.LIBRARY, "not found" if isinstance(error, Absent) else error)
        return Instead(_XML, ("nvidia-smi", "-q", "-x"), words)
    return nvml_log.log(nvml.Nvml(library, context.off))


SOURCES = (
    # Without persistence the driver starts each GPU when it is opened: one to three seconds for each of eight.
    Source("nvml", "nvml", _nvml, child=True, deadline=40.0, instead=_XML),
    Source("cuda-sanity", "cuda.sanity", cuda.sanity, child=True, deadline=60.0, tier=DEEP, alone=True),
)
