"""
What an attribute of the kernel takes when it is written: the rules of Linux. Both forms of the lab ask here.

* choice: one of the words that it shows, of which the chosen one stands in brackets;
* word: one of the words in the file beside it that lists them, or of the rule's own;
* numbers: whole numbers within a range, as many as there are now;
* tclass: the traffic class of an RDMA device, shown as ``Global tclass=106``; -1 and 0 are none;
* managed: an interrupt that the kernel itself places: EIO (kernel/irq/manage.c, irq_can_set_affinity_usr);
* bytes: written where they are written, as in PCI config space;
* text: anything of one line;
* sysrq: ``b`` reboots the node at once, anything else does nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hwcheck.lab.actor.place import Node

_BIG = 2**63 - 1
_CPU = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class Rule:
    """
    What may be written to attributes.

    Attributes:
        pattern: of the path on the node, ``*`` also over slashes.
        kind: see above; "" for what is read only.
        low, high: of numbers.
        among: for words: name of the file beside it.
        words: for words: where no file lists them.
    """

    pattern: str
    kind: str
    low: int = 0
    high: int = _BIG
    among: str = ""
    words: tuple[str, ...] = ()


RULES = (
    Rule("/sys/module/pcie_aspm/parameters/policy", "choice"),
    Rule("/sys/kernel/mm/transparent_hugepage/enabled", "choice"),
    Rule("/sys/kernel/mm/transparent_hugepage/defrag", "choice"),
    Rule("/sys/kernel/mm/hugepages/*/nr_hugepages", "numbers"),
    Rule(f"{_CPU}/cpufreq/policy[0-7]/scaling_governor", "word", among="scaling_available_governors"),
    Rule(f"{_CPU}/cpufreq/policy[0-7]/energy_performance_preference", "word",
         words=("default", "performance", "balance_performance", "balance_power", "power")),
    Rule(f"{_CPU}/intel_pstate/no_turbo", "numbers", high=1),
    Rule("/sys/devices/system/clocksource/clocksource0/current_clocksource", "word", among="available_clocksource"),
    Rule(f"{_CPU}/cpufreq/policy*/scaling_governor", "text"),
    Rule(f"{_CPU}/cpufreq/policy*/energy_performance_preference", "text"),
    Rule(f"{_CPU}/cpu*/cpuidle/state*/disable", "numbers", high=1),
    Rule("/sys/devices/*/config", "bytes"),
    Rule("/sys/devices/*/power/control", "text"),
    Rule("/sys/devices/*/link/l1_aspm", "numbers", high=1),
    Rule("/sys/devices/*/link/l0s_aspm", "numbers", high=1),
    Rule("/sys/devices/*/infiniband/*/tc/*/traffic_class", "tclass", high=255),
    Rule("/sys/devices/*/qos/trust", "word", words=("pcp", "dscp")),
    Rule("/sys/devices/*/ecn/roce_np/cnp_dscp", "numbers", high=63),
    Rule("/sys/devices/*/ecn/roce_np/cnp_802p_prio", "numbers", high=7),
    Rule("/sys/devices/*/ecn/roce_*/enable/*", "text"),
    Rule("/sys/kernel/config/rdma_cm/*/default_roce_tos", "numbers", high=255),
    Rule("/proc/irq/1[0-3][0-9]/smp_affinity_list", "managed"),
    Rule("/proc/irq/*/smp_affinity_list", "text"),
    Rule("/proc/sys/vm/swappiness", "numbers", high=200),
    Rule("/proc/sys/vm/zone_reclaim_mode", "numbers", high=7),
    Rule("/proc/sys/kernel/numa_balancing", "numbers", high=2),
    Rule("/proc/sys/net/ipv4/conf/*/rp_filter", "numbers", high=2),
    Rule("/proc/sys/net/ipv4/tcp_congestion_control", "word", among="tcp_available_congestion_control"),
    Rule("/proc/sys/kernel/random/*", ""),
    Rule("/proc/sys/kernel/osrelease", ""),
    Rule("/proc/sys/kernel/hung_task_detect_count", ""),
    Rule("/proc/sys/net/ipv4/tcp_available_congestion_control", ""),
    Rule("/proc/sys/*", "numbers", low=-1),
    Rule("/proc/sysrq-trigger", "sysrq"),
)  # fmt: skip
"""The first that fits counts."""


def rule_of(path: str) -> Rule | None:
    """Return the rule of a path on the node, or None for a plain file."""
    return next((rule for rule in RULES if fnmatchcase(path, rule.pattern)), None)


def refusal(number: int) -> OSError:
    """Return the error that the kernel answers with."""
    return OSError(number, os.strerror(number))


def fresh(node: Node, path: str, rule: Rule, text: str) -> str:
    """
    Return what an attribute shows once a text has been written to it.

    Raises:
        OSError: the kernel does not take it.
    """
    return _WRITES[rule.kind](node, path, rule, text)


def _choose(node: Node, path: str, _rule: Rule, text: str) -> str:
    words = [word.strip("[]") for word in node.text(path).split()]
    if text not in words:
        raise refusal(errno.EINVAL)
    return " ".join(f"[{word}]" if word == text else word for word in words)


def _one_of(node: Node, path: str, rule: Rule, text: str) -> str:
    known = list(rule.words) or node.text(f"{path.rpartition('/')[0]}/{rule.among}", text).split()
    if text not in known:
        raise refusal(errno.EINVAL)
    return text


def _numbers(node: Node, path: str, rule: Rule, text: str) -> str:
    words, had = text.split(), node.text(path).split()
    if not all(word.lstrip("-").isdecimal() for word in had):
        return text  # a parameter of words: the rule is of its folder
    if not words or len(words) > max(1, len(had)):
        raise refusal(errno.EINVAL)
    try:
        values = [int(word, 0) for word in words]
    except ValueError:
        raise refusal(errno.EINVAL) from None
    if any(not rule.low <= value <= rule.high for value in values):
        raise refusal(errno.EINVAL)
    return "\t".join([*map(str, values), *had[len(values) :]])


def _class(_node: Node, _path: str, rule: Rule, text: str) -> str:
    if text == "-1":
        return ""
    if not text.isdecimal() or int(text) > rule.high:
        raise refusal(errno.EINVAL)
    return f"Global tclass={int(text)}" if int(text) else ""


def _text(_node: Node, _path: str, _rule: Rule, text: str) -> str:
    return text


def _managed(_node: Node, _path: str, _rule: Rule, _text: str) -> str:
    raise refusal(errno.EIO)


_WRITES: dict[str, Callable[[Node, str, Rule, str], str]] = {
    "choice": _choose, "word": _one_of, "numbers": _numbers, "tclass": _class, "text": _text, "managed": _managed,
}  # fmt: skip


def write(node: Node, path: str, text: str) -> None:
    """
    Write an attribute as ``echo`` does: on a node in host form the real one, which answers itself.

    Raises:
        OSError: the kernel does not take it, or there is none.
    """
    if node.is_host:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode() + b"\n")
        finally:
            os.close(fd)
        return
    if not node.exists(path):
        raise refusal(errno.ENOENT)
    place = os.path.realpath(node.real(path)).removeprefix(os.path.realpath(node.tree))
    store(node, place, rule_of(place), text)


def store(node: Node, path: str, rule: Rule | None, text: str) -> None:
    """
    Let a node's kernel take a value, with all that follows from it.

    Raises:
        OSError: it does not.
    """
    from hwcheck.lab.actor import effects  # noqa: PLC0415 - needs the rules of this module

    if rule is None or not rule.kind:
        raise refusal(errno.EACCES)
    effects.refuse(node, path, text)
    node.put(path, fresh(node, path, rule, text) + "\n")
    effects.follow(node, path, text)
