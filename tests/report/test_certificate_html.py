"""The certificate as a page."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hwcheck.report.certificate_html import certificate_html
from tests.certificate.runs import GPUS, WAIVED, certificate, finding, run

FINGERPRINT = "SHA256:abc"


class Page(HTMLParser):
    """Collects tags, attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.words.append(data)


def page(made: dict[str, Any]) -> str:
    """Return the words of a certificate's page."""
    return " ".join(Page(certificate_html(made, FINGERPRINT)).words)


def test_it_says_who_certified_what_until_when() -> None:
    """Node, machine, serials, figures, who, when and the key stand on the page."""
    words = page(certificate())
    for part in ("gpu-1", "PowerEdge XE9680", "7H2K9X3", "1650000000000", "MT_0000000838", "3890.5 GB/s", ">= 3600",
                 "ana@control", "2030-07-30 11:30 UTC", FINGERPRINT, "ab" * 32):  # fmt: skip
        assert part in words


def test_a_simulated_node_is_said_in_large() -> None:
    """Only the page of a lab node begins with a banner."""
    record = run()
    assert "SIMULATED" not in page(certificate(record))
    record["nodes"][0]["simulated"] = True
    assert "SIMULATED NODE" in page(certificate(record))


def test_it_loads_nothing_and_runs_nothing() -> None:
    """There is no script, link, image or handler on it, and its policy forbids them."""
    text = certificate_html(certificate(), FINGERPRINT)
    seen = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(seen.tags)
    assert not [name for name in seen.attributes if name.startswith("on") or name in ("src", "href")]
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_texts_are_escaped() -> None:
    """A name that is markup is shown as it is."""
    record = run(finding("pcie.acs", "<img src=x>", "fail", waived={**WAIVED, "reason": "</td><script>1</script>"}))
    record["nodes"][0]["about"]["product"] = "<b>&amp;"
    text = certificate_html(certificate(record), "<i>")
    assert not re.search(r"<(?:img|script|b|i)\b", text)
    assert "<b>&amp;" in page(certificate(record))


def test_many_rows_are_counted() -> None:
    """What would not fit one sheet is counted: 40 waivers, 72 adapters, 9 of 10 warnings of one check."""
    many = [finding("pcie.acs", str(n), "fail", waived=WAIVED) for n in range(40)]
    record = run(*many, *(finding("power.limit", gpu, "warn") for gpu in GPUS))
    nics = record["nodes"][0]["about"]["nics"]
    record["nodes"][0]["about"]["nics"] = [{**nics[0], "id": f"mlx5_{n}"} for n in range(72)]
    words = page(certificate(record))
    assert "and 36 more waived findings" in words
    assert "and 60 more adapters" in words
    assert "Warnings: 2" in words
    assert "mlx5_12" not in words


def test_nothing_measured_is_said() -> None:
    """A certificate without a figure says that it has none."""
    record = run()
    record["measurements"] = []
    assert "Nothing was measured" in page(certificate(record))


@pytest.mark.slow
def test_it_prints_on_one_sheet(tmp_path: Path) -> None:
    """In a real browser the page of a node with more of everything than it shows is one sheet of A4."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser")
    long = "a reason that takes some room, as people write them who want to be understood later " * 3
    many = [finding("pcie.acs", f"0000:{n:02x}:00.0", "fail", waived={**WAIVED, "reason": long}) for n in range(9)]
    record = run(*many, *(finding(f"power.limit_{n}", GPUS[0], "warn", message=long) for n in range(9)))
    about, (measured,) = record["nodes"][0]["about"], record["measurements"]
    about["gpus"] = [{**about["gpus"][0], "id": f"0000:{n:02x}:00.0", "vbios": "96.00.CF.00.02"} for n in range(20)]
    about["nics"] = [{**about["nics"][0], "id": f"mlx5_{n}"} for n in range(20)]
    about["sources"] |= {f"source.{n}": "absent" for n in range(60)}
    record["measurements"] = [{**measured, "name": f"hwcheck.test.{n}"} for n in range(20)]
    record["nodes"][0]["simulated"] = True
    (tmp_path / "page.html").write_text(certificate_html(certificate(record), FINGERPRINT))
    place = tmp_path / "page.pdf"
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    printing = ["--no-pdf-header-footer", f"--print-to-pdf={place}", f"file://{tmp_path / 'page.html'}"]
    subprocess.run([browser, *words, *printing], check=True, capture_output=True, timeout=120)
    assert re.findall(rb"/Count (\d+)", place.read_bytes()) == [b"1"]
