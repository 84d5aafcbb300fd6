"""``hwcheck gate`` on a certified lab node: ready, broken, rebooted, and with papers that do not count."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.lab import nodes
from tests.apply.fixing import SITE
from tests.gate.certified import UTC, Certified, Said, ask, certified

pytestmark = pytest.mark.lab

FULL = r"ready: certified until \d{4}-\d\d-\d\d; \d+ checks passed, \d+ warned"
FAST = r"ready: certified until \d{4}-\d\d-\d\d; nothing has changed since the full check \d+ min ago"
WHY = {
    "writable": r"it can be written by others \(mode 666\)", "link": "Too many levels of symbolic links",
    "owner": "it belongs to user 65534", "garbage": "it is not understood",
}  # fmt: skip
XID = "NVRM: Xid (PCI:0000:18:00): "


@pytest.fixture(scope="module", name="lab")
def _lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certified]:
    home = tmp_path_factory.mktemp("gate")
    node, _ = nodes.up(home / "lab", "gated-1", "hgx-h200", [])
    yield certified(node, home / "papers")
    nodes.down(home / "lab", node)


@pytest.fixture(name="one")
def _one(lab: Certified, tmp_path: Path) -> Iterator[Certified]:
    """Return the node healthy and certified, with papers and a memory of this test's own; mend it afterwards."""
    shutil.copy(lab.certificate, tmp_path / "certificate.json")
    shutil.copy(lab.key, tmp_path / "certificate.pub")
    yield Certified(lab.node, tmp_path / "certificate.json", tmp_path / "certificate.pub", tmp_path / "state")
    nodes.mend(lab.node)


def is_said(said: Said, code: int, pattern: str) -> bool:
    """Tell whether the gate ended with this code and one line of this form; show what it said where not."""
    shown = (said.code, said.text, said.errors)
    assert (said.code, bool(re.fullmatch(pattern, said.line)), said.text.count("\n")) == (code, True, 1), shown
    return True


def test_certified_node_is_ready(one: Certified) -> None:
    """The first look is a full check, and the next ones find that nothing has changed."""
    assert is_said(one.gate(), 0, FULL)
    assert is_said(one.gate(), 0, FAST)
    assert is_said(one.gate("--full"), 0, FULL)


def test_broken_node_is_not_ready(one: Certified) -> None:
    """A node that was broken is not ready, with the finding that leads, and is again once it is mended."""
    assert is_said(one.gate(), 0, FULL)
    nodes.break_node(one.node, "numa-balancing")
    assert is_said(one.gate(), 1, r"not ready: sysctl\.numa_balancing is 1, and was 0 when it was certified")
    nodes.mend(one.node)
    assert is_said(one.gate(), 0, FULL)


def test_reboot_asks_for_a_full_check(one: Certified) -> None:
    """After a reboot nothing remembered counts, until a full check has passed in the new boot."""
    assert is_said(one.gate(), 0, FULL)
    nodes.reboot(one.node)
    assert is_said(one.gate(), 0, FULL)
    assert is_said(one.gate(), 0, FAST)


def test_trust_in_a_full_check_ends(one: Certified) -> None:
    """What no fast look sees (counters, temperatures) is judged again after the time given."""
    assert is_said(one.gate("--trust", "0.001"), 0, FULL)
    assert is_said(one.gate("--trust", "0.001"), 0, FULL)


def test_application_xids_do_not_drain(one: Certified) -> None:
    """Errors that only a job suffers from leave the node ready."""
    assert is_said(one.gate(), 0, FULL)
    one.log(*(XID + f"{code}, pid={500 + code}, name=python3, Ch 0000000c" for code in (13, 31, 43, 45)))
    assert is_said(one.gate(), 0, FULL)
    assert is_said(one.gate(), 0, FAST)


def test_hardware_xid_is_a_no(one: Certified) -> None:
    """A GPU off the bus makes the node not ready, and stays so when the log has lost it, until the next boot."""
    assert is_said(one.gate(), 0, FULL)
    kmsg = one.node.root / "dev/kmsg"
    before = kmsg.read_bytes()
    one.log(XID + "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    assert is_said(one.gate(), 1, r"not ready: xid\.79 of 0000:18:00\.0: .+")
    kmsg.write_bytes(before)
    assert is_said(one.gate(), 1, r"not ready: xid\.79 of 0000:18:00\.0 was logged in this boot .+ certify .+ anew")
    nodes.reboot(one.node)
    assert is_said(one.gate(), 0, FULL)


def test_switch_error_is_a_no(one: Certified) -> None:
    """A fatal error of an NVSwitch makes the node not ready."""
    nodes.break_node(one.node, "switch-fatal")
    assert is_said(one.gate(), 1, r"not ready: sxid\..+")


def test_drift_of_a_certified_setting_is_a_no(one: Certified) -> None:
    """A setting that would pass any check, but is not the certified one, is told with both values."""
    assert is_said(one.gate(), 0, FULL)
    (one.node.root / "proc/sys/vm/min_free_kbytes").write_text("200000\n", encoding="ascii")
    assert is_said(
        one.gate(), 1, r"not ready: sysctl\.min_free_kbytes is 200000, and was 135168 when it was certified.*"
    )


def test_node_without_certificate_is_not_ready(one: Certified) -> None:
    """Without a certificate nothing is read, and the line says where it was looked for."""
    one.certificate.unlink()
    assert is_said(one.gate(), 1, "not ready: not certified: there is no .+/certificate.json")


def test_tampered_certificate_is_a_no(one: Certified) -> None:
    """A byte that was changed after a look that passed makes the node not ready."""
    assert is_said(one.gate(), 0, FULL)
    data = one.certificate.read_bytes()
    one.certificate.write_bytes(data.replace(b'"node":"gated-1"', b'"node":"gated-2"'))
    assert is_said(one.gate(), 1, r"not ready: the certificate does not count: the signature does not fit.*")
    one.certificate.write_bytes(data[:-40])
    assert is_said(one.gate(), 1, r"not ready: the certificate does not count: .+")


def test_certificate_by_another_key_is_a_no(one: Certified) -> None:
    """Only the pinned key counts, whatever the file says of itself."""
    papers = one.certificate.read_bytes()
    one.sign()
    one.certificate.write_bytes(papers)
    assert is_said(one.gate(), 1, r"not ready: the certificate does not count: signed by another key: .+")


@pytest.mark.parametrize("harm", ["gone", "garbage", "writable"])
def test_key_that_cannot_be_used_is_told(one: Certified, harm: str) -> None:
    """A key that is not there, is none, or may be written by others, leaves it open whether the node is certified."""
    assert is_said(one.gate(), 0, FULL)
    if harm == "gone":
        one.key.unlink()
    elif harm == "garbage":
        one.key.write_bytes(b"\x1b[31m\xff")
    else:
        one.key.chmod(0o666)
    assert is_said(one.gate(), 3, r"could not tell: the certificate cannot be verified: .+ \(look 1 of 3\)")


def test_certificate_out_of_date_is_told(one: Certified) -> None:
    """An expired certificate is a no, one from the future says that the clock is in doubt."""
    now = dt.datetime.now(UTC)
    one.sign(now - dt.timedelta(days=100))
    assert is_said(one.gate(), 1, r"not ready: the certificate does not count: expired.+")
    one.sign(now + dt.timedelta(days=10))
    assert is_said(one.gate(), 3, r"could not tell: this clock says .+, before the certificate was made .+")


def test_clock_that_jumped_is_told(one: Certified) -> None:
    """A certificate that only a jump of the clock makes look expired is not told, and becomes a no when that stays."""
    assert is_said(one.gate(), 0, FULL)
    one.sign(dt.datetime.now(UTC) - dt.timedelta(days=100))
    remembered = next(one.state.iterdir())
    told = json.loads(remembered.read_text(encoding="utf-8"))
    told["clock"] -= 20 * 86400  # as if the clock had been set 20 days ahead since
    remembered.write_text(json.dumps(told), encoding="utf-8")
    pattern = r"could not tell: the clock was set by \+\d+ s since the last look, .+ expired \(look {} of 3\)"
    assert is_said(one.gate(), 3, pattern.format(1))
    assert is_said(one.gate(), 3, pattern.format(2))
    assert is_said(one.gate(), 1, r"not ready: could not be told 3 times in a row: the clock was set by .+")


def test_certificate_of_another_machine_is_a_no(one: Certified, tmp_path: Path) -> None:
    """A certificate that was copied from another node does not make this one ready."""
    other, _ = nodes.up(tmp_path / "lab", "other-1", "hgx-h200", [])
    papers = certified(other, tmp_path / "other")
    nodes.down(tmp_path / "lab", other)
    moved = Certified(one.node, papers.certificate, papers.key, one.state)
    assert is_said(moved.gate(), 1, r"not ready: .*certifi.+")


def test_unknown_must_repeat(one: Certified) -> None:
    """A required source that was not told is a no only at the third look in a row, and a good look starts anew."""
    blind = ("--off", "kernel-log")
    assert is_said(one.gate(*blind), 3, r"could not tell: not told: the kernel log .+ \(look 1 of 3\)")
    assert is_said(one.gate(*blind), 3, r"could not tell: .+ \(look 2 of 3\)")
    assert is_said(one.gate(*blind), 1, r"not ready: could not be told 3 times in a row: not told: the kernel log .+")
    assert is_said(one.gate(*blind, "--unknown-times", "1"), 1, r"not ready: could not be told 1 times in a row: .+")


def test_unknown_for_long_enough_is_a_no(one: Certified) -> None:
    """With a time given, what stays unknown for that long is a no before the looks are counted out."""
    words = ("--off", "kernel-log", "--unknown-times", "100", "--unknown-for", "0.1")
    assert one.gate(*words).code == 3
    time.sleep(0.2)
    assert one.gate(*words).code == 1


def test_extra_requirements_are_asked_for(one: Certified) -> None:
    """A source that the site requires, and a first kernel that was asked for, must have been told."""
    assert is_said(one.gate("--require", "imex.files"), 3, r"could not tell: not told: imex\.files \(absent\) .+")
    said = one.gate("--cuda", "--off", "cuda-sanity")
    assert is_said(said, 3, r"could not tell: not told: cuda\.sanity \(.+\) .+")


def test_first_kernel_is_run_each_time(one: Certified) -> None:
    """A gate that is asked for CUDA runs it at each look, and takes no remembered one for it."""
    said = one.gate("--cuda")
    if "cuda.sanity (absent)" in said.line:
        pytest.skip("the lab has no CUDA library: no C compiler")
    assert is_said(said, 0, FULL)
    assert is_said(one.gate("--cuda"), 0, FULL)


def test_driver_that_hangs_is_told_in_time(one: Certified) -> None:
    """A driver that never answers costs the deadline and no more, and the line names it."""
    assert is_said(one.gate("--timeout", "6"), 0, FULL)
    nodes.break_node(one.node, "nvml-hangs")
    begun = time.monotonic()
    said = one.gate("--timeout", "6")
    assert said.code in (1, 3), said
    assert time.monotonic() - begun < 30
    assert re.search("nvml|NVML|driver", said.line), said


@pytest.mark.parametrize("harm", ["writable", "link", "folder", "owner", "garbage"])
def test_hostile_state_is_not_believed(one: Certified, harm: str, tmp_path: Path) -> None:
    """A memory that another user could have written, or that is no memory, costs a full check and nothing else."""
    assert is_said(one.gate(), 0, FULL)
    remembered = next(one.state.iterdir())
    if harm == "writable":
        remembered.chmod(0o666)
    elif harm == "link":
        remembered.rename(tmp_path / "elsewhere.json")
        remembered.symlink_to(tmp_path / "elsewhere.json")
    elif harm == "folder":
        one.state.chmod(0o777)
    elif harm == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(remembered, 65534, 65534)
    else:
        remembered.write_bytes(b"\xff[" * 100_000)
    said = one.gate()
    if harm == "folder":
        assert is_said(said, 0, FULL + r" \(nothing can be remembered in .+: its folder can be written by others .+\)")
    else:
        assert is_said(said, 0, FULL + rf" \(.+ is not believed: {WHY[harm]}\)")
        assert is_said(one.gate(), 0, FAST)


def test_unknown_that_cannot_be_counted_stays_unknown(one: Certified) -> None:
    """Where looks cannot be remembered safely no number of them makes a no, and the line says so."""
    one.state.mkdir(mode=0o700)
    one.state.chmod(0o777)
    words = ("--off", "kernel-log", "--unknown-times", "1")
    assert is_said(one.gate(*words), 3, r"could not tell: .+nothing can be remembered .+ so no look is counted\)")


def test_explain_says_what_was_looked_at(one: Certified) -> None:
    """Both ways say on what their answer rests, and the full one what has changed since."""
    full = one.gate("--explain").text
    assert [part for part in ("certificate", "settings compared with it", "read: ") if part not in full] == []
    fast = one.gate("--explain").text
    assert [part for part in ("the same as then: boot-loader", "unchanged files: ") if part not in fast] == []
    nodes.break_node(one.node, "numa-balancing")
    assert re.search(r"changed since the last full check that passed: .*sysctl", one.gate("--explain").text)


def test_other_nodes_are_asked_from_outside(one: Certified, tmp_path: Path) -> None:
    """From outside each node has a line; one without certificate is not ready, one that is not reached is not told."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    shutil.copy(one.certificate, folder / "nowhere.cert.json")
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(
        "all: {hosts: {nowhere: {ansible_host: 127.0.0.1, ansible_port: 1}, bare: {ansible_connection: local}}}\n",
        encoding="utf-8",
    )
    words = ["-m", "hwcheck", "gate", "-q", "-i", str(inventory), "--state", str(one.state)]
    papers = ["--certificate", str(folder), "--key", str(one.key)]
    both = ask([*words, *papers], one.environment())
    lines = sorted(both.text.splitlines())
    assert both.code == 1, both
    assert re.fullmatch(r"bare: not ready: not certified: there is no .+/bare\.cert\.json", lines[0])
    assert re.fullmatch(
        r"nowhere: could not tell: evidence\.reachable: could not be reached: .+ \(look 1 of 3\)", lines[1]
    )
    assert ask([*words, *papers, "--limit", "nowhere"], one.environment()).code == 3
    assert ask(words, one.environment()).code == 2


def test_image_is_refused(one: Certified) -> None:
    """What does not run cannot be ready."""
    said = ask(["-m", "hwcheck", "gate", "--root", str(one.node.root)], one.environment())
    assert (said.code, said.text) == (2, "")


def test_settings_that_only_the_deep_tier_tells_are_asked_for(tmp_path: Path) -> None:
    """Priority flow control is: certified, it is looked at again, and its loss is a no."""
    node, _ = nodes.up(tmp_path / "lab", "roce-1", "hgx-h100", [])
    one = certified(node, tmp_path / "papers")
    one.sign(tier="deep", site=(SITE,))
    settings = json.loads(one.certificate.read_text(encoding="utf-8"))["certificate"]["settings"]
    assert "roce.pfc" in {setting["check"] for setting in settings}
    assert is_said(one.gate("--site", str(SITE)), 0, FULL)
    nodes.break_node(node, "no-pfc")
    said = one.gate("--site", str(SITE), "--full")
    nodes.down(tmp_path / "lab", node)
    assert is_said(said, 1, r"not ready: roce\.pfc of .*")
