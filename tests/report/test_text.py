"""The report for a terminal."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from hwcheck.facts import NODE, NOT_COLLECTED, Missing, Reason, Subject
from hwcheck.findings import Finding, NodeVerdict, Status, Urgency
from hwcheck.report import text as text_report
from hwcheck.report.fold import fold, fold_gaps, name_subjects, why_skipped
from hwcheck.report.sheet import Sheet, Terminal, visible
from hwcheck.report.text import print_run, render_node, render_run
from tests.report.samples import console, faulty, healthy, hostile, text_of

GOLDEN = Path(__file__).parent / "golden"


def rendered(verdicts: list[NodeVerdict], width: int = 80, *, strict: bool = False) -> str:
    """Render a run as plain text."""
    target = console(width)
    render_run(verdicts, target, strict=strict)
    return text_of(target)


@pytest.mark.parametrize("width", [80, 140])
def test_fault_looks_as_reviewed(width: int) -> None:
    """A faulty node is reported as in the reviewed page, at both widths."""
    assert (GOLDEN / f"faulty-{width}.txt").read_text() == rendered([faulty()], width)


def test_fleet_looks_as_reviewed() -> None:
    """Of several nodes the healthy ones take few lines, and a summary names the others."""
    other = dataclasses.replace(faulty(), node="gpu-019", simulated=False)
    assert (GOLDEN / "fleet-80.txt").read_text() == rendered([faulty(), healthy(), other])


@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_line_is_too_wide_or_ends_in_blanks(width: int) -> None:
    """Every line fits the terminal and can be copied without a tail of blanks."""
    for line in rendered([faulty(), healthy(), hostile()], width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


def test_colour_says_nothing_that_words_do_not() -> None:
    """Without its colours the report for a terminal is the plain one."""
    target = Terminal(
        file=io.StringIO(), width=80, markup=False, highlight=False, emoji=False, force_terminal=True,
        color_system="standard", _environ={"TERM": "xterm"},
    )  # fmt: skip
    render_node(faulty(), target)
    coloured = text_of(target)
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == rendered([faulty()])


def test_hostile_text_is_spelled_out() -> None:
    """What a node sends is neither obeyed by the terminal nor read as markup."""
    text = rendered([hostile()])
    assert "[bold]x[/bold]" in text
    assert "\\x1b[31mred" in text
    assert ":smile:" in text
    assert "\\u202egnp.exe" in text
    assert all(char.isprintable() or char == "\n" for char in text)


@given(st.text())
def test_visible_never_lets_a_control_character_pass(text: str) -> None:
    """Any text becomes one printable line that UTF-8 can say."""
    assert visible(text).isprintable()
    visible(text).encode()


def test_same_answer_on_eight_gpus_is_one_entry() -> None:
    """Eight GPUs without persistence mode fill one entry that lists them."""
    text = rendered([faulty()])
    assert 1 == text.count("Persistence mode is no")
    assert "8 GPUs: 0000:18:00.0, 0000:2a:00.0" in text


def test_entries_come_by_urgency_and_leads_first() -> None:
    """What must be done now stands before what can wait; the lead before its follow-ups."""
    text = rendered([faulty()])
    found = text[text.index("\nFailed\n") :]
    assert found.index("xid.79") < found.index("sxid.20034") < found.index("hbm.total")


def test_silent_source_is_one_gap() -> None:
    """Checks that one silent source leaves open are told with it; others tell themselves."""
    gaps, own = fold_gaps(finding for finding in faulty().findings if finding.status is Status.UNKNOWN)
    assert [("nvidia-smi --query-gpu (CSV)", "timed out", "no answer in 30 s", {"power.limit": 8})] == [
        (gap.source, gap.how, gap.detail, gap.checks) for gap in gaps
    ]
    assert ["baseline.result"] == [finding.check for finding in own]


def test_verdict_that_rests_on_nothing_says_so() -> None:
    """No fail is no proof of health where nothing but the reading itself passed."""
    skipped = Finding("gpu.count", NODE, Status.SKIP, "no gpu in the evidence")
    read = Finding("evidence.read", NODE, Status.PASS, "read: uptime")
    assert "no proof of health" in " ".join(rendered([NodeVerdict("", "base", "none", [skipped, read])]).split())
    assert "no proof of health" not in rendered([healthy()])


def test_many_open_checks_are_counted_by_family() -> None:
    """A silent nvidia-smi -q leaves fifty checks open: they are counted, not listed."""
    checks = [f"hbm.check_{n}" for n in range(9)] + ["gpu.check"]
    text = "Title: could not be told, gpu.index timeout"
    late = Missing(Reason.TIMEOUT)
    findings = [Finding(check, NODE, Status.UNKNOWN, text, Urgency.NOTE, gap=late) for check in checks]
    shown = rendered([NodeVerdict("n", "base", "none", findings)])
    assert "10 checks could not be told" in shown
    assert "hbm 9, gpu 1" in shown


def test_long_place_keeps_its_end() -> None:
    """Of a path too long for the line the file and the line number stay."""
    target = console(60)
    Sheet(target).place("evidence", "/srv/" + "folder/" * 20 + "dmesg.txt", 12345, 4, 10)
    (line,) = text_of(target).splitlines()
    assert line.startswith("    evidence  .../folder/")
    assert line.endswith("/dmesg.txt:12345")


def test_strict_warning_fails() -> None:
    """With strict, a node that only has warnings is called failed, and why."""
    node = dataclasses.replace(healthy(), findings=[Finding("gpu.mig", NODE, Status.WARN, "MIG mode is yes")])
    assert rendered([node]).startswith("PASS")
    strict = rendered([node], strict=True)
    assert strict.startswith("FAIL")
    assert "strict: warnings count" in strict


def test_lab_node_says_lab() -> None:
    """A simulated node is never taken for iron."""
    assert "lab" in rendered([faulty()]).splitlines()[0]
    assert "lab" not in rendered([healthy()]).splitlines()[0]


def test_waived_finding_is_shown_and_does_not_count() -> None:
    """A waiver names its owner, reason and end; the finding stands in no other section."""
    text = rendered([faulty()])
    assert "until 2030-01-31 by ops@site: no NTP in the lab network" in text
    assert 1 == text.count("chronyd has no source")


def test_many_subjects_are_cut() -> None:
    """A rack of 72 GPUs is not listed one by one."""
    many = [Subject("gpu", f"GPU{n}") for n in range(72)]
    assert name_subjects(many).startswith("72 GPUs: GPU0, GPU1")
    assert name_subjects(many).endswith("and 64 more")
    assert "" == name_subjects([NODE])


def test_long_fleet_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary lists the first nodes and counts the rest."""
    monkeypatch.setattr(text_report, "_FEW", 2)
    text = rendered([dataclasses.replace(faulty(), node=f"gpu-{n:03}") for n in range(5)])
    assert "5 nodes: 5 fail" in text
    assert "and 3 more" in text
    assert "Most often: hbm.total on 5 nodes" in text or "Most often: xid.79 on 5 nodes" in text


def test_different_messages_of_one_check_share_remedy() -> None:
    """The width of two slots is one entry with two messages."""
    (entry,) = fold(finding for finding in faulty().findings if finding.check == "pcie.gpu_width")
    assert ["PCIe width is x8", "PCIe width is x16"] == list(entry.seen)


@pytest.mark.parametrize(
    ("gap", "why"),
    [
        (NOT_COLLECTED, "not collected"),
        (Missing(Reason.ABSENT, "N/A"), "not reported by the device"),
        (None, "not applicable"),
    ],
)
def test_skips_are_told_apart(gap: Missing | None, why: str) -> None:
    """Never asked, not there, and not applicable are three things."""
    assert why == why_skipped(Finding("gpu.count", NODE, Status.SKIP, "why", gap=gap))


def test_print_run_spells_out_what_the_terminal_cannot_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal without UTF-8 shows escapes instead of ending in a traceback."""
    raw = io.BytesIO()
    stdout = io.TextIOWrapper(raw, encoding="ascii")
    monkeypatch.setattr("sys.stdout", stdout)
    print_run([dataclasses.replace(healthy(), node="knoten-ä-节点")], strict=False)
    stdout.flush()
    assert b"knoten-\\xe4-\\u8282\\u70b9" in raw.getvalue()


def test_reader_that_went_away_is_no_failed_node() -> None:
    """A closed pipe is left to the caller: rich alone would end with 1, which means a fail."""

    class Closed(io.StringIO):
        def write(self, *_: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Sheet(Terminal(file=Closed(), width=80)).text("x")


def test_narrow_console_keeps_text_readable() -> None:
    """Deep indentation never leaves a column of single letters."""
    target = Console(file=io.StringIO(), width=30)
    Sheet(target).row("label", "one two three four five", 20, 10)
    assert "one two three four five" in text_of(target)
