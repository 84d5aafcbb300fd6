"""
What stands on top of an RMA bundle: the part, what is wrong with it, and what the vendor will ask for; text and page.

Source of the hints: NVIDIA's pages on its RMA process and its field diagnostic (docs.nvidia.com/deploy/rma-process,
/hw-field-diag), DCGM's page on reporting problems, Google Cloud's page on bug reports of Blackwell GPUs (MFT).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hwcheck.report.sheet import visible

_BAD = ("fail", "unknown", "warn")
_BLACKWELL = ("b200", "b300", "gb200", "gb300")
_STYLE = """
:root{color-scheme:light dark}
body{font:10pt/1.4 system-ui,sans-serif;max-width:60em;margin:0 auto;padding:1.5em}
h1{font-size:16pt}h2{font-size:11pt;border-bottom:1px solid;margin-top:1.4em}
li,p{overflow-wrap:anywhere}.lab{color:#b3261e;font-weight:bold}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """
    What is asked to be replaced.

    Attributes:
        run: JSON of a run over this one node.
        part: record of the GPU (``id``, ``serial``, ``uuid`` ... as far as known); empty for the node as a whole.
        names: what findings call the part.
        serial_from: where the serial number of the part is from, when the evidence itself does not tell it.
        history: sentences about earlier runs, the oldest spell first; None where no earlier run is kept.
        evidence: how and when the evidence was taken, one sentence.
    """

    run: dict[str, Any]
    part: dict[str, Any]
    names: frozenset[str]
    serial_from: str
    history: Sequence[str] | None
    evidence: str

    @property
    def node(self) -> dict[str, Any]:
        """The node's record."""
        found: dict[str, Any] = self.run["nodes"][0]
        return found

    @property
    def title(self) -> str:
        """One line."""
        name = self.node["name"] or "without a name"
        return f"RMA: GPU {self.part['id']} of node {name}" if self.part else f"RMA: node {name}"


def rma_text(case: Case) -> str:
    """Write the summary as plain text."""
    parts = [case.title, "=" * len(case.title)]
    for heading, lines in _sections(case):
        parts += ["", heading, "-" * len(heading), *(f"- {visible(line)}" for line in lines)]
    return "".join(f"{visible(part)}\n" for part in parts)


def rma_html(case: Case) -> str:
    """Write the summary as one self-contained page."""
    banner = '<p class="lab">SIMULATED NODE of a lab</p>' if case.node["simulated"] else ""
    body = "".join(
        f"<h2>{escape(heading)}</h2><ul>{''.join(f'<li>{escape(visible(line))}</li>' for line in lines)}</ul>"
        for heading, lines in _sections(case)
    )
    title = escape(visible(case.title))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{banner}{body}</body></html>\n"
    )


def _sections(case: Case) -> Iterator[tuple[str, list[str]]]:
    yield "What it is", list(_identity(case))
    yield "What is wrong", list(_wrong(case)) or ["nothing that this evidence shows"]
    yield "Beside it on this node", list(_others(case)) or ["nothing"]
    if case.history is None:
        yield "Earlier", ["no earlier run of this node is kept"]
    else:
        yield "Earlier", list(case.history) or ["earlier runs had nothing against it"]
    yield "What the vendor asks for", list(_asked(case))
    yield (
        "In this bundle",
        [
            "evidence/: what the node said, as it came, with a manifest; hwcheck check --evidence reads the bundle",
            "run.json: the judgement, schema hwcheck.run/1; history.json: earlier runs, where there are any",
        ],
    )


def _identity(case: Case) -> Iterator[str]:
    about, part = case.node["about"], case.part
    if case.node["simulated"]:
        yield "a SIMULATED node of a lab: there is nothing to replace"
    if part:
        yield f"GPU at {part['id']}: {part.get('name', 'model not told')}, index {part.get('index', 'not told')}"
        source = f" ({case.serial_from})" if case.serial_from else ""
        yield f"serial {part.get('serial', 'not told')}{source}, UUID {part.get('uuid', 'not told')}"
        yield f"VBIOS {part.get('vbios', 'not told')}"
    yield f"machine {about.get('product') or 'not told'}, serial {about.get('serial', 'not told')}"
    if about.get("board_serial"):
        yield f"main board serial {about['board_serial']}"
    if not part:
        for gpu in about.get("gpus", ()):
            yield f"GPU at {gpu['id']}: serial {gpu.get('serial', 'not told')}"
    yield ", ".join(f"{name} {text}" for name, text in about.get("versions", {}).items()) or "versions not told"
    yield case.evidence


def _mine(case: Case, finding: dict[str, Any]) -> bool:
    return not case.part or finding["subject"] in case.names


def _wrong(case: Case) -> Iterator[str]:
    """Tell incidents of the part first, each with its lead, then what else is not right with it."""
    findings = case.run["findings"]
    told: set[int] = set()
    for incident in case.run["incidents"]:
        indices = [incident["lead"], *incident["follows"]]
        if any(_mine(case, findings[index]) for index in indices):
            told.update(indices)
            yield _said(findings[incident["lead"]])
            yield f"  {len(incident['follows'])} more follow from it: {incident['text']}"
            for index in sorted(incident["follows"], key=lambda one: _BAD.index(findings[one]["status"]))[:12]:
                yield f"  {_said(findings[index], short=True)}"
    rest = [f for n, f in enumerate(findings) if n not in told and f["status"] in _BAD and _mine(case, f)]
    for finding in sorted(rest, key=lambda one: _BAD.index(one["status"]))[:60]:
        yield _said(finding)


def _others(case: Case) -> Iterator[str]:
    if not case.part:
        return
    others = [f for f in case.run["findings"] if f["status"] in ("fail", "unknown") and not _mine(case, f)]
    for finding in others[:20]:
        yield _said(finding, short=True)
    if len(others) > 20:
        yield f"and {len(others) - 20} more: see run.json"


def _said(finding: dict[str, Any], *, short: bool = False) -> str:
    on = f" on {finding['subject']}" if finding["subject"] else ""
    text = f"{finding['status']} {finding['check']}{on}: {finding['message']}"
    if short:
        return text
    evidence, remedy = finding["evidence"], finding["remedy"]
    if evidence and evidence["excerpt"]:
        text += f" [{evidence['file']}:{evidence['line'] or ''} {evidence['excerpt']}]"
    return f"{text} To do: {remedy['text']}" if remedy else text


def _asked(case: Case) -> Iterator[str]:
    """Say what NVIDIA and server vendors ask for beside this bundle."""
    yield (
        "nvidia-bug-report.log.gz: run nvidia-bug-report.sh as root on the node now, before any reset or reboot; if it "
        "hangs, keep what it wrote, power-cycle, run it once more and send both"
    )
    if any(word in case.node["platform"] for word in _BLACKWELL):
        yield "on Blackwell that report tells the state of links only where NVIDIA's firmware tools (MFT) are installed"
    yield (
        "the log of NVIDIA's field diagnostic, from NVIDIA or the server's vendor, and how it ended: PASS, FAIL or "
        "RETEST (its own pre-check failed: mend that and run it again)"
    )
    yield "the output of dcgmi diag -r 3, where CUDA still starts, with that of dcgmi -v"
    yield "that causes outside of the part are ruled out: power and its cables, seating, cooling, driver and firmware"
    yield "whether the fault moves with the part: another slot, or another part in this slot"
