"""What the machine is, as a whole: recognised platform, time since boot."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    platform.identity | dict  |   | recognised platform: record of platform, confidence, basis, models, mixed; the pipeline puts it in before judging
    kernel.uptime     | float | s | time since boot: the uptime command or /proc/uptime
    """,  # noqa: E501 - one name a line, for search and for explain
)
