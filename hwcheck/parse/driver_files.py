"""
Files of the driver set in user space: libraries, IMEX node list and channels.

Source: links of the driver's libraries, whose targets carry the version; /etc/nvidia-imex; NVIDIA IMEX service guide.
Shape: ``driver.libraries``, ``imex.config_*`` and ``imex.channels`` of the node.
Units: none.
Missing: a link whose target carries no driver version is left out.
"""

from __future__ import annotations

import hashlib
import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.file_text import links, sections
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink


@fmt("driver.links", "driver libraries", gives=("driver.libraries",))
def driver_links(output: Output, facts: FactSink) -> None:
    """Read the version from the file that a library's name leads to."""
    records = []
    for path, target, _ in links(output):
        match = re.fullmatch(r"(?:.{0,200}/)?(lib[\w-]{1,60})\.so\.(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)", target)
        if match:
            records.append({"name": match[1], "version": match[2], "path": path[:200]})
    facts.put(NODE, "driver.libraries", tuple(records), output.first_line)


@fmt("imex.files", "/etc/nvidia-imex", gives=("imex.config_nodes", "imex.config_hash"))
def imex_files(output: Output, facts: FactSink) -> None:
    """Read the node list; comments and empty lines do not count, the order does."""
    for section in sections(output):
        if section.name != "nodes_config.cfg":
            continue
        if section.gap is not None:
            facts.put(NODE, "imex.config_nodes", section.gap, section.line)
            return
        nodes = tuple(text.strip()[:100] for _, text in section.lines if text.strip() and text.strip()[0] != "#")
        facts.put(NODE, "imex.config_nodes", nodes[:2000], section.line)
        digest = hashlib.sha256("\n".join(nodes).encode("utf-8", "replace")).hexdigest()
        facts.put(NODE, "imex.config_hash", digest[:16], section.line)


@fmt("imex.channels", "IMEX channels", gives=("imex.channels",))
def imex_channels(output: Output, facts: FactSink) -> None:
    """Read ``/dev/nvidia-caps-imex-channels/channel0 666`` lines."""
    found = [re.fullmatch(r"(/dev/\S{1,100}) ([0-7]{1,4})", text.strip()) for text in output.lines[:4096]]
    records = tuple({"path": match[1], "mode": match[2]} for match in found if match)
    facts.put(NODE, "imex.channels", records, output.first_line)
