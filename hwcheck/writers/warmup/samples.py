"""What the programs print, as samples in microseconds; and the first one against the rest."""

from __future__ import annotations

import re
import statistics
from typing import Any

_PING = re.compile(r"icmp_seq=\d+ .*time=([0-9.]+) ms")
_SEND_LAT = re.compile(r"(\d+), ([0-9.eE+-]+)")
_HEAD = "#, usec"


def of_ping(text: str) -> list[float]:
    """Return the round trips of iputils' ping, in the order in which they were sent."""
    return [1000.0 * float(found) for found in _PING.findall(text)]


def of_send_lat(text: str) -> list[float]:
    """
    Return the samples of ``ib_send_lat -U``: half a round trip each, in the order in which they were sent.

    Source: perftest, print_report_lat: ``#, usec``, then a line ``NUMBER, VALUE`` for each; sorted ones may follow.
    """
    found: list[float] = []
    _, head, body = text.partition(_HEAD)
    for line in body.splitlines()[1:] if head else []:
        matched = _SEND_LAT.fullmatch(line.strip())
        if matched is None or int(matched[1]) != len(found) + 1:
            break
        found.append(float(matched[2]))
    return found


def comparison(samples: list[float]) -> dict[str, Any]:
    """
    Compare the first sample with the others.

    Returns:
        ``unit``, ``samples``, ``first``, ``steady`` (the median of the others) and ``ratio``; of fewer than three
        samples nothing is said, and ``first``, ``steady`` and ``ratio`` are None.
    """
    told: dict[str, Any] = {"unit": "us", "samples": samples, "first": None, "steady": None, "ratio": None}
    if len(samples) >= 3:
        steady = statistics.median(samples[1:])
        told.update(first=samples[0], steady=steady, ratio=samples[0] / steady if steady > 0 else None)
    return told
