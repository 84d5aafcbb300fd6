"""Evidence byte for byte: folders, bundles, posted files."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hwcheck.errors import EvidenceError, UsageError
from hwcheck.readers.kept import Kept, read_kept

SOURCES = [{"id": "uptime", "file": "raw/uptime", "status": "ok"}]
TEXT = b" 12:00:00 up 1 day\n"


def manifest(node: str = "n1", **more: Any) -> bytes:
    """Return a manifest with one source."""
    return json.dumps({"format": "hwcheck.evidence/1", "node": node, "sources": SOURCES, **more}).encode()


def files(**more: Any) -> dict[str, bytes]:
    """Return the files of a node."""
    return {"manifest.json": manifest(**more), "raw/uptime": TEXT}


def folder(home: Path, content: dict[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, data in content.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    return home


def bundle(place: Path, content: dict[str, bytes]) -> Path:
    """Write files into an archive."""
    with tarfile.open(place, "w:gz") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return place


def test_a_folder_and_a_bundle_of_a_node_are_the_same(tmp_path: Path) -> None:
    """The manifest and what it names, byte for byte, wherever they lie."""
    one = folder(tmp_path / "n1", {**files(), "notes.txt": b"of no part"})
    two = bundle(tmp_path / "n1.tar.gz", {f"n1/{name}": data for name, data in files().items()})
    deep = bundle(tmp_path / "rma.tar.gz", {f"rma-n1/evidence/{name}": data for name, data in files().items()})
    assert read_kept([str(one)]) == read_kept([str(two)]) == read_kept([str(deep)]) == [Kept("n1", files())]


def test_a_folder_of_nodes_is_several(tmp_path: Path) -> None:
    """Each folder with a manifest is a node."""
    for name in ("n1", "n2"):
        folder(tmp_path / name, files(node=name))
    assert [one.name for one in read_kept([str(tmp_path)])] == ["n1", "n2"]


def test_posted_files_get_a_manifest(tmp_path: Path) -> None:
    """Texts without one are a node that reads as the texts do; two of one name do not cover each other."""
    paths = [folder(tmp_path / part, {"uptime.txt": TEXT}) / "uptime.txt" for part in ("a", "b")]
    (kept,) = read_kept([str(path) for path in paths])
    assert sorted(kept.files) == ["manifest.json", "raw/2-uptime.txt", "raw/uptime.txt"]
    assert kept.evidence().simulated is False


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A file that leads outside of the folder stays outside of what is hashed and handed on."""
    home = folder(tmp_path / "n1", {"manifest.json": manifest()})
    (tmp_path / "secret").write_text("secret")
    (home / "raw").mkdir()
    (home / "raw" / "uptime").symlink_to(tmp_path / "secret")
    (kept,) = read_kept([str(home)])
    assert list(kept.files) == ["manifest.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "is no JSON"), (b"[]", "is not of format"), (b'{"sources": 1}', "is not of format")],
    ids=["cut off", "a list", "no sources"],
)
def test_a_broken_manifest_is_said(content: bytes, words: str, tmp_path: Path) -> None:
    """A manifest that is none is no evidence."""
    with pytest.raises(EvidenceError, match=words):
        read_kept([str(folder(tmp_path, {"manifest.json": content}))])


def test_half_a_bundle_is_refused(tmp_path: Path) -> None:
    """A bundle that breaks off is not handed on as a whole one."""
    whole = bundle(tmp_path / "n1.tar.gz", {**files(), "raw/more": os.urandom(200_000)})
    whole.write_bytes(whole.read_bytes()[:100_000])
    with pytest.raises(EvidenceError, match="broken archive"):
        read_kept([str(whole)])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Nothing there, a device, or a pipe without a writer: refused at once."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none", Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(UsageError):
            read_kept([str(path)])


@pytest.mark.parametrize(
    ("told", "taken", "same"),
    [
        ("2030-05-01T12:00:00+00:00", 1903867200.9, True),
        ("2030-05-01T12:00:00+00:00", 1903867203.0, False),
        ("2030-05-01T12:00:00+00:00", None, False),
        ("yesterday", 1903867200.0, False),
        (7, 7, False),
        ("", 0, False),
    ],
    ids=["same second", "later", "not told", "no time", "a number", "empty"],
)
def test_evidence_is_of_a_run_by_its_time(told: object, taken: object, same: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """A manifest keeps whole seconds; what tells no time is of no run."""
    (kept,) = read_kept([str(folder(tmp_path, files(taken=told)))])
    assert kept.is_of(taken) is same
