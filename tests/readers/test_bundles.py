"""Evidence directories, archives and posted files: what is read, what is refused, and that nothing is written."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwcheck.errors import EvidenceError, UsageError
from hwcheck.evidence import Evidence
from hwcheck.facts import Reason
from hwcheck.parse import take_snapshot
from hwcheck.readers import archive, bundle, posted, read_paths
from tests.machines import as_q, as_xml, hgx_h200

CMDLINE = "quiet iommu=pt\n"
XML = as_xml(hgx_h200(count=1))
SOURCE = {"id": "nvidia-smi.xml", "file": "raw/smi.xml", "status": "ok"}
Make = Callable[[Path, dict[str, bytes]], Path]


def manifest(*sources: Any, node: Any = "n1", **more: Any) -> bytes:
    """Write a manifest."""
    return json.dumps({"format": "hwcheck.evidence/1", "node": node, "sources": list(sources), **more}).encode()


def node_files(node: str, home: str = "") -> dict[str, bytes]:
    """Return the files of one node's evidence."""
    return {f"{home}manifest.json": manifest(SOURCE, node=node), f"{home}raw/smi.xml": XML.encode()}


def as_folder(place: Path, files: dict[str, bytes]) -> Path:
    """Write the files into a folder."""
    for name, data in files.items():
        (place / "evidence" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "evidence" / name).write_bytes(data)
    return place / "evidence"


def as_tar(place: Path, files: dict[str, bytes], mode: str = "w:gz", extra: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    """Write the files into a tar; ``extra`` are members without content."""
    path = place / "bundle.tar.gz"
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for member in extra:
            tar.addfile(member)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def as_zip(place: Path, files: dict[str, bytes]) -> Path:
    """Write the files into a zip."""
    path = place / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path


def read(*paths: Path) -> list[Evidence]:
    """Read paths as the command line does."""
    return list(read_paths(map(str, paths)))


def listing(place: Path) -> list[tuple[str, int]]:
    """List all files below a folder with their sizes."""
    return sorted((str(path), path.lstat().st_size) for path in place.rglob("*"))


@pytest.mark.parametrize("make", [as_folder, as_tar, as_zip])
def test_one_node_is_read_from_each_form(make: Make, tmp_path: Path) -> None:
    """A folder, a tar and a zip of it are the same evidence."""
    (evidence,) = read(make(tmp_path, node_files("n1")))
    assert (evidence.node, evidence.collected) == ("n1", True)
    assert [output.kind for output in evidence.outputs] == ["nvidia-smi.xml"]
    assert take_snapshot(evidence).subjects("gpu")


@pytest.mark.parametrize("make", [as_folder, as_tar, as_zip])
def test_several_nodes_in_one_bundle_are_told_apart(make: Make, tmp_path: Path) -> None:
    """Each folder with a manifest is a node."""
    files = node_files("n1", "a/") | node_files("n2", "b/")
    assert [evidence.node for evidence in read(make(tmp_path, files))] == ["n1", "n2"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_packing_of_a_tar_is_read(mode: str, tmp_path: Path) -> None:
    """The name of the file does not matter."""
    (evidence,) = read(as_tar(tmp_path, {f"./{name}": data for name, data in node_files("n1").items()}, mode))
    assert evidence.outputs[0].reason is None


@pytest.mark.parametrize("make", [as_folder, as_tar, as_zip])
def test_without_a_manifest_all_files_are_posted_texts_of_one_node(make: Make, tmp_path: Path) -> None:
    """Somebody's folder of outputs is read by what the texts are; binaries and empty files are named, not judged."""
    files = {"logs/smi.txt": as_q(hgx_h200(count=1)).encode(), "x.bin": bytes(64), "empty": b"", "cmd": b"$ ibstat\nx"}
    (evidence,) = read(make(tmp_path, files))
    assert not evidence.collected
    assert "nvidia-smi.q" in [output.kind for output in evidence.outputs]
    assert {"a binary file, no text", "an empty file"} <= {left.excerpt for left in evidence.leftovers}


@pytest.mark.parametrize("make", [as_folder, as_tar, as_zip])
def test_nothing_is_written(make: Make, tmp_path: Path) -> None:
    """Reading leaves the disk as it was: nothing is extracted."""
    path = make(tmp_path, node_files("n1", "a/") | {"../outside": b"x"} if make is not as_folder else node_files("n1"))
    before = listing(tmp_path)
    read(path)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b", "..\\..\\b"])
@pytest.mark.parametrize("make", [as_tar, as_zip])
def test_a_member_that_leads_outside_is_refused_and_said(make: Make, name: str, tmp_path: Path) -> None:
    """A name from an archive is never a path of this machine."""
    (evidence,) = read(make(tmp_path, {name: b"root:x:0:0\n", "ok.txt": b"$ cat /proc/cmdline\nquiet\n"}))
    assert [output.kind for output in evidence.outputs] == ["proc-cmdline"]
    assert any("outside" in left.excerpt for left in evidence.leftovers)


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """Make a member that is no file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_an_archive_are_not_followed(kind: bytes, tmp_path: Path) -> None:
    """A source that is a link in the bundle is missing, and the link is named."""
    files = {"manifest.json": manifest({"id": "proc-cmdline", "file": "raw/cmdline", "status": "ok"})}
    (evidence,) = read(as_tar(tmp_path, files, extra=(member("raw/cmdline", kind, "/proc/cmdline"),)))
    assert evidence.outputs[0].reason is Reason.UNPARSABLE
    assert evidence.outputs[0].lines == []
    assert evidence.leftovers[0].file == "raw/cmdline"


def test_a_link_in_a_zip_is_not_followed(tmp_path: Path) -> None:
    """Its content would be the path it leads to."""
    info = zipfile.ZipInfo("cmdline")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "bundle.zip", "w") as packed:
        packed.writestr(info, "/proc/cmdline")
    (evidence,) = read(tmp_path / "bundle.zip")
    assert (evidence.outputs, len(evidence.leftovers)) == ([], 1)


@pytest.mark.parametrize("name", ["raw/link", "../secret", "/etc/hostname", "raw", "raw/\0x", "x" * 5000, "raw/ring"])
def test_a_source_that_leads_out_of_the_folder_is_missing(name: str, tmp_path: Path) -> None:
    """A link, a way up, an absolute path, a folder, a NUL or a ring of links in a manifest opens nothing."""
    home = as_folder(tmp_path, {"manifest.json": manifest({"id": "proc-cmdline", "file": name}), "raw/x": b""})
    (tmp_path / "secret").write_text(CMDLINE)
    (home / "raw/link").symlink_to(tmp_path / "secret")
    (home / "raw/ring").symlink_to(home / "raw/ring")
    (evidence,) = read(home)
    assert evidence.outputs[0].reason is Reason.UNPARSABLE
    assert evidence.outputs[0].lines == []


def test_a_manifest_that_is_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    """Not even the manifest may be somebody else's file."""
    home = as_folder(tmp_path, {"raw/x": b"x"})
    (tmp_path / "other.json").write_bytes(manifest())
    (home / "manifest.json").symlink_to(tmp_path / "other.json")
    with pytest.raises(EvidenceError, match="leads outside"):
        read(home)


def test_links_in_a_posted_folder_are_not_followed(tmp_path: Path) -> None:
    """A folder of outputs holds what lies in it."""
    home = as_folder(tmp_path, {"x.txt": b"$ cat /proc/cmdline\nquiet\n"})
    (tmp_path / "secret").write_text(as_q(hgx_h200(count=1)))
    (home / "link.txt").symlink_to(tmp_path / "secret")
    (evidence,) = read(home)
    assert [output.kind for output in evidence.outputs] == ["proc-cmdline"]


@pytest.mark.parametrize("make", [as_tar, as_zip])
def test_an_archive_over_the_limits_is_refused(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many members, or too many bytes unpacked, stop the reading before they fill the memory."""
    path = make(tmp_path, {f"f{number}": b"0" * 1000 for number in range(50)})
    monkeypatch.setattr(archive, "MAX_MEMBERS", 49)
    with pytest.raises(EvidenceError, match="over the limits"):
        read(path)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 50)
    assert len(read(path)) == 1
    monkeypatch.setattr(archive, "MAX_BYTES", 49_999)
    with pytest.raises(EvidenceError, match="over the limits"):
        read(path)


def test_a_broken_archive_gives_what_can_be_read_and_says_so(tmp_path: Path) -> None:
    """Every node of a bundle that breaks off is told to be incomplete: no fault hides in the missing part."""
    files = node_files("n1", "a/") | node_files("n2", "b/") | {"rest": os.urandom(200_000)}
    path = as_tar(tmp_path, files)
    path.write_bytes(path.read_bytes()[:-100_000])
    found = read(path)
    assert [evidence.node for evidence in found] == ["n1", "n2"]
    assert all("broken archive" in why for evidence in found for _, why in evidence.broken)
    assert all(evidence.broken for evidence in found)
    assert take_snapshot(found[0]).gaps


def test_an_archive_broken_from_the_start_is_an_error(tmp_path: Path) -> None:
    """A bundle of which nothing can be read is told as such."""
    path = as_zip(tmp_path, {"f": b"0" * 10_000})
    data = bytearray(path.read_bytes())
    data[40:60] = b"\xff" * 20
    path.write_bytes(bytes(data))
    with pytest.raises(EvidenceError, match="broken archive"):
        read(path)


def test_a_broken_gzip_within_an_archive_costs_that_member_only(tmp_path: Path) -> None:
    """The other members are read; the broken one is named."""
    (evidence,) = read(as_tar(tmp_path, {"a.gz": b"\x1f\x8b\x08junk", "b": b"$ cat /proc/cmdline\nquiet\n"}))
    assert [output.kind for output in evidence.outputs] == ["proc-cmdline"]
    assert [name.endswith(":a.gz") for name, _ in evidence.broken] == [True]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"9" * 10_000, "no JSON"),
        (b"[]", "not of format"),
        (b"null", "not of format"),
        (b'{"format": "hwcheck.evidence/2", "sources": []}', "not of format"),
        (b'{"format": "hwcheck.evidence/1"}', "not of format"),
        (b'{"format": "hwcheck.evidence/1", "sources": {}}', "not of format"),
    ],
    ids=["empty", "cut", "binary", "deep", "digits", "list", "null", "version", "no sources", "no list"],
)  # fmt: skip
def test_a_manifest_that_is_none_is_an_error(data: bytes, words: str, tmp_path: Path) -> None:
    """The message names the folder and what is wrong."""
    with pytest.raises(EvidenceError, match=words):
        read(as_folder(tmp_path, {"manifest.json": data}))


def test_a_huge_manifest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest lists some hundred sources; one of gigabytes is not read into memory."""
    monkeypatch.setattr(bundle, "MAX_MANIFEST", 100)
    with pytest.raises(EvidenceError, match="larger than"):
        read(as_folder(tmp_path, {"manifest.json": manifest(*[SOURCE] * 10)}))


@pytest.mark.parametrize(
    "change",
    [
        {"status": []},
        {"status": {}},
        {"status": None},
        {"status": "splendid"},
        {"file": None},
        {"file": 5},
        {"file": ["raw/smi.xml"]},
        {"file": "raw/none"},
        {"status": "truncated"},
        {"status": "timeout", "file": None},
        {"status": "denied", "file": None, "detail": ["x"]},
    ],
    ids=repr,
)
def test_a_source_with_a_wrong_field_is_asked_and_not_told(change: dict[str, Any], tmp_path: Path) -> None:
    """Whatever is wrong with a source, the checks that need it become unknown: it was asked."""
    files = node_files("n1") | {"manifest.json": manifest(SOURCE | change)}
    (evidence,) = read(as_folder(tmp_path, files))
    (output,) = evidence.outputs
    assert output.reason is not None
    assert output.reason.asked


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, True, "3", [], 10**4000, None])
def test_a_duration_that_is_none_is_not_kept(seconds: Any, tmp_path: Path) -> None:
    """A duration is a finite number of seconds, or unknown."""
    text = json.dumps({"id": "ibstat", "file": None, "status": "timeout"})
    raw = str(seconds) if isinstance(seconds, int) and not isinstance(seconds, bool) else json.dumps(seconds)
    data = f'{{"format": "hwcheck.evidence/1", "sources": [{text[:-1]}, "seconds": {raw}}}]}}'.encode()
    (evidence,) = read(as_folder(tmp_path, {"manifest.json": data}))
    assert evidence.outputs[0].seconds is None
    (evidence,) = read(as_folder(tmp_path, {"manifest.json": data.replace(raw.encode(), b"0.25")}))
    assert evidence.outputs[0].seconds == pytest.approx(0.25)


@pytest.mark.parametrize("source", [None, 7, "ibstat", [], {}, {"file": "raw/smi.xml"}, {"id": 3}])
def test_a_source_without_an_id_is_said(source: Any, tmp_path: Path) -> None:
    """It cannot be told what was asked, so the evidence is incomplete."""
    (evidence,) = read(as_folder(tmp_path, node_files("n1") | {"manifest.json": manifest(SOURCE, source)}))
    assert len(evidence.outputs) == 1
    assert evidence.broken == [("manifest.json", "source 2 has no id")]


@pytest.mark.parametrize(
    ("node", "shown"), [("\x1b[31mn1\x07\u202e", "n1"), ("x" * 999, "x" * 255), (5, ""), (None, "")]
)
def test_a_node_name_is_plain_text(node: Any, shown: str, tmp_path: Path) -> None:
    """A name from a node cannot paint the operator's terminal."""
    (evidence,) = read(as_folder(tmp_path, {"manifest.json": manifest(node=node)}))
    assert evidence.node == shown


def test_a_posted_source_is_recognised_by_its_text(tmp_path: Path) -> None:
    """A manifest may hold a text that nobody named; one that is lost or broken is said."""
    files = {
        "manifest.json": manifest(*({"id": "posted", "file": f"raw/{name}"} for name in ("a", "gone", "b.gz"))),
        "raw/a": f"$ cat /proc/cmdline\n{CMDLINE}".encode(),
        "raw/b.gz": b"\x1f\x8b\x08junk",
    }
    (evidence,) = read(as_folder(tmp_path, files))
    assert [output.kind for output in evidence.outputs] == ["proc-cmdline"]
    assert [name for name, _ in evidence.broken] == ["raw/gone", "raw/b.gz"]


def test_a_posted_source_of_other_hosts_is_not_lost(tmp_path: Path) -> None:
    """Lines that name two hosts become two more nodes beside the manifest's own."""
    lines = [f"{host}: {line}" for host in ("n7", "n8") for line in ("CA 'mlx5_0'", "\tPort 1:", "\t\tRate: 400")]
    files = {"manifest.json": manifest({"id": "posted", "file": "raw/a"}), "raw/a": "\n".join(lines).encode()}
    assert [evidence.node for evidence in read(as_folder(tmp_path, files))] == ["n1", "n7", "n8"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["id", "file", "status", "detail", "seconds", "time", "command"])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sources=st.lists(
        st.dictionaries(KEYS, VALUES | st.sampled_from(["ibstat", "posted", "raw/smi.xml"]), max_size=7) | VALUES,
        max_size=4,
    ),
    node=VALUES,
)
def test_no_manifest_is_an_error_that_escapes(sources: list[Any], node: Any, tmp_path: Path) -> None:
    """Any JSON in the right frame is evidence that can be parsed."""
    for evidence in read(as_folder(tmp_path, node_files("n1") | {"manifest.json": manifest(*sources, node=node)})):
        take_snapshot(evidence)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 2000), junk=st.binary(min_size=1, max_size=30), form=st.sampled_from([as_tar, as_zip]))
def test_no_damaged_archive_is_an_error_that_escapes(at: int, junk: bytes, form: Make, tmp_path: Path) -> None:
    """Bytes changed anywhere give evidence or an error that is told."""
    path = form(tmp_path, node_files("n1", "a/"))
    data = bytearray(path.read_bytes())
    data[at % len(data) : at % len(data) + len(junk)] = junk
    path.write_bytes(bytes(data))
    try:
        read(path)
    except (EvidenceError, UsageError):
        return


def test_several_paths_are_one_node_and_bundles_are_others(tmp_path: Path) -> None:
    """Posted files belong together; a bundle among them is a node of its own."""
    (tmp_path / "a.txt").write_text(as_q(hgx_h200(count=1)))
    (tmp_path / "b.txt").write_text("$ cat /proc/cmdline\nquiet\n")
    found = read(tmp_path / "a.txt", as_tar(tmp_path, node_files("n1")), tmp_path / "b.txt")
    assert [(evidence.node, len(evidence.outputs)) for evidence in found] == [("n1", 1), ("", 2)]


def test_standard_input_is_a_posted_file() -> None:
    """A dash reads what is piped in."""
    (evidence,) = read_paths(["-"], io.BytesIO(b"$ cat /proc/cmdline\nquiet\n"))
    assert [(output.kind, output.file) for output in evidence.outputs] == [("proc-cmdline", "standard input")]


def test_a_pipe_named_as_a_file_is_read(tmp_path: Path) -> None:
    """``--evidence <(nvidia-smi -q)`` gives a pipe, which cannot be searched for an archive."""
    reader, writer = os.pipe()
    os.write(writer, b"$ cat /proc/cmdline\nquiet\n")
    os.close(writer)
    try:
        (evidence,) = read_paths([f"/dev/fd/{reader}"])
    finally:
        os.close(reader)
    assert [output.kind for output in evidence.outputs] == ["proc-cmdline"]
    assert listing(tmp_path) == []


def test_a_path_that_is_not_there_or_empty_is_wrong_usage(tmp_path: Path) -> None:
    """A slip in a path never passes for a healthy node."""
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "none")
    with pytest.raises(UsageError, match="no file in it"):
        read(tmp_path)


def test_a_folder_of_too_many_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read is told."""
    monkeypatch.setattr(posted, "MAX_FILES", 2)
    (evidence,) = read(as_folder(tmp_path, dict.fromkeys("abc", b"x\n")))
    assert evidence.broken[0][1] == "3 files, only the first 2 were read"
