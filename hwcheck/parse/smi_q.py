"""
``nvidia-smi -q`` as text: whole, one GPU, a ``-d`` section, or a piece cut out with grep.

Source: ``nvidia-smi -q`` / ``-a``; seen of drivers 510 to 590.
Shape: facts of :mod:`hwcheck.parse.gpu_table` per GPU; driver and CUDA version and counts of the node. A piece without
a ``GPU 0000...`` line belongs to an unnamed GPU (subject ``""``, or ``block 2`` for the second such piece). Where a
paste lost its indentation, places are told by the names of the sections (:mod:`hwcheck.parse.smi_sections`).
Units: as printed (MiB, W, MHz, C, us).
Missing: ``N/A`` and "deprecated" absent · ``Insufficient Permissions`` denied · ``Unknown Error``, ``ERR!``, ``GPU
requires reset`` failed. Fewer GPUs than "Attached GPUs" says, or a full block that ends before "Processes": the
listing is cut off, and what it does not hold is unknown. So is what a section gives that every driver prints and that a
full block lacks: it was left out, or is in words that are not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Missing, Reason, Subject, gpu_at
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_block import Q_INDEX, GpuBlock
from hwcheck.parse.gpu_table import GIVES, NODE_FIELDS
from hwcheck.parse.gpu_values import gap
from hwcheck.parse.sink import FactSink
from hwcheck.parse.smi_sections import FLAT_LINE, flat_place, lacking

_GPU = re.compile(r"^\s{0,2}GPU\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_PAIR = re.compile(r"^(\s*)([A-Za-z][^:]{0,60}?)\s*:(?:\s+(.*))?$")
_HEADING = re.compile(r"^(\s*)([A-Za-z][A-Za-z0-9 .&/()-]{0,60}?)\s*$")
_NODE_KEYS = {row[0]: name for name, row in NODE_FIELDS.items()}
_FLAT_LINES = 20
"""Pairs and headings at one indent that are no accident: an indented block has three or more depths by then."""
_UNITS = {"MiB", "W", "MHz", "C", "bank(s)", "us", "%"}
_NEEDS_UNIT = re.compile(r"(Memory Usage/|Power Readings/.*(Draw|Limit)|Clocks/(?!Auto)|Temperature/.*Temp|Histogram/)")
_STATES = r"(Not Started|In Progress|Completed|Not Supported)"
_FRAGMENT = rf"\s*(State\s*:\s+{_STATES}\s*$|CliqueId\s*:|ClusterUUID\s*:)"
_LONE = {"State": "Fabric/State", "Status": "Fabric/Status", "CliqueId": "Fabric/CliqueId"} | {
    "ClusterUUID": "Fabric/ClusterUUID"
}


@dataclass(slots=True)
class _Listing:
    """The state of the walk: blocks so far, and the path of headings at the current line."""

    blocks: list[tuple[Subject, GpuBlock]] = field(default_factory=list)
    path: list[tuple[int, str]] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    attached: int | None = None
    flat: bool = False
    sliced: bool = False

    def begin(self, subject: Subject) -> None:
        self.blocks.append((subject, GpuBlock(Q_INDEX)))
        self.path = []

    def anonymous(self, place: str) -> GpuBlock:
        """Return the unnamed block that a piece belongs to; a place seen before begins the next one."""
        if not self.blocks or (_unnamed(self.blocks[-1][0]) and place in self.blocks[-1][1].places):
            name = f"block {len(self.blocks) + 1}" if self.blocks else ""
            self.begin(Subject("gpu", name))
        return self.blocks[-1][1]

    def place(self, indent: int, key: str, *, heading: bool = False) -> str:
        if self.flat and self.blocks:
            names = [name for _, name in self.path]
            depth, place = flat_place(names, key, heading=heading)
            self.path = self.path[:depth]
            return place
        while self.path and self.path[-1][0] >= indent:
            self.path.pop()
        return "/".join([name for _, name in self.path] + [key])


@fmt(
    "nvidia-smi.q",
    "nvidia-smi -q",
    gives=GIVES,
    opens=rf"=+NVSMI LOG=+|\s{{0,2}}GPU [0-9A-Fa-f]{{8}}:[0-9A-Fa-f]{{2}}:[0-9A-Fa-f]{{2}}\.0\s*$|Attached GPUs\s+:"
    rf"|\s{{2,8}}(Fabric|Remapped Rows|ECC Errors|Clocks (Event|Throttle) Reasons|GPU Power Readings)\s*$"
    rf"|\s{{2,8}}Product Name\s+: |{_FRAGMENT}",
    continues=rf"\s*$|\s{{2,}}[A-Za-z]|\s?(?:{FLAT_LINE})|=+NVSMI LOG=+"
    rf"|(Timestamp|Driver Version|CUDA Version|Attached GPUs)\s+:"
    rf"|GPU [0-9A-Fa-f]{{8}}:|Status\s*:|\.\.\.\s*$|{_FRAGMENT}",
    command=r"nvidia-smi\s+(-[qa]|--query)(\s|$)(?!.*(-x|--xml))",
    rank=40,
)
def parse_smi_q(output: Output, facts: FactSink) -> None:
    """Read the listing line by line, then put each block's facts, then say whether it is whole."""
    listing = _Listing(flat=_lost_indent(output.lines))
    for number, line in enumerate(output.lines, output.first_line):
        _line(listing, line, number, facts)
    named = [subject for subject, _ in listing.blocks if not _unnamed(subject)]
    whole = listing.attached is not None and len(named) == listing.attached
    distinct = len(set(named)) == len(named)
    for ordinal, (subject, block) in enumerate(listing.blocks):
        block.put(facts, subject)
        if whole and distinct and not _unnamed(subject):
            facts.put(subject, "gpu.index", ordinal)  # all GPUs in nvidia-smi's own order, by PCI address
    if named:
        facts.put(NODE, "gpu.listed_count", len(set(named)))
    _say_if_cut(listing, facts)


def _line(listing: _Listing, line: str, number: int, facts: FactSink) -> None:
    match = _GPU.match(line)
    if match:
        listing.begin(gpu_at(match[1]))
        return
    match = _PAIR.match(line)
    if match:
        _pair(listing, len(match[1]), match[2], (match[3] or "").strip(), number, facts)
        return
    match = _HEADING.match(line)
    if match and (match[1] or listing.flat):
        indent, key = len(match[1]), match[2]
        if key == "Processes" and listing.blocks:
            listing.ended.add(len(listing.blocks) - 1)
        listing.sliced |= key.startswith("MIG Device")
        listing.place(indent, key, heading=True)
        listing.path.append((indent, key))


def _lost_indent(lines: list[str]) -> bool:
    """Tell whether all lines of whole GPU blocks stand at one indent."""
    indents: set[int] = set()
    count, whole, inside = 0, False, False
    for line in lines:
        if _GPU.match(line):
            inside = True
            continue
        match = (_PAIR.match(line) or _HEADING.match(line)) if inside else None
        if match:
            indents.add(len(match[1]))
            count += 1
            whole |= match[2] == "Product Name"
            if len(indents) > 1:
                return False
    return whole and count > _FLAT_LINES


def _pair(listing: _Listing, indent: int, key: str, text: str, number: int, facts: FactSink) -> None:
    if indent == 0 and key in _NODE_KEYS and not listing.blocks:
        _node_field(listing, key, text, number, facts)
        return
    place = listing.place(indent, key)
    if key in _LONE and not listing.path and not listing.flat:
        place = _LONE[key]  # a piece typed or cut without its heading
    block = listing.blocks[-1][1] if listing.blocks and not _unnamed(listing.blocks[-1][0]) else None
    if key == "Processes" and block is not None:
        listing.ended.add(len(listing.blocks) - 1)
    if block is None and place not in Q_INDEX:
        listing.path.append((indent, key))
        return
    if place in Q_INDEX or block is not None:
        (block or listing.anonymous(place)).feed(place, _with_unit(place, text), number)
    listing.path.append((indent, key))  # "HW Slowdown : Active" is a value and the parent of its kinds


def _with_unit(place: str, text: str) -> str:
    """Refuse a number that lost its unit: ``8155`` is a cut off ``81559 MiB``, not 8155."""
    if _NEEDS_UNIT.search(place) and text and text[-1].isdigit() and gap(text) is None:
        return f"cut off: {text}"
    return text


def _node_field(listing: _Listing, key: str, text: str, number: int, facts: FactSink) -> None:
    name = _NODE_KEYS[key]
    if name == "gpu.attached_count":
        if not text.isascii() or not text.isdigit() or len(text) > 4:
            facts.unparsable(NODE, name, text, number)
            return
        listing.attached = int(text)
        facts.put(NODE, name, listing.attached, number)
    elif text and gap(text) is None and text.isprintable():
        facts.put(NODE, name, text[:60], number)
    else:
        facts.put(NODE, name, gap(text) or Missing(Reason.UNPARSABLE, "not understood"), number)


def _unnamed(subject: Subject) -> bool:
    return not subject.id or subject.id.startswith("block ")


def _say_if_cut(listing: _Listing, facts: FactSink) -> None:
    if listing.flat and listing.sliced:
        facts.cut_off("the indentation is lost, and the values of MIG devices cannot be told from the GPU's", GIVES)
    named = [index for index, (subject, _) in enumerate(listing.blocks) if not _unnamed(subject)]
    blank = [index for index in named if listing.blocks[index][1].places.isdisjoint(Q_INDEX)]
    if blank:
        about = [listing.blocks[index][0] for index in blank]
        facts.cut_off(f"nothing that stands under {about[0]} is understood", GIVES, about)
    full = [index for index in named if "Product Name" in listing.blocks[index][1].places]
    cut = [index for index in full if index not in listing.ended]
    if cut:
        about = [listing.blocks[index][0] for index in cut]
        facts.cut_off(f"the listing of {about[-1]} ends before its end", GIVES, about)
    elif full and listing.attached is not None and len(named) < listing.attached and len(full) > 1:
        facts.cut_off(f"{listing.attached} GPUs are attached, only {len(named)} are listed", GIVES, ())
    _say_if_lacking([listing.blocks[index] for index in full if index in listing.ended], facts)


def _say_if_lacking(whole: list[tuple[Subject, GpuBlock]], facts: FactSink) -> None:
    """Say once what whole blocks lack, however many GPUs lack it."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Subject]] = {}
    for subject, block in whole:
        groups.setdefault(lacking(block.places), []).append(subject)
    for (sections, gives), gpus in groups.items():
        if sections:
            of = gpus[0] if len(gpus) == 1 else f"{len(gpus)} GPUs"
            facts.cut_off(f"nothing under {', '.join(sections)} of {of} is there or understood", gives, gpus)
