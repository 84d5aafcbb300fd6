"""
Limits of locked memory in all the places that set one: processes, unit files, limits.d.

Source: /proc/PID/limits; systemd.exec(5) and systemd-system.conf(5); limits.conf(5) of Linux-PAM.
Shape: ``service.memlock`` per unit, running (the main process) and next boot (unit file, its drop-ins and the manager's
    default); ``limits.login_memlock`` of the node. A limit is ``unlimited`` or a number of KiB as text.
Units: /proc and systemd count bytes (systemd with K, M, G, T of 1024), limits.d KiB.
Missing: a unit without a limit of its own, where the manager has none either, has no next boot facet: the default is
    built into systemd.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Missing, Reason, Subject
from hwcheck.parse.file_text import Section, by_folder, inside, sections
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_UNLIMITED = ("infinity", "unlimited", "-1", str((1 << 64) - 1))
_BYTES = re.compile(r"(\d{1,20})([KMGTPE]?)(?:i?B)?")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_PROC = re.compile(r"^Max (locked memory|open files)\s+(\S{1,30})\s")
_HEADING = re.compile(r"^([\w@:.\\-]{1,100}\.service) /proc/(\d{1,10})/limits$")
_UNIT_FILE = re.compile(r"^(\S{1,100})/([\w@:\\-]{1,100}\.service)$")
_DROP_IN = re.compile(r"^(\S{1,100})/(service|[\w@:\\-]{1,100}\.service)\.d/([^/]{1,200}\.conf)$")
_LIMIT = re.compile(r"^\s*(\*)\s+(soft|hard|-)\s+memlock\s+(\S{1,30})")
_UNIT_FOLDERS = tuple(
    f"{root}/{tail}"
    for root, tail in (
        ("/etc/systemd", "system.control"), ("/run/systemd", "system.control"), ("/etc/systemd", "system"),
        ("/run/systemd", "system"), ("/usr/local/lib/systemd", "system"), ("/usr/lib/systemd", "system"),
        ("/lib/systemd", "system"),
    )
)  # fmt: skip
_MANAGER_FOLDERS = tuple(
    f"{root}/systemd/system.conf.d" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)
LAUNCHERS = {
    "slurmd.service": "scheduler", "pbs.service": "scheduler", "containerd.service": "container",
    "docker.service": "container", "crio.service": "container", "kubelet.service": "container",
    "k3s.service": "container",
}  # fmt: skip
"""Units that start other people's programs: a batch scheduler's jobs inherit its limit as it is."""


def kibibytes(text: str) -> str:
    """
    Read a limit in bytes, as systemd or /proc has it; of ``soft:hard`` the soft one counts.

    Raises:
        ValueError: no limit.
    """
    word = text.partition(":")[0].strip()
    if word in _UNLIMITED:
        return "unlimited"
    match = _BYTES.fullmatch(word)
    if not match:
        raise ValueError(f"no limit: {text[:40]}")
    value: int = int(match[1]) << 10 * _POWERS[match[2]]
    return str(value >> 10)


@fmt(
    "proc.limits",
    "/proc/PID/limits of services",
    gives=("service.memlock", "service.launcher", "service.nofile"),
    opens=r"==> \S{1,200} /proc/\d{1,10}/limits <==",
    continues=r"==> \S{1,200} /proc/\d{1,10}/limits <==|Limit\s+Soft Limit|Max [a-z]",
)
def proc_limits(output: Output, facts: FactSink) -> None:
    """Read the limits under each ``==> UNIT /proc/PID/limits <==``."""
    for section in sections(output):
        heading = _HEADING.match(section.path)
        if not heading:
            continue
        unit = Subject("unit", heading[1])
        if heading[1] in LAUNCHERS:
            facts.put(unit, "service.launcher", LAUNCHERS[heading[1]], section.line)
        for number, text in section.lines:
            match = _PROC.match(text[:200])
            if match and match[1] == "locked memory":
                facts.read(unit, "service.memlock", kibibytes, match[2], number)
            elif match:
                facts.put(unit, "service.nofile", match[2], number)


@fmt(
    "limits.files",
    "limits.d",
    gives=("limits.login_memlock",),
    opens=r"==> /etc/security/limits\.(?:conf|d/\S{1,200}) <==",
)
def limits_files(output: Output, facts: FactSink) -> None:
    """Find what every user gets: the last line for ``*``; limits.conf first, then limits.d by name."""
    found = sections(output)
    files = [one for one in found if one.path == "/etc/security/limits.conf"]
    files += by_folder(found, ("/etc/security/limits.d",))
    limits: dict[str, tuple[str, Section, int]] = {}
    for section in files:
        for number, text in section.lines:
            match = _LIMIT.match(text[:200])
            if match:
                for kind in ("soft", "hard") if match[2] == "-" else (match[2],):
                    limits[kind] = match[3], section, number
    chosen = limits.get("soft") or limits.get("hard")
    if chosen is None:
        return
    text, section, line = chosen
    with inside(facts, section):
        facts.read(NODE, "limits.login_memlock", _login, text, line)


def _login(text: str) -> str:
    if text in _UNLIMITED:
        return "unlimited"
    if not re.fullmatch(r"\d{1,20}", text):
        raise ValueError(f"no limit: {text}")
    return text


@fmt("systemd.files", "unit files", gives=(), opens=r"==> (?:/etc|/run|/usr/lib|/lib)/systemd/system\.conf <==")
def systemd_files(output: Output, facts: FactSink) -> None:
    """Work out LimitMEMLOCK of each unit: its file, then drop-ins by name; the manager's default where neither says."""
    found = sections(output)
    default = None
    manager = [section for section in found if section.path == "/etc/systemd/system.conf"]
    for section in manager + by_folder(found, _MANAGER_FOLDERS):
        default = _assigned(section, "DefaultLimitMEMLOCK") or default
    unit_files = by_folder(found, _UNIT_FOLDERS)
    drop_ins = [(match, one) for match, one in ((_DROP_IN.match(one.path), one) for one in found) if match]
    for unit_file in unit_files:
        name = unit_file.name
        if not _UNIT_FILE.match(unit_file.path):
            continue
        chosen = default
        for section in (unit_file, *_drop_ins_of(name, drop_ins)):
            value = _assigned(section, "LimitMEMLOCK")
            if value is not None:
                chosen = value if value[0] else default
        if chosen is not None:
            _put_next(Subject("unit", name), chosen, facts)


def _drop_ins_of(name: str, drop_ins: list[tuple[re.Match[str], Section]]) -> list[Section]:
    """List a unit's drop-ins in the order in which systemd reads them: by name, an earlier folder masks a later one."""
    chosen: dict[str, tuple[int, Section]] = {}
    for match, section in drop_ins:
        if match[2] not in (name, "service") or match[1] not in _UNIT_FOLDERS:
            continue
        rank = 2 * _UNIT_FOLDERS.index(match[1]) + (match[2] == "service")
        if match[3] not in chosen or rank < chosen[match[3]][0]:
            chosen[match[3]] = rank, section
    return [chosen[key][1] for key in sorted(chosen)]


def _assigned(section: Section, key: str) -> tuple[str, Section, int] | None:
    """Return the last assignment of a key; one without a value takes earlier ones back."""
    found = None
    for number, text in section.lines:
        name, sign, value = text.strip()[:400].partition("=")
        if sign and name.strip() == key:
            found = value.strip(), section, number
    return found


def _put_next(unit: Subject, chosen: tuple[str, Section, int], facts: FactSink) -> None:
    text, section, line = chosen
    with inside(facts, section):
        try:
            facts.put(unit, "service.memlock", kibibytes(text), line, Facet.NEXT_BOOT)
        except ValueError as error:
            facts.put(unit, "service.memlock", Missing(Reason.UNPARSABLE, str(error)), line, Facet.NEXT_BOOT)
