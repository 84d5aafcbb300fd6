"""Kernel arguments: as text, at the next boot by GRUB's settings or by grubby, and what is never written."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers import arguments, boot_loader
from hwcheck.writers.kernel_argument import RECORD
from tests.writers.conftest import Node, status

OURS, CFG = boot_loader.OURS, "/boot/grub/grub.cfg"
ENTRY = "/boot/loader/entries/abc-5.14.0.conf"

UPDATE_GRUB = r"""
[ -e $ROOT/fail ] && { echo "cannot" >&2; exit 1; }
. $ROOT/etc/default/grub
for file in $ROOT/etc/default/grub.d/*.cfg; do [ -e "$file" ] && . $file; done
cat > $ROOT/boot/grub/grub.cfg <<END
menuentry 'Linux' {
	linux	/boot/vmlinuz-6.8 root=UUID=1 ro ${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_DEFAULT}
}
menuentry 'Linux (recovery mode)' {
	linux	/boot/vmlinuz-6.8 root=UUID=1 ro recovery nomodeset ${GRUB_CMDLINE_LINUX}
}
END
"""

GRUBBY = r"""
case "$1" in
--info=ALL)
  for kernel in 5.14.0 5.14.1; do
    echo index=0; echo "kernel=\"/boot/vmlinuz-$kernel\""; echo "args=\"$(cat $ROOT/args-$kernel)\""; echo 'root="x"'
  done;;
--update-kernel=*)
  kernel=${1##*vmlinuz-}
  words=${2#*=}
  line=" $(cat $ROOT/args-$kernel) "
  for word in $words; do
    name=${word%%=*}
    line=$(echo "$line" | sed -E "s/ $name(=[^ ]*)?( $name(=[^ ]*)?)* / /g")
  done
  case "$2" in --args=*) line="$line $words";; esac
  echo $line > $ROOT/args-$kernel
  echo "options $(cat $ROOT/args-$kernel)" > $ROOT/boot/loader/entries/abc-$kernel.conf;;
esac
"""


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.it", "mechanism": "kernel_argument", "key": key, "value": value, **more}


@pytest.fixture
def ubuntu(node: Node) -> Node:
    """Return a node with GRUB's settings, as a cloud image has them."""
    node.put("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.8 root=UUID=1 ro console=tty1 console=ttyS0\n")
    node.put("/etc/default/grub", 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\nGRUB_CMDLINE_LINUX=""\n')
    node.put(
        "/etc/default/grub.d/50-cloudimg-settings.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n'
    )
    node.put(CFG, "")
    node.program("update-grub", UPDATE_GRUB)
    node.place.run(["update-grub"])
    node.calls()
    return node


@pytest.fixture
def rhel(node: Node) -> Node:
    """Return a node with loader entries and grubby."""
    node.put("/proc/cmdline", "root=/dev/sda1 ro\n")
    node.put(boot_loader.INHERITED, "root=/dev/sda1 ro crashkernel=1G\n", 0o600)
    for kernel in ("5.14.0", "5.14.1"):
        node.put(f"args-{kernel}", "root=/dev/sda1 ro crashkernel=1G\n")
        node.put(f"/boot/loader/entries/abc-{kernel}.conf", "options root=/dev/sda1 ro crashkernel=1G\n")
    node.program("grubby", GRUBBY)
    return node


def test_an_argument_is_in_every_entry_and_counts_from_the_next_boot(ubuntu: Node) -> None:
    """The second run, before the reboot, is content; the undoing makes the entries anew."""
    before = ubuntu.text(CFG)
    calls = ubuntu.round_trip(step("iommu", "pt"), step("init_on_alloc", "0"), step("nosmt", ""), count=3)
    assert calls == ["update-grub"]
    assert (ubuntu.text(CFG) or "").count("init_on_alloc=0 iommu=pt nosmt") == 2
    assert before is not None
    assert "iommu" not in before
    told = ubuntu.apply(step("iommu", "pt"), run="r7")
    assert status(told) == [("right", "counts from the next boot")]
    ubuntu.put("/proc/cmdline", "ro iommu=pt\n")
    assert status(ubuntu.apply(step("iommu", "pt"), run="r8")) == [("right", "")]


@pytest.mark.parametrize(("checks", "seen", "running", "due"), [
    (["test.it"], "absent", "", True), (["test.it"], "absent", "iommu=pt", False), (["test.it"], "on", "", False),
    (["other"], "absent", "", False), ([], "on", "", True),
])  # fmt: skip
def test_a_reboot_is_only_due_where_a_step_waits_for_it(
    ubuntu: Node, checks: list[str], seen: str, running: str, *, due: bool
) -> None:
    """Not for one that is right by now or stale; what is asked for by itself is done anyway."""
    if running:
        ubuntu.apply(step("iommu", "pt"))
        ubuntu.put("/proc/cmdline", f"ro {running}\n")
    told = ubuntu.stage(
        "check", step("iommu", "pt", seen={"running": seen}), run="r2", acts=[{"do": "reboot", "checks": checks}]
    )
    assert bool(told["acts"]) is due


def test_a_reboot_is_due_for_what_an_earlier_run_has_set(ubuntu: Node) -> None:
    """Its argument stands in the loader and not on the command line."""
    ubuntu.apply(step("iommu", "pt"))
    told = ubuntu.stage("check", step("iommu", "pt"), run="r2", acts=[{"do": "reboot", "checks": ["test.it"]}])
    assert [one["do"] for one in told["acts"]] == ["reboot"]


def test_names_that_stand_several_times_add_up(ubuntu: Node) -> None:
    """Of pci and console the others stay; what GRUB would take for the end of a command stands in quotes."""
    acs = "disable_acs_redir=0000:00:01.0;0000:00:02.0"
    ubuntu.round_trip(step("pci", "realloc=off"), step("pci", acs), step("console", "ttyS1,115200"), count=3)
    text = ubuntu.text(OURS) or ""
    assert f'\\"pci={acs}\\"' in text
    words = next(iter(boot_loader.entries(ubuntu.place).values()))
    assert [word for word in words if word.startswith("pci")] == [f"pci={acs}", "pci=realloc=off"]
    assert {"console=tty1", "console=ttyS0", "console=ttyS1,115200"} <= set(words)
    done = ubuntu.apply(step("pci=realloc=off", "absent"), run="r7")
    assert status(done) == [("changed", "")]
    assert "realloc" not in (ubuntu.text(CFG) or "")
    assert "acs_redir" in (ubuntu.text(CFG) or "")


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="iommu=off"\n', "/etc/default/grub sets iommu=off"),
        ("/etc/default/grub.d/10-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT+=" iommu=off"\n', "10-site.cfg sets iommu=off"),
        ("/etc/default/grub.d/99-site.cfg", 'GRUB_CMDLINE_LINUX="quiet"\n', "99-site.cfg assigns"),
        ("/etc/tuned/bootcmdline", 'TUNED_BOOT_CMDLINE="iommu=off x"\n', "TuneD"),
    ],
)
def test_an_argument_of_others_is_refused_with_its_owner(ubuntu: Node, path: str, text: str, why: str) -> None:
    """Who sets it otherwise is named, and nothing is written."""
    ubuntu.put(path, text)
    told = status(ubuntu.apply(step("iommu", "pt")))[0]
    assert told[0] == "refused"
    assert why in told[1]
    assert ubuntu.text(OURS) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("pcie_aspm", "off"), ("pcie_aspm", "force"), ("a b", "1"), ("x", "$(reboot)"), ("x", "a b"), ("pci", "")],
)
def test_what_must_not_stand_there_is_refused(ubuntu: Node, key: str, value: str) -> None:
    """Neither the ASPM trap nor anything that a shell or GRUB would read."""
    assert status(ubuntu.apply(step(key, value)))[0][0] == "refused"


def test_no_known_boot_loader_is_refused(node: Node) -> None:
    """A machine that boots from a sealed image says so."""
    node.put("/proc/cmdline", "ro\n")
    told = status(node.apply(step("iommu", "pt")))[0]
    assert told[0] == "refused"
    assert "image" in told[1]


def test_entries_that_cannot_be_made_are_a_failure_and_leave_nothing(ubuntu: Node) -> None:
    """Where update-grub fails our file goes again."""
    ubuntu.put("fail", "")
    before = ubuntu.tree()
    done = ubuntu.apply(step("iommu", "pt"))
    assert not done["ok"]
    assert "update-grub" in status(done)[0][1]
    assert ubuntu.tree() == before


def test_entries_that_were_not_made_are_made_by_the_next_run(ubuntu: Node) -> None:
    """A run killed after the file and before update-grub leaves a file that the loader does not have."""
    ubuntu.apply(step("iommu", "pt"))
    text = ubuntu.text(OURS)
    ubuntu.stage("undo")
    ubuntu.put(OURS, text or "")
    done = ubuntu.apply(step("iommu", "pt"), run="r5")
    assert [one["status"] for one in done["results"]] == ["changed"]


def test_each_kernel_has_it_by_grubby_and_later_ones_inherit(rhel: Node) -> None:
    """Words of before come back for each kernel; the record says what is ours."""
    rhel.round_trip(step("iommu", "pt"), step("crashkernel", "2G"), count=2)
    assert rhel.text("args-5.14.1") == "root=/dev/sda1 ro crashkernel=2G iommu=pt\n"
    assert rhel.text(boot_loader.INHERITED) == "root=/dev/sda1 ro iommu=pt crashkernel=2G\n"
    assert [one["key"] for one in rhel.stage("held")["held"]] == ["crashkernel", "iommu"]
    done = rhel.apply(step("iommu", "absent"), run="r7")
    assert status(done) == [("changed", "")]
    assert rhel.text("args-5.14.0") == "root=/dev/sda1 ro crashkernel=2G\n"
    assert rhel.text(boot_loader.INHERITED) == "root=/dev/sda1 ro crashkernel=2G\n"
    assert "iommu" not in (rhel.text(RECORD) or "")


def test_a_kernel_that_is_gone_is_left_and_told(rhel: Node) -> None:
    """The others are undone."""
    rhel.apply(step("iommu", "pt"))
    rhel.program("grubby", GRUBBY.replace("5.14.0 5.14.1", "5.14.0"))
    undone = rhel.stage("undo")
    assert [one["why"] for one in undone["results"]] == ["the kernel /boot/vmlinuz-5.14.1 is no longer installed"]
    assert "iommu" not in (rhel.text("args-5.14.0") or "")


def test_images_get_what_their_entries_are_made_from(image: Node) -> None:
    """Nothing is run: GRUB's settings, or the entries themselves."""
    image.put("/etc/default/grub", 'GRUB_CMDLINE_LINUX=""\n')
    assert status(image.apply(step("iommu", "pt")))[0][0] == "changed"
    assert "iommu=pt" in (image.text(OURS) or "")


def test_images_with_loader_entries_get_them_written(image: Node) -> None:
    """Each entry and what later kernels inherit."""
    image.put(ENTRY, "title x\noptions root=/dev/sda1 ro iommu=off\ninitrd /i\n")
    image.put(boot_loader.INHERITED, "ro\n")
    done = image.apply(step("iommu", "pt"))
    assert status(done)[0][0] == "changed"
    assert image.text(ENTRY) == "title x\noptions root=/dev/sda1 ro iommu=pt\ninitrd /i\n"
    image.stage("undo", journal=done["journal"])
    assert "iommu=off" in (image.text(ENTRY) or "")


@pytest.mark.parametrize(
    ("line", "name", "wanted", "said"),
    [
        ("a=1 a=2", "a", "2", "2"),
        ("a=1 a=2", "a", "1", "2"),
        ("quiet", "quiet", "", ""),
        ("ro", "quiet", "", "absent"),
        ('dyndbg="file x +p" b', "dyndbg", "file x +p", "file x +p"),
        ("numa-balancing=0", "numa_balancing", "0", "0"),
        ("pci=nomsi,realloc=off", "pci", "realloc=off", "realloc=off"),
        ("pci=disable_acs_redir=a;b pci=x", "pci", "disable_acs_redir=b", "disable_acs_redir=b"),
        ("pci=x pci=y", "pci", "z", "x,y"),
        ("console=tty0 console=ttyS0,9600", "console", "tty0", "tty0"),
        ("console=ttyS0,9600", "console", "ttyS0", "ttyS0,9600"),
    ],
)
def test_a_line_is_read_as_the_kernel_does(line: str, name: str, wanted: str, said: str) -> None:
    """Last wins, but for names that add up; quotes keep blanks."""
    assert arguments.stated(arguments.split(line), name, wanted) == said
