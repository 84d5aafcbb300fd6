"""
``nvidia-smi -q -x``: XML of schema v11, v12 and v13.

Source: ``nvidia-smi -q -x``; DTD nvsmi_device_v11 to v13, drivers 510 to 590.
Shape: facts of :mod:`hwcheck.parse.gpu_table` per GPU; driver and CUDA version and counts of the node.
Units: as printed (MiB, W, MHz, C, us).
Missing: as in the text form; a whole section may read ``N/A`` (``remapped_rows`` under MIG). A document that ends early
is cut off: the GPUs read so far count, what is not there is unknown.

Read with expat as a stream: an entity declaration is refused (the real documents have none), so no bomb can grow, and
every value keeps its line.
"""

from __future__ import annotations

from xml.parsers import expat

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import NODE, Missing, Reason
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_block import XML_INDEX, GpuBlock
from hwcheck.parse.gpu_table import GIVES, NODE_FIELDS
from hwcheck.parse.gpu_values import gap
from hwcheck.parse.nvidia_errors import nvidia_errors
from hwcheck.parse.sink import FactSink

_NODE_TAGS = {row[1]: name for name, row in NODE_FIELDS.items()}
_SKIPPED = {"supported_clocks", "mig_devices", "accounted_processes"}
_MAX_DEPTH = 30


class _Document:
    """What the expat handlers gather."""

    def __init__(self, facts: FactSink) -> None:
        self.facts = facts
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data
        self.parser.EntityDeclHandler = self.refuse
        self.parser.buffer_text = True
        self.first = facts.output.first_line
        self.path: list[str] = []
        self.texts: list[str] = []
        self.leaf = False
        self.skipping = 0
        self.block: GpuBlock | None = None
        self.address = ""
        self.gpus = 0
        self.attached: int | None = None
        self.processes: list[dict[str, str]] = []
        self.told_processes = False

    def refuse(self, *_: object) -> None:
        raise ParseError("an entity declaration in nvidia-smi XML: refused")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.skipping or tag in _SKIPPED:
            self.skipping += 1
            return
        if tag == "gpu" and self.block is None:
            self.block, self.address, self.path = GpuBlock(XML_INDEX), attributes.get("id", ""), []
            self.processes, self.told_processes = [], False
            return
        if len(self.path) > _MAX_DEPTH:
            raise ParseError("nested too deeply")
        self.path.append(tag)
        self.texts, self.leaf = [], True
        if tag == "process_info":
            self.processes.append({})

    def data(self, text: str) -> None:
        if not self.skipping and self.leaf:
            self.texts.append(text)

    def end(self, tag: str) -> None:
        if self.skipping:
            self.skipping -= 1
            return
        line = self.first + self.parser.CurrentLineNumber - 1
        if tag == "gpu" and self.block is not None and not self.path:
            self.put_gpu(line)
            return
        if tag == "processes":
            self.told_processes = True
        if self.leaf:
            self.value("".join(self.texts).strip(), line)
        self.leaf = False
        if self.path:
            self.path.pop()

    def value(self, text: str, line: int) -> None:
        if self.block is None:
            self.node_value(self.path[-1] if self.path else "", text, line)
            return
        place = "/".join(self.path)
        if place in XML_INDEX:
            self.block.feed(place, text, line)
        elif place.startswith("processes/process_info/") and self.processes:
            self.processes[-1][self.path[-1]] = text[:120]
        elif len(self.path) == 1 and (missing := gap(text)) is not None and text:
            self.block.fail(f"{place}/", missing, line)

    def node_value(self, tag: str, text: str, line: int) -> None:
        name = _NODE_TAGS.get(tag)
        if name is None:
            return
        if name != "gpu.attached_count":
            good = text and gap(text) is None and text.isprintable()
            self.facts.put(NODE, name, text[:60] if good else Missing(Reason.UNPARSABLE, "not understood"), line)
        elif text.isascii() and text.isdigit() and len(text) < 5:
            self.attached = int(text)
            self.facts.put(NODE, name, self.attached, line)
        else:
            self.facts.unparsable(NODE, name, text, line)

    def put_gpu(self, line: int) -> None:
        block, self.block = self.block, None
        assert block is not None  # noqa: S101 - narrows the type; the caller has looked
        subject = block.subject(self.address)
        if subject is None:
            return
        block.put(self.facts, subject)
        self.facts.put(subject, "gpu.index", self.gpus)
        if self.told_processes:
            rows = self.processes
            named = tuple(
                {"pid": p.get("pid", ""), "type": p.get("type", ""), "name": p.get("process_name", "")} for p in rows
            )
            self.facts.put(subject, "gpu.processes", named, line)
        self.gpus += 1


@fmt(
    "nvidia-smi.xml",
    "nvidia-smi -q -x",
    gives=GIVES,
    opens=r"\s*<\?xml [^>]*>|\s*<!DOCTYPE nvidia_smi_log|\s*<nvidia_smi_log",
    continues=r"",
    ends=r".*</nvidia_smi_log>",
    command=r"nvidia-smi\b.*(\s-x\b|--xml-format)",
    rank=10,
)
def parse_smi_xml(output: Output, facts: FactSink) -> None:
    """Feed the document to expat; an end that comes too early keeps what was read."""
    document = _Document(facts)
    text = output.text.lstrip()
    document.first += output.text[: len(output.text) - len(text)].count("\n")
    try:
        document.parser.Parse(text, True)  # noqa: FBT003 - expat takes isfinal by position only
    except expat.ExpatError as error:
        if document.gpus == 0 and document.attached is None and document.block is None:
            nvidia_errors(output, facts)  # live: what nvidia-smi says in place of the document
            raise ParseError(f"no nvidia-smi XML: {expat.errors.messages.get(error.code, error)}") from error
        broken = document.block.subject(document.address) if document.block is not None else None
        where = document.first + error.lineno - 1
        # GPUs read before the break keep their answers; those after it are not even named
        facts.cut_off(f"the document ends early or breaks at line {where}", GIVES, [broken] if broken else ())
        if document.block is not None:
            document.put_gpu(0)
    if document.gpus:
        facts.put(NODE, "gpu.listed_count", document.gpus)
    elif document.attached is None:
        raise ParseError("no GPU and no count in the document")
