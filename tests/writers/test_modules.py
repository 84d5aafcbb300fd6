"""Kernel modules: parameters and loading."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers import module_load, module_option
from tests.writers.conftest import Node, status

MODINFO = """
[ -e $ROOT/modules/$3 ] || { echo "modinfo: ERROR: Module $3 not found." >&2; exit 1; }
case "$2" in filename) cat $ROOT/modules/$3;; parm) echo 'NVreg_X:how (int)'; echo 'other:int';; esac
"""
MODPROBE = """
if [ "$1" = -r ]; then rm -r $ROOT/sys/module/$2; else mkdir -p $ROOT/sys/module/$1; fi
"""


def option(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step for a parameter."""
    return {"id": "test.option", "mechanism": "module_option", "key": key, "value": value, **more}


def load(key: str, value: str = "loaded", **more: Any) -> dict[str, Any]:
    """Return a step for a module."""
    return {"id": "test.load", "mechanism": "module_load", "key": key, "value": value, **more}


@pytest.fixture
def modules(node: Node) -> Node:
    """Return a node with modules nvidia (loaded), nvidia_peermem and one that is built in."""
    for name in ("nvidia", "nvidia_peermem"):
        node.put(f"modules/{name}", f"/lib/modules/6.8/{name}.ko\n")
    node.put("modules/ext4", "(builtin)\n")
    node.put("/proc/driver/nvidia/params", "X: 0\nY: 1\n")
    node.put("/proc/sys/kernel/osrelease", "6.8\n")
    (node.root / "sys/module/nvidia").mkdir(parents=True)
    node.program("modinfo", MODINFO)
    node.program("modprobe", MODPROBE)
    return node


def test_a_parameter_counts_when_the_module_is_loaded_again(modules: Node) -> None:
    """Our file has it; running is as the driver was loaded with."""
    modules.round_trip(option("nvidia NVreg_X", "1"))
    assert "options nvidia NVreg_X=1\n" in (modules.text(module_option.FILE) or "")
    modules.put("/proc/driver/nvidia/params", "X: 1\n")
    assert status(modules.apply(option("nvidia NVreg_X", "1"), run="r8")) == [("right", "")]
    assert modules.apply(option("nvidia NVreg_X", "absent"), run="r9")["changed"]
    assert modules.text(module_option.FILE) is None


def test_a_ram_disk_with_the_module_is_made_anew(modules: Node) -> None:
    """Only where the module lies in it; after an undoing as well."""
    modules.put("/boot/initrd.img-6.8", "")
    modules.program("lsinitramfs", "echo usr/lib/modules/6.8/updates/nvidia.ko.zst")
    modules.program("update-initramfs")
    modules.apply(option("nvidia NVreg_X", "1"))
    assert "update-initramfs -u" in modules.calls()
    modules.stage("undo")
    assert "update-initramfs -u" in modules.calls()
    modules.program("lsinitramfs", "echo usr/lib/modules/6.8/ext4.ko")
    modules.apply(option("nvidia NVreg_X", "1"), run="r2")
    assert "update-initramfs -u" not in modules.calls()


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("nothing x", "1", "has no module nothing"),
        ("nvidia nothing", "1", "has no parameter nothing"),
        ("ext4 other", "1", "ext4.other="),
        ("nvidia", "1", "names no module"),
        ("nvidia NVreg_X", "1 install x /bin/sh", "names no module"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(modules: Node, key: str, value: str, why: str) -> None:
    """With the reason."""
    told = status(modules.apply(option(key, value)))[0]
    assert told[0] == "refused"
    assert why in told[1]
    assert modules.text(module_option.FILE) is None


def test_a_parameter_of_others_is_refused(modules: Node) -> None:
    """A later file and the command line come after ours; an earlier file does not."""
    modules.put("/etc/modprobe.d/10-site.conf", "options nvidia NVreg_X=7\n")
    assert modules.stage("check", option("nvidia NVreg_X", "1"))["results"][0]["status"] == "would change"
    path = modules.put("/etc/modprobe.d/zz-site.conf", "options nvidia NVreg_X=2\n")
    assert "zz-site.conf sets" in status(modules.apply(option("nvidia NVreg_X", "1")))[0][1]
    path.unlink()
    modules.put("/proc/cmdline", "nvidia.NVreg_X=3\n")
    assert "command line sets" in status(modules.apply(option("nvidia NVreg_X", "1"), run="r2"))[0][1]


def test_a_module_is_loaded_and_unloaded(modules: Node) -> None:
    """Now and at boot."""
    calls = modules.round_trip(load("nvidia_peermem"))
    assert "modprobe nvidia_peermem" in calls
    assert (modules.text(module_load.FILE) or "").endswith("\nnvidia_peermem\n")


def test_a_module_in_use_stays(modules: Node) -> None:
    """The undoing says so."""
    modules.apply(load("nvidia_peermem"))
    modules.put("/sys/module/nvidia_peermem/refcnt", "2\n")
    assert "in use" in modules.stage("undo")["results"][0]["why"]
    assert modules.text(module_load.FILE) is None


def test_peer_memory_is_loaded_after_openibd_as_well(modules: Node) -> None:
    """In the drop-in that unit_property writes too; both build on each other."""
    modules.put("/usr/lib/systemd/system/openibd.service", "[Service]\n")
    modules.program("systemctl")
    limit = {
        "id": "l", "mechanism": "unit_property", "key": "openibd.service LimitMEMLOCK", "value": "infinity",
    }  # fmt: skip
    modules.round_trip(load("nvidia_peermem"), limit, count=2)
    text = modules.text("/etc/systemd/system/openibd.service.d/90-hwcheck.conf") or ""
    assert "ExecStartPost=-/sbin/modprobe nvidia_peermem\n" in text
    assert "LimitMEMLOCK=infinity\n" in text
    modules.apply(load("nvidia_peermem", "absent"), run="r9")
    text = modules.text("/etc/systemd/system/openibd.service.d/90-hwcheck.conf") or ""
    assert "peermem" not in text
    assert "LimitMEMLOCK" in text
    assert modules.text(module_load.FILE) is None


def test_a_module_that_cannot_be_loaded_is_refused_or_fails(modules: Node) -> None:
    """Missing for this kernel and forbidden: refused; one that does not load fails and leaves nothing."""
    assert "has no module" in status(modules.apply(load("nothing")))[0][1]
    path = modules.put("/etc/modprobe.d/site.conf", "install nvidia_peermem /bin/false\n")
    assert "site.conf" in status(modules.apply(load("nvidia_peermem")))[0][1]
    path.unlink()
    modules.program("modprobe", "echo 'Invalid argument' >&2; exit 1")
    before = modules.tree()
    told = status(modules.apply(load("nvidia_peermem"), run="r2"))[0]
    assert told[0] == "failed"
    assert "Invalid argument" in told[1]
    assert modules.tree() == before


def test_images_get_the_files(image: Node) -> None:
    """Nothing is looked up or run."""
    done = image.apply(load("nvidia_peermem"), option("nvidia NVreg_X", "1"))
    assert [one["status"] for one in done["results"]] == ["changed", "changed"]
