"""
``/sys/devices/system/cpu`` and the first block of ``/proc/cpuinfo``: topology, frequency, idle states.

Source: kernel ABI sysfs-devices-system-cpu, cpufreq and cpuidle documentation; the node program or ``grep . FILES``.
Shape: ``cpu.*`` of the node. The topology is that of one CPU a socket; limits are those of the first frequency policy.
Units: kHz in the files, MHz in the facts.
Missing: no cpufreq folder is usual in guests: absent. A policy whose CPU is offline answers EBUSY or ENODEV and is left
out when others answer. ``offline`` names CPUs that could exist too, so offline is what is present and not online.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Reason, count
from hwcheck.parse.flattened import attributes, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.lscpu import count_cpus
from hwcheck.parse.sink import FactSink

_ROOT = "/sys/devices/system/cpu/"
_SELF_STEERED = ("intel_pstate", "amd-pstate-epp")
"""Drivers that leave the frequency to the CPU: governor powersave then only means that the preference counts."""
_MOST = 8192
_GIVES = (
    "cpu.count", "cpu.offline", "cpu.isolated", "cpu.nohz_full", "cpu.smt", "cpu.microcode", "cpu.sockets",
    "cpu.cores_per_socket", "cpu.threads_per_core", "cpu.frequency.*", "cpu.governor", "cpu.epp", "cpu.turbo",
    "cpu.idle.*",
)  # fmt: skip
_TEXTS = {
    "isolated": "cpu.isolated",
    "nohz_full": "cpu.nohz_full",
    "smt/control": "cpu.smt",
    "cpu0/microcode/version": "cpu.microcode",
    "cpuidle/current_driver": "cpu.idle.driver",
}
_LIMITS = {"scaling_max_freq": "cpu.frequency.limit", "cpuinfo_max_freq": "cpu.frequency.max"}

Told = dict[str, tuple[int, str]]
"""Path below the root → line and value."""


@fmt(
    "sysfs.cpu",
    "/sys/devices/system/cpu",
    gives=_GIVES,
    opens=r"/sys/devices/system/cpu/[\w./-]{1,100}:",
    continues=r"^/sys/devices/system/cpu/",
)
def sysfs_cpu(output: Output, facts: FactSink) -> None:
    """Read texts, topology, policies and idle states, each from the files that say it."""
    told = {path: (line, value) for line, path, value in attributes(output, _ROOT)}
    for path, name in _TEXTS.items():
        if path in told:
            _text(facts, name, *told[path])
    _counts(facts, told)
    _topology(facts, told)
    _frequency(facts, told)
    _idle(facts, told)


def _text(facts: FactSink, name: str, line: int, value: str) -> None:
    reason = gap(value)
    if reason:
        facts.missing(NODE, name, reason, value, line)
    else:
        facts.put(NODE, name, "" if value == "(null)" else value[:200], line)  # nohz_full without CPUs prints (null)


def cpus(text: str) -> set[int]:
    """
    Read a list of CPUs, ``0-31,64-95``.

    Raises:
        ValueError: the text is no such list, or names more CPUs than any kernel has.
    """
    if count_cpus(text) > _MOST:
        raise ValueError("more CPUs than a kernel can have")
    ends = (part.partition("-") for part in text.split(",") if part.strip())
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def _list(numbers: set[int]) -> str:
    """Print a set of CPUs as the kernel does."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _counts(facts: FactSink, told: Told) -> None:
    if "present" not in told:
        return
    line, text = told["present"]
    try:
        present = cpus(text)
        online = cpus(told["online"][1]) if "online" in told else present
    except ValueError:
        facts.unparsable(NODE, "cpu.count", text, line)
        return
    facts.put(NODE, "cpu.count", len(present), line)
    if present - online:
        facts.put(NODE, "cpu.offline", _list(present - online), told["online"][0])


def _topology(facts: FactSink, told: Told) -> None:
    sockets, lines, cores, threads = set(), [], set(), set()
    for path, (line, value) in told.items():
        found = re.fullmatch(r"(cpu\d{1,5}/topology)/physical_package_id", path)
        if not found or not value.isdigit():
            continue  # -1 on machines whose firmware does not say
        try:
            near = cpus(_first(told, found[1], "package_cpus_list", "core_siblings_list"))
            twins = cpus(_first(told, found[1], "thread_siblings_list"))
        except ValueError:
            continue
        sockets.add(value)
        lines.append(line)
        if near and twins:
            threads.add(len(twins))
            cores.add(len(near) // len(twins))
    if sockets:
        facts.put(NODE, "cpu.sockets", len(sockets), lines[0])
    if len(cores) == 1 and len(threads) == 1:
        facts.put(NODE, "cpu.cores_per_socket", cores.pop(), lines[0])
        facts.put(NODE, "cpu.threads_per_core", threads.pop(), lines[0])


def _first(told: Told, folder: str, *names: str) -> str:
    for name in names:
        if f"{folder}/{name}" in told:
            return told[f"{folder}/{name}"][1]
    return ""


def _frequency(facts: FactSink, told: Told) -> None:
    for path, (line, value) in told.items():
        name = path.rpartition("/")[2]
        if path.startswith("cpufreq/policy") and name in _LIMITS and not gap(value):
            facts.read(NODE, _LIMITS[name], lambda text: count(text) // 1000, value, line)
        elif path.startswith("cpufreq/policy") and name == "scaling_driver":
            _text(facts, "cpu.frequency.driver", line, value)
        elif path == "cpufreq/boost" and value in ("0", "1"):
            facts.put(NODE, "cpu.turbo", value == "1", line)
        elif path == "intel_pstate/no_turbo" and value in ("0", "1"):
            facts.put(NODE, "cpu.turbo", value == "0", line)
    governors = _of_policies(facts, told, "scaling_governor", "cpu.governor")
    preferences = _of_policies(facts, told, "energy_performance_preference", "cpu.epp")
    if governors == {"powersave"} and preferences == {"performance"}:
        driver, line = facts.seen(NODE, "cpu.frequency.driver"), _line(told, "energy_performance_preference")
        if driver in _SELF_STEERED:
            facts.put(NODE, "cpu.governor", "performance", line, Facet.EFFECTIVE)


def _of_policies(facts: FactSink, told: Told, file: str, name: str) -> set[str]:
    """Record the values of one file over all policies; one that cannot be read counts only when none can."""
    rows = [row for path, row in told.items() if path.startswith("cpufreq/policy") and path.endswith("/" + file)]
    values = {value[:40] for _, value in rows if value and not gap(value)}
    if values:
        odd = next((line for line, value in rows if value != rows[0][1] and not gap(value)), rows[0][0])
        facts.put(NODE, name, ", ".join(sorted(values)[:8]), odd)
    elif rows:
        line, value = rows[0]
        facts.missing(NODE, name, gap(value) or Reason.ABSENT, value[:60], line)
    return values


def _line(told: Told, file: str) -> int:
    return next((line for path, (line, _) in told.items() if path.endswith("/" + file)), 0)


def _idle(facts: FactSink, told: Told) -> None:
    states: list[tuple[int, str, int, bool]] = []
    for path, (line, name) in told.items():
        found = re.fullmatch(r"cpu0/cpuidle/(state\d{1,2})/name", path)
        latency = told.get(f"cpu0/cpuidle/{found[1]}/latency", (0, ""))[1] if found else ""
        disabled = told.get(f"cpu0/cpuidle/{found[1]}/disable", (0, ""))[1] if found else ""
        if latency.isdigit() and len(latency) < 10 and disabled in ("0", "1"):
            states.append((line, name[:40], int(latency), disabled == "0"))
    if states:
        records = ({"name": name, "latency": wait, "enabled": enabled} for _, name, wait, enabled in states)
        facts.put(NODE, "cpu.idle.states", tuple(records), states[0][0])
        longest = max((wait for _, _, wait, enabled in states if enabled), default=0)
        facts.put(NODE, "cpu.idle.latency", longest, states[0][0])


@fmt(
    "proc.cpuinfo",
    "/proc/cpuinfo",
    gives=("cpu.architecture",),
    opens=r"processor\t*\s*: \d{1,5}\s*$",
    continues=r"^[A-Za-z][\w ()-]{1,30}\s*:|^\s*$",
    command=r"\bcat\s+/proc/cpuinfo\b",
)
def proc_cpuinfo(output: Output, facts: FactSink) -> None:
    """Read the first CPU's model; Arm CPUs have numbers in place of a name."""
    for number, line in enumerate(output.lines[:40], output.first_line):
        label, colon, value = (part.strip() for part in line[:8192].partition(":"))
        if not colon:
            continue
        if label == "model name" and value:
            facts.put(NODE, "cpu.model", value[:100], number)
        elif label == "vendor_id" and value:
            facts.put(NODE, "cpu.architecture", "x86_64", number)
        elif label == "CPU implementer" and value:
            facts.put(NODE, "cpu.architecture", "aarch64", number)
