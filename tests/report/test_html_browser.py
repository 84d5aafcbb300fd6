"""The HTML report in a real browser: from the fleet to the evidence, by mouse and by keys; and nothing leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.runs import accepted, run_of, written
from tests.report.samples import faulty, healthy

pytestmark = pytest.mark.browser
EVIL = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">{{7*7}}'


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
    browser.wait("document.querySelector('#fleet .said').innerText === 'No node fits.'")
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
    assert 4 == browser.value("document.querySelectorAll('.bars .floor').length")
    assert ["390", "390"] == browser.value(
        "[...document.querySelectorAll('.pairs td.skip')].map(cell => cell.innerText)"
    )
    said = browser.value("document.querySelector('.series').getAttribute('aria-label')")
    assert "hwcheck.os.jitter@numa0: max 63, P99.9 62.5, P99 9, P50 4 us" == said
    assert ["kernel.numa_balancing", "1", "0"] == [
        word for word in browser.text("#changes tbody").split() if word in ("kernel.numa_balancing", "1", "0")
    ]
    assert "60 s" in browser.text("#stages")
    go(browser, "#measurements")
    assert "hwcheck.hbm.copy (GB/s) · 4 results" in browser.text("main")
    assert 1 == browser.value("document.querySelectorAll('.strip a .dot.fail').length")


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
