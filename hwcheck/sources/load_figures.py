"""What every measurement of the load tier shares: the middle and the spread of samples, a spectrum, a line of JSON."""

import json

SERIES = 120  # points of a time series that are kept
_DIGITS = 6


class FigureError(Exception):
    """What was measured is no figure; says why."""


def median(values):
    """Return the middle one, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(values):
    """Return the median absolute deviation as a share of the median, in percent."""
    middle = median(values)
    return 100.0 * median([abs(value - middle) for value in values]) / middle if middle else 0.0


def percentile(ordered, share):
    """Return the value that this share (0 to 1) of an ordered list does not exceed."""
    return ordered[min(len(ordered) - 1, max(0, int(len(ordered) * share + 0.999999) - 1))]


def spectrum(values):
    """Return ``p50``, ``p99``, ``p999`` and ``max`` of a list."""
    ordered = sorted(values)
    marks = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))
    return {name: short(percentile(ordered, share)) for name, share in marks}


def series(values, points=SERIES):
    """Thin a time series out to so many points: each is the highest of its stretch, so that no spike is lost."""
    step = max(1, -(-len(values) // points))
    return [short(max(values[at : at + step])) for at in range(0, len(values), step)]


def short(value):
    """Round to six significant digits; an integer stays one."""
    return value if isinstance(value, int) else float("%.*g" % (_DIGITS, value))


def figure(test, on, unit, samples, conditions):
    """
    Make the line of one result: its value is the median of the samples.

    Args:
        test: what was measured.
        on: of what.
        unit: ``GB/s`` or ``us``.
        samples: one value for each repeat.
        conditions: what it was measured under; samples and spread are added.

    Raises:
        FigureError: a sample is zero, negative or no number: whatever was timed did not happen.
    """
    if not samples or not all(0 < value < float("inf") for value in samples):
        raise FigureError("no figure: %s" % ", ".join("%r" % value for value in samples[:3]))
    conditions["samples"], conditions["spread"] = len(samples), short(spread(samples))
    value = short(median(samples))
    values = [short(sample) for sample in samples]
    return line({"test": test, "on": on, "value": value, "unit": unit, "samples": values, "conditions": conditions})


def begins(test, on):
    """Make the line that is sent before a measurement: one that never ends is known by it."""
    return line({"test": test, "on": on, "begins": True})


def broken(test, on, error):
    """Make the line of a measurement that broke off."""
    return line({"test": test, "on": on, "error": str(error)[:300]})


def line(record):
    """Write a record as one line of JSON."""
    return (json.dumps(record, separators=(", ", ": "), allow_nan=False) + "\n").encode()
