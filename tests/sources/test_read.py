"""Reading below a root: a mounted image never leads to this machine's own files."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwcheck.sources import read
from hwcheck.sources.source import Absent, Context
from hwcheck.transports.request import Request
from tests.sources.node_program import ask


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    """Return an image to which all reads are confined."""
    root = tmp_path / "image"
    (root / "etc").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret\n")
    read.confine(str(root))
    yield root
    read.confine("")


@pytest.mark.parametrize("target", ["/outside", "../../outside", "../../../../../../outside", "/etc/../../outside"])
def test_a_link_never_leads_out_of_the_image(image: Path, tmp_path: Path, target: str) -> None:
    """Absolute links and dots are resolved as the node itself would, below its own root."""
    (image / "etc/name").symlink_to(f"{tmp_path}/outside" if target == "/outside" else target)
    with pytest.raises(Absent):
        read.read(str(image / "etc/name"))


def test_an_absolute_link_stays_in_the_image(image: Path) -> None:
    """/etc/localtime of an image points into the image."""
    (image / "usr").mkdir()
    (image / "usr/zone").write_text("UTC\n")
    (image / "etc/localtime").symlink_to("/usr/zone")
    assert read.read(str(image / "etc/localtime")) == b"UTC\n"


def test_a_ring_of_links_is_absent(image: Path) -> None:
    """Links that lead to each other end."""
    (image / "etc/a").symlink_to("b")
    (image / "etc/b").symlink_to("a")
    with pytest.raises(Absent):
        read.read(str(image / "etc/a"))


def test_a_linked_directory_outside_has_no_names(image: Path, tmp_path: Path) -> None:
    """A pattern below a link that leads away finds nothing of this machine."""
    (tmp_path / "many").mkdir()
    (tmp_path / "many/file").write_text("x")
    (image / "etc/conf.d").symlink_to(tmp_path / "many")
    with pytest.raises(Absent):
        read.flat(Context(str(image)), ["etc/conf.d/*"])


def test_a_fifo_or_device_is_absent(tmp_path: Path) -> None:
    """What could block is not opened for reading."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(Absent):
            read.read(path)


@given(st.text("ab.", max_size=8), st.text("ab.*?", max_size=8))
def test_patterns_match_as_fnmatch_does(name: str, pattern: str) -> None:
    """The small matcher agrees with the library's."""
    assert read._matches(name, pattern) == fnmatch.fnmatchcase(name, pattern)


def test_a_linked_folder_of_the_image_is_followed_inside(image: Path, tmp_path: Path) -> None:
    """An absolute link to a folder means the image's folder: files, patterns and links below it are the image's."""
    (image / "usr/real").mkdir(parents=True)
    (image / "usr/real/a.conf").write_text("inside\n")
    (image / "usr/real/name").symlink_to("target")
    (image / "etc/made").symlink_to("/usr/real")
    (image / "etc/away").symlink_to(tmp_path)
    context = Context(str(image))
    assert read.expand(str(image), "/etc/made/a.conf") == ["/etc/made/a.conf"]
    assert read.sections(context, ["/etc/made/*.conf"]) == b"==> /etc/made/a.conf <==\ninside\n"
    assert read.links(context, ["/etc/made/name"]) == b"/etc/made/name -> target\n"
    assert read.expand(str(image), "/etc/away/outside") == []


@pytest.mark.parametrize("kind", ["link", "fifo", "ring"])
def test_the_first_words_about_an_image_are_its_own(tmp_path: Path, kind: str) -> None:
    """A host name that leads away, or that would block, is none; it is never this machine's, and nobody waits."""
    (tmp_path / "outside").write_text("secret\n")
    name = tmp_path / "image/etc/hostname"
    name.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(name)
    else:
        name.symlink_to(tmp_path / "outside" if kind == "link" else "hostname")
    hello = ask(Request(root=str(tmp_path / "image"), live=False, deadline=10.0), {})["hello"].text
    assert "host=\n" in hello
    assert "secret" not in hello
