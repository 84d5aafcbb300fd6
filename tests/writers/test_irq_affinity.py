"""Interrupts of RDMA devices: sets of CPUs, kept by a unit that looks them up anew, and what would undo it."""

from __future__ import annotations

import errno
import shutil
from typing import Any

import pytest

from hwcheck.writers import udev
from hwcheck.writers.irq_affinity import UNIT, line_of
from hwcheck.writers.place import Place
from hwcheck.writers.step import Step
from tests.writers.conftest import Node, status

WANTED = "0-31,64-95"
DEVICE = "/sys/class/infiniband/mlx5_0/device"


def step(value: str = WANTED, subject: str = "mlx5_0", key: str = "interrupts") -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.irqs", "subject": subject, "mechanism": "irq_affinity", "key": key, "value": value}


@pytest.fixture
def rdma(node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a node with three interrupts, the first of which goes to a near CPU already; irqbalance is not there."""
    for number, where in (("140", "7"), ("141", "40"), ("142", "0-127")):
        node.put(f"{DEVICE}/msi_irqs/{number}", "msix\n")
        node.put(f"/proc/irq/{number}/smp_affinity_list", where + "\n")
        node.put(f"/proc/irq/{number}/effective_affinity_list", where + "\n")
    node.program("udevadm")
    node.program("systemctl", '[ "$1" != is-active ] || exit 3')
    plain = Place.set_value

    def set_value(self: Place, path: str, text: str) -> None:
        plain(self, path, text)
        if path.endswith("smp_affinity_list"):
            plain(self, path.replace("smp_", "effective_"), text)

    monkeypatch.setattr(Place, "set_value", set_value)
    return node


def test_interrupts_that_go_elsewhere_are_moved_and_kept(rdma: Node) -> None:
    """The near one keeps its place; unit, rule and running values come and go together."""
    calls = [call for call in rdma.round_trip(step("64-95,0-31")) if "is-active" not in call]
    assert calls == ["systemctl daemon-reload", "udevadm control --reload"]
    told = [rdma.text(f"/proc/irq/{number}/smp_affinity_list") for number in (140, 141, 142)]
    assert told == ["7\n", f"{WANTED}\n", f"{WANTED}\n"]
    assert 'KERNEL=="mlx5_0", TAG+="systemd", ENV{SYSTEMD_WANTS}+="hwcheck-irq@%k.service"' in (
        rdma.text(udev.FILE) or ""
    )
    text = rdma.text(UNIT.settings("mlx5_0")) or ""
    assert "msi_irqs/*; do echo 0-31,64-95 > /proc/irq/$${i##*/}/smp_affinity_list; done'" in text


def test_cpus_that_are_not_there_are_refused(rdma: Node) -> None:
    """The kernel would refuse the write, and the unit fail at each boot."""
    rdma.put("/sys/devices/system/cpu/possible", "0-127\n")
    assert "has the CPUs 0-127" in status(rdma.apply(step("120-130")))[0][1]
    assert status(rdma.apply(step("0-9999999999")))[0][0] == "refused"
    assert rdma.apply(step("64-95"))["changed"]


def test_what_the_unit_does_moves_them(rdma: Node) -> None:
    """The shell's line, led below the root, does what the writer does."""
    one = Step(0, "id", "mlx5_0", "irq_affinity", "interrupts", WANTED, {}, "nothing", "")
    script = line_of(one).partition("'")[2].rstrip("'").replace("$$", "$")
    script = script.replace("/sys/", f"{rdma.root}/sys/").replace("/proc/", f"{rdma.root}/proc/")
    rdma.place.run([shutil.which("sh") or "sh", "-c", script])
    assert rdma.text("/proc/irq/140/smp_affinity_list") == f"{WANTED}\n"


def test_a_device_is_retired_and_the_unit_goes_with_the_last(rdma: Node) -> None:
    """Rule, drop-in and unit go; the interrupts stay where they are."""
    rdma.apply(step())
    assert {one["key"] for one in rdma.stage("held")["held"]} == {"mlx5_0 interrupts"}
    assert status(rdma.apply(step("absent"), run="r2")) == [("changed", "")]
    assert [rdma.text(path) for path in (udev.FILE, UNIT.path, UNIT.settings("mlx5_0"))] == [None, None, None]
    assert rdma.text("/proc/irq/141/smp_affinity_list") == f"{WANTED}\n"


def test_an_interrupt_that_the_kernel_manages_is_refused(rdma: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """EIO: what was moved before it is moved back, and nothing is kept."""
    before = rdma.tree()
    plain = Place.set_value

    def set_value(self: Place, path: str, text: str) -> None:
        if "/142/" in path:
            raise OSError(errno.EIO, "Input/output error")
        plain(self, path, text)

    monkeypatch.setattr(Place, "set_value", set_value)
    told = status(rdma.apply(step()))
    assert told[0][0] == "refused"
    assert "manages this itself" in told[0][1]
    assert rdma.tree() == before


def test_a_move_that_waits_for_the_next_interrupt_is_told(rdma: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle interrupt moves when it next comes; a second run has nothing to do."""

    def set_value(self: Place, path: str, text: str) -> None:
        with open(self.real(path), "w", encoding="utf-8") as file:  # noqa: PTH123 - as the writer does
            file.write(text + "\n")

    monkeypatch.setattr(Place, "set_value", set_value)
    assert status(rdma.apply(step())) == [("changed", "counts from the next interrupt of each")]
    assert status(rdma.apply(step(), run="r2")) == [("right", "counts from the next interrupt of each")]


@pytest.mark.parametrize("case", ["process", "unit", "enabled"])
def test_irqbalance_that_would_move_them_back_is_named(rdma: Node, case: str) -> None:
    """Running or enabled; one that leaves these interrupts or this driver alone is no reason."""
    if case == "process":
        rdma.put("/proc/77/comm", "irqbalance\n")
        rdma.put("/proc/77/cmdline", "/usr/sbin/irqbalance\0--foreground\0")
    elif case == "unit":
        rdma.program("systemctl", '[ "$1" != is-active ] || echo active')
    else:
        rdma.put("/etc/systemd/system/multi-user.target.wants/irqbalance.service", "")
    before = rdma.tree()
    told = status(rdma.apply(step()))
    assert told[0][0] == "refused"
    assert "irqbalance" in told[0][1]
    assert rdma.tree() == before
    words = "--banirq=140 --banirq=141 -i 142"
    if case == "process":
        rdma.put("/proc/77/cmdline", "/usr/sbin/irqbalance\0" + words.replace(" ", "\0").replace("-i\0", "-i ") + "\0")
    else:
        rdma.put("/etc/default/irqbalance", f'IRQBALANCE_ARGS="{words}"\n')
    assert status(rdma.apply(step(), run="r2")) == [("changed", "")]


def test_the_driver_can_be_banned_as_a_whole(rdma: Node) -> None:
    """Numbers change with each load of the driver, its name does not."""
    driver = rdma.root / DEVICE[1:] / "driver"
    (rdma.root / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    driver.symlink_to("../../../../bus/pci/drivers/mlx5_core")
    rdma.put("/proc/77/comm", "irqbalance\n")
    rdma.put("/proc/77/cmdline", "/usr/sbin/irqbalance\0--banmod=mlx5_core\0")
    assert status(rdma.apply(step())) == [("changed", "")]


def test_irqbalance_that_the_same_run_disables_is_no_reason(rdma: Node) -> None:
    """It is stopped before interrupts are moved."""
    rdma.program(
        "systemctl",
        'case "$1" in is-active) [ -e $ROOT/stopped ] && exit 3; echo active ;; stop) touch $ROOT/stopped ;;'
        "disable) touch $ROOT/off ;;"
        "show) [ -e $ROOT/stopped ] && echo ActiveState=inactive || echo ActiveState=active;"
        "[ -e $ROOT/off ] && echo UnitFileState=disabled || echo UnitFileState=enabled; echo LoadState=loaded ;; esac",
    )
    off = {"id": "off", "mechanism": "unit", "key": "irqbalance.service", "value": "disabled"}
    assert status(rdma.apply(step(), off)) == [("changed", ""), ("changed", "")]


@pytest.mark.parametrize(
    ("value", "subject", "key"),
    [("all", "mlx5_0", "interrupts"), ("0-3", "mlx5_9", "interrupts"), ("0-3", "mlx5_0", "queues"),
     ("0-3", "../x y", "interrupts"), ("0-3", "mlx5_0 $(x)", "interrupts")],
)  # fmt: skip
def test_what_is_not_there_is_refused(rdma: Node, value: str, subject: str, key: str) -> None:
    """Nothing is written."""
    before = rdma.tree()
    assert status(rdma.apply(step(value, subject, key)))[0][0] == "refused"
    assert rdma.tree() == before


def test_an_image_gets_unit_and_rule(image: Node) -> None:
    """Without a running value."""
    assert status(image.apply(step())) == [("changed", "")]
    assert image.text(UNIT.path) is not None
    assert not image.apply(step(), run="r2")["changed"]
