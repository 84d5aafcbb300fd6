"""``hwcheck lab`` from the command line, in host form: what nodes are there, and which of them have power."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hwcheck.cli.main import main
from hwcheck.lab.host.lab import HostLab, missing

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason="; ".join(missing()))]
Deed = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a lab, which is taken down after the test."""
    yield tmp_path / "lab"
    HostLab(tmp_path / "lab").down()


@pytest.fixture
def lab(home: Path) -> Deed:
    """Return what runs a deed."""
    return lambda *words: main(["lab", "--dir", str(home), *words])


def test_a_node_without_power_comes_back(home: Path, lab: Deed, capsys: pytest.CaptureFixture[str]) -> None:
    """It stays a node in host form, and is told as one that is off; reboot, mend and break start it again."""
    assert lab("up", "-n", "2", "--form", "host") == 0
    for deed in (["reboot", "lab-1"], ["break", "lab-1", "clock-lock"], ["mend", "lab-1"]):
        HostLab(home).stop(["lab-1"])
        capsys.readouterr()
        assert lab("list") == 0
        assert "lab-1  hgx-h200  host form, 127.0.1.1 without power" in capsys.readouterr().out
        assert lab(*deed) == 0
        assert sorted(HostLab(home).running()) == ["lab-1", "lab-2"]


def test_a_node_is_started_again_at_once(home: Path, lab: Deed) -> None:
    """Its port is held until the kernel has ended it; nobody has to wait for that."""
    assert lab("up", "--form", "host") == 0
    for _ in range(4):
        assert lab("break", "lab-1", "freezes") == 0
        assert lab("mend", "lab-1") == 0
    assert list(HostLab(home).running()) == ["lab-1"]


def test_the_inventory_has_the_nodes_that_there_are(home: Path, lab: Deed) -> None:
    """All that were started, each in the group of its platform, and none that was taken away."""
    assert lab("up", "-n", "2", "--form", "host") == 0
    assert lab("up", "--form", "host", "--name", "tray", "--platform", "gb200") == 0
    text = HostLab(home).inventory.read_text()
    assert [text.count(name) for name in ("lab-1:", "lab-2:", "tray-1:", "hgx_h200:", "gb200:")] == [2, 2, 2, 1, 1]
    assert lab("down", "lab-1", "tray-1") == 0
    text = HostLab(home).inventory.read_text()
    assert [text.count(name) for name in ("lab-1:", "lab-2:", "tray-1:", "hgx_h200:", "gb200:")] == [0, 2, 0, 1, 0]
    assert lab("down") == 0
    assert not home.exists()
