"""What the smallest possible uses of the hardware gave."""

from hwcheck.facts.registry import declare

declare(
    "gpu",
    """
    sanity.cuda | str | | first kernel through the CUDA driver: ok, or what went wrong; cuda-sanity source
    """,
)
