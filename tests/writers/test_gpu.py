"""Settings of GPUs through the lab's NVML: running, kept by a unit, undone, refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hwcheck.writers import gpu_clocks, nvml
from hwcheck.writers.gpu_unit import UNIT
from tests.writers.conftest import BOOT, Node, status
from tests.writers.gpus import GPU, OTHER, UUID, Gpus

WANTS = "etc/systemd/system/{}.wants/hwcheck-gpu.service"


@pytest.fixture
def gpus(node: Node, nvml_library: Path) -> Gpus:
    """Return a node with two GPUs."""
    return Gpus(node, nvml_library)


def step(key: str, value: str, subject: str = GPU, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": f"test.{key}", "subject": subject, "mechanism": "gpu", "key": key, "value": value, **more}


def test_persistence_is_set_and_its_next_boot_told(gpus: Gpus) -> None:
    """The running value is written, and undone; the next boot is what nvidia-persistenced will do."""
    gpus.put(persistence=0)
    assert gpus.node.round_trip(step("persistence", "1")) == []
    assert gpus.get("persistence") == "1"
    told = gpus.node.stage("check", step("persistence", "1"))["results"][0]
    assert (told["status"], told["before"]["next boot"]) == ("right", "0")
    gpus.node.put("/usr/lib/udev/rules.d/71-nvidia.rules", 'RUN+="/usr/bin/systemctl start nvidia-persistenced"\n')
    gpus.node.put("/etc/systemd/system/nvidia-persistenced.service.d/90-hwcheck.conf",
                  "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --persistence-mode\n")  # fmt: skip
    assert gpus.node.stage("check", step("persistence", "1"))["results"][0]["before"]["next boot"] == "1"


def test_locks_and_limits_are_kept_by_one_unit(gpus: Gpus) -> None:
    """All keys of two GPUs: one drop-in, a unit with two links, and everything gone after the undoing."""
    steps = [
        step("graphics_clocks", "1980,1980"), step("memory_clocks", "3201,3201"), step("power_limit", "500"),
        step("graphics_clocks", "1500, 1980", OTHER),
    ]  # fmt: skip
    assert gpus.node.round_trip(*steps, count=4) == ["systemctl daemon-reload"]
    assert (gpus.get("locked_sm_clocks"), gpus.get("locked_memory_clocks")) == ("1980 1980", "3201 3201")
    assert (gpus.get("power_limit"), gpus.get("locked_sm_clocks", 1)) == ("500000", "1500 1980")
    text = gpus.node.text(UNIT.settings()) or ""
    assert f"; key {GPU} power_limit\nExecStart=-/usr/bin/nvidia-smi -i {UUID} -pl 500\n" in text
    command = f"nvidia-smi -i {UUID} -lgc 1980,1980"
    assert f"-c '{command} && echo 1980,1980 > /run/hwcheck/clocks/{UUID}.graphics_clocks'" in text
    for target in ("multi-user.target", "nvidia-persistenced.service"):
        link = gpus.node.root / WANTS.format(target)
        assert str(link.readlink()) == "/etc/systemd/system/hwcheck-gpu.service"
    held = gpus.node.stage("held")["held"]
    assert sorted(one["key"] for one in held) == sorted(f"{one['subject']} {one['key']}" for one in steps)


def test_the_unit_is_one_that_systemd_takes(gpus: Gpus, tmp_path: Path) -> None:
    """What systemd-analyze says of unit and drop-in, where it is installed."""
    gpus.node.apply(step("graphics_clocks", "1980,1980"))
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    for name in ("hwcheck-gpu.service", "hwcheck-gpu.service.d"):
        source = gpus.node.root / "etc/systemd/system" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "hwcheck-gpu.service")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "hwcheck-gpu" in line and "executable" not in line]


def test_a_key_is_retired_and_the_unit_goes_with_the_last(gpus: Gpus) -> None:
    """What is absent leaves the drop-in; what runs stays."""
    gpus.node.apply(step("graphics_clocks", "1980,1980"), step("power_limit", "500"))
    done = gpus.node.apply(step("power_limit", "absent"), run="r2")
    assert status(done) == [("changed", "")]
    assert "-pl" not in (gpus.node.text(UNIT.settings()) or "")
    assert gpus.node.text(UNIT.path) is not None
    done = gpus.node.apply(step("graphics_clocks", "absent"), run="r3")
    assert status(done) == [("changed", "")]
    assert gpus.node.text(UNIT.path) is None
    assert not os.path.lexists(gpus.node.root / WANTS.format("multi-user.target"))
    assert gpus.get("locked_sm_clocks") == "1980 1980"


def test_a_reset_takes_the_lock_and_its_line_away(gpus: Gpus) -> None:
    """Locked by us, then reset by another run; a second reset has nothing to do."""
    gpus.node.apply(step("graphics_clocks", "1980,1980"), step("power_limit", "500"))
    wanted = (step("graphics_clocks", "reset"), step("power_limit", "default"))
    done = gpus.node.apply(*wanted, run="r2")
    assert [one["status"] for one in done["results"]] == ["changed", "changed"]
    assert (gpus.get("locked_sm_clocks"), gpus.get("power_limit")) == ("", "700000")
    assert gpus.node.text(UNIT.path) is None
    assert not gpus.node.apply(*wanted, run="r3")["changed"]
    assert gpus.node.stage("undo", run="r2")["results"] == []
    assert (gpus.get("locked_sm_clocks"), gpus.get("power_limit")) == ("1980 1980", "500000")


def test_a_lock_that_somebody_left_is_reset(gpus: Gpus) -> None:
    """No getter tells it; an idle GPU at its highest clock shows it, and undone it stays unlocked, which is said."""
    gpus.put(locked_sm_clocks="1980 1980")
    done = gpus.node.apply(step("graphics_clocks", "reset"))
    assert done["results"][0]["before"]["running"] == gpu_clocks.FOREIGN
    assert status(done) == [("changed", "")]
    assert gpus.get("locked_sm_clocks") == ""
    left = gpus.node.stage("undo")["results"]
    assert "somebody else" in left[0]["why"]


def test_a_lock_counts_in_its_boot_and_with_its_driver_only(gpus: Gpus) -> None:
    """After a boot or with another driver the locks are not known; our unit says what it has set since."""
    lock = step("graphics_clocks", "1500,1980")
    gpus.node.apply(lock)

    def running() -> str:
        return str(gpus.node.stage("check", lock)["results"][0]["before"]["running"])

    assert running() == "1500,1980"
    gpus.node.put(BOOT, "boot-2\n")
    (gpus.state / "gpu0/locked_sm_clocks").unlink()
    assert running() == gpu_clocks.UNKNOWN
    gpus.node.put(f"{gpu_clocks.MARKS}/{UUID}.graphics_clocks", "1500,1980\n")
    assert running() == gpu_clocks.UNKNOWN  # it idles at 345 MHz, whatever the mark says
    (gpus.state / "gpu0/locked_sm_clocks").write_text("1500 1980\n", encoding="ascii")
    assert running() == "1500,1980"
    assert gpus.node.stage("undo")["results"] == []
    assert gpus.get("locked_sm_clocks") == ""
    gpus.node.put(BOOT, "boot-1\n")
    gpus.node.apply(lock, run="r2")
    (gpus.state / "driver_version").write_text("590.48.01\n", encoding="ascii")
    assert running() == gpu_clocks.FOREIGN  # idle at 1500 MHz


@pytest.mark.parametrize(
    ("clock", "reasons", "expected"),
    [(1980, 0x1, "1980,1980"), (1950, 0, "1980,1980"), (1200, 0x4, "1980,1980"), (345, 0x1, "unknown")],
)
def test_a_lock_is_believed_unless_the_clock_speaks_against_it(
    gpus: Gpus, clock: int, reasons: int, expected: str
) -> None:
    """Power cap and heat win over a lock; a clock below it without a reason does not."""
    entry = {"value": "1980,1980", "boot_id": "boot-1", "driver": "580.105.08", "at": int(time.time()) - 60}
    gpus.node.put(gpu_clocks.FILE, json.dumps({UUID: {"graphics_clocks": entry}}))
    state = {**nvml.state(gpus.node.place, GPU), "clock": clock, "reasons": reasons}
    assert gpu_clocks.locked(gpus.node.place, state, "graphics_clocks") == expected


def test_a_lock_needs_persistence(gpus: Gpus) -> None:
    """Without it the driver forgets the lock at once: refused, and nothing stays; both in one run are fine."""
    gpus.put(persistence=0)
    lock, mode = step("graphics_clocks", "1980,1980"), step("persistence", "1")
    before = gpus.node.tree()
    told = status(gpus.node.apply(lock))
    assert told[0][0] == "refused"
    assert "persistence mode" in told[0][1]
    assert gpus.node.tree() == before
    assert status(gpus.node.apply(lock, mode, run="r2")) == [("changed", ""), ("changed", "")]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("graphics_clocks", "1975,1980", "the nearest is 1980"),
        ("graphics_clocks", "1980,1500", "above the highest"),
        ("graphics_clocks", "fast", "lowest and highest"),
        ("memory_clocks", "1593,1593", "never lowered"),
        ("memory_clocks", "3200,3201", "the nearest is 3201"),
        ("power_limit", "900", "200 to 700 W"),
        ("power_limit", "much", "no number of watts"),
        ("application_clocks", "3201,1980", "never set"),
        ("application_clocks", "reset", "does not support"),
        ("persistence", "yes", "1 or 0"),
        ("fans", "1", "no setting"),
    ],
)
def test_what_the_gpu_does_not_have_is_refused(gpus: Gpus, key: str, value: str, why: str) -> None:
    """Before anything is written, with the reason."""
    before = gpus.node.tree()
    told = status(gpus.node.apply(step(key, value)))
    assert told[0][0] == "refused"
    assert why in told[0][1]
    assert gpus.node.tree() == before


@pytest.mark.parametrize(
    ("subject", "files", "why"),
    [
        ("gpu0", {}, "is no GPU"),
        ("0000:99:00.0", {}, "has no such GPU"),
        (GPU, {"gpu0/lost": "1"}, "lost"),
        (GPU, {"gpu0/needs_reset": "1"}, "needs a reset"),
        (GPU, {"faults/nvmlInit_v2": "DRIVER_NOT_LOADED"}, "not loaded"),
        (GPU, {"faults/nvmlInit_v2": "LIB_RM_VERSION_MISMATCH"}, "two versions"),
    ],
)
def test_a_gpu_that_cannot_be_asked_is_refused(gpus: Gpus, subject: str, files: dict[str, str], why: str) -> None:
    """With what the driver says."""
    for name, text in files.items():
        (gpus.state / name).parent.mkdir(exist_ok=True)
        (gpus.state / name).write_text(text, encoding="ascii")
    told = status(gpus.node.apply(step("persistence", "0", subject)))
    assert told[0][0] == "refused"
    assert why in told[0][1]


def test_no_permission_is_refused_and_the_unit_taken_back(gpus: Gpus) -> None:
    """The setter fails after our unit was written: the name of the error is told, nothing stays."""
    (gpus.state / "gpu0/faults").mkdir()
    (gpus.state / "gpu0/faults/nvmlDeviceSetPowerManagementLimit").write_text("NO_PERMISSION", encoding="ascii")
    before = gpus.node.tree()
    told = status(gpus.node.apply(step("power_limit", "500"), step("persistence", "0", OTHER)))
    assert told[0][0] == "refused"
    assert "EPERM" in told[0][1]
    assert told[1] == ("changed", "")
    gpus.node.stage("undo")
    assert gpus.node.tree() == before


@pytest.mark.parametrize("name", ["gpu0/hang", "hang", "gpu0/hang_hard", "hang_hard"])
def test_a_driver_that_hangs_is_refused_in_time(gpus: Gpus, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The child is left behind; where not even NVML's start returns, the other GPUs are not waited for."""
    monkeypatch.setattr(nvml, "SECONDS", 0.5)
    (gpus.state / name).write_text("3", encoding="ascii")
    began = time.monotonic()
    done = gpus.node.apply(step("persistence", "0"), step("power_limit", "500"), step("persistence", "0", OTHER))
    assert time.monotonic() - began < 4
    told = status(done)
    assert all(one[0] == "refused" for one in told[:2])
    assert all("did not answer in 0.5 s" in one[1] for one in told[:2])
    assert told[2][0] == ("changed" if "gpu0" in name else "refused")


def test_a_limit_that_the_platform_holds_lower_is_told(gpus: Gpus) -> None:
    """The limit is as wanted and the one in force is not: nothing here changes that."""
    gpus.put(power_limit=700000, power_enforced=550000)
    told = gpus.node.apply(step("power_limit", "default"))["results"][0]
    assert told["before"] == {
        "supported": True, "permitted": True, "running": "default", "next boot": None, "effective": "550",
    }  # fmt: skip
    assert told["status"] == "refused"


def test_a_unit_of_somebody_else_is_named(gpus: Gpus) -> None:
    """What another unit sets at boot is its owner's to change; other keys are free."""
    gpus.node.put(
        "/etc/systemd/system/set-nvidia-clocks.service", "[Service]\nExecStart=/usr/bin/nvidia-smi -lgc 1500\n"
    )
    done = gpus.node.apply(step("graphics_clocks", "reset"), step("power_limit", "500"))
    assert status(done)[0][0] == "refused"
    assert "set-nvidia-clocks.service" in status(done)[0][1]
    assert status(done)[1] == ("changed", "")


def test_without_nvidia_smi_nothing_would_keep_it(gpus: Gpus) -> None:
    """The unit has nothing to run; a running lock that the next boot forgets is not set."""
    (gpus.node.bin / "nvidia-smi").unlink()
    told = status(gpus.node.apply(step("power_limit", "500"), step("power_limit", "default", OTHER)))
    assert (told[0][0], told[1]) == ("refused", ("changed", ""))


def test_an_image_is_given_no_gpu(image: Node) -> None:
    """Which GPUs it will run on is not known; persistence there is the daemon's."""
    told = image.apply(step("graphics_clocks", "1980,1980"), step("persistence", "1"), step("power_limit", "default"))
    assert [one["status"] for one in told["results"]] == ["refused", "refused", "right"]
