"""chrony's servers and directives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.writers.conftest import Node, status

MAIN, RHEL = "/etc/chrony/chrony.conf", "/etc/chrony.conf"
CONF, SOURCES = "/etc/chrony/conf.d/90-hwcheck.conf", "/etc/chrony/sources.d/90-hwcheck.sources"
DEBIAN = """# Debian
makestep 1 3
confdir /etc/chrony/conf.d
pool ntp.example.org iburst
sourcedir /run/chrony-dhcp
sourcedir /etc/chrony/sources.d
rtcsync
"""
TRACKING = "echo 0A000001,10.0.0.1,3,1780304102.1,{},0.1,0.1,-1.5,0.0,0.0,0.0,0.0,64.4,{}\n"
SYSTEMCTL = """
[ "$1" = show ] || exit 0
shift 3
for unit; do echo Id=$unit; cat $ROOT/active-$unit 2>/dev/null || echo ActiveState=inactive; echo; done
"""


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.it", "mechanism": "chrony", "key": key, "value": value, **more}


@pytest.fixture
def chrony(node: Node) -> Node:
    """Return a node with chrony as Debian has it, synchronised."""
    node.put(MAIN, DEBIAN)
    node.put("/usr/lib/systemd/system/chrony.service", "[Service]\n")
    node.program("chronyc", TRACKING.format("0.00001", "Normal"))
    node.program("systemctl", SYSTEMCTL)
    return node


def acts(calls: list[str]) -> list[str]:
    """Return what was done, without what was asked."""
    return [line for line in calls if "tracking" not in line and "show" not in line]


def test_servers_are_added_and_read_again_without_a_restart(chrony: Node) -> None:
    """Those of the site's file stay; each has iburst unless it has options."""
    calls = chrony.round_trip(step("servers", "10.0.0.1, 10.0.0.2 prefer minpoll 4"))
    assert acts(calls) == ["chronyc reload sources"]
    assert (chrony.text(SOURCES) or "").endswith("\nserver 10.0.0.1 iburst\nserver 10.0.0.2 prefer minpoll 4\n")
    assert chrony.text(CONF) is None


def test_servers_of_ours_that_are_not_wanted_any_more_go(chrony: Node) -> None:
    """Another list, or other options of the same server; what the site's file has stays."""
    for run, servers in enumerate(("10.0.0.1, 10.0.0.2", "10.0.0.2", "10.0.0.2 minpoll 4")):
        assert status(chrony.apply(step("servers", servers), run=f"s{run}")) == [("changed", "")]
    assert (chrony.text(SOURCES) or "").endswith("; key servers\nserver 10.0.0.2 minpoll 4\n")
    assert chrony.text(MAIN) == DEBIAN
    assert status(chrony.apply(step("servers", "10.0.0.2 minpoll 4"), run="s9")) == [("right", "")]


def test_directives_need_a_restart(chrony: Node) -> None:
    """Once for all of them, in the file of our own."""
    calls = chrony.round_trip(step("hwtimestamp", "*"), step("maxdistance", "1.0"), count=2)
    assert acts(calls) == ["systemctl try-restart chrony.service"]
    done = chrony.apply(step("hwtimestamp", "absent"), run="r8")
    assert status(done) == [("changed", "")]
    assert "hwtimestamp" not in (chrony.text(CONF) or "")


@pytest.mark.parametrize(("offset", "leap"), [("3.5", "Normal"), ("0.000000000", "Not synchronised")])
def test_the_clock_is_not_stepped_by_a_restart(chrony: Node, offset: str, leap: str) -> None:
    """Off, or not synchronised: the file is written and counts from the next start."""
    chrony.program("chronyc", TRACKING.format(offset, f"'{leap}'"))
    assert status(chrony.apply(step("maxdistance", "1.0"))) == [("changed", "")]
    assert acts(chrony.calls()) == []


def test_makestep_counts_from_the_next_start(chrony: Node) -> None:
    """Written, without a restart; without a limit it is refused."""
    assert status(chrony.apply(step("makestep", "0.5 3"))) == [("changed", "")]
    assert acts(chrony.calls()) == []
    for value in ("1.0 -1", "1.0", "1.0 1000"):
        assert "at any time" in status(chrony.apply(step("makestep", value), run="r2"))[0][1]


def test_what_the_site_sets_so_is_right(chrony: Node) -> None:
    """Numbers are compared as numbers; a bare directive is on."""
    done = chrony.apply(step("makestep", "1.0 3"), step("rtcsync", "on"), step("servers", "ntp.example.org"))
    assert [one["status"] for one in done["results"]] == ["right"] * 3


def test_what_the_site_sets_after_ours_is_refused(chrony: Node) -> None:
    """A later file, or a line of chrony.conf below the place where ours is read."""
    chrony.put(MAIN, DEBIAN + "maxdistance 3\n")
    assert f"{MAIN} sets maxdistance" in status(chrony.apply(step("maxdistance", "1.0")))[0][1]
    chrony.put(MAIN, DEBIAN)
    chrony.put("/etc/chrony/conf.d/99-site.conf", "maxdistance 3\n")
    assert "99-site.conf sets maxdistance" in status(chrony.apply(step("maxdistance", "1.0"), run="r2"))[0][1]


def test_a_configuration_that_looks_nowhere_is_the_sites(node: Node) -> None:
    """As RHEL's is: the line that is missing is named; with it the file is written, and the unit is chronyd's."""
    node.put(RHEL, "pool 2.rhel.pool.ntp.org iburst\nmakestep 1.0 3\n")
    node.put("/usr/lib/systemd/system/chronyd.service", "[Service]\n")
    node.program("chronyc", TRACKING.format("0.00001", "Normal"))
    node.program("systemctl", SYSTEMCTL)
    told = node.apply(step("servers", "10.0.0.1"), step("maxdistance", "1.0"))
    assert '"sourcedir /etc/chrony.d"' in status(told)[0][1]
    assert '"confdir /etc/chrony.d"' in status(told)[1][1]
    node.put(RHEL, "pool 2.rhel.pool.ntp.org iburst\nconfdir /etc/chrony.d\n")
    calls = node.round_trip(step("servers", "10.0.0.1"), step("maxdistance", "1.0"), count=2)
    assert acts(calls) == ["systemctl try-restart chronyd.service"]


def test_one_daemon_only(chrony: Node) -> None:
    """Whoever keeps the clock beside chrony is named."""
    chrony.put("/usr/lib/systemd/system/systemd-timesyncd.service", "[Service]\n")
    chrony.put("active-systemd-timesyncd.service", "ActiveState=active\n")
    assert "systemd-timesyncd.service keeps this clock" in status(chrony.apply(step("servers", "10.0.0.1")))[0][1]


@pytest.mark.parametrize(
    ("key", "value"),
    [("servers", ""), ("servers", "a;b"), ("servers", "x\ty$"), ("cmdallow", "all"), ("hwtimestamp", "a#b")],
)
def test_what_is_not_understood_is_refused(chrony: Node, key: str, value: str) -> None:
    """Nothing is written."""
    done = chrony.apply(step(key, value))
    assert not done["ok"] or status(done)[0][0] == "refused"
    assert chrony.text(CONF) is None


def test_a_daemon_that_does_not_come_back_fails_and_is_restarted_as_before(chrony: Node) -> None:
    """The file goes, and the service is restarted without it."""
    chrony.program("systemctl", SYSTEMCTL.replace("|| exit 0", f"|| {{ [ ! -e $ROOT{CONF} ]; exit $?; }}"))
    done = chrony.apply(step("maxdistance", "1.0"))
    assert not done["ok"]
    assert status(done)[0][0] == "failed"
    assert chrony.text(CONF) is None
    assert acts(chrony.calls()) == ["systemctl try-restart chrony.service"] * 2


def test_images_get_the_files(image: Node) -> None:
    """Nothing is asked or run."""
    image.put(MAIN, DEBIAN)
    done = image.apply(step("servers", "10.0.0.1"), step("hwtimestamp", "*"))
    assert [one["status"] for one in done["results"]] == ["changed", "changed"]


def test_no_chrony_is_told(node: Node) -> None:
    """Nothing is made for a daemon that is not there."""
    assert "not installed" in status(node.apply(step("servers", "10.0.0.1")))[0][1]
