"""Since when is something so: spells over runs, and what changed before them."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.store import Store
from hwcheck.store.spells import Cause, Spell, differences
from tests.store.runs import DAY, DOWN, GPU, HOUR, PASSED, PORT, START, XID, Statuses, make_run

NONE: Statuses = {("xid.none", ""): "pass", PASSED: "pass"}
"""A run that judged Xids, and found none."""
UNREACHED: Statuses = {("evidence.read", ""): "unknown"}
OTHER_FAMILY: Statuses = {("thermal.slowdown", GPU): "pass"}
NEVER_ASKED: Statuses = {("xid.events", ""): "skip", PASSED: "pass"}


def over(*days: Statuses, check: str = "", url: str = "") -> list[Spell]:
    """Keep one run a day, named after its day, and ask for the history of the node."""
    store = Store.open(url)
    for day, told in enumerate(days):
        store.keep(make_run(START + day * DAY, {"gpu-1": told}, f"day-{day}"))
    return store.history("gpu-1", check)


def told(spell: Spell) -> tuple[Any, ...]:
    """Return the days of a spell: before, first, last, ended, not told."""
    moments = (spell.before, spell.first, spell.last, spell.ended, spell.untold)
    return (spell.status, *(int(one.run[4:]) if one else None for one in moments))


@pytest.mark.parametrize(
    ("days", "spells"),
    [
        ([{XID: "fail"}, {XID: "fail"}], [("fail", None, 0, 1, None, None)]),
        ([NONE, {XID: "fail"}, {XID: "fail"}], [("fail", 0, 1, 2, None, None)]),
        ([{XID: "pass"}, {XID: "fail"}, {XID: "pass"}], [("fail", 0, 1, 1, 2, None)]),
        ([{XID: "fail"}, NONE, {XID: "fail"}], [("fail", None, 0, 0, 1, None), ("fail", 1, 2, 2, None, None)]),
        ([{XID: "warn"}, {XID: "fail"}], [("warn", None, 0, 0, 1, None), ("fail", 0, 1, 1, None, None)]),
    ],
)
def test_a_spell_lasts_until_a_run_tells_otherwise(
    days: list[Statuses], spells: list[tuple[Any, ...]], url: str
) -> None:
    """From the first run that told it; an event that a whole log no longer has is gone."""
    assert sorted(map(told, over(*days, check="xid.79", url=url)), key=str) == sorted(spells, key=str)


@pytest.mark.parametrize(
    "silent", [UNREACHED, OTHER_FAMILY, NEVER_ASKED, {XID: "unknown"}, {XID: "skip"}, {("xid.79", "other"): "skip"}]
)
def test_what_could_not_be_told_ends_nothing(silent: Statuses) -> None:
    """A node that is not reached, a run of another family, a log that was not read: the fault is still there."""
    (spell,) = over({XID: "fail"}, silent, check="xid.79")
    assert told(spell) == ("fail", None, 0, 0, None, 1)
    assert spell.untold is not None
    (again,) = over({XID: "fail"}, silent, {XID: "fail"}, check="xid.79")
    assert told(again) == ("fail", None, 0, 2, None, None)
    assert again.runs == 2


def test_the_check_was_judged_on_other_parts() -> None:
    """A GPU that is no longer there has no row remap pending."""
    other = ("rdma.port_down", "mlx5_1/1")
    (spell,) = [one for one in over({DOWN: "fail", other: "pass"}, {other: "pass"}) if one.subject == PORT]
    assert told(spell) == ("fail", None, 0, 0, 1, None)
    assert spell.ended is not None
    assert spell.ended.status == "gone"


def test_what_was_never_known_ends_with_an_answer() -> None:
    """Unknown lasts until it is told, or does not apply any more."""
    spells = over({XID: "unknown"}, {XID: "unknown"}, {XID: "pass"}, {DOWN: "unknown", **NONE}, {DOWN: "skip", **NONE})
    assert [(one.check, *told(one)) for one in spells] == [
        ("rdma.port_down", "unknown", None, 3, 3, 4, None),
        ("xid.79", "unknown", None, 0, 1, 2, None),
    ]


def test_causes_are_what_changed_before(url: str) -> None:
    """Versions and firmware by the parts they are of, a boot, and what hwcheck wrote meanwhile; not what came later."""
    nic = {"id": "mlx5_0", "firmware": "28.1"}
    gpu = {"id": GPU, "vbios": "96.1", "serial": "165"}
    before = {"versions": {"driver": "570.1", "kernel": "6.1"}, "nics": [nic], "gpus": [gpu], "boot_id": "a"}
    after = {
        "versions": {"driver": "570.2", "kernel": "6.1", "BIOS": "2.0"}, "nics": [{**nic, "firmware": "28.2"}],
        "gpus": [gpu], "boot_id": "b",
    }  # fmt: skip
    change = {
        "node": "gpu-1", "check": "sysctl.swap", "subject": "", "mechanism": "sysctl", "key": "vm.swappiness",
        "from": "60", "to": "1", "status": "changed", "why": "wanted",
    }  # fmt: skip
    refused = {**change, "key": "vm.other", "status": "refused"}
    elsewhere = {**change, "node": "gpu-2", "key": "vm.third"}
    store = Store.open(url)
    store.keep(make_run(START, {"gpu-1": {XID: "pass"}}, "before", about=before))
    changes = [change, refused, elsewhere]
    store.keep(make_run(START + HOUR, {}, "wrote", kind="apply", changes=changes))
    store.keep(make_run(START + 2 * HOUR, {"gpu-1": {XID: "fail"}}, "after", about=after))
    store.keep(make_run(START + 3 * HOUR, {}, "later", kind="apply", changes=[{**change, "key": "vm.later"}]))
    store.keep(make_run(START + 4 * HOUR, {"gpu-1": {XID: "fail"}}, "last", about={**after, "boot_id": "c"}))
    (spell,) = store.history("gpu-1")
    assert set(spell.causes) == {
        Cause("boot", "", "a", "b"),
        Cause("driver", "", "570.1", "570.2"),
        Cause("NIC firmware", "mlx5_0", "28.1", "28.2"),
        Cause("sysctl vm.swappiness", "", "60", "1", "wrote"),
    }


def test_parts_come_and_go() -> None:
    """A GPU that fell off and one that was put in are told; a reader who sees no parts at all has lost none."""
    one, other = {"gpus": [{"id": GPU}]}, {"gpus": [{"id": "0000:2a:00.0"}]}
    assert differences(one, other) == [Cause("GPU", GPU, GPU, ""), Cause("GPU", "0000:2a:00.0", "", "0000:2a:00.0")]
    assert differences(one, {"gpus": []}) == differences({}, one) == []
    serials = [{"gpus": [{"id": GPU, "serial": serial}]} for serial in ("165", "166")]
    assert differences(*serials) == [Cause("GPU serial", GPU, "165", "166")]


def test_history_of_all_nodes_and_of_a_family(url: str) -> None:
    """Without a node all of them; a family, or a pattern, of checks; only runs since a time."""
    store = Store.open(url)
    store.keep(make_run(START, {"gpu-1": {XID: "fail", DOWN: "fail"}, "gpu-2": {XID: "fail"}}))
    store.keep(make_run(START + DAY, {"gpu-3": {DOWN: "warn"}}))
    assert [(one.node, one.check) for one in store.history()] == [
        ("gpu-1", "rdma.port_down"), ("gpu-1", "xid.79"), ("gpu-2", "xid.79"), ("gpu-3", "rdma.port_down"),
    ]  # fmt: skip
    for pattern in ("xid", "xid.79", "xid.*"):
        assert [one.node for one in store.history(check=pattern)] == ["gpu-1", "gpu-2"]
    assert [one.node for one in store.history(since=START + HOUR)] == ["gpu-3"]
    assert [one.message for one in store.history("gpu-2")] == ["xid.79 says fail"]
    assert store.history("gpu-9") == []


def test_status_says_how_each_node_stands(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """A fail stays until it is shown right; a waived one does not count while its waiver holds."""
    monkeypatch.setattr("hwcheck.store.store.WINDOW", 1e10)
    store = Store.open(url)
    nodes = {"ok": NONE, "bad": {XID: "fail"}, "warned": {DOWN: "warn"}, "lost": UNREACHED, "hidden": {XID: "fail"}}
    store.keep(make_run(START, nodes))
    store.keep(make_run(START + HOUR, {"hidden": UNREACHED}))
    accepted, expired = {XID: "2999-01-01"}, {XID: "2026-11-01"}
    store.keep(make_run(START, {"waived": {XID: "fail"}}, waived=accepted))
    store.keep(make_run(START, {"expired": {XID: "fail"}}, waived=expired))
    found = {one.node: one for one in store.status()}
    assert {node: one.state for node, one in found.items()} == {
        "ok": "ok", "bad": "failing", "warned": "ok", "lost": "unknown", "hidden": "failing", "waived": "ok",
        "expired": "failing",
    }  # fmt: skip
    assert found["bad"].failing == (XID,)
    assert [(one.check, one.expires, one.owner) for one in found["waived"].waived] == [("xid.79", "2999-01-01", "ops")]
    assert found["hidden"].at == START + HOUR


def test_a_node_that_was_last_seen_long_ago_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands as its last run says; that it is old is seen by the time."""
    store = Store.open()
    store.keep(make_run(START - 400 * DAY, {"gpu-1": {XID: "fail"}}))
    store.keep(make_run(START, {"gpu-2": NONE}))
    monkeypatch.setattr("hwcheck.store.store.WINDOW", 0.0)
    assert [(one.node, one.state) for one in store.status()] == [("gpu-1", "failing"), ("gpu-2", "ok")]
