"""The program text that goes to nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hwcheck.errors import TransportError
from hwcheck.transports import cache, local, request
from hwcheck.transports.fan_out import FanOut, Limits
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request, in_order, strip
from hwcheck.transports.stream import Decoder
from hwcheck.transports.target import LOCAL, Target


def oldest_python() -> str:
    """Find a Python 3.9 that runs; a shim of pyenv may have nothing behind it, so pyenv is asked too."""
    asked = ["pyenv", "whence", "--path", "python3.9"]
    known = (
        subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
        if shutil.which("pyenv")
        else []
    )
    for python in ("python3.9", *known):
        if (
            shutil.which(python)
            and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return python
    return ""


OLDEST = oldest_python()


def read_here(asked: Request) -> Outcome:
    """Read this machine."""
    (outcome,) = FanOut([Target("here", connection=LOCAL)], local.collect, asked, Limits(1, 30))
    assert outcome.error is None
    return outcome


def test_every_answer_that_is_awaited_comes() -> None:
    """What a broken stream owes is told from the same list."""
    asked = Request()
    came = Counter(answer.kind for answer in read_here(asked).answers)
    assert came - asked.owed(()) == Counter({"node.hello": 1})
    assert asked.owed(came.elements()) == Counter()


def test_what_stands_in_for_an_answer_pays_for_it() -> None:
    """Where nvidia-smi spoke in place of NVML, a stream that breaks off later owes no NVML."""
    asked = Request()
    assert asked.owed(()) - asked.owed(["nvidia-smi.xml"]) == Counter({"nvml": 1})
    assert asked.owed(["nvml"])["nvml"] == 0


def test_only_what_is_asked_for_comes() -> None:
    """By id, and without what is switched off."""
    kinds = {
        answer.kind for answer in read_here(Request(only=("proc-cmdline", "os-release"), off=("os-release",))).answers
    }
    assert kinds == {"node.hello", "proc-cmdline"}


@pytest.mark.skipif(not OLDEST, reason="no python3.9 on this machine")
def test_the_oldest_python_of_a_node_runs_it() -> None:
    """The whole program, isolated and without site packages."""
    done = subprocess.run(
        [OLDEST, "-I", "-S", "-"], input=Request().program(), capture_output=True, timeout=60, check=True
    )
    decoder = Decoder()
    decoder.feed(done.stdout)
    assert decoder.ended
    assert done.stderr == b""


def test_an_older_python_says_so_itself() -> None:
    """The first lines are understood by any Python, and name the version that is needed."""
    head, _, _ = request._LOADER.partition(b"import zlib")
    older = head.replace(b"3, 9", b"9, 9")
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=older, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"hwcheck needs Python 9.9, this is 3.")


def test_the_program_is_made_once_for_each_state_of_its_files() -> None:
    """The cache is for the owner alone; a cache that cannot be written does not matter."""
    request._built.cache_clear()
    first = Request().program()
    (kept,) = Path(os.environ["XDG_CACHE_HOME"], "hwcheck").iterdir()
    kept.chmod(0o666)
    kept.write_bytes(b"print('not ours')")
    request._built.cache_clear()
    assert Request().program() == first
    shutil.rmtree(kept.parent)
    kept.parent.write_text("")
    request._built.cache_clear()
    assert Request().program() == first


def test_what_is_asked_is_part_of_the_text_and_nothing_else() -> None:
    """A path with quotes is a literal, no code."""
    root = "/x'; import os; os.abort() #\\\n"
    assert repr(root).encode() in Request(root=root).program()


def test_docstrings_and_comments_stay_here() -> None:
    """A node compiles what it needs; an emptied body is still a body."""
    text = (
        '"""Doc."""\nX = 1  # why\nclass A(Exception):\n    """Doc."""\ndef f():\n    """Doc."""\n    return "kept"\n'
    )
    short = strip(text)
    assert "Doc" not in short
    assert "why" not in short
    assert "kept" in short
    compile(short, "x", "exec")


def test_modules_come_after_those_they_import() -> None:
    """And a circle is told."""
    texts = {
        "b": "from hwcheck.sources.a import x\n",
        "a": "from hwcheck.sources import c\n",
        "c": "import os\n",
    }
    assert in_order(texts) == ["c", "a", "b"]
    with pytest.raises(ValueError, match="import each other: a, b"):
        in_order({"a": "from hwcheck.sources import b\n", "b": "from hwcheck.sources.a import x\n"})


def test_a_node_that_did_not_answer_is_evidence_too() -> None:
    """Of a collected node, with its reason."""
    evidence = evidence_of(Outcome(Target("gpu-1"), error=TransportError("connection refused", "Start sshd.")))
    assert (evidence.node, evidence.unreachable, evidence.advice) == ("gpu-1", "connection refused", "Start sshd.")
    assert evidence.collected
    assert evidence.outputs == []


def test_answers_of_one_kind_have_a_file_each() -> None:
    """And an answer without a word has none."""
    decoder = Decoder()
    head = "HWC1 uname ok 0 1 - -\na"
    decoder.feed((head * 2 + "HWC1 ibstat absent 0 0 - -\n" + "HWC1 dpkg ok 0 0 - -\n").encode())
    outcome = Outcome(Target("gpu-1"), tuple(decoder.answers))
    assert [file for file, _ in outcome.files()] == ["raw/uname", "raw/uname.2", "", "raw/dpkg"]


def test_many_threads_get_the_program_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken apart once: ast.parse of Python 3.11 fails where two threads run it."""
    monkeypatch.setattr(cache, "load", lambda _name: None)
    monkeypatch.setattr(cache, "keep", lambda _name, _data: None)
    built: list[object] = []
    build = request._build
    monkeypatch.setattr(request, "_build", lambda files: built.append(files) or build(files))
    request._built.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        programs = set(pool.map(lambda _: Request(tier="load").program(), range(8)))
    assert (len(programs), len(built)) == (1, 1)
