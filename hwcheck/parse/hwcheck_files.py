"""
What hwcheck itself keeps on a node: its own drop-ins, rules and units.

Source: the files that :mod:`hwcheck.writers` owns, each under ``==> own PATH <==``; node program only.
Shape: ``settings.held`` of the node: a record for each key with ``mechanism``, ``key`` (before it the subject, where
    the mechanism's keys belong to one), ``check`` that asked for it, and ``line``, the first that keeps it. The
    mechanism follows from the path, key and check from the comment over the line: ``# hwcheck: ID; key KEY``. In the
    file of rules, which mechanisms share, the mechanism stands before the key.
Units: none.
Missing: no file of ours is there: absent. A file that cannot be read leaves the list cut off. Lines without such a
    comment are not ours and not told.
"""

from __future__ import annotations

import re
from itertools import pairwise

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.file_text import Section, sections
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_MARK = re.compile(r"# hwcheck: ([\w.-]{1,200}); key (.{1,500})")
_RULES = "/etc/udev/rules.d/90-hwcheck.rules"
_FILES = {
    "/etc/sysctl.d/90-hwcheck.conf": "sysctl",
    "/etc/tmpfiles.d/90-hwcheck.conf": "attribute",
    "/etc/modprobe.d/90-hwcheck.conf": "module_option",
    "/etc/modules-load.d/90-hwcheck.conf": "module_load",
    "/etc/security/limits.d/90-hwcheck.conf": "limits",
    "/etc/default/grub.d/90-hwcheck.cfg": "kernel_argument",
    "/etc/kernel/90-hwcheck.conf": "kernel_argument",
}
_PATTERNS = (
    (re.compile(r"/etc/chrony\S*/90-hwcheck\.(?:conf|sources)"), "chrony"),
    (re.compile(r"/etc/systemd/system/hwcheck-gpu\.service\.d/settings\.conf"), "gpu"),
    (re.compile(r"/etc/systemd/system/hwcheck-qos@\S+\.service\.d/settings\.conf"), "qos"),
    (re.compile(r"/etc/systemd/system/hwcheck-irq@(?P<before>\S+)\.service\.d/settings\.conf"), "irq_affinity"),
    (re.compile(r"/etc/systemd/system/(?P<before>\S+)\.d/90-hwcheck\.conf"), "unit_property"),
)
"""Path → mechanism, and what its keys have before those within the file."""


@fmt(
    "hwcheck.files",
    "files of hwcheck on a node",
    gives=("settings.held",),
    opens=r"==> own /\S{1,300} <==",
    # Whatever they hold is in the outputs of other sources already, and must not be taken for theirs here.
    continues=r"==> own /|(?!==> )",
)
def hwcheck_files(output: Output, facts: FactSink) -> None:
    """Read every key that a file of ours holds."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for section in sections(output):
        if section.gap is not None:
            facts.cut_off(f"{section.path} could not be read", ("settings.held",))
        path = section.path.removeprefix("own ")
        mechanism, before = _mechanism(path)
        for check, key, line in _marked(section):
            name, held = mechanism, f"{before} {key}".strip()
            if path == _RULES:
                name, _, held = key.partition(" ")
            if name:
                found[name, held] = {"mechanism": name, "key": held, "check": check, "line": line}
    facts.put(NODE, "settings.held", tuple(found.values()), output.first_line)


def _mechanism(path: str) -> tuple[str, str]:
    for pattern, name in _PATTERNS:
        match = pattern.fullmatch(path)
        if match:
            return name, match.groupdict().get("before", "")
    return _FILES.get(path, ""), ""


def _marked(section: Section) -> list[tuple[str, str, str]]:
    """Return check, key and first line of each setting; a comment without a line below it keeps nothing."""
    lines = [text.strip() for _, text in section.lines]
    marks = [(_MARK.fullmatch(mark), line) for mark, line in pairwise(lines)]
    return [(mark[1], mark[2], line) for mark, line in marks if mark and line and not line.startswith("#")]
