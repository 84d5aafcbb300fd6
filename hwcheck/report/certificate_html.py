"""
A certificate to look at and to print: one self-contained page, one sheet of A4.

What does not fit a sheet is counted and left to the JSON, which is what was signed. Every text passes
:func:`html.escape`; the page loads nothing and runs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

GPUS, NICS, BASELINES, WAIVERS, WARNINGS = 12, 12, 12, 4, 4
"""Rows at most."""
LINE, SHORT = 84, 24
"""Characters of a sentence in a table at most, and of a cell that is not broken."""
_MARKS = {
    "iron": "tried on real machines",
    "recorded": "tried on recordings of real machines",
    "lab": "tried on simulated nodes only",
}
_FOOT = "What counts is the signed JSON beside this page; <code>hwcheck verify</code> says whether it is that. Key"
_STYLE = """
:root{color-scheme:light dark;--ink:#1a1d21;--soft:#5b6470;--line:#c9d0d8;--good:#0b6b3a;--bad:#a11212;--paper:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#9aa4b0;--line:#3b434d;--good:#5fd39a;--bad:#ff8f8f;
--paper:#16191d}}
*{box-sizing:border-box}
body{margin:0 auto;padding:10mm;max-width:210mm;background:var(--paper);color:var(--ink);
font:8.5pt/1.32 system-ui,sans-serif}
h1{font-size:18pt;margin:0;overflow-wrap:anywhere}
h2{font-size:9pt;margin:2.6mm 0 .8mm;border-bottom:.3mm solid var(--line)}
.state{color:var(--good);font-weight:700;font-size:11pt;margin:.5mm 0 2mm}
.lab{border:.8mm solid var(--bad);color:var(--bad);font-size:15pt;font-weight:800;
text-align:center;padding:1.5mm;margin:0 0 3mm}
.two{display:grid;grid-template-columns:1fr 1fr;gap:0 6mm}
table{border-collapse:collapse;width:100%}
.short,th{white-space:nowrap}
th{text-align:left;font-weight:600;color:var(--soft)}
th,td{padding:.1mm 1.2mm .1mm 0;vertical-align:top;overflow-wrap:anywhere}
.hash,td{font-family:ui-monospace,monospace;font-size:7pt}
dl{display:grid;align-content:start;grid-template-columns:max-content 1fr;gap:0 2.5mm;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}p{margin:.5mm 0}
footer{margin-top:3mm;border-top:.3mm solid var(--line);padding-top:1mm;color:var(--soft);font-size:7pt}
@media print{:root{--ink:#000;--soft:#444;--line:#999;--good:#0b6b3a;--bad:#a11212;--paper:#fff}
body{padding:0;max-width:none;font-size:8pt}}
@page{size:A4;margin:10mm}
"""


def certificate_html(certificate: dict[str, Any], fingerprint: str) -> str:
    """
    Return the page.

    Args:
        certificate: of schema ``hwcheck.certificate/1``.
        fingerprint: of the key that signed it.
    """
    name = escape(certificate["node"])
    banner = (
        '<p class="lab">SIMULATED NODE of a lab: says nothing about any machine</p>' if certificate["simulated"] else ""
    )
    parts = (
        banner,
        f'<header><h1>{name}</h1><p class="state">{escape(_state(certificate))}</p></header>',
        f'<div class="two">{_list(_who(certificate))}{_list(_what(certificate))}</div>',
        _hardware(certificate["identity"]),
        _measured(certificate["baselines"]),
        _waived(certificate["waivers"]),
        _warned(certificate["warnings"]),
        _rest(certificate),
        f'<footer>{_FOOT} <span class="hash">{escape(fingerprint)}</span> (ed25519).</footer>',
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{name}: certificate of hwcheck</title><style>{_STYLE}</style></head>\n<body>"
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _state(certificate: dict[str, Any]) -> str:
    return f"passed hwcheck {certificate['run']['kind']}; valid until {_day(certificate['valid_until'])}"


def _day(time: str) -> str:
    return f"{time[:10]} {time[11:16]} UTC"


def _who(certificate: dict[str, Any]) -> Iterable[tuple[str, str]]:
    run = certificate["run"]
    yield "certified by", certificate["who"]
    yield "issued", _day(certificate["issued"])
    yield "run", f"{run['name'] or run['kind']}, {_day(run['time'])}{', by ' + run['who'] if run['who'] else ''}"
    yield "judged by", certificate["tool"]
    yield "policy", f"{certificate['policy']['name']}, layers {certificate['policy']['hash']}"
    yield "evidence", certificate["evidence"] or "not kept: no hash"


def _what(certificate: dict[str, Any]) -> Iterable[tuple[str, str]]:
    identity = certificate["identity"]
    yield "machine", identity["product"] or "not told"
    yield "serial", identity.get("serial", "not told (only root may read it)")
    if identity.get("board_serial"):
        yield "board serial", identity["board_serial"]
    yield "platform", f"{certificate['platform']} (by {certificate['confidence']})"
    yield "boot", certificate["boot_id"]
    yield "versions", ", ".join(f"{name} {text}" for name, text in certificate["versions"].items()) or "not told"


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in rows) + "</dl>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], most: int, what: str) -> str:
    """Write rows; those beyond ``most`` are counted."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows[:most])
    more = f"<p>and {len(rows) - most} more {escape(what)}: see the JSON</p>" if len(rows) > most else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _cell(text: str) -> str:
    return f"<td{' class=short' if len(text) <= SHORT else ''}>{escape(text)}</td>"


def _hardware(identity: dict[str, Any]) -> str:
    gpus = [[gpu["id"], _text(gpu, "serial"), _text(gpu, "uuid")[:17], _text(gpu, "vbios")] for gpu in identity["gpus"]]
    nics = [[nic["id"], _text(nic, "guid"), _text(nic, "psid"), _text(nic, "firmware")] for nic in identity["nics"]]
    kinds = Counter(_text(gpu, "name") for gpu in identity["gpus"])
    names = ", ".join(f"{count} × {name}" for name, count in kinds.items()) or "no GPU"
    left = f"<h2>GPUs: {escape(names)}</h2>" + _table(("address", "serial", "UUID", "VBIOS"), gpus, GPUS, "GPUs")
    right = f"<h2>Adapters: {len(nics)}</h2>" + _table(("name", "GUID", "PSID", "firmware"), nics, NICS, "adapters")
    return f'<div class="two"><section>{left}</section><section>{right}</section></div>'


def _text(part: dict[str, Any], key: str) -> str:
    return str(part.get(key, "")) or "not told"


def _measured(baselines: list[dict[str, Any]]) -> str:
    """Fold the figures of one test: eight GPUs are one line."""
    if not baselines:
        return "<h2>Measured</h2><p>Nothing was measured: this certificate tells of states and settings only.</p>"
    folded: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in baselines:
        folded.setdefault((row["measurement"], row["unit"]), []).append(row)
    rows = []
    for (name, unit), group in folded.items():
        values = [row["value"] for row in group]
        low, high = min(values), max(values)
        shown = f"{low:.5g}" if low == high else f"{low:.5g} to {high:.5g}"
        judged = ", ".join(f"{count} {status}" for status, count in Counter(row["judged"] for row in group).items())
        bound = next((str(row["bound"]) for row in group if row["bound"] is not None), "none")
        source = next((row["source"] for row in group if row["source"]), "")
        rows.append([name, f"{shown} {unit}", judged, bound, _cut(source, 60)])
    return "<h2>Measured</h2>" + _table(("test", "value", "judged", "bound", "bound from"), rows, BASELINES, "tests")


def _waived(waivers: list[dict[str, Any]]) -> str:
    if not waivers:
        return ""
    rows = [
        [
            f"{row['check']} {row['subject']}",
            row["status"],
            _cut(f"{row['owner']}: {row['reason']}", LINE),
            row["expires"],
        ]
        for row in waivers
    ]
    title = f"<h2>Accepted by the site, not right: {len(waivers)}</h2>"
    return title + _table(("finding", "status", "who and why", "until"), rows, WAIVERS, "waived findings")


def _warned(warnings: list[dict[str, Any]]) -> str:
    """List warnings, those of one check as one line."""
    if not warnings:
        return ""
    folded: dict[str, list[dict[str, Any]]] = {}
    for row in warnings:
        folded.setdefault(row["check"], []).append(row)
    rows = [[check, str(len(group)), _cut(group[0]["message"], LINE)] for check, group in folded.items()]
    title = f"<h2>Warnings: {len(warnings)}</h2>"
    return title + _table(("check", "times", "the first of them"), rows, WARNINGS, "checks that warn")


def _rest(certificate: dict[str, Any]) -> str:
    coverage, seen = certificate["coverage"], certificate["seen"]
    counts = ", ".join(f"{count} {status}" for status, count in coverage["counts"].items())
    untold = ", ".join(f"{row['source']} ({row['why']})" for row in coverage["untold"])
    settings = Counter(row["check"].partition(".")[0] for row in certificate["settings"])
    families = ", ".join(f"{name} {count}" for name, count in sorted(settings.items()))
    marks = Counter((seen["sources"] | seen["mechanisms"]).values())
    tried = ", ".join(f"{marks[mark]} {words}" for mark, words in _MARKS.items() if marks[mark])
    rows = (
        ("settings right", f"{len(certificate['settings'])}: {families}" if settings else "none was judged"),
        ("answers", counts),
        ("not told", _cut(untold) or "nothing"),
        ("not judged", _cut(f"{len(coverage['skipped'])} checks that do not apply here or were not asked")),
        ("ways to read and set", tried or "not told"),
    )
    return f"<h2>What was looked at</h2>{_list(rows)}"


def _cut(text: str, most: int = 260) -> str:
    return text if len(text) <= most else text[: most - 4] + " ..."
