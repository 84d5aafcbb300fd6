"""
What the time daemons are configured to follow at their next start.

Source: chrony.conf(5) with its confdir, sourcedir and include; timesyncd.conf(5) with drop-ins, the last file winning.
Shape: ``time.configured`` and ``time.configured.rtcsync`` of the node.
Units: none.
Missing: files that chrony.conf does not include are left out: a drop-in that nobody reads configures nothing.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason
from hwcheck.parse.flattened import files, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_MAIN = ("/etc/chrony/chrony.conf", "/etc/chrony.conf")
_KINDS = ("server", "pool", "peer", "refclock")
_TIMESYNCD = {"NTP": "server", "FallbackNTP": "fallback"}
_GIVES = ("time.configured", "time.configured.rtcsync")

Files = dict[str, tuple[int, list[str]]]
Record = dict[str, str]


@fmt(
    "time.conf",
    "configuration of the time daemons",
    gives=_GIVES,
    opens=r"==> /(?:etc|run|usr/lib)/(?:chrony|systemd/timesyncd)\S{0,100} <==\s*$",
)
def time_conf(output: Output, facts: FactSink) -> None:
    """Follow chrony.conf through its includes, then timesyncd through its drop-ins."""
    told: Files = {}
    for path, first, lines in files(output):
        if lines and gap(lines[0]) is Reason.DENIED:
            facts.missing(NODE, "time.configured", Reason.DENIED, path, first)
            return
        told[path] = first, lines
    found: list[tuple[int, Record]] = []
    main = next((path for path in _MAIN if path in told), "")
    if main:
        directives = list(_chrony(told, main, set()))
        found += [(line, record) for line, words in directives if (record := _source(words))]
        rtcsync = next((line for line, words in directives if words[0] == "rtcsync"), 0)
        facts.put(NODE, "time.configured.rtcsync", bool(rtcsync), rtcsync or told[main][0])
    found += _timesyncd(told)
    if main or any("timesyncd" in path for path in told):
        first_line = found[0][0] if found else output.first_line
        facts.put(NODE, "time.configured", tuple(record for _, record in found[:100]), first_line)


def _chrony(told: Files, path: str, seen: set[str]) -> list[tuple[int, list[str]]]:
    """Return the directives of a file in order, those of included files in their place."""
    if path in seen or path not in told or len(seen) > 200:
        return []
    seen.add(path)
    directives = []
    first, lines = told[path]
    for number, line in enumerate(lines, first):
        words = line.strip()[:500].split()
        if not words or words[0][0] in "!;#%":
            continue
        if words[0].lower() in ("confdir", "sourcedir", "include"):
            for other in _included(told, [word.lower() if not i else word for i, word in enumerate(words)]):
                directives += _chrony(told, other, seen)
        else:
            directives.append((number, [words[0].lower(), *words[1:]]))
    return directives


def _included(told: Files, words: list[str]) -> list[str]:
    if words[0] == "include":
        return [path for path in told if any(fnmatchcase(path, word) for word in words[1:])]
    ending = ".conf" if words[0] == "confdir" else ".sources"
    chosen: dict[str, str] = {}
    for folder in words[1:]:  # of files with one name, that of the first folder counts
        for path in sorted(told):
            if path.rpartition("/")[0] == folder.rstrip("/") and path.endswith(ending):
                chosen.setdefault(path.rpartition("/")[2], path)
    return [chosen[name] for name in sorted(chosen)]


def _source(words: list[str]) -> Record | None:
    if words[0] not in _KINDS or len(words) < 2:
        return None
    name = " ".join(words[1:3]) if words[0] == "refclock" else words[1]
    return {"daemon": "chrony", "kind": words[0], "name": name[:100]}


def _timesyncd(told: Files) -> list[tuple[int, Record]]:
    """Read the lists; a drop-in adds to the list of the files before it, an empty value clears it."""
    values: dict[str, list[tuple[int, Record]]] = {key: [] for key in _TIMESYNCD}
    paths = [path for path in told if "timesyncd" in path]
    for path in sorted(paths, key=lambda path: (".d/" in path, path.rpartition("/")[2])):
        first, lines = told[path]
        for number, line in enumerate(lines, first):
            key, found, text = (part.strip() for part in line[:2000].partition("="))
            if not found or key not in _TIMESYNCD:
                continue
            if not text:
                values[key].clear()
            for name in text.split():
                values[key].append((number, {"daemon": "timesyncd", "kind": _TIMESYNCD[key], "name": name[:100]}))
    return values["NTP"] + values["FallbackNTP"]
