"""``hwcheck certify`` and ``hwcheck verify`` as a user meets them."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hwcheck.certificate import evidence_hash
from hwcheck.cli.main import main
from hwcheck.keyring import public_line
from hwcheck.profiles import ProfileSet
from tests.certificate.runs import GPUS, KEY, finding, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def record(*more: dict[str, Any]) -> dict[str, Any]:
    """Return a run of today, judged by the shipped profiles."""
    now = dt.datetime.now(dt.UTC)
    times = {"started": now.isoformat(timespec="seconds"), "ended": now.isoformat(timespec="seconds")}
    return run(*more, profile={"name": "auto", "hash": ProfileSet().hash}, **times)


def kept(tmp_path: Path, told: Any) -> str:
    """Write a run; returns its path."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(told))
    return str(path)


def site_key(tmp_path: Path) -> str:
    """Write the key of a site; returns its path."""
    path = tmp_path / "site.key"
    path.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    (tmp_path / "site.pub").write_bytes(public_line(KEY))
    return str(path)


def test_a_node_that_passed_is_certified_and_verifies(tmp_path: Path, capsys: Capture) -> None:
    """The first use makes a key and shows its public part; verify then needs nothing but the file."""
    folder = tmp_path / "certs"
    assert main(["certify", kept(tmp_path, record()), "-o", str(folder), "--valid", "30d"]) == 0
    shown = capsys.readouterr()
    assert "ssh-ed25519 AAAA" in shown.err
    assert re.match(r"gpu-1: certified, .*gpu-1\.cert\.json signed by SHA256:", shown.out)
    assert sorted(path.name for path in folder.iterdir()) == ["gpu-1.cert.html", "gpu-1.cert.json"]
    assert main(["verify", str(folder / "gpu-1.cert.json")]) == 0
    assert capsys.readouterr().out.startswith("valid: gpu-1 (PowerEdge XE9680) passed hwcheck accept\n  by: ")


def test_a_site_signs_by_its_own_key(tmp_path: Path, capsys: Capture) -> None:
    """With --key nothing is made or pinned, and who verifies names the public key."""
    assert main(["certify", kept(tmp_path, record()), "gpu-1", "-o", str(tmp_path), "--key", site_key(tmp_path)]) == 0
    assert not (tmp_path / "state").exists()
    file = str(tmp_path / "gpu-1.cert.json")
    assert main(["verify", file, "--key", str(tmp_path / "site.pub")]) == 0
    assert main(["verify", file]) == 2
    assert "no key is pinned here" in capsys.readouterr().err


def test_another_key_than_the_pinned_one_is_refused(tmp_path: Path, capsys: Capture) -> None:
    """Once a key is pinned, a certificate of another one is valid only for who names that."""
    assert main(["certify", kept(tmp_path, record()), "-o", str(tmp_path / "ours")]) == 0
    assert main(["certify", kept(tmp_path, record()), "-o", str(tmp_path), "--key", site_key(tmp_path)]) == 0
    file = str(tmp_path / "gpu-1.cert.json")
    assert main(["verify", file]) == 1
    assert "signed by another key" in capsys.readouterr().err
    assert main(["verify", file, "--key", str(tmp_path / "site.pub")]) == 0


def test_a_changed_byte_is_refused(tmp_path: Path, capsys: Capture) -> None:
    """A serial number that was written over is seen."""
    main(["certify", kept(tmp_path, record()), "-o", str(tmp_path)])
    file = tmp_path / "gpu-1.cert.json"
    file.write_bytes(file.read_bytes().replace(b"7H2K9X3", b"7H2K9X4"))
    assert main(["verify", str(file)]) == 1
    assert "it was changed after it was signed" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code"), [("fail", 1), ("unknown", 3)])
def test_what_is_in_the_way_is_said(status: str, code: int, tmp_path: Path, capsys: Capture) -> None:
    """A node that did not pass gets no file; its list is printed, and the exit code tells fail from unknown."""
    bad = finding("xid.79", GPUS[0], status, message="off\x1b[2J the bus")
    assert main(["certify", kept(tmp_path, record(bad)), "-o", str(tmp_path / "certs")]) == code
    shown = capsys.readouterr().out
    assert shown == f"gpu-1: not certified\n  - {status} xid.79 on {GPUS[0]}: off\\x1b[2J the bus\n"
    assert list((tmp_path / "certs").iterdir()) == []


def test_the_policy_must_be_the_one_of_the_run(tmp_path: Path, capsys: Capture) -> None:
    """A run that was judged by other layers is refused before anything is signed."""
    told = {**record(), "profile": {"name": "auto", "hash": "0" * 16}}
    assert main(["certify", kept(tmp_path, told), "-o", str(tmp_path / "certs")]) == 2
    assert "judged by other profiles" in capsys.readouterr().err
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "hwcheck.run/2"}', "nan", "[" * 10_000, "\x00"], ids=range(7)
)  # fmt: skip
def test_what_is_no_run_is_refused(text: str, tmp_path: Path, capsys: Capture) -> None:
    """A file that is no run is wrong usage, in one line."""
    path = tmp_path / "run.json"
    path.write_text(text)
    assert main(["certify", str(path), "-o", str(tmp_path / "certs")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_incident_that_points_nowhere_is_refused(tmp_path: Path) -> None:
    """Indices of a run are looked at before they are used."""
    told = record()
    told["incidents"] = [{"lead": 9999, "follows": [0], "text": "x"}]
    assert main(["certify", kept(tmp_path, told), "-o", str(tmp_path / "certs")]) == 2


def evidence(tmp_path: Path, taken: str) -> Path:
    """Write an evidence directory of gpu-1."""
    home = tmp_path / "evidence" / "gpu-1"
    (home / "raw").mkdir(parents=True)
    (home / "raw" / "uptime").write_text(" 12:00:00 up 1 day\n")
    sources = [{"id": "uptime", "file": "raw/uptime", "status": "ok"}]
    manifest = {"format": "hwcheck.evidence/1", "node": "gpu-1", "taken": taken, "sources": sources}
    (home / "manifest.json").write_text(json.dumps(manifest))
    (home / "notes.txt").write_text("of no part\n")
    return home


def test_the_hash_of_the_evidence_is_in_it(tmp_path: Path) -> None:
    """With --evidence the files that the manifest names, and the manifest, are hashed into the certificate."""
    home = evidence(tmp_path, "2030-05-08T04:26:40+00:00")
    told = record()
    told["nodes"][0]["about"]["taken"] = dt.datetime(2030, 5, 8, 4, 26, 40, tzinfo=dt.UTC).timestamp()
    path = kept(tmp_path, told)
    assert main(["certify", path, "-o", str(tmp_path), "--evidence", str(home.parent)]) == 0
    files = {name: (home / name).read_bytes() for name in ("manifest.json", "raw/uptime")}
    made = json.loads((tmp_path / "gpu-1.cert.json").read_text())["certificate"]
    assert made["evidence"] == evidence_hash(files)


def test_evidence_of_another_time_is_refused(tmp_path: Path, capsys: Capture) -> None:
    """Evidence that the run was not judged by is not hashed into its certificate."""
    home = evidence(tmp_path, "2030-05-01T00:00:00+00:00")
    assert main(["certify", kept(tmp_path, record()), "-o", str(tmp_path), "--evidence", str(home)]) == 2
    assert "is of another time than the run" in capsys.readouterr().err


@pytest.mark.parametrize("valid", ["0d", "4000d", "-1", "90h", ""])
def test_validity_is_a_number_of_days(valid: str, tmp_path: Path) -> None:
    """What is no number of days, or too many, is wrong usage."""
    with pytest.raises(SystemExit) as caught:
        main(["certify", kept(tmp_path, record()), "-o", str(tmp_path), f"--valid={valid}"])
    assert caught.value.code == 2


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, capsys: Capture) -> None:
    """Nothing half is left where the place is no folder."""
    (tmp_path / "taken").write_text("")
    assert main(["certify", kept(tmp_path, record()), "-o", str(tmp_path / "taken")]) == 2
    assert "taken" in capsys.readouterr().err
