"""The reference under docs/ is what the code says today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMITTED = ROOT / "docs/reference"
MOST_BYTES = 300_000
"""Of one page: what a browser, and the code host's viewer, still shows at once."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the reference into a folder."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, ROOT / "docs/reference.py", folder], check=True, cwd=ROOT, timeout=60)
    return folder


def test_all_pages_are_there(made: Path) -> None:
    """No page is missing, and none is left from before."""
    assert sorted(file.name for file in made.iterdir()) == sorted(file.name for file in COMMITTED.iterdir())


@pytest.mark.parametrize("name", sorted(file.name for file in COMMITTED.glob("*.md")))
def test_page_is_what_the_code_says(made: Path, name: str) -> None:
    """A page that is not is written anew by ``python docs/reference.py``, and committed with the change."""
    now, then = ((folder / name).read_text(encoding="utf-8").splitlines() for folder in (made, COMMITTED))
    assert [line for line in now if line not in then] == []
    assert then == now


@pytest.mark.parametrize("name", sorted(file.name for file in COMMITTED.glob("*.md")))
def test_page_can_be_read(name: str) -> None:
    """A page is of a size that a browser shows, and tells nothing of the machine that it was made on."""
    text = (COMMITTED / name).read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert str(ROOT) not in text
    assert str(Path.home()) + "/" not in text
