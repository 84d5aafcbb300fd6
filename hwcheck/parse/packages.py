"""
Versions of the driver set: kernel module, packages, fabric manager, IMEX.

Source: ``dpkg -l``, ``rpm -qa``, ``modinfo nvidia``, ``modinfo -F version nvidia``, ``/proc/driver/nvidia/version``,
``/sys/module/nvidia/version``, ``nv-fabricmanager --version``, ``nvidia-imex --version``.
Shape: ``driver.*`` of the node. The *loaded* module (/proc, /sys) and the *installed* module file (modinfo) are two
facts: after an upgrade without a reload they differ.
Units: versions as text, packaging suffixes (``-0ubuntu0.22.04.1``, epoch) removed.
Missing: packages in another state than installed (``rc``) are left out; a version that is none is unparsable.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_VERSION = r"\d{3,4}\.\d{1,4}(?:\.\d{1,4})?"
_OURS = r"(?:lib)?(?:nvidia|cuda-drivers|nvlsm|nvsdm|libnvsdm|libnvidia)[\w.+-]*"
_DPKG = re.compile(rf"^([a-z])([a-z])[R ]?\s+({_OURS})(?::\w+)?\s+(\S{{1,80}})")
_RPM = re.compile(rf"^({_OURS}?)-(?:\d+:)?({_VERSION})-(\S{{1,60}})$")
_DRIVER = re.compile(
    r"^(?:nvidia-(?:open-)?driver|nvidia-driver|cuda-drivers|nvidia-headless|nvidia-dkms|nvidia-kernel-source)(?!-fabricmanager|-imex)"
)
_IMEX = re.compile(r"^nvidia-imex")
_MANAGER = re.compile(r"^(?:nvidia-fabric-?manager|cuda-drivers-fabricmanager)(?!-devel|-dev)")


@fmt(
    "dpkg",
    "dpkg -l",
    gives=(
        "driver.packages",
        "driver.package_version",
        "driver.fabric_manager.version",
        "driver.imex.version",
        "driver.packages_held",
    ),
    opens=rf"(?:ii|hi)\s+{_OURS}(?::\w+)?\s+\d\S*\s+(?:amd64|arm64|all)\b|Desired=Unknown/Install/Remove",
    continues=r"^(?:[a-z][a-zA-Z][R ]?\s+[a-z0-9]|\||\+|Desired=)",
    command=r"(?:^|[\s/|;&])(?:dpkg\s+(?:-l|--list)|dpkg-query\s)",
)
def dpkg(output: Output, facts: FactSink) -> None:
    """Read installed packages of the driver set."""
    found, held = [], []
    for number, line in enumerate(output.lines, output.first_line):
        row = _DPKG.match(line[:300])
        if row and row[2] == "i":
            found.append((row[3], row[4], number))
            held += [row[3]] if row[1] == "h" else []
    _packages(found, facts)
    if found:
        facts.put(NODE, "driver.packages_held", tuple(held), found[0][2])


@fmt(
    "rpm",
    "rpm -qa",
    gives=("driver.packages", "driver.package_version", "driver.fabric_manager.version", "driver.imex.version"),
    opens=rf"(?:nvidia-driver|nvidia-fabric-?manager|nvidia-imex|cuda-drivers|kmod-nvidia)[a-z0-9-]*-(?:\d+:)?{_VERSION}-\S+\.(?:x86_64|aarch64|noarch)\s*$",
    continues=r"^[A-Za-z0-9][\w.+-]*-[\w.:~^]+-[\w.~^]+\.(?:x86_64|aarch64|noarch|i686)\s*$",
    command=r"(?:^|[\s/|;&])rpm\s+-q",
)
def rpm(output: Output, facts: FactSink) -> None:
    """Read installed packages of the driver set."""
    found = []
    for number, line in enumerate(output.lines, output.first_line):
        row = _RPM.match(line[:300].strip())
        if row:
            found.append((row[1], row[2], number))
    _packages(found, facts)


def _packages(found: list[tuple[str, str, int]], facts: FactSink) -> None:
    """Record the packages, and the version of the three that must be equal."""
    records = []
    for name, text, line in found:
        version = re.match(rf"(?:\d+:)?({_VERSION})(?=[-+~.]|$)", text)
        if not version:
            continue  # another numbering: container toolkit, metapackages such as nvidia-driver 550-server
        records.append({"name": name, "version": version[1]})
        for pattern, fact in (
            (_MANAGER, "driver.fabric_manager.version"),
            (_IMEX, "driver.imex.version"),
            (_DRIVER, "driver.package_version"),
        ):
            if pattern.match(name):
                facts.put(NODE, fact, version[1], line)
                break
    if records:
        facts.put(NODE, "driver.packages", tuple(records), found[0][2])


@fmt(
    "modinfo",
    "modinfo nvidia",
    gives=("driver.module_installed",),
    opens=r"filename:\s+/lib/modules/\S+/nvidia\.ko",
    continues=r"^(?:\w[\w.-]{0,30}:\s|\s)",
    command=r"(?:^|[\s/|;&])modinfo\s+(?:-F\s*version\s+|--field[ =]version\s+)?nvidia\s*(?:$|\|)",
)
def modinfo(output: Output, facts: FactSink) -> None:
    """Read the version line, or the bare version that ``-F version`` prints."""
    for number, line in enumerate(output.lines, output.first_line):
        found = re.match(rf"(?:version:\s+)?({_VERSION})\s*$", line[:200])
        if found:
            facts.put(NODE, "driver.module_installed", found[1], number)
            return
    text = next((line for line in output.lines if line.strip()), "")
    if text and re.search(r"-F|--field", output.command):
        facts.unparsable(NODE, "driver.module_installed", text, output.first_line)


@fmt(
    "nvidia-version",
    "/proc/driver/nvidia/version",
    gives=("driver.module_version", "driver.module_open"),
    opens=r"NVRM version: NVIDIA UNIX ",
    continues=r"^GCC version:",
    command=r"/proc/driver/nvidia/version\b|/sys/module/nvidia/version\b",
)
def nvidia_version(output: Output, facts: FactSink) -> None:
    """Read the loaded module's version, and whether it is the open one."""
    for number, line in enumerate((text[:300] for text in output.lines), output.first_line):
        if line.startswith("NVRM version:"):
            found = re.search(rf"\s({_VERSION})(?=\s)", line)
            facts.put(NODE, "driver.module_open", "Open Kernel Module" in line, number)
        elif "/sys/module/nvidia/version" in output.command:
            found = re.match(rf"({_VERSION})\s*$", line)
        else:
            continue
        if found:
            facts.put(NODE, "driver.module_version", found[1], number)
        elif line.strip():
            facts.unparsable(NODE, "driver.module_version", line, number)
        return


@fmt(
    "nv-fabricmanager.version",
    "nv-fabricmanager --version",
    gives=("driver.fabric_manager.version",),
    opens=rf"(?i:fabric manager version(?: is)?\s*:)\s*{_VERSION}\s*$",
    continues=r"(?!)",
    command=r"nv-fabricmanager\s+(?:-v|--version)",
)
def fabric_manager_version(output: Output, facts: FactSink) -> None:
    """Read the version from ``Fabric Manager version is : 550.127.05``."""
    _first_version(output, facts, "driver.fabric_manager.version")


@fmt(
    "nvidia-imex.version",
    "nvidia-imex --version",
    gives=("driver.imex.version",),
    opens=rf"(?i:IMEX version(?: is)?\s*:)\s*{_VERSION}\s*$",
    continues=r"(?!)",
    command=r"nvidia-imex(?:-ctl)?\s+(?:-v|--version)",
)
def imex_version(output: Output, facts: FactSink) -> None:
    """Read the version from ``IMEX version is: 570.124.06``."""
    _first_version(output, facts, "driver.imex.version")


def _first_version(output: Output, facts: FactSink, name: str) -> None:
    for number, line in enumerate(output.lines, output.first_line):
        found = re.search(rf"(?<![\d.])({_VERSION})(?![\d.])", line[:300])
        if found:
            facts.put(NODE, name, found[1], number)
            return
