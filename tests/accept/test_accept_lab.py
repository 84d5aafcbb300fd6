"""Sixteen lab nodes are accepted: what software can fix is certified, the rest told apart; killed and resumed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.lab.faults import FAULTS
from hwcheck.lab.host.lab import missing
from tests.accept.accepting import FLEET, AcceptBench
from tests.lab.host_machine import login

pytestmark = [pytest.mark.lab, pytest.mark.slow]
PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
SMALL = (("hgx-h200", "persistence-off"), ("gb200", "memlock-64k"), ("hgx-h100", "remap-failed"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcceptBench]:
    """Start the fleet."""
    yield from started(tmp_path_factory, FLEET)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcceptBench]:
    """Start three nodes."""
    yield from started(tmp_path_factory, SMALL)


def started(factory: pytest.TempPathFactory, fleet: tuple[tuple[str, str], ...]) -> Iterator[AcceptBench]:
    """Start a lab, and end it."""
    lacks = missing()
    if lacks:
        pytest.skip(f"the lab's host form needs {'; '.join(lacks)}")
    made = AcceptBench(factory.mktemp("accept"), fleet)
    yield made
    made.close()


def name_of(out: str) -> str:
    """Return the name of the run that was told at the end."""
    return re.findall(r"^run (\S+)$", out, re.MULTILINE)[-1]


def test_a_fleet_ends_with_certificates_and_with_what_is_in_the_way(bench: AcceptBench) -> None:
    """Every node that software can fix is certified, each other one is refused with what leads its incident."""
    told = bench.run(*bench.words())
    assert told.code == 1, told.out[-2000:] + told.err[-2000:]
    run, folder = bench.result(name_of(told.out))
    certified = {path.name.partition(".")[0] for path in folder.glob("*.cert.json")}
    assert certified == set(bench.faults) - bench.by_hand, told.out[-3000:]
    assert bench.by_hand == {"n13", "n14", "n15", "n16"}
    for name in bench.by_hand:
        wanted = FAULTS[bench.faults[name]].leads
        block = told.out.partition(f"not certified: {name}\n")[2].partition("\nnot certified")[0]
        assert any(lead in block for lead in wanted), f"{name}: {wanted} in {block[:500]}"
    assert {one["node"] for one in run["changes"] if one["status"] == "changed"} <= set(bench.faults) - bench.by_hand
    assert {one["node"] for one in run["measurements"]} >= certified
    assert (folder / "report.html").stat().st_size > 50_000


def test_certificates_verify_and_a_changed_byte_does_not(bench: AcceptBench) -> None:
    """Offline, by the key that signed them."""
    folder = max(bench.state.glob("hwcheck/accept/*/result"))
    good = folder / "n01.cert.json"
    assert bench.run("verify", str(good)).code == 0
    data = good.read_bytes()
    for at in (len(data) // 7, len(data) // 2, len(data) - 40):
        bad = folder / "bad.cert.json"
        bad.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert bench.run("verify", str(bad)).code == 1


def test_certificates_are_put_on_nodes_where_the_gate_looks(bench: AcceptBench) -> None:
    """A node that got none has none; a second run changes nothing."""
    folder = max(bench.state.glob("hwcheck/accept/*/result"))
    key = next(bench.state.rglob("*.pub"))
    words = [
        "ansible-playbook", "-i", str(bench.lab.inventory), "-l", "n01,n13", str(PLAYBOOKS / "certificates.yml"),
        "-e", f"certificates={folder}", "-e", f"key={key}",
    ]  # fmt: skip
    login(bench.lab, "n13", "mkdir -p /etc/hwcheck; echo old >/etc/hwcheck/certificate.json")
    first = bench.program(*words)
    assert first.code == 0, first.out[-1500:] + first.err[-500:]
    assert login(bench.lab, "n01", "cat /etc/hwcheck/certificate.json") == (folder / "n01.cert.json").read_text()
    assert "No such file" in login(bench.lab, "n13", "cat /etc/hwcheck/certificate.json")
    assert bench.program(*words).out.count("changed=0") == 2


@pytest.mark.parametrize("stage", ["check", "begun", "apply", "recheck", "baseline"])
def test_an_acceptance_that_was_killed_goes_on(stage: str, small: AcceptBench) -> None:
    """From wherever it was; its end is the same."""
    for broken, fault in list(small.faults.items())[:2]:
        assert small.run("lab", "--dir", str(small.lab.home), "mend", broken).code == 0
        assert small.run("lab", "--dir", str(small.lab.home), "break", broken, fault).code == 0
    name = small.kill_after(stage)
    told = small.run("accept", "--resume", name, "--yes")
    assert told.code == 1, told.out[-2000:] + told.err[-2000:]
    assert name_of(told.out) == name
    _, folder = small.result(name)
    assert {path.name.partition(".")[0] for path in folder.glob("*.cert.json")} == {"n01", "n02"}, told.out
