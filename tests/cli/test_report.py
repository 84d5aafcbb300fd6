"""``hwcheck report`` as a user meets it."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hwcheck.cli.main import main
from hwcheck.cli.whole_file import printed_to
from hwcheck.store import Store
from tests.report.runs import run_of
from tests.report.samples import faulty, healthy

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """Path of a run's JSON."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run_of(faulty(), healthy())))
    return str(path)


def test_each_form_of_a_run(kept: str, capsys: Capture) -> None:
    """Text, JSON, JUnit, metrics and HTML of one run; 0, since nothing is judged here."""
    said = {}
    for form in ("text", "json", "junit", "prometheus", "html"):
        assert main(["report", kept, "--format", form]) == 0
        said[form] = capsys.readouterr().out
    assert said["text"].startswith("FAIL     gpu-017")
    assert json.loads(Path(kept).read_text()) == json.loads(said["json"])
    assert {"gpu-017", "gpu-018"} == {suite.get("name") for suite in ET.fromstring(said["junit"])}  # noqa: S314 - our own
    assert 'hwcheck_run_verdict{verdict="fail"} 1' in said["prometheus"]
    assert said["html"].startswith("<!doctype html>")
    assert said["html"].endswith("</html>\n")


def test_a_run_from_standard_input(kept: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """What check prints can be piped."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(Path(kept).read_text()))
    assert main(["report", "-"]) == 0
    assert "gpu-018" in capsys.readouterr().out


def test_strict_text(kept: str, capsys: Capture) -> None:
    """With --strict a warning is a failure, as in check."""
    assert main(["report", kept, "--strict", "--format", "junit"]) == 0
    strict = capsys.readouterr().out
    assert main(["report", kept, "--format", "junit"]) == 0
    assert strict.count("<failure") > capsys.readouterr().out.count("<failure")


def test_a_file_is_replaced_as_a_whole(kept: str, tmp_path: Path) -> None:
    """With -o the file is there at once, for all to read as the mask says; a link to it and its mode stay."""
    place, link = tmp_path / "node.prom", tmp_path / "link.prom"
    assert main(["report", kept, "--format", "prometheus", "-o", str(place)]) == 0
    assert 0o666 & ~_mask() == stat.S_IMODE(place.stat().st_mode)
    first = place.stat().st_ino
    link.symlink_to(place)
    place.chmod(0o640)
    assert main(["report", kept, "--format", "prometheus", "-o", str(link)]) == 0
    assert link.is_symlink()
    assert first != place.stat().st_ino
    assert 0o640 == stat.S_IMODE(place.stat().st_mode)
    assert {"run.json", "node.prom", "link.prom"} == {path.name for path in tmp_path.iterdir()}


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    """An error while it is printed: the old file is as it was, and nothing lies beside it."""
    place = tmp_path / "report.html"
    place.write_text("old")
    with pytest.raises(ZeroDivisionError):
        _print_half(place)
    assert ["old"] == [path.read_text() for path in tmp_path.iterdir()]


def _print_half(place: Path) -> None:
    with printed_to(place):
        sys.stdout.write("new")
        raise ZeroDivisionError


def test_a_device_is_written_into(kept: str, tmp_path: Path) -> None:
    """A pipe or /dev/null is never replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        assert main(["report", kept, "-o", str(pipe)]) == 0
        assert "gpu-017" in reader.communicate(timeout=20)[0]
    assert pipe.is_fifo()


def test_a_run_of_the_store(kept: str, tmp_path: Path, capsys: Capture) -> None:
    """A run that the store has is named by its name; one that it does not have is said, with 2."""
    name = Store.open().keep(json.loads(Path(kept).read_text()))
    assert main(["report", name]) == 0
    assert capsys.readouterr().out.startswith("FAIL     gpu-017")
    assert main(["report", name, "--store", str(tmp_path / "other.sqlite")]) == 2
    assert f"no run {name} is kept" in capsys.readouterr().err


def test_check_writes_its_report(root: Path, tmp_path: Path, capsys: Capture) -> None:
    """Check makes HTML and metrics at once, into a file; its exit code stays that of what it found."""
    page, metrics = tmp_path / "report.html", tmp_path / "node.prom"
    evidence = str(root / "hwcheck/examples/hgx-h200-faulty")
    for form, place in (("html", page), ("prometheus", metrics)):
        assert main(["check", "--evidence", evidence, "--format", form, "-o", str(place)]) == 1
    assert "" == capsys.readouterr().out
    assert "<b>Fail</b>" in page.read_text(encoding="utf-8")
    assert 'hwcheck_run_verdict{verdict="fail"} 1' in metrics.read_text(encoding="utf-8")


@pytest.mark.parametrize("what", ["missing.json", "no/such/folder"])
def test_no_such_run(what: str, capsys: Capture) -> None:
    """A path that is not there is said, with 2."""
    assert main(["report", what]) == 2
    assert f"hwcheck: {what}: no such file" in capsys.readouterr().err


def test_no_run_and_no_place(kept: str, tmp_path: Path, capsys: Capture) -> None:
    """A file that holds no run, and a folder that is not there: a sentence, with 2."""
    other = tmp_path / "other.json"
    other.write_text('{"schema": "hwcheck.plan/1"}')
    assert main(["report", str(other)]) == 2
    assert "is no run of hwcheck: not of schema hwcheck.run/1 but of 'hwcheck.plan/1'" in capsys.readouterr().err
    assert main(["report", kept, "-o", str(tmp_path / "none/report.html")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_help_loads_nothing_that_reports() -> None:
    """The verb is declared without the libraries that make reports."""
    code = (
        "import sys; from hwcheck.cli.main import build_parser; build_parser()\n"
        "late = ('rich', 'sqlalchemy', 'hwcheck.report.html', 'hwcheck.store')\n"
        "print([name for name in late if name in sys.modules])"
    )
    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
