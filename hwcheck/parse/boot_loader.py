"""
What the boot loader starts next: the kernel and its arguments.

Source: GRUB 2 configuration as grub-mkconfig of Debian, Ubuntu, RHEL and SUSE writes it; the Boot Loader
    Specification (entries of RHEL 8 and later, systemd-boot); grubenv.
Shape: files under ``==> PATH <==``, and under ``==> kernels <==`` the kernel files. Facet next boot of
    ``kernel.cmdline``, ``kernel.arg.*`` and ``kernel.release``. Arguments are a list: ``pci=`` and ``console=`` may
    stand several times.
Units: none.
Missing: a configuration that only root may read is DENIED; one whose default cannot be worked out (a variable that is
    set by a script) is UNPARSABLE. A machine without either, as one booted over the network, has no such facts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Missing, Reason
from hwcheck.parse.file_text import Section, inside, sections
from hwcheck.parse.format import fmt
from hwcheck.parse.kernel_arguments import put_arguments, split
from hwcheck.parse.sink import FactSink

_ENTRY = re.compile(r"^\s*(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\"|(\S+))(.*)$")
_ENTRY_ID = re.compile(r"(?:--id(?:=|\s+)|\$\{?menuentry_id_option\}?\s+)['\"]?([^'\"\s]+)")
_LINUX = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)\s*(.*)$")
_SET = re.compile(r"^\s*set\s+(default|kernelopts|tuned_params)=(.*)$")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_ASSIGN = re.compile(r"^\s*(?:export\s+)?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=(\"[^\"]*\"|'[^']*'|\S*)\s*(?:#.*)?$")
_VERSION = re.compile(r"(?:vmlinu[xz]|linux|kernel)-(\d[\w.+~-]{2,100}?)(?:\.efi|\.img)?$")


_ENTRIES = 500


@dataclass(slots=True)
class Entry:
    """An entry of the menu: title, id, path in the menu (numbers), kernel file and arguments, and where they stand."""

    title: str
    id: str
    number: tuple[int, ...]
    section: Section
    submenu: bool = False
    kernel: str = ""
    options: str = ""
    line: int = 0
    above: list[Entry] = field(default_factory=list)
    version: str = ""


@fmt(
    "boot.loader",
    "boot loader configuration",
    # not kernel.cmdline: what is given of it is of the next boot, and a gap here says nothing of the running kernel
    gives=("kernel.loader", "kernel.kernels", "kernel.cmdline.wanted"),
    opens=r"==> (?:/boot/\S{1,200}|/etc/default/grub(?:\.d/\S{1,100})?|/efi/loader/\S{1,200}) <==",
)
def boot_loader(output: Output, facts: FactSink) -> None:
    """Find the default entry; put its kernel and arguments as what the next boot has."""
    found = sections(output)
    env = _environment(found)
    menu = next((entries for entries in map(_menu, _of(found, "grub.cfg")) if entries), [])
    blocks = _blocks(found)
    uses_blocks = bool(blocks) and (not menu or any(_has_blscfg(section) for section in _of(found, "grub.cfg")))
    entries = blocks if uses_blocks else [entry for entry in menu if not entry.submenu]
    if not entries:
        _nothing(found, facts)
        return
    chosen = _default_block(blocks, env, found) if uses_blocks else _default(menu, env, found)
    grub = bool(_of(found, "grub.cfg"))
    name = ("BLS entries of GRUB" if grub else "systemd-boot") if uses_blocks else "grub.cfg"
    facts.put(NODE, "kernel.loader", name, entries[0].line)
    releases = dict.fromkeys(filter(None, (_release(entry) for entry in entries)))
    facts.put(NODE, "kernel.kernels", tuple(releases)[:50], entries[0].line)
    if chosen is None or not chosen.kernel:
        _untold(Missing(Reason.UNPARSABLE, "which entry is the default is not understood"), facts)
        return
    _put(chosen, _expanded(chosen.options, env, found), facts)
    if not uses_blocks:
        _wanted(found, facts)


def _put(chosen: Entry, options: str, facts: FactSink) -> None:
    with inside(facts, chosen.section):
        arguments = (f"BOOT_IMAGE={chosen.kernel}", *split(options))
        put_arguments(facts, arguments, chosen.line, Facet.NEXT_BOOT)
        release = _release(chosen)
        if release:
            facts.put(NODE, "kernel.release", release, chosen.line, Facet.NEXT_BOOT)


def _nothing(found: list[Section], facts: FactSink) -> None:
    paths = [section.path for section in found if section.gap is not None]
    denied = [path for path in paths if path.startswith(("/boot", "/efi"))]
    if denied:
        _untold(Missing(Reason.DENIED, f"{denied[0]} is for root only"), facts)


def _untold(missing: Missing, facts: FactSink) -> None:
    for name in ("kernel.cmdline", "kernel.release"):
        facts.put(NODE, name, missing, 0, Facet.NEXT_BOOT)


def _of(found: list[Section], name: str) -> list[Section]:
    return [section for section in found if section.name == name and section.gap is None]


def _environment(found: list[Section]) -> dict[str, str]:
    """Read the saved variables; the first block that there is, as a stub in the EFI partition is often an old copy."""
    env: dict[str, str] = {}
    for section in _of(found, "grubenv"):
        for _, text in section.lines:
            key, sign, value = text.partition("=")
            if sign and not text.startswith("#"):
                env.setdefault(key.strip(), value)
    return env


def _menu(section: Section) -> list[Entry]:
    """Read menu entries with their place in the menu; braces tell where a submenu ends."""
    entries: list[Entry] = []
    open_menus: list[Entry] = []
    counts = [0]
    current: Entry | None = None
    for number, text in section.lines:
        head = _ENTRY.match(text[:1000]) if len(entries) < _ENTRIES else None
        if head:
            title = next(part for part in head.groups()[1:4] if part is not None)
            known = _ENTRY_ID.search(head[5])
            place = (*(menu.number[-1] for menu in open_menus), counts[-1])
            current = Entry(title, known[1] if known else title, place, section, head[1] == "submenu", line=number)
            current.above = list(open_menus)
            entries.append(current)
            counts[-1] += 1
            if current.submenu and len(open_menus) < 8:
                open_menus.append(current)
                counts.append(0)
        elif current is not None and (linux := _LINUX.match(text)) and not current.kernel:
            current.kernel, current.options, current.line = linux[1], linux[2], number
        elif text.strip() == "}":
            if current is not None and not current.submenu:
                current = None
            elif open_menus:
                open_menus.pop()
                counts.pop()
                current = None
    return entries


def _default(menu: list[Entry], env: dict[str, str], found: list[Section]) -> Entry | None:
    """Follow GRUB: next_entry, else the default that is set; one that is not in the menu means the first entry."""
    wanted = env.get("next_entry", "").strip()
    if not wanted:
        texts = [text for section in _of(found, "grub.cfg") for text in _assigned(section, "default")]
        text = next((text for text in reversed(texts) if "next_entry" not in text and "prev_" not in text), "0")
        wanted = env.get("saved_entry", "") if "saved_entry" in text else text
        if "$" in wanted:
            return None
    return _follow(menu, wanted.strip() or "0") or _follow(menu, "0")


def _follow(menu: list[Entry], path: str) -> Entry | None:
    level: list[Entry] = [entry for entry in menu if not entry.above]
    chosen: Entry | None = None
    for part in path.split(">")[:8]:
        chosen = next((entry for entry in level if part in (entry.id, entry.title)), None)
        if chosen is None and part.isdecimal():
            chosen = next((entry for entry in level if entry.number[-1] == int(part[:6])), None)
        if chosen is None:
            return None
        level = [entry for entry in menu if entry.above and entry.above[-1] is chosen]
    if chosen is not None and chosen.submenu:
        return next((entry for entry in level if not entry.submenu), None)
    return chosen


def _assigned(section: Section, name: str) -> list[str]:
    matches = [_SET.match(text) for _, text in section.lines]
    return [match[2].strip().strip("\"'") for match in matches if match and match[1] == name]


def _has_blscfg(section: Section) -> bool:
    return any(text.strip() in ("blscfg", "insmod blscfg") for _, text in section.lines)


def _blocks(found: list[Section]) -> list[Entry]:
    """Read entries of the Boot Loader Specification, the newest version first, as the loaders sort them."""
    entries = []
    for section in found:
        if "/loader/entries/" not in section.path or not section.path.endswith(".conf"):
            continue
        entry = Entry("", section.name.removesuffix(".conf"), (), section, line=section.line)
        for number, text in section.lines:
            key, _, value = text.strip().partition(" ")
            value = value.strip()
            if key == "title":
                entry.title = value
            elif key == "version":
                entry.version = value
            elif key == "linux":
                entry.kernel = value
            elif key == "options":
                entry.options, entry.line = f"{entry.options} {value}".strip(), number
        if entry.kernel:
            entries.append(entry)
    entries.sort(key=lambda entry: _order(entry.version or entry.id), reverse=True)
    return [one for one in entries if "rescue" not in one.id] + [one for one in entries if "rescue" in one.id]


def _order(version: str) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|[a-z]+", version[:200])
    return [(int(part[:12]), "") if part.isdecimal() else (-1, part) for part in parts]


def _default_block(blocks: list[Entry], env: dict[str, str], found: list[Section]) -> Entry | None:
    wanted = env.get("next_entry", "").strip() or env.get("saved_entry", "").strip()
    pattern = next(
        (
            text.strip().partition(" ")[2].strip()
            for section in _of(found, "loader.conf")
            for _, text in section.lines
            if text.strip().startswith("default ")
        ),
        "",
    )
    if wanted.isdecimal():
        return blocks[int(wanted[:6])] if int(wanted[:6]) < len(blocks) else blocks[0]
    for entry in blocks:
        if wanted and wanted in (entry.id, entry.title):
            return entry
        if not wanted and pattern and fnmatchcase(f"{entry.id}.conf", pattern.removesuffix(".conf") + ".conf"):
            return entry
    return blocks[0]


def _expanded(options: str, env: dict[str, str], found: list[Section]) -> str:
    """Put in the variables of grubenv and grub.cfg; one that neither sets is empty, as in GRUB."""
    known = dict(env)
    for section in _of(found, "grub.cfg"):
        for name in ("kernelopts", "tuned_params"):
            for value in _assigned(section, name):
                known.setdefault(name, value)
    return _VARIABLE.sub(lambda match: known.get(match[1], "")[:4096], options[:8192])[:16384]


def _release(entry: Entry) -> str:
    match = _VERSION.search(entry.kernel)
    return entry.version or (match[1] if match else "")


def _wanted(found: list[Section], facts: FactSink) -> None:
    """Put what /etc/default/grub and its drop-ins ask for; a value that a command makes is not understood."""
    values: dict[str, str] = {}
    files = [
        section for section in found if f"{section.path}/".startswith(("/etc/default/grub/", "/etc/default/grub.d/"))
    ]
    for section in files:
        for _, text in section.lines:
            match = _ASSIGN.match(text)
            if not match:
                continue
            value = match[2][1:-1] if match[2][:1] in ("'", '"') else match[2]
            value = re.sub(r"\$\{?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)\}?", lambda name: values.get(name[1], ""), value)
            if "$" in value or "`" in value:
                return
            values[match[1]] = value[:8192]
    if values:
        words = split(values.get("GRUB_CMDLINE_LINUX", "")) + split(values.get("GRUB_CMDLINE_LINUX_DEFAULT", ""))
        facts.put(NODE, "kernel.cmdline.wanted", words, files[0].line)
