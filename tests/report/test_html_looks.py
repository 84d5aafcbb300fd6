"""How the HTML report looks in a real browser: light and dark, contrast, small windows, paper, and a large fleet."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from hwcheck.findings import NodeVerdict
from hwcheck.report.json_run import run_object
from tests.report.browser import Browser
from tests.report.runs import PROFILE, STARTED, lab_verdicts, written

pytestmark = pytest.mark.browser


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
