"""The HTML report in a real browser: from the fleet to the evidence, by mouse and by keys; and nothing leaves it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hwcheck.findings import NodeVerdict
from hwcheck.report.html import html
from hwcheck.report.json_run import run_object
from tests.report.browser import CHROMIUM, Browser
from tests.report.runs import PROFILE, STARTED, accepted, lab_verdicts, measured, run_of
from tests.report.samples import faulty, healthy

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian package chromium)"),
]
EVIL = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">{{7*7}}'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests: its start takes longer than they do."""
    made = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield made
    made.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Page of a healthy and a faulty lab node, with measurements, stages and a change."""
    folder = tmp_path_factory.mktemp("fleet")
    run = run_of(*lab_verdicts(folder / "lab"))
    measured(run, "gpu-002")
    accepted(run, "gpu-002")
    return written(folder, run)


def written(folder: Path, run: dict[str, Any]) -> Path:
    """Write a page."""
    page = folder / "report.html"
    page.write_text(html(run), encoding="utf-8")
    return page


def go(browser: Browser, place: str) -> None:
    """Go to another place of the page that is open."""
    browser.value(f"location.hash = {place!r}")
    browser.wait(f"document.body.dataset.view === {place.strip('#').split('/')[0] or 'fleet'!r}")


def test_from_the_matrix_to_the_evidence(browser: Browser, fleet: Path) -> None:
    """Matrix, node, incident, evidence: what a person clicks who wants to know why; and no request leaves the page."""
    browser.open(fleet)
    assert "gpu-001" in browser.text(".matrix")
    assert "fail" in browser.text(".matrix tbody tr:first-child")
    browser.click(".matrix tbody tr:first-child th a")
    browser.wait("document.querySelector('h1').innerText === 'gpu-002'")
    tree = browser.text(".tree")
    for words in ("GPU3", "The GPU does not answer", "findings follow from it", "reset the GPU"):
        assert words in tree
    browser.click(".tree .follows summary")
    browser.wait("document.querySelector('.tree .follows details[open] li').innerText.startsWith('?')")
    browser.click(".tree .lead a")
    browser.wait("document.querySelector('.finding[open] pre')")
    evidence = browser.text(".finding[open] .evidence")
    assert "nvml" in evidence.lower()
    assert "nvmlDeviceGetPciInfo" in evidence
    assert "hwcheck explain gpu.access" in browser.text(".finding[open]")
    assert [fleet.as_uri()] == [url for url in browser.requests() if not url.startswith("about:")]
    assert [] == browser.complaints()


def test_nothing_can_be_loaded_or_sent(browser: Browser, fleet: Path) -> None:
    """Even a program that got into the page could neither fetch nor show a picture nor add a script."""
    browser.open(fleet)
    assert "refused" == browser.value("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
    shown = (
        "new Promise(done => {const i = new Image(); i.onload = () => done('shown'); i.onerror = () => done('refused');"
    )
    pixel = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    assert "refused" == browser.value(f"{shown} i.src = '{pixel}'}})")
    browser.value(
        "(() => {const s = document.createElement('script'); s.textContent = 'hacked = 1'; document.body.append(s)})()"
    )
    assert "undefined" == browser.value("typeof hacked")
    assert any("Content Security Policy" in text for text in browser.complaints())


def test_texts_of_nodes_are_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    """A node's name, message, subject, excerpt and conditions that are markup are read on the page as they stand."""
    node = faulty()
    node.node, node.platform = EVIL, EVIL
    for finding in node.findings:
        finding.message = EVIL
    first = node.findings[0]
    assert first.origin is not None
    first.origin = first.origin._replace(excerpt=EVIL, file=EVIL)
    node.measurements[0].conditions[EVIL] = EVIL
    run = run_of(node, healthy(), who=EVIL)
    accepted(run, EVIL)
    run["changes"][0]["key"] = EVIL
    browser.open(written(tmp_path, run))
    assert EVIL in browser.text(".banner") + browser.text(".matrix")
    browser.click(".matrix tbody tr:first-child th a")
    browser.wait("document.querySelector('h1').innerText.startsWith('</script>')")
    browser.click(".tree .lead a")
    browser.wait("document.querySelector('.finding[open] pre')")
    assert EVIL == browser.text(".finding[open] pre")
    for place in ("#incidents", "#measurements", "#changes"):
        go(browser, place)
        assert EVIL in browser.value("document.querySelector('main').textContent")
    assert [0, "undefined"] == browser.value("[document.images.length, typeof window.hacked]")
    assert [] == browser.complaints()


def test_keys_alone_lead_to_the_evidence(browser: Browser, fleet: Path) -> None:
    """Tab finds the link that skips, / the search, arrows move in the matrix, Enter opens node and finding."""
    browser.open(fleet)
    browser.press("Tab")
    assert "Skip to content" == browser.value("document.activeElement.innerText")
    browser.press("Enter")
    assert "main" == browser.value("document.activeElement.id")
    browser.press("/", "gpu-00")
    assert "gpu-00" == browser.value("document.activeElement.value")
    browser.press("Tab")
    assert "gpu-002" == browser.value("document.activeElement.innerText")
    browser.press("ArrowDown")
    assert "gpu-001" == browser.value("document.activeElement.innerText")
    browser.press("ArrowUp", "ArrowRight", "ArrowRight")
    assert "A" == browser.value("document.activeElement.tagName")
    outline = (
        "getComputedStyle(document.activeElement).outlineStyle + document.querySelectorAll(':focus-visible').length"
    )
    assert "solid1" == browser.value(outline)
    browser.press("Home", "Enter")
    browser.wait("document.querySelector('h1').innerText === 'gpu-002'")
    assert "H1" == browser.value("document.activeElement.tagName")
    browser.value("document.querySelector('.finding summary').focus()")
    browser.press("Enter")
    browser.wait("document.querySelector('.finding[open] .evidence')")


def test_search_and_filters_of_the_fleet(browser: Browser, fleet: Path) -> None:
    """Nodes are found by name and by the words of what is wrong, and kept by verdict; the rest says so."""
    browser.open(fleet)
    rows = "[...document.querySelectorAll('.matrix tbody th a')].map(link => link.innerText).join()"
    assert "gpu-002,gpu-001" == browser.value(rows)
    browser.press("/", "fallen off the bus")
    assert "gpu-002" == browser.value(rows)
    assert "1 of 2 nodes" == browser.text("#fleet .said")
    browser.value(
        "(() => {const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))})()"
    )
    browser.click(".chip.pass")
    assert "gpu-001" == browser.value(rows)
    browser.click(".often .check")
    browser.wait("location.hash.startsWith('#check/')")
    assert "No node fits." == browser.text("#fleet .said")
    browser.value("document.querySelector('.chip.pass').click()")
    assert "gpu-002" == browser.value(rows)


def test_filters_of_a_node(browser: Browser, fleet: Path) -> None:
    """Findings are kept by status, family and words; passed checks are rows with what was seen."""
    browser.open(fleet, "#node/gpu-002/family/pcie")
    shown = "[...document.querySelectorAll('.finding .check')].map(item => item.innerText.split('.')[0])"
    assert {"pcie"} == set(browser.value(shown))
    for status in ("fail", "unknown"):
        browser.click(f"#findings .chip.{status}")
    browser.click("#findings .chip.pass")
    assert [] == browser.value(shown)
    assert "pcie.bar1" in browser.text(".quiet")
    browser.value("document.querySelector('#findings select').value = ''")
    browser.value("document.querySelector('#findings input').focus()")
    browser.press("numa")
    browser.wait("document.querySelector('.finding.warn')")
    assert "sysctl.numa_balancing" in browser.text(".finding.warn")


def test_faults_stand_on_the_picture(browser: Browser, fleet: Path) -> None:
    """A GPU with dead links, an adapter with half its lanes: coloured, marked with a glyph, and linked to findings."""
    browser.open(fleet, "#node/gpu-002")
    names = "[...document.querySelectorAll('.topology .name')].map(item => item.textContent)"
    found = browser.value(names)
    assert {f"GPU {number}" for number in (0, 1, 2, 4, 5, 6, 7)} <= set(found)
    assert {f"mlx5_{number}" for number in range(8)} <= set(found)
    assert 2 == browser.value("document.querySelectorAll('.topology .numa').length")
    assert 8 == browser.value("document.querySelectorAll('.topology .port.up').length")
    assert 4 == browser.value("document.querySelectorAll('.topology .nvswitch').length")
    bad = "[...document.querySelectorAll('.topology .part.fail title')].map(item => item.textContent).join()"
    for words in ("mlx5_", "GPU 2", "0000:5d:00.0"):
        assert words in browser.value(bad)
    assert browser.value("[...document.querySelectorAll('.topology .part.fail')].every(p => p.querySelector('.glyph'))")
    browser.click(".topology a .part.nic.fail rect")
    browser.wait("document.querySelector('.chip.part')?.innerText.startsWith('only mlx5_')")
    assert "pcie.link" in browser.text(".finding")


def test_a_healthy_node_has_no_fault_on_its_picture(browser: Browser, fleet: Path) -> None:
    """Nothing is coloured or linked where nothing is wrong."""
    browser.open(fleet, "#node/gpu-001")
    assert 8 == browser.value("document.querySelectorAll('.topology .part.gpu.pass').length")
    assert 0 == browser.value("document.querySelectorAll('.topology a, .topology .fail').length")


def test_measurements_changes_and_stages(browser: Browser, fleet: Path) -> None:
    """A slow copy stands below its floor, jitter as a line with percentiles; changes, and times of stages."""
    browser.open(fleet, "#node/gpu-002")
    assert "✕ 2,711 GB/s (>= 3,700)" in browser.value("document.querySelector('.bars .value.fail').textContent")
    longs = browser.value("[...document.querySelectorAll('.bars .bar')].map(bar => Number(bar.getAttribute('width')))")
    assert longs[2] < min(longs[:2])
    said = browser.value("document.querySelector('.series').getAttribute('aria-label')")
    assert "hwcheck.os.jitter@numa0: max 63, P99 63, P50 4 us" == said
    assert ["kernel.numa_balancing", "1", "0"] == [
        word for word in browser.text("#changes tbody").split() if word in ("kernel.numa_balancing", "1", "0")
    ]
    assert "60 s" in browser.text("#stages")
    go(browser, "#measurements")
    assert "hwcheck.hbm.copy (GB/s) · 4 results" in browser.text("main")
    assert 1 == browser.value("document.querySelectorAll('.strip a .dot.fail').length")


def test_light_and_dark(browser: Browser, fleet: Path) -> None:
    """The page follows the system, and the switch goes before it."""
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(252, 252, 251)", "rgb(20, 21, 23)"
    browser.open(fleet, prefers_color_scheme="light")
    assert light == browser.value(paper)
    browser.open(fleet, prefers_color_scheme="dark")
    assert dark == browser.value(paper)
    browser.click("#theme")
    assert ("Theme: light", light) == (browser.text("#theme"), browser.value(paper))


CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('.badge, .matrix td a, .message, small, dt, a, .because, .legend, .subject')]
    .filter((e) => e.offsetParent && e.innerText.trim())
    .map((e) => { const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.className + ': ' + e.innerText.slice(0, 30)]; })
    .filter(([ratio]) => ratio < 4.5);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "#node/gpu-002"])
def test_texts_can_be_read(browser: Browser, fleet: Path, scheme: str, place: str) -> None:
    """Text stands out from its ground by 4.5 to 1 at least (WCAG AA), in light and dark."""
    browser.open(fleet, place, prefers_color_scheme=scheme)
    assert [] == browser.value(CONTRAST)


def test_states_are_told_without_colour(browser: Browser, fleet: Path) -> None:
    """Each cell of the matrix and each badge has a glyph and a word."""
    browser.open(fleet)
    words = browser.value("[...document.querySelectorAll('.matrix tbody td')].map(cell => cell.textContent)")
    assert all(re.fullmatch(r"[✕?▲◇✓–] ?[0-9]* ?(fail|unknown|warn|waived|pass|skip)", word) for word in words), words
    glyphs = "[...document.querySelectorAll('.badge')].every(item => /^[✕?▲◇✓–]\\s*\\w+$/.test(item.textContent))"
    assert browser.value(glyphs)


def test_a_narrow_window_needs_no_sideways_scrolling(browser: Browser, fleet: Path) -> None:
    """On a small screen only tables and pictures scroll, in boxes of their own."""
    browser.ask("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
    try:
        for place in ("", "#node/gpu-002", "#incidents", "#measurements"):
            browser.open(fleet, place)
            assert browser.value("document.documentElement.scrollWidth") <= 420, place
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")


def test_paper_shows_everything(browser: Browser, fleet: Path) -> None:
    """Printing opens what is folded, leaves tools away, and is light."""
    browser.open(fleet, "#node/gpu-002", prefers_color_scheme="dark")
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert 0 == browser.value("document.querySelectorAll('main details:not([open])').length")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert "none" == browser.value("getComputedStyle(document.querySelector('.tools')).display")
        assert "light" == browser.value("getComputedStyle(document.documentElement).colorScheme")
        assert len(browser.ask("Page.printToPDF")["data"]) > 10_000
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")


def test_a_run_of_nothing_and_an_address_of_nothing(browser: Browser, fleet: Path, tmp_path: Path) -> None:
    """A run without nodes says so; an address that is not there leads to the first page."""
    browser.open(written(tmp_path, run_of()))
    assert "This run has no nodes." in browser.text("main")
    browser.open(fleet, "#node/%E0%A4%A/finding/x")
    assert "gpu-001" in browser.text(".matrix")
    browser.open(fleet, "#node/gpu-002/finding/99999")
    assert "gpu-002" == browser.text("h1")
    assert [] == browser.complaints()


def test_one_node_is_its_own_first_page(browser: Browser, tmp_path: Path) -> None:
    """A run of one node needs no matrix: it opens on the node."""
    browser.open(written(tmp_path, run_of(faulty())))
    assert "gpu-017" == browser.text("h1")
    assert "Waived until 2030-01-31 by ops@site" not in browser.text("main")
    browser.click(".finding.waived summary")
    browser.wait("document.querySelector('.finding.waived .body').childNodes.length")
    assert "Waived until 2030-01-31 by ops@site: no NTP in the lab network" in browser.text(".finding.waived")


@pytest.mark.slow
def test_a_thousand_nodes_open_and_answer(browser: Browser, tmp_path: Path) -> None:
    """A thousand nodes of a thousand findings: a few MB, open in seconds, and searched without a wait."""
    good, bad = lab_verdicts(tmp_path / "lab")
    many = [_named(bad if number % 10 == 0 else good, f"node-{number:04d}") for number in range(1000)]
    run = run_object(many, "hwcheck 1.0", PROFILE, STARTED)
    assert len(run["findings"]) > 900_000
    start = time.monotonic()
    page = written(tmp_path, run)
    made = time.monotonic() - start
    start = time.monotonic()
    browser.open(page)
    opened = time.monotonic() - start
    browser.press("/", "node-0999")
    browser.wait("document.querySelectorAll('.matrix tbody tr').length === 1")
    assert page.stat().st_size < 8e6
    assert (made, opened) < (60, 30), (made, opened)


def _named(verdict: NodeVerdict, name: str) -> NodeVerdict:
    return NodeVerdict(
        name,
        verdict.platform,
        verdict.confidence,
        verdict.findings,
        verdict.incidents,
        simulated=True,
        about=verdict.about,
    )
