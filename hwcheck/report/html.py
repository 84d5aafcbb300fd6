"""
One HTML file of a run: fleet, nodes, incidents, evidence, topology and measurements, without a network.

The page is a fixed frame, style and program, and a block of data (:mod:`hwcheck.report.html_data`) that the program
shows. Data is never markup: the program makes elements and sets their text. A Content-Security-Policy lets exactly this
style and this program run, by their hashes, and nothing be loaded from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from hwcheck.fleet import FLEET
from hwcheck.report.html_data import pack
from hwcheck.report.sheet import visible

SCRIPTS = (
    "dom.js", "data.js", "incidents.js", "findings.js", "topology.js", "plots.js", "records.js", "node.js", "matrix.js",
    "fleet.js", "main.js",
)  # fmt: skip
"""Parts of the program in the order they are put together: each uses only what stands before it."""
_WORDS = {"pass": "Pass", "fail": "Fail", "unknown": "Unknown"}
_SAID = {
    "pass": "No check fails, and everything asked was answered.",
    "fail": "At least one check fails.",
    "unknown": "No check fails, but something that was asked could not be told.",
}
_SHARES = (("fail", "fail"), ("unknown", "could not be told"), ("pass", "pass"))


def html(run: dict[str, Any]) -> str:
    """
    Write a run as one HTML page.

    Args:
        run: of schema ``hwcheck.run/1``.

    Returns:
        the page; ASCII in the data, UTF-8 elsewhere.
    """
    style, program = _asset("style.css"), "\n".join(map(_asset, SCRIPTS))
    program = f'(() => {{\n"use strict";\n{program}}})();\n'
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(program)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"{_WORDS[run['verdict']]}: {visible(run.get('run') or 'run of ' + run['started'])}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)} · hwcheck</title>
<style>{style}</style>
</head>
<body>
<a class="skip-link" href="#main">Skip to content</a>
<header class="masthead"><a class="brand" href="#">hwcheck</a><nav id="tabs" aria-label="Views"></nav>
<button id="theme" type="button">Theme: auto</button></header>
{_banner(run)}
<main id="main" tabindex="-1"><noscript><p>This report needs JavaScript, which it carries with it. The same run can be \
read with <code>hwcheck report RUN.json</code>.</p></noscript></main>
<footer>{escape(visible(run["tool"]))} · one file, nothing is loaded from anywhere</footer>
<script type="application/json" id="data">{_embedded(pack(run))}</script>
<script>{program}</script>
</body>
</html>
"""


def _banner(run: dict[str, Any]) -> str:
    """Say the verdict and what was run; here and not in the program, so that it can be read without one."""
    verdict, profile = run["verdict"], run["profile"]
    facts = [
        ("Run", run.get("run", "")),
        ("Kind", run.get("kind", "check")),
        ("Started", _moment(run["started"])),
        ("Ended", _moment(run.get("ended", ""))),
        ("By", run.get("who", "")),
        ("Profile", f"{profile['name']} · {profile['hash']}"),
    ]
    rows = "".join(f"<div><dt>{name}</dt><dd>{escape(visible(text))}</dd></div>" for name, text in facts if text)
    count = sum(node["simulated"] for node in run["nodes"])
    times = f" × {count}" if count > 1 else ""
    lab = f'<span class="lab" title="simulated nodes prove nothing about iron">lab{times}</span>'
    said = _SAID[verdict] + _shares([node for node in run["nodes"] if node["platform"] != FLEET])
    return f"""<section class="banner {verdict}" aria-label="Verdict">
<p class="verdict"><b>{_WORDS[verdict]}</b>{lab if count else ""}<span>{said}</span></p>
<dl>{rows}</dl></section>"""


def _shares(nodes: list[dict[str, Any]]) -> str:
    """Say how many nodes have which verdict, where there are several."""
    counts = [(sum(node["verdict"] == verdict for node in nodes), word) for verdict, word in _SHARES]
    told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    return f" Of {len(nodes):,} nodes {told}." if len(nodes) > 1 else ""


def _moment(text: str) -> str:
    """Write an ISO time for reading: 2026-12-01 16:05:01 +00:00."""
    day, _, time = text.partition("T")
    return f"{day} {time[:8]} {time[8:].lstrip('.0123456789')}".strip()


def _embedded(data: Any) -> str:
    r"""Write JSON that no text of a node can end: < is \u003c, and the rest is ASCII."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return resources.files("hwcheck.report").joinpath("html_assets", name).read_text(encoding="utf-8")
