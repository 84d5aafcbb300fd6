"""The demonstration: whose files it touches."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.cli.lab_demo import NODES, Demo


@pytest.mark.parametrize("host", [True, False])
def test_only_certificates_of_an_earlier_demonstration_are_removed(host: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """A folder that somebody names with -o may hold runs and certificates of real nodes, at any depth."""
    names = [name for name, _, _ in NODES]
    ours = [place / f"{name}.cert.{kind}" for name in names for place in (tmp_path, tmp_path / name)
            for kind in ("json", "html")]  # fmt: skip
    others = [tmp_path / "gpu-001.cert.json", tmp_path / "run.json", tmp_path / "deep/er/run.json",
              tmp_path / "deep/good-1.cert.json"]  # fmt: skip
    for path in [*ours, *others]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kept")
    Demo(tmp_path / "lab", tmp_path, host).forget()
    assert not any(path.exists() for path in ours)
    assert all(path.read_text() == "kept" for path in others)
