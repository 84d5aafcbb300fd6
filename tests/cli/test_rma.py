"""``hwcheck rma``: one file for the vendor."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli.main import main
from hwcheck.cli.rma_bundle import Earlier, part_of
from hwcheck.errors import UsageError
from hwcheck.store import Store
from tests.machines import as_q, hgx_h200

Capture = pytest.CaptureFixture[str]
BROKEN = as_q(hgx_h200({2: {"remap_failure": "Yes"}}))
LOG = "[  100.1] NVRM: Xid (PCI:0000:3a:00): 79, pid=1, name=x, GPU has fallen off the bus.\n"
SERIAL, ADDRESS = "1650000000002", "0000:3a:00.0"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def posted(tmp_path: Path, text: str = BROKEN, name: str = "smi.txt") -> str:
    """Write a text; returns its path."""
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def kept(tmp_path: Path, node: str, **more: Any) -> Path:
    """Write an evidence directory."""
    home = tmp_path / "kept" / node
    (home / "raw").mkdir(parents=True)
    (home / "raw" / "smi").write_text(BROKEN)
    (home / "raw" / "node.hello").write_text(f"host={node}.cluster.example.org\n")
    sources = [{"id": "nvidia-smi.q", "file": "raw/smi", "status": "ok"},
               {"id": "node.hello", "file": "raw/node.hello", "status": "ok"}]  # fmt: skip
    (home / "manifest.json").write_text(
        json.dumps({"format": "hwcheck.evidence/1", "node": node, "sources": sources, **more})
    )
    return home


def rma(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, str]]:
    """Run the verb; returns its exit code and the texts of the bundle, names without the folder."""
    place = tmp_path / "rma.tar.gz"
    code = main(["rma", *arguments, "-o", str(place)])
    if not place.exists():
        return code, {}
    assert place.stat().st_mode & 0o777 == 0o600
    with tarfile.open(place) as archive:
        members = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive}
        return code, {name: file.read().decode() for name, file in members.items() if file is not None}


@pytest.mark.parametrize("gpu", ["2", ADDRESS, "3a:00.0", "00000000:3A:00.0", SERIAL])
def test_a_part_is_named_in_many_ways(gpu: str, tmp_path: Path) -> None:
    """Index, PCI address in any spelling and serial number all mean the same GPU."""
    code, files = rma(tmp_path, "--evidence", posted(tmp_path), "--gpu", gpu)
    assert code == 0
    assert files["summary.txt"].startswith(f"RMA: GPU {ADDRESS} of node ")
    assert f"serial {SERIAL}" in files["summary.txt"]


def test_the_summary_is_on_top_and_says_what_is_wrong(tmp_path: Path) -> None:
    """First comes a summary: finding with its line of evidence, what else is wrong, what the vendor asks for."""
    _, files = rma(tmp_path, "--evidence", posted(tmp_path), "--gpu", "2")
    assert list(files)[:3] == ["summary.txt", "summary.html", "run.json"]
    words = files["summary.txt"]
    assert f"fail hbm.remap_failure on {ADDRESS}" in words
    assert "Remapping Failure Occurred" in words
    for part in ("nvidia-bug-report.sh", "field diagnostic", "dcgmi diag -r 3", "no earlier run of this node is kept"):
        assert part in words
    assert "<h1>RMA: GPU" in files["summary.html"]


def test_another_part_is_not_blamed(tmp_path: Path) -> None:
    """What is wrong with a neighbour stands beside it."""
    _, files = rma(tmp_path, "--evidence", posted(tmp_path), "--gpu", "0")
    wrong, _, beside = files["summary.txt"].partition("Beside it on this node")
    assert "hbm.remap_failure" not in wrong
    assert f"fail hbm.remap_failure on {ADDRESS}" in beside


def test_the_bundle_is_evidence_again(tmp_path: Path, capsys: Capture) -> None:
    """What was posted is in it byte for byte, and check judges the bundle as it judged the file."""
    _, files = rma(tmp_path, "--evidence", posted(tmp_path))
    assert files["evidence/raw/smi.txt"] == BROKEN
    capsys.readouterr()
    assert main(["check", "--evidence", str(tmp_path / "rma.tar.gz"), "--format", "json"]) == 1
    again = json.loads(capsys.readouterr().out)["findings"]
    first = json.loads(files["run.json"])["findings"]
    assert [(f["check"], f["subject"], f["status"]) for f in again] == [
        (f["check"], f["subject"], f["status"]) for f in first
    ]


def test_a_kept_node_is_bundled_whole(tmp_path: Path) -> None:
    """Of an evidence directory the manifest and what it names go in, and nothing else that lies there."""
    home = kept(tmp_path, "gpu-7")
    (home / "private.txt").write_text("no part of it")
    code, files = rma(tmp_path, "--evidence", str(home))
    assert code == 0
    assert sorted(name for name in files if name.startswith("evidence/")) == [
        "evidence/manifest.json", "evidence/raw/node.hello", "evidence/raw/smi",
    ]  # fmt: skip


def test_the_node_chooses_among_several(tmp_path: Path, capsys: Capture) -> None:
    """A bundle is of one node: with two the name has to be given."""
    kept(tmp_path, "gpu-7"), kept(tmp_path, "gpu-8")
    assert rma(tmp_path, "--evidence", str(tmp_path / "kept"))[0] == 2
    assert "the evidence has gpu-7, gpu-8: name one" in capsys.readouterr().err
    code, files = rma(tmp_path, "gpu-8", "--evidence", str(tmp_path / "kept"))
    assert code == 0
    assert json.loads(files["run.json"])["nodes"][0]["name"] == "gpu-8"


def test_serials_stay_and_names_go(tmp_path: Path) -> None:
    """With --redact no file has the node's name, its domain or a GPU's UUID; serial numbers are all there."""
    kept(tmp_path, "gpu-7")
    code, files = rma(tmp_path, "gpu-7", "--evidence", str(tmp_path / "kept"), "--gpu", "2", "--redact")
    assert code == 0
    everything = "\n".join(files.values())
    for name in ("gpu-7", "cluster.example.org", "5a1e0000-0000-4000"):
        assert name not in everything
    assert SERIAL in files["summary.txt"]
    assert SERIAL in files["evidence/raw/smi"]


def test_a_broken_reading_is_bundled_and_said(tmp_path: Path) -> None:
    """Evidence that breaks off is better than none; the exit code says that it is not whole."""
    home = kept(tmp_path, "gpu-7", broken=[["the node's stream", "broke off"]])
    code, files = rma(tmp_path, "--evidence", str(home))
    assert code == 3
    assert "summary.txt" in files


def test_texts_of_a_node_are_escaped(tmp_path: Path) -> None:
    """A product name that is markup or an escape is shown as it is."""
    hostile = BROKEN.replace("NVIDIA H200", "<script>1</script>\x1b[2J")
    _, files = rma(tmp_path, "--evidence", posted(tmp_path, hostile), "--gpu", "2")
    assert "<script>" not in files["summary.html"]
    assert "\x1b" not in files["summary.txt"] + files["summary.html"]


@pytest.mark.parametrize("gpu", ["9", "0000:99:00.0", "nothing", "165000000000", "{}"])
def test_a_part_that_is_not_there_is_said(gpu: str, tmp_path: Path, capsys: Capture) -> None:
    """The GPUs that there are, are listed; no file is left."""
    assert rma(tmp_path, "--evidence", posted(tmp_path), "--gpu", gpu) == (2, {})
    assert f"2 {ADDRESS} {SERIAL}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".begun")] == []


def test_a_bundle_is_never_overwritten(tmp_path: Path) -> None:
    """A place that is taken, or no archive by its name, is refused."""
    (tmp_path / "rma.tar.gz").write_text("mine")
    assert main(["rma", "--evidence", posted(tmp_path), "-o", str(tmp_path / "rma.tar.gz")]) == 2
    assert (tmp_path / "rma.tar.gz").read_text() == "mine"
    assert main(["rma", "--evidence", posted(tmp_path), "-o", str(tmp_path / "rma.zip")]) == 2


def test_a_lost_gpu_has_the_serial_of_an_earlier_run(tmp_path: Path, capsys: Capture) -> None:
    """A GPU that no longer answers is known from the store, and the bundle says from when; its history is told."""
    home = kept(tmp_path, "gpu-7")
    main(["check", "--evidence", str(home), "--format", "json"])
    Store.open().keep({**json.loads(capsys.readouterr().out), "run": "r1"})
    (home / "raw" / "smi").write_text(LOG)
    manifest = json.loads((home / "manifest.json").read_text())
    manifest["sources"][0]["id"] = "kernel.log"
    (home / "manifest.json").write_text(json.dumps(manifest))
    code, files = rma(tmp_path, "--evidence", str(home), "--gpu", ADDRESS)
    assert code == 0
    assert f"serial {SERIAL} (told by the run of " in files["summary.txt"]
    assert "fail xid.79" in files["summary.txt"]
    assert f"fail hbm.remap_failure on {ADDRESS}: in 1 runs from " in files["summary.txt"]
    assert json.loads(files["history.json"])[0]["node"] == "gpu-7"


def lost(*silent: str, before: bool = False) -> tuple[dict[str, Any], Earlier]:
    """Return a run in which NVML knows GPU 3 by its index alone, and what was known of it before."""
    gpus = [{"id": "0000:18:00.0", "index": 0, "serial": "1"}, *({"id": id} for id in silent), {"id": "GPU3"}]
    earlier = Earlier("", "")
    if before:
        earlier.gpus = {"0000:5d:00.0": {"id": "0000:5d:00.0", "index": 3, "serial": "4"}}
    return {"nodes": [{"about": {"gpus": gpus}}], "findings": []}, earlier


def test_a_gpu_without_address_is_the_only_silent_one() -> None:
    """NVML names a lost GPU by its index, the kernel by its address: they are one where no other GPU is left."""
    run, earlier = lost("0000:5d:00.0")
    for wanted in ("3", "0000:5d:00.0"):
        part = part_of(run, wanted, earlier)
        assert part.names == {"0000:5d:00.0", "GPU3"}
        assert part.record == {"id": "0000:5d:00.0", "index": 3}


def test_of_two_silent_gpus_none_is_guessed() -> None:
    """With two candidates they stay apart, unless an earlier run knew the index."""
    run, earlier = lost("0000:5d:00.0", "0000:9a:00.0")
    assert part_of(run, "3", earlier).names == {"GPU3"}
    run, earlier = lost("0000:5d:00.0", "0000:9a:00.0", before=True)
    assert part_of(run, "3", earlier).record["serial"] == "4"
    assert part_of(run, "0000:9a:00.0", earlier).names == {"0000:9a:00.0"}


def test_a_serial_that_two_gpus_share_is_ambiguous() -> None:
    """The two GPUs of one board share a serial number: then the address has to be given."""
    run, earlier = lost()
    run["nodes"][0]["about"]["gpus"] = [
        {"id": id, "index": index, "serial": SERIAL} for index, id in enumerate(("0008:01:00.0", "0009:01:00.0"))
    ]
    with pytest.raises(UsageError, match="2 such GPUs"):
        part_of(run, SERIAL, earlier)


def test_a_live_node_is_read_now(tmp_path: Path) -> None:
    """Without --evidence this machine is read, deep unless told otherwise, and what it says is in the bundle."""
    code, files = rma(tmp_path, "--tier", "quick", "--off", "nvml", "-q")
    assert code in (0, 3)
    assert "evidence read from the node by this command" in files["summary.txt"]
    assert "evidence/raw/node.hello" in files


def test_a_node_that_does_not_answer_has_no_bundle(tmp_path: Path, capsys: Capture) -> None:
    """There is no evidence of it: said, with exit code 3."""
    assert rma(tmp_path, "no-such-node.invalid", "-q", "--connect-timeout", "2", "--timeout", "5") == (3, {})
    assert "there is no bundle" in capsys.readouterr().err
