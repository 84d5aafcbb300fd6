"""Many nodes at once: order, limits, and nodes that never come back."""

from __future__ import annotations

import threading
import time

import pytest

from hwcheck.errors import TransportError, UsageError
from hwcheck.transports import fan_out
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.fan_out import FanOut, Limits
from hwcheck.transports.nodesets import expand, fold
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.target import Target

HELLO = b"HWC1 hello ok 0 10 - -\nhost=gpu-1HWC1 end ok 0 0 - -\n"
RELEASE = threading.Event()


def play(target: Target, *_: object) -> Conversation:
    """Be the node that the name says."""
    if target.name.startswith("slow"):
        time.sleep(0.3)
    if target.name.startswith("stuck"):
        RELEASE.wait(30)  # whatever its deadline
    if target.name.startswith("dead"):
        raise TransportError("connection refused")
    if target.name.startswith("bug"):
        raise ZeroDivisionError("in a library")
    talk = Conversation(b"")
    talk.take(HELLO)
    return talk


def ask(*names: str, limits: Limits | None = None) -> list[Outcome]:
    """Ask nodes of these names."""
    return list(FanOut([Target(name) for name in names], play, Request(), limits or Limits()))


def test_outcomes_come_as_nodes_finish() -> None:
    """The slow one last, each once, whatever it raises."""
    outcomes = ask("slow", "well-1", "dead", "bug", "well-2")
    assert outcomes[-1].name == "slow"
    assert {o.name: str(o.error or "") for o in outcomes} == {
        "slow": "", "well-1": "", "well-2": "", "dead": "connection refused", "bug": "ZeroDivisionError: in a library",
    }  # fmt: skip


@pytest.mark.parametrize(("times", "passing", "asked", "said"), [
    (1, True, 2, ""), (2, True, 2, "hung up"), (1, False, 1, "hung up"),
])  # fmt: skip
def test_a_node_that_hangs_up_is_asked_once_more_after_the_others(
    times: int, *, passing: bool, asked: int, said: str
) -> None:
    """Only where it may help, and only once."""
    calls: list[str] = []

    def hang_up(target: Target, *rest: object) -> Conversation:
        calls.append(target.name)
        if target.name == "full" and calls.count("full") <= times:
            raise TransportError("hung up", passing=passing)
        return play(target, *rest)

    names = ["full", "well-1", "well-2"]
    outcomes = list(FanOut([Target(name) for name in names], hang_up, Request(), Limits(1)))
    assert {one.name: str(one.error or "") for one in outcomes} == {"full": said, "well-1": "", "well-2": ""}
    assert calls == [*names, "full"][: 2 + asked]


def test_no_more_nodes_at_once_than_asked_for() -> None:
    """Two at a time."""
    now, most = [0], [0]

    def count(target: Target, *_: object) -> Conversation:
        now[0] += 1
        most[0] = max(most[0], now[0])
        time.sleep(0.02)
        now[0] -= 1
        return play(target)

    assert len(list(FanOut([Target(str(n)) for n in range(10)], count, Request(), Limits(2)))) == 10
    assert most == [2]


def test_a_node_that_never_comes_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are read by another thread, and it is a line of the report."""
    monkeypatch.setattr(fan_out, "GRACE", 0.1)
    RELEASE.clear()
    began = time.monotonic()
    outcomes = ask("stuck", "well-1", "well-2", limits=Limits(1, 0.2))
    RELEASE.set()
    assert time.monotonic() - began < 10
    assert [o.name for o in outcomes] == ["stuck", "well-1", "well-2"]
    assert "timed out after" in str(outcomes[0].error)


def test_a_total_time_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose turn did not come are told too."""
    monkeypatch.setattr(fan_out, "GRACE", 0.1)
    RELEASE.clear()
    outcomes = ask("stuck", "well", limits=Limits(1, 60, 0.3))
    RELEASE.set()
    assert [str(o.error).split(" after")[0] for o in outcomes] == [
        "timed out",
        "its turn did not come within the total time",
    ]


def test_a_slow_reader_does_not_fill_the_memory() -> None:
    """Finished nodes wait to be taken; only a few."""
    fan = FanOut([Target(str(n)) for n in range(60)], play, Request(), Limits(4))
    fan.start()
    time.sleep(0.3)
    assert fan._done.qsize() <= 4
    assert len(list(fan)) == 60


def test_no_nodes_are_no_outcomes() -> None:
    """And no thread."""
    assert ask() == []


@pytest.mark.parametrize(
    ("text", "names"),
    [("gpu-[008-010]", ["gpu-008", "gpu-009", "gpu-010"]), ("a,b[1-2]", ["a", "b1", "b2"]), ("gpu-1", ["gpu-1"])],
)
def test_node_sets_in(text: str, names: list[str]) -> None:
    """Zeros are kept."""
    assert expand(text) == names


@pytest.mark.parametrize(
    "text", ["gpu-[1-", "gpu-[1-2000000]", "gpu-[1-999999999]", f"a[1-{'9' * 5000}]", "", "gpu-[5-1]"]
)
def test_node_sets_that_are_none(text: str) -> None:
    """Wrong usage, and no memory filled."""
    with pytest.raises(UsageError):
        expand(text)


def test_node_sets_out() -> None:
    """Folded; names that cannot be are listed."""
    assert fold(["gpu-012", "gpu-077", "gpu-011"]) == "gpu-[011-012,077]"
    assert fold(["a[", "b"]) == "a[,b"
    assert fold([]) == ""
