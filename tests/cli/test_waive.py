"""``hwcheck waive``: an entry that the waiver file's own reader takes."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from hwcheck.cli.main import main
from hwcheck.facts import Subject
from hwcheck.findings import Finding, Status
from hwcheck.waivers import load_waivers

TODAY = dt.datetime.now().astimezone().date()


def waive(path: Path, *words: str) -> int:
    """Run the verb."""
    return main(["waive", *words, "--file", str(path), "--reason", "cold: aisle #4"])


def test_a_finding_is_waived_for_a_while(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the nodes and the part that are named; entries that were there stay as they are."""
    path = tmp_path / "waivers.yaml"
    path.write_text("# ours\n- {check: pcie.width, owner: a, reason: b, expires: 2099-01-01}", encoding="utf-8")
    words = ["thermal.tlimit", "--until", "30d", "--owner", "ops", "--subject", "0000:18:00.0", "-w", "gpu-[1-2]"]
    assert waive(path, *words) == 0
    assert "thermal.tlimit is waived on gpu-[1-2] until" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ours\n- {check: pcie.width")
    waiver = load_waivers(text, "x", TODAY)[-1]
    assert (waiver.expires - TODAY).days == 30
    assert waiver.reason == "cold: aisle #4"
    finding = Finding("thermal.tlimit", Subject("gpu", "0000:18:00.0"), Status.FAIL, "hot")
    assert waiver.covers(finding, "gpu-2")
    assert not waiver.covers(finding, "gpu-3")


@pytest.mark.parametrize("words", [
    ["thermal.tlimt", "--until", "30d"], ["nofamily.*", "--until", "30d"], ["thermal.tlimit", "--until", "soon"],
    ["thermal.tlimit", "--until", "2020-01-01"], ["thermal.tlimit", "--until", "9999d"],
    ["thermal.tlimit", "--until", "30d", "--owner", "a\nb"], ["thermal.tlimit", "--until", "30d", "-w", "gpu-[1-"],
])  # fmt: skip
def test_what_makes_no_waiver_is_refused(tmp_path: Path, words: list[str]) -> None:
    """And no file is made."""
    assert waive(tmp_path / "waivers.yaml", *words) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_wrong_already_is_left_alone(tmp_path: Path) -> None:
    """Its own fault is said, with the line."""
    path = tmp_path / "waivers.yaml"
    path.write_text("- {check: pcie.width}\n", encoding="utf-8")
    assert waive(path, "thermal.*", "--until", "30d") == 2
    assert path.read_text(encoding="utf-8") == "- {check: pcie.width}\n"
