"""How the host was in the moment before a measurement: how busy, who ran, how much memory was free."""

import os
import time

_LOOKS = 5  # at who runs: one that does each time takes a CPU for itself
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def host_before(root, seconds=0.25):
    """
    Look at the host for a moment before a measurement.

    Returns:
        ``busy``: share of all CPUs that work, in percent; ``runaways``: programs that ran whenever they were looked
        at; ``load_average`` of a minute; ``governor`` of the first CPU.
    """
    told = {}
    before = _cpu_time(root)
    running = _running(root)
    for _ in range(_LOOKS):
        time.sleep(seconds / _LOOKS)
        running = {pid: name for pid, name in _running(root).items() if running.get(pid) == name}
    after = _cpu_time(root)
    if _processes(root):
        told["runaways"] = ["%d %s" % item for item in sorted(running.items())][:8]
    if before and after and sum(after) > sum(before):
        grown = [new - old for old, new in zip(before, after)]
        told["busy"] = round(100.0 * (1 - (grown[3] + grown[4]) / sum(grown)), 1)
    for word, path in (("load_average", "/proc/loadavg"), ("governor", _GOVERNOR)):
        text = _first_word(root + path)
        if text:
            told[word] = float(text) if word == "load_average" else text
    return told


def available_memory(root):
    """Return the bytes of memory that programs may still take; 0 where the kernel does not say."""
    try:
        with open(root + "/proc/meminfo", encoding="ascii", errors="replace") as file:
            rows = [row.split() for row in file.read(1 << 16).split("\n")]
    except OSError:
        return 0
    return next((int(row[1]) << 10 for row in rows if row[:1] == ["MemAvailable:"] and row[1:2]), 0)


def _running(root):
    """Return the processes that run at this moment, or wait for a CPU: pid → name. This program is none of them."""
    found, own = {}, os.getpgrp()
    for name in _processes(root):
        head, mark, rest = first_line("%s/proc/%s/stat" % (root, name)).rpartition(") ")
        words = rest.split()
        if mark and words[:1] == ["R"] and words[2:3] != [str(own)]:
            found[int(name)] = head.partition("(")[2][:15]
    return found


def _processes(root):
    try:
        return [name for name in os.listdir(root + "/proc") if name.isdigit()]
    except OSError:
        return []


def _cpu_time(root):
    words = first_line(root + "/proc/stat").split()
    return [int(word) for word in words[1:9]] if words[:1] == ["cpu"] and len(words) >= 9 else []


def _first_word(path):
    return (first_line(path).split() or [""])[0]


def first_line(path):
    """Return the first line of a small file; "" where it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline(4096)
    except OSError:
        return ""
