"""
``./run bench fuzz``: mutated outputs through reader, parsers, engine and reports; counts tracebacks and slow inputs.

Each input is one to three known outputs, cut, spliced, garbled, with lines moved, numbers blown up and bytes flipped. A
traceback stops nothing: it is counted and the input is kept in the folder given with ``--keep``.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hwcheck.errors import HwcheckError
from hwcheck.evidence import Evidence
from hwcheck.lines import lines
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers.segments import split_text
from hwcheck.report.json_run import dump, run_object
from tests.examples import EXAMPLES
from tests.machines import RENDERERS, hgx_h200

CASES = Path(__file__).resolve().parent.parent / "parse"
SLOW = 2.0
NASTY = (
    "N/A", "[N/A]", "ERR!", "[GPU requires reset]", "-1", "9" * 400, "1e999", "NaN", "\x1b[31mred\x1b[0m", "\u202e",
    "[red]x[/red]", "<script>", "{{ 7*7 }}", "$(reboot)", "../../etc/passwd", "\t\t", "'", '"', "{", "}", "[", "]", ":",
    "0x", "%s", "\\", "\0",
)  # fmt: skip


def corpus() -> list[str]:
    """Return known outputs: parser cases, whole machines, example nodes."""
    texts = [case.read_text(encoding="utf-8") for case in sorted(CASES.glob("*/*.txt"))]
    texts += [render(hgx_h200(count=2)) for render in RENDERERS.values()]
    texts += [text for files in EXAMPLES.values() for path, text in files.items() if path != "raw/nvidia-smi.xml"]
    return texts


def mutate(rng: random.Random, texts: list[str]) -> bytes:
    """Make one input."""
    text = "\n".join(rng.choice(texts) for _ in range(rng.choice((1, 1, 2, 3))))
    rows = text.split("\n")
    if len(rows) > 400:  # keep inputs quick; long ones are the bench's matter
        start = rng.randrange(len(rows) - 400)
        rows = rows[start : start + 400]
    for _ in range(rng.randrange(1, 8)):
        rng.choice(MUTATIONS)(rng, rows)
    data = bytearray("\n".join(rows).encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((0, 0, 0, 3))):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _cut(rng: random.Random, rows: list[str]) -> None:
    del rows[rng.randrange(len(rows) + 1) :]


def _drop(rng: random.Random, rows: list[str]) -> None:
    if rows:
        del rows[rng.randrange(len(rows))]


def _swap(rng: random.Random, rows: list[str]) -> None:
    if len(rows) > 1:
        one, other = rng.randrange(len(rows)), rng.randrange(len(rows))
        rows[one], rows[other] = rows[other], rows[one]


def _nasty(rng: random.Random, rows: list[str]) -> None:
    if rows:
        at = rng.randrange(len(rows))
        words = rows[at].split(" ")
        words[rng.randrange(len(words))] = rng.choice(NASTY)
        rows[at] = " ".join(words)


def _splice(rng: random.Random, rows: list[str]) -> None:
    if rows:
        at = rng.randrange(len(rows))
        rows[at] = rows[at][: rng.randrange(len(rows[at]) + 1)] + rng.choice(rows)


def _shorten(rng: random.Random, rows: list[str]) -> None:
    if rows:
        at = rng.randrange(len(rows))
        rows[at] = rows[at][: rng.randrange(len(rows[at]) + 1)]


def _digits(rng: random.Random, rows: list[str]) -> None:
    if rows:
        at = rng.randrange(len(rows))
        rows[at] = "".join(
            rng.choice("0123456789abcdef.-") if char.isdigit() and rng.random() < 0.5 else char for char in rows[at]
        )


MUTATIONS: tuple[Callable[[random.Random, list[str]], None], ...] = (
    _cut, _drop, _swap, _nasty, _nasty, _splice, _shorten, _digits,
)  # fmt: skip


def judge(pipeline: Pipeline, data: bytes) -> None:
    """Take one input all the way to JSON; what hwcheck itself refuses is no traceback."""
    try:
        for evidence in split_text(lines(io.BytesIO(data)), "fuzz", Evidence()):
            verdict = pipeline.judge(evidence)
            json.loads(dump(run_object([verdict], "fuzz", {"name": "auto", "hash": ""}, "2026-01-01T00:00:00+00:00")))
    except HwcheckError:
        return


def run(seed: int, count: int, keep: str = "") -> tuple[int, Counter[str], float]:
    """
    Judge ``count`` inputs.

    Returns:
        Inputs judged, tracebacks by place, and the longest CPU time of one input in seconds.
    """
    rng, texts, pipeline = random.Random(seed), corpus(), Pipeline(ProfileSet())  # noqa: S311 - repeatable
    failures: Counter[str] = Counter()
    longest = 0.0
    for number in range(count):
        data = mutate(rng, texts)
        start = time.process_time()
        try:
            judge(pipeline, data)
        except Exception as error:  # noqa: BLE001 - the very thing that is counted
            frame = traceback.extract_tb(error.__traceback__)[-1]
            failures[f"{type(error).__name__} {Path(frame.filename).name}:{frame.lineno}: {str(error)[:80]}"] += 1
            if keep:
                Path(keep, f"{seed}-{number}.bin").write_bytes(data)
        spent = time.process_time() - start
        longest = max(longest, spent)
        if spent > SLOW and keep:
            Path(keep, f"slow-{seed}-{number}.bin").write_bytes(data)
    return count, failures, longest


def main() -> None:
    """Run on all cores and print the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="", help="folder for inputs that end in a traceback or are slow")
    arguments = parser.parse_args()
    jobs = multiprocessing.cpu_count()
    share = 500
    shares = (arguments.count + share - 1) // share
    tasks = [(arguments.seed * 1_000_000 + number, share, arguments.keep) for number in range(shares)]
    done, failures, longest = 0, Counter[str](), 0.0
    with multiprocessing.Pool(jobs) as pool:
        for count, failed, slowest in pool.starmap(run, tasks, chunksize=1):
            done, longest = done + count, max(longest, slowest)
            failures += failed
    print(f"{done} inputs, {failures.total()} tracebacks, slowest input {longest:.2f} s CPU")
    for place, number in failures.most_common(20):
        print(f"  {number} x {place}")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
