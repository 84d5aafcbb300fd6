"""Bits of the configuration space: only they are written, kept by udev, undone; what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hwcheck.writers import udev
from hwcheck.writers.place import Place
from tests.writers.conftest import Node, status
from tests.writers.pci import ACCESS_CONTROL, DOWNSTREAM, EXPRESS, ROOT_PORT, Bus, space

PORT, SWITCH, GPU, NIC = "0000:15:00.0", "0000:17:00.0", "0000:18:00.0", "0000:19:00.0"


def step(key: str, value: str, subject: str = GPU, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": f"test.{key}", "subject": subject, "mechanism": "pci_bits", "key": key, "value": value, **more}


@pytest.fixture
def bus(node: Node) -> Bus:
    """Return a GPU and an adapter, each below a port, ASPM L1 on, access control redirecting."""
    made = Bus(node)
    made.add(PORT, space(ROOT_PORT, aspm=2))
    made.add(SWITCH, space(DOWNSTREAM, aspm=2, acs=0x1D), PORT)
    made.add(GPU, space(aspm=3), SWITCH, vendor="0x10de", device="0x2335")
    made.add(NIC, space(aspm=2), PORT, vendor="0x15b3", device="0x1021")
    node.program("udevadm")
    node.program("setpci")
    return made


def test_aspm_is_turned_off_at_both_ends(node: Node, bus: Bus) -> None:
    """The lower end first; clock bits beside it stay; one rule writes both again; undone from the upper end down."""
    written: list[str] = []
    plain = os.pwrite

    def pwrite(fd: int, data: bytes, at: int) -> int:
        written.append(Path(f"/proc/self/fd/{fd}").readlink().parent.name)
        return plain(fd, data, at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        assert node.round_trip(step("aspm", "0")) == ["udevadm control --reload"]
    assert written == [GPU, SWITCH, SWITCH, GPU, GPU, SWITCH]
    assert [bus.word(one, EXPRESS + 0x10) for one in (GPU, SWITCH, PORT)] == [0x40, 0x40, 0x42]
    assert (
        f'ACTION=="add|bind", SUBSYSTEM=="pci", KERNEL=="{GPU}", RUN+="/usr/bin/setpci -s %k CAP_EXP+10.w=0000:0003", '
        f'RUN+="/usr/bin/setpci -s {SWITCH} CAP_EXP+10.w=0000:0003"'
    ) in (node.text(udev.FILE) or "")


def test_aspm_of_a_port_takes_what_is_below_it_first(node: Node, bus: Bus) -> None:
    """A root port is the upper end: all functions below it, then it."""
    done = node.apply(step("aspm", "0", PORT))
    assert [one["target"] for one in done["journal"]["changes"] if one["kind"] == "bits"] == [SWITCH, NIC, PORT]
    assert (bus.word(PORT, EXPRESS + 0x10), bus.word(GPU, EXPRESS + 0x10)) == (0x40, 0x43)


def test_a_read_request_is_set_without_its_neighbours(node: Node, bus: Bus) -> None:
    """Bits 14:12 of Device Control, and relaxed ordering beside them in the same word."""
    node.round_trip(step("max_read_request", "4096", NIC), step("relaxed_ordering", "0", NIC), count=2)
    assert bus.word(NIC, EXPRESS + 8) == 0x5800
    text = node.text(udev.FILE) or ""
    assert "CAP_EXP+8.w=5000:7000" in text
    assert "CAP_EXP+8.w=0000:0010" in text


def test_access_control_redirects_no_longer(node: Node, bus: Bus) -> None:
    """Three bits are cleared; source validation (bit 0) stays; and on again."""
    node.round_trip(step("acs_redirect", "off", SWITCH))
    assert bus.word(SWITCH, ACCESS_CONTROL + 6) == 0x01
    assert "ECAP_ACS+6.w=0000:001c" in (node.text(udev.FILE) or "")
    assert status(node.apply(step("acs_redirect", "on", SWITCH), run="r8")) == [("changed", "")]
    assert bus.word(SWITCH, ACCESS_CONTROL + 6) == 0x1D
    assert "ECAP_ACS+6.w=001c:001c" in (node.text(udev.FILE) or "")


def test_what_is_right_already_needs_no_rule(node: Node, bus: Bus) -> None:
    """The firmware sets it, so nothing is written."""
    assert status(node.apply(step("max_read_request", "512", NIC))) == [("right", "")]
    assert node.text(udev.FILE) is None
    assert bus.word(NIC, EXPRESS + 8) == 0x2810


def test_a_setting_that_a_reset_cleared_is_written_again(node: Node, bus: Bus) -> None:
    """The rule is there and the register is not as wanted: the register alone is written."""
    node.apply(step("max_read_request", "4096", NIC))
    bus.put(NIC, space(aspm=2))
    done = node.apply(step("max_read_request", "4096", NIC), run="r2")
    assert [one["kind"] for one in done["journal"]["changes"]] == ["bits"]
    assert status(done) == [("changed", "")]


def test_a_rule_is_retired_alone(node: Node, bus: Bus) -> None:
    """The register stays as it is; only our line goes."""
    node.apply(step("max_read_request", "4096", NIC), step("aspm", "0"))
    assert [one["key"] for one in node.stage("held")["held"]] == [f"{GPU} aspm", f"{NIC} max_read_request"]
    assert status(node.apply(step("max_read_request", "absent", NIC), run="r2")) == [("changed", "")]
    assert "CAP_EXP+8" not in (node.text(udev.FILE) or "")
    assert bus.word(NIC, EXPRESS + 8) == 0x5810


def test_without_setpci_only_the_running_value_is_set(node: Node, bus: Bus) -> None:
    """The facet of the next boot says that nothing keeps it; a second run has nothing to do."""
    (node.bin / "setpci").unlink()
    done = node.apply(step("max_read_request", "4096", NIC))
    assert status(done) == [("changed", "")]
    assert "not kept" in done["results"][0]["after"]["next boot"]
    assert node.text(udev.FILE) is None
    assert bus.word(NIC, EXPRESS + 8) == 0x5810
    assert not node.apply(step("max_read_request", "4096", NIC), run="r2")["changed"]


@pytest.mark.parametrize(
    ("subject", "key", "value", "why"),
    [
        (GPU, "aspm", "1", "can be 0"),
        (GPU, "max_read_request", "100", "4096"),
        (GPU, "acs_redirect", "off", "no access control (ACS)"),
        (GPU, "speed", "5", "no bits"),
        ("18:00.0", "aspm", "0", "no PCI address"),
        ("0000:99:00.0", "aspm", "0", "no PCI function"),
    ],
)
def test_what_the_function_does_not_have_is_refused(
    node: Node, bus: Bus, subject: str, key: str, value: str, why: str
) -> None:
    """Nothing is written, and the sentence says why."""
    before, config = node.tree(), bus.config(GPU)
    told = status(node.apply(step(key, value, subject)))
    assert told[0][0] == "refused"
    assert why in told[0][1]
    assert (node.tree(), bus.config(GPU)) == (before, config)


@pytest.mark.parametrize(("config", "why"), [(b"\xff" * 4096, "no longer answers"), (space()[:64], "only root")])
def test_a_function_that_cannot_be_read_is_refused(node: Node, bus: Bus, config: bytes, why: str) -> None:
    """All ones is a device off the bus; 64 bytes is what a user gets."""
    bus.put(GPU, config)
    told = status(node.apply(step("max_read_request", "4096")))
    assert told[0][0] == "refused"
    assert why in told[0][1]
    assert bus.config(GPU) == config


def test_a_function_that_goes_away_meanwhile_is_told(node: Node, bus: Bus) -> None:
    """It fell off the bus between plan and write: the rule is taken back."""
    one = step("max_read_request", "4096")
    prepared = node.stage("prepare", one)
    bus.put(GPU, b"\xff" * 4096)
    done = node.stage("commit", one, journal=prepared["journal"])
    assert status(done)[0][0] == "failed"  # it cannot be proven that the register is as before
    assert "ENODEV" in status(done)[0][1]
    assert node.text(udev.FILE) is None


@pytest.mark.parametrize("case", ["guest", "dmi", "data-direct", "vfio", "rule"])
def test_access_control_that_is_not_ours_is_refused(node: Node, bus: Bus, case: str) -> None:
    """In a guest, with a data-direct adapter, on a host of virtual machines, and where another rule writes it."""
    if case == "guest":
        node.put("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n")
    elif case == "dmi":
        node.put("/sys/class/dmi/id/sys_vendor", "QEMU\n")
    elif case == "data-direct":
        bus.add("0000:1a:00.0", space(), PORT, vendor="0x15b3", device="0x1023")
    elif case == "vfio":
        node.put("/sys/bus/pci/drivers/vfio-pci/0000:1b:00.0/x", "")
    else:
        node.put("/etc/udev/rules.d/50-acs.rules", 'ACTION=="add", RUN+="/usr/bin/setpci -s %k ECAP_ACS+6.w=0"\n')
    told = status(node.apply(step("acs_redirect", "off", SWITCH)))
    assert told[0][0] == "refused"
    assert bus.word(SWITCH, ACCESS_CONTROL + 6) == 0x1D


def test_a_locked_down_kernel_is_a_refusal(node: Node, bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lockdown answers EPERM to root as well; nothing stays behind."""
    before = node.tree()

    def refuse(_fd: int, _data: bytes, _at: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "pwrite", refuse)
    told = status(node.apply(step("aspm", "0")))
    assert told[0][0] == "refused"
    assert "EPERM" in told[0][1]
    assert node.tree() == before
    assert bus.word(GPU, EXPRESS + 0x10) == 0x43


def test_an_image_gets_the_rule(image: Node) -> None:
    """Where setpci is part of the image; else nothing can be done there."""
    assert status(image.apply(step("max_read_request", "4096", NIC)))[0][0] == "refused"
    image.put("/usr/bin/setpci", "", 0o755)
    assert status(image.apply(step("max_read_request", "4096", NIC))) == [("changed", "")]
    assert f'KERNEL=="{NIC}"' in (image.text(udev.FILE) or "")
    assert Place(str(image.root)).is_image
