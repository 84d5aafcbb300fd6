"""One paste → outputs of known formats, with the right line numbers, and what is left over."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck.evidence import Evidence, Output
from hwcheck.parse import FORMATS, take_snapshot
from hwcheck.readers.recognise import PROMPT
from hwcheck.readers.segments import split_text
from tests.machines import as_csv, as_q, as_xml, hgx_h200

XID = "[  812.512345] NVRM: Xid (PCI:0000:5d:00): 79, pid=77, name=train, GPU has fallen off the bus."
IBSTAT = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400"
DIAG = {"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": []}]}, "version": "3.3.9"}


def split(text: str | list[str]) -> Evidence:
    """Read one text of one node."""
    evidence = Evidence()
    split_text(text.splitlines() if isinstance(text, str) else text, "posted", evidence)
    return evidence


def kinds(text: str | list[str]) -> list[str]:
    """Return the formats recognised in a text."""
    return [output.kind for output in split(text).outputs]


def numbered(output: Output) -> dict[int, str]:
    """Return the filled lines of an output under their numbers in the file."""
    return {number: line for number, line in enumerate(output.lines, output.first_line) if line.strip()}


@pytest.mark.parametrize(
    "prompt",
    ["$ ", "# $ ", "root@gpu-7:~# ", "root@gpu-7:/var/log# ", "[root@gpu-7 ~]# ", "[ops@gpu-7 log]$ ",
     "(base) ops@gpu-7:~$ ", "(env)ops@gpu-7:~$ ", "gpu-7:~ # ", "gpu-7:/tmp$ ", "bash-5.1# ", "sh-5.1$ ", "# ",
     r"C:\Users\ops>", r"PS C:\Users\ops> "],
)  # fmt: skip
def test_the_command_at_a_prompt_tells_the_format(prompt: str) -> None:
    """Where a text alone does not tell what it is, the command in front of it does."""
    evidence = split(f"{prompt}modinfo -F version nvidia\n570.124.06\n{prompt}ibstat\n")
    assert [(output.kind, output.lines) for output in evidence.outputs] == [("modinfo", ["570.124.06"]), ("ibstat", [])]
    assert not evidence.leftovers


@pytest.mark.parametrize(
    "line", ["# a comment on nvidia-smi -q", "#define X", "a price of $5", "", "| 0 N/A | $", "<br>"]
)
def test_prose_is_no_prompt(line: str) -> None:
    """A comment, a price or a table line opens nothing."""
    assert PROMPT.match(line) is None
    assert kinds([line]) == []


def test_a_heading_within_an_output_ends_nothing() -> None:
    """Nccl-tests print "# all_reduce_perf" as a line of their own output."""
    text = "# nccl-tests version 2.17.1\n# Collective test starting: all_reduce_perf\n# all_reduce_perf\n"
    assert kinds(text + "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 20") == [
        "nccl-tests"
    ]


@pytest.mark.parametrize("rule", ["####", "#" * 60, "_" * 44, "```", "```text", "~~~", "  ```console"])
def test_a_rule_ends_an_output_and_is_not_left_over(rule: str) -> None:
    """Hashes, underscores and fences stand between the parts of a paste."""
    evidence = split([*IBSTAT.splitlines(), rule, XID, rule, *IBSTAT.splitlines()])
    assert sorted(output.kind for output in evidence.outputs) == ["ibstat", "ibstat", "kernel.log"]
    assert not evidence.leftovers


def test_a_rule_under_a_command_belongs_to_it() -> None:
    """Collection scripts print the command, a rule, and then the output."""
    evidence = split("$ cat /proc/cmdline\n############\nquiet iommu=pt\n")
    (output,) = evidence.outputs
    assert (output.kind, numbered(output)) == ("proc-cmdline", {3: "quiet iommu=pt"})


def test_several_tools_in_one_paste_keep_their_lines() -> None:
    """Three tools, log lines between them, prose around them: each gets its own lines, with their numbers."""
    text = f"""Hello all,
we see this since Monday:
```
$ ibstat
{IBSTAT}
$ nvidia-smi -L
GPU 0: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555555)
{XID}
GPU 1: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-666666666666)
```
Any ideas?
"""
    lines = text.splitlines()
    evidence = split(text)
    assert sorted(output.kind for output in evidence.outputs) == ["ibstat", "kernel.log", "nvidia-smi.gpu-lines"]
    for output in evidence.outputs:
        for number, line in numbered(output).items():
            assert lines[number - 1] == line
    gpus = next(output for output in evidence.outputs if output.kind == "nvidia-smi.gpu-lines")
    assert list(numbered(gpus)) == [12, 14]
    (left,) = evidence.leftovers
    assert (left.count, left.first_line, left.excerpt) == (3, 1, "Hello all,")


def test_facts_name_the_line_they_stand_on() -> None:
    """A value below an interleaved log line is shown with its own number."""
    lines = as_q(hgx_h200(count=1)).splitlines()
    lines.insert(20, XID)
    snapshot = take_snapshot(split(["prose", "", *lines]))
    fact = next(fact for _, fact in snapshot.with_fact("gpu.power.limit"))
    assert fact.origin is not None
    assert ["prose", "", *lines][fact.origin.line - 1].strip() == fact.origin.excerpt


@pytest.mark.parametrize("at", ["gpu.power.limit", "gpu.name"])
@pytest.mark.parametrize("render", [as_q, as_xml, as_csv])
def test_log_lines_within_an_output_change_no_fact(render: object, at: str) -> None:
    """A serial console mixes kernel messages into everything; they are read as what they are."""
    text = render(hgx_h200(count=2)).splitlines()  # type: ignore[operator]
    noisy = [line for pair in ((line, XID) if n % 7 == 1 else (line,) for n, line in enumerate(text)) for line in pair]
    clean, mixed = take_snapshot(split(text)), take_snapshot(split(noisy))
    assert [fact.value for _, fact in clean.with_fact(at)] == [fact.value for _, fact in mixed.with_fact(at)]
    assert "kernel.log" in kinds(noisy)


def test_a_command_without_output_is_kept() -> None:
    """An empty answer is an answer: the source was asked."""
    evidence = split("$ dmesg | grep -i xid\n$ ibstat\n$ cat /proc/cmdline\nquiet\n")
    assert [(output.kind, output.lines) for output in evidence.outputs] == [
        ("kernel.log", []), ("ibstat", []), ("proc-cmdline", ["quiet"])
    ]  # fmt: skip


def test_a_command_of_an_unknown_tool_takes_nothing_along() -> None:
    """What follows an unknown command is left over, unless the text itself is known."""
    evidence = split(f"$ uname -r\n6.8.0-51-generic\n$ ./show-everything\n{IBSTAT}\n")
    assert [output.kind for output in evidence.outputs] == ["ibstat"]
    assert [(left.count, left.first_line) for left in evidence.leftovers] == [(1, 2)]


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_json_is_found_among_other_text(indent: int | None) -> None:
    """A document stands in a paste on one line or on many, and ends where its bracket closes."""
    document = json.dumps(DIAG, indent=indent)
    evidence = split(f"see here:\n{document}\n{IBSTAT}\nthanks")
    assert [output.kind for output in evidence.outputs] == ["dcgmi-diag.json", "ibstat"]
    assert json.loads(evidence.outputs[0].text) == DIAG
    assert evidence.outputs[0].first_line == 2
    assert evidence.leftovers[0].count == 2


def test_log_lines_within_json_do_not_break_it() -> None:
    """The document is read without them, with its own line numbers."""
    lines = json.dumps(DIAG, indent=1).splitlines()
    lines.insert(3, XID)
    evidence = split(lines)
    document = next(output for output in evidence.outputs if output.kind == "dcgmi-diag.json")
    assert json.loads(document.text) == DIAG
    assert all(lines[number - 1] == line for number, line in numbered(document).items())


def test_a_bracket_that_never_closes_swallows_nothing() -> None:
    """A lone bracket, or a document cut off, leaves the rest of the paste to be read."""
    assert kinds(["{", *IBSTAT.splitlines(), XID]) == ["kernel.log", "ibstat"]
    cut = json.dumps(DIAG, indent=1).splitlines()[:-2]
    assert kinds([*cut, "$ ibstat", *IBSTAT.splitlines()]) == ["dcgmi-diag.json", "ibstat"]


def test_json_of_an_unknown_tool_is_left_over_line_by_line() -> None:
    """What no format knows is counted."""
    (left,) = split('{\n "colour": "red",\n "sizes": [1, 2]\n}\n').leftovers
    assert (left.count, left.first_line) == (4, 1)


def test_sections_of_a_bug_report_are_told_by_their_names() -> None:
    """Nvidia-bug-report names a file behind stars and a command under a rule, without a prompt."""
    text = f"""____________________________________________

*** /proc/cmdline
*** ls: -r--r--r-- 1 root root 0 2026-03-03 09:00:00.000000000 +0000 /proc/cmdline
quiet iommu=pt

____________________________________________

/sbin/modinfo -F version nvidia

570.124.06

____________________________________________

*** /etc/lsb-release
NAME="Some Linux"

____________________________________________

{as_q(hgx_h200(count=1))}
"""
    evidence = split(text)
    assert [output.kind for output in evidence.outputs] == ["proc-cmdline", "modinfo", "nvidia-smi.q"]
    assert list(numbered(evidence.outputs[0])) == [5]
    assert [(left.count, left.excerpt) for left in evidence.leftovers] == [(1, 'NAME="Some Linux"')]


def test_a_cut_command_line_does_not_claim_the_text_of_another_tool() -> None:
    """The text decides where it is plainly another tool's than the command says."""
    assert kinds(f"$ cat /proc/cmdline; ibstat\n{IBSTAT}")[-1] == "ibstat"


def test_logs_that_stand_apart_are_one_output() -> None:
    """Kernel lines before and after another output form one log, in order."""
    evidence = split([XID, *IBSTAT.splitlines(), XID.replace("812", "813")])
    log = next(output for output in evidence.outputs if output.kind == "kernel.log")
    assert log.count == 2


PIECES = [
    XID,
    *IBSTAT.splitlines(),
    *("$ ibstat", "$ nvidia-smi -q", "{", "}", '"a": [', "####", "```", "", "prose", "0: x", "n1: State: Active"),
    *("> quoted", "*** ls: x", "*** /proc/cmdline"),
    *as_q(hgx_h200(count=1)).splitlines()[:30],
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_order_of_lines_is_an_error_and_none_is_lost(text: list[str]) -> None:
    """Each line is of an output at its own number, or counted as left over, or a prompt or rule."""
    evidences = split_text(text, "posted", Evidence())
    for evidence in evidences:
        for output in evidence.outputs:
            assert output.kind in FORMATS
            for number, line in numbered(output).items():
                assert text[number - 1].endswith(line)
        assert sum(left.count for left in evidence.leftovers) <= len(text)


@pytest.mark.parametrize(
    "line",
    ["x" * 65_536, "a, " * 21_000, '{"' + '\\"' * 32_000, "[ " * 32_000, "a@" + "b." * 32_000, "12:" * 21_000,
     "NVRM: " * 10_000, "|" * 65_536, "GPU" * 21_000, "> " * 32_000, "`" * 65_536, "1,1," * 16_000],
    ids=lambda line: line[:6],
)  # fmt: skip
def test_no_line_takes_long(line: str) -> None:
    """A line made to keep patterns busy costs no more than others of its length."""
    began = time.perf_counter()
    split([line] * 3)
    assert time.perf_counter() - began < 1


def test_time_grows_with_the_number_of_lines() -> None:
    """Ten times the lines take about ten times as long, not a hundred times."""
    chance = random.Random(5)  # noqa: S311 - a repeatable sample
    text = [chance.choice(PIECES[:20]) for _ in range(20_000)]
    split(text[:200])

    def seconds(count: int) -> float:
        began = time.perf_counter()
        split(text[:count])
        return time.perf_counter() - began

    assert seconds(20_000) < 40 * max(min(seconds(2_000) for _ in range(3)), 0.005)
