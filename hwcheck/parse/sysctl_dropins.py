"""
Kernel parameters that the next boot sets: all drop-ins of sysctl.d.

Source: sysctl.d(5) and systemd-sysctl of systemd 245 to 258; ``tail -n +1 /etc/sysctl.d/*.conf ...``.
Shape: files under ``==> PATH <==``. Facet next boot of the ``sysctl.*`` facts; ``sysctl.boot_values`` of all. Files
    count sorted by name whatever their folder; a name in /etc masks the same in /run, /usr/local/lib and /usr/lib; an
    empty file masks as well. The last assignment wins; one by full name wins over patterns; ``-key`` alone takes a key
    out of patterns. Separators may be ``.`` or ``/``, the first one in a line decides.
Units: as the kernel has them.
Missing: /etc/sysctl.conf is read only where a drop-in links to it (Debian, Ubuntu and RHEL ship 99-sysctl.conf): what
    stands there alone is ``sysctl.unread``. A parameter that no file sets has no next boot facet: the kernel's default
    or another tool decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Reason, whole
from hwcheck.facts.names.sysctl import KEYS
from hwcheck.parse.file_text import Section, by_folder, inside, sections
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

FOLDERS = tuple(f"{root}/sysctl.d" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
_LEGACY = "/etc/sysctl.conf"
_KEYS_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Setting:
    """One assignment: where it stands and what it sets."""

    key: str
    value: str
    section: Section
    line: int


@fmt(
    "sysctl.dropins",
    "sysctl.d",
    gives=("sysctl.boot_values", "sysctl.overridden", "sysctl.unread"),
    opens=r"==> (?:/etc|/run|/usr/local/lib|/usr/lib|/lib)/sysctl\.(?:d/\S{1,200}\.)?conf <==",
    # What a file sets is not what runs: without this, its lines would be taken for the output of sysctl.
    continues=r"==> \S{1,300} <==|\s*(?:[#;].*)?$|-?[A-Za-z][\w./*:@-]{1,200}\s*(?:=|$)",
)
def sysctl_dropins(output: Output, facts: FactSink) -> None:
    """Work out which file sets what, as systemd-sysctl would."""
    found = sections(output)
    if not found:
        facts.cut_off("no file is named", ("sysctl.boot_values", "sysctl.overridden", "sysctl.unread"))
        return
    winners: dict[str, Setting] = {}
    excluded: set[str] = set()
    overridden = []
    for section in by_folder(found, FOLDERS):
        if section.gap is not None:
            facts.cut_off(f"{section.path} could not be read", ("sysctl.boot_values",))
        for setting in _settings(section, excluded):
            before = winners.get(setting.key)
            if before is not None and before.value.split() != setting.value.split():
                overridden.append(_lost(setting, before))
            if before is not None or len(winners) < _KEYS_KEPT:
                winners.pop(setting.key, None)  # the order of patterns is that of their last assignment
                winners[setting.key] = setting
    values = {key: {"value": one.value, "file": one.section.path} for key, one in winners.items()}
    facts.put(NODE, "sysctl.boot_values", values, output.first_line)
    facts.put(NODE, "sysctl.overridden", tuple(overridden[:100]), output.first_line)
    _unread(found, winners, facts)
    for key, (name, index) in KEYS.items():
        _next_boot(key, name, index, _winner(key, winners, excluded), facts)


def _settings(section: Section, excluded: set[str]) -> list[Setting]:
    settings = []
    for number, text in section.lines:
        line = text.strip()
        if not line or line[0] in "#;!":
            continue
        key, sign, value = line.partition("=")
        key = spelled(key.strip().removeprefix("-").strip())
        if sign:
            settings.append(Setting(key, value.strip(), section, number))
        elif line.startswith("-"):
            excluded.add(key)
    return settings


def spelled(key: str) -> str:
    """Spell a parameter as ``sysctl`` prints it: ``net/ipv4/conf/eth0.1/mtu`` → ``net.ipv4.conf.eth0/1.mtu``."""
    first = next((char for char in key if char in "./"), ".")
    return key.translate({ord("/"): ".", ord("."): "/"}) if first == "/" else key


def _winner(key: str, winners: dict[str, Setting], excluded: set[str]) -> Setting | None:
    if key in winners:
        return winners[key]
    if key in excluded:
        return None
    patterns = [one for one in winners.values() if any(char in one.key for char in "*?[") and _matches(key, one.key)]
    return patterns[-1] if patterns else None


def _matches(key: str, pattern: str) -> bool:
    """Match component by component: ``*`` stands for one name of a path."""
    parts, wanted = key.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _next_boot(key: str, name: str, index: int, setting: Setting | None, facts: FactSink) -> None:
    if setting is None:
        return
    with inside(facts, setting.section):
        try:
            facts.put(NODE, name, whole(setting.value.split()[index]), setting.line, Facet.NEXT_BOOT)
        except (ValueError, IndexError):
            detail = f"not understood: {key} = {setting.value[:40]}"
            facts.missing(NODE, name, Reason.UNPARSABLE, detail, setting.line, Facet.NEXT_BOOT)


def _lost(setting: Setting, before: Setting) -> dict[str, str]:
    return {
        "key": setting.key, "value": setting.value, "file": setting.section.path,
        "lost_value": before.value, "lost_file": before.section.path,
    }  # fmt: skip


def _unread(found: list[Section], winners: dict[str, Setting], facts: FactSink) -> None:
    """Put what stands only in /etc/sysctl.conf; where a drop-in links to it, everything in it is among the winners."""
    legacy = next((section for section in found if section.path == _LEGACY), None)
    if legacy is None:
        return
    lost = [one for one in _settings(legacy, set()) if one.key not in winners]
    facts.put(NODE, "sysctl.unread", tuple({"key": one.key, "value": one.value} for one in lost[:100]), legacy.line)
