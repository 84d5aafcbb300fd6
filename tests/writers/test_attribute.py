"""Attributes below /sys: running, at boot by tmpfiles or udev, and what the kernel refuses."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from hwcheck.writers import tmpfiles, udev
from hwcheck.writers.place import Place
from tests.writers.conftest import Node, status

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
ASPM = "/sys/module/pcie_aspm/parameters/policy"
CPU = "/sys/devices/system/cpu"
GOVERNOR = f"{CPU}/cpu*/cpufreq/scaling_governor"
EPP = f"{CPU}/cpu*/cpufreq/energy_performance_preference"


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.it", "mechanism": "attribute", "key": key, "value": value, **more}


@pytest.fixture(autouse=True)
def brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file with a bracketed word take a word as the kernel does, and refuse what it must."""
    plain = Place.set_value

    def set_value(self: Place, path: str, text: str) -> None:
        now = self.text(path) or ""
        if path.endswith("energy_performance_preference"):
            governor = self.text(path.replace("energy_performance_preference", "scaling_governor"))
            if (governor or "").strip() == "performance":
                raise OSError(errno.EBUSY, "Device or resource busy")
        if "[" in now:
            words = now.replace("[", "").replace("]", "").split()
            if text not in words:
                raise OSError(errno.EINVAL, "Invalid argument")
            text = " ".join(f"[{word}]" if word == text else word for word in words)
        with open(self.real(path), "w", encoding="utf-8") as file:  # noqa: PTH123 - as the writer does
            file.write(text + "\n")

    monkeypatch.setattr(Place, "set_value", set_value)
    assert plain is not set_value


def cpus(node: Node, governors: list[str], preference: str = "balance_performance") -> None:
    """Give a node CPUs, two of which share a policy."""
    for number, governor in enumerate(governors):
        node.put(f"{CPU}/cpufreq/policy{number}/scaling_governor", governor + "\n")
        node.put(f"{CPU}/cpufreq/policy{number}/energy_performance_preference", preference + "\n")
        for cpu in (2 * number, 2 * number + 1):
            folder = node.root / f"{CPU[1:]}/cpu{cpu}"
            folder.mkdir(parents=True)
            (folder / "cpufreq").symlink_to(f"../cpufreq/policy{number}")


def test_a_choice_is_made_kept_and_undone(node: Node) -> None:
    """The word in brackets is what counts; the file of tmpfiles keeps it."""
    node.put(THP, "[always] madvise never\n")
    assert node.round_trip(step(THP, "madvise")) == []
    assert node.text(THP) == "always [madvise] never\n"
    assert f"# hwcheck: test.it; key {THP}\nw {THP} - - - - madvise\n" in (node.text(tmpfiles.FILE) or "")


def test_a_line_is_retired_and_the_running_value_stays(node: Node) -> None:
    """Nothing is to be run for it."""
    node.put(THP, "[always] madvise never\n")
    node.apply(step(THP, "madvise"))
    assert status(node.apply(step(THP, "absent"), run="r2")) == [("changed", "")]
    assert (node.text(THP), node.text(tmpfiles.FILE)) == ("always [madvise] never\n", None)
    assert node.calls() == []


def test_a_pattern_is_one_line_and_one_write_a_file(node: Node) -> None:
    """CPUs of one policy share a file, which is written once."""
    cpus(node, ["powersave", "performance"])
    done = node.apply(step(GOVERNOR, "performance"))
    assert status(done) == [("changed", "")]
    assert done["results"][0]["before"]["running"] == "performance (1), powersave (1)"
    written = [change["target"] for change in done["journal"]["changes"] if change["kind"] == "value"]
    assert written == [f"{CPU}/cpu0/cpufreq/scaling_governor"]
    assert (node.text(tmpfiles.FILE) or "").count("\nw ") == 1


def test_preference_is_written_before_the_governor_that_forbids_it(node: Node) -> None:
    """Both in one run, in any order of the request; and back."""
    cpus(node, ["powersave", "powersave"])
    node.round_trip(step(GOVERNOR, "performance"), step(EPP, "performance"), count=2)


def test_preference_that_the_governor_forbids_is_refused(node: Node) -> None:
    """With the governor performance the kernel answers EBUSY; nothing of the step stays, other steps do."""
    cpus(node, ["performance"])
    node.put(THP, "[always] madvise never\n")
    done = node.apply(step(EPP, "power"), step(THP, "never"))
    told = status(done)
    assert told[0][0] == "refused"
    assert "EBUSY" in told[0][1]
    assert told[1] == ("changed", "")
    assert "preference" not in (node.text(tmpfiles.FILE) or "")
    assert THP in (node.text(tmpfiles.FILE) or "")
    assert node.stage("undo")["results"] == []
    assert node.text(tmpfiles.FILE) is None


def test_the_governor_performance_counts_as_that_preference(node: Node) -> None:
    """What cannot be written need not be; the other CPUs are."""
    cpus(node, ["performance", "powersave"])
    done = node.apply(step(EPP, "performance"))
    assert status(done) == [("changed", "")]
    assert node.text(f"{CPU}/cpufreq/policy0/energy_performance_preference") == "balance_performance\n"
    assert node.text(f"{CPU}/cpufreq/policy1/energy_performance_preference") == "performance\n"


def test_an_offline_cpu_is_left_out(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attribute that answers EBUSY three times is no reason to fail."""
    cpus(node, ["powersave", "powersave"])
    plain = Place.read

    def read(self: Place, path: str) -> bytes | None:
        if "/cpu2/" in path or "/cpu3/" in path:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return plain(self, path)

    monkeypatch.setattr(Place, "read", read)
    assert status(node.apply(step(GOVERNOR, "performance"))) == [("changed", "")]


def test_late_devices_get_a_rule(node: Node) -> None:
    """What tmpfiles would come too early for is kept by udev, in the file that others share."""
    link = "/sys/bus/pci/devices/0000:18:00.0/link/l1_aspm"
    net = "/sys/class/net/ens1f0np0/queues/rx-0/rps_cpus"
    node.put(link, "1\n")
    node.put(net, "0\n")
    node.program("udevadm")
    rule = 'ACTION=="add", SUBSYSTEM=="pci", ATTR{vendor}=="0x10de", ATTR{d3cold_allowed}="0"'
    other = {"id": "o", "mechanism": "udev_rule", "key": "other", "value": rule}
    calls = node.round_trip(step(link, "0"), step(net, "ff"), other, count=3)
    assert calls == ["udevadm control --reload"]
    text = node.text(udev.FILE) or ""
    assert 'KERNEL=="0000:18:00.0", ATTR{link/l1_aspm}="0"' in text
    assert 'ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="ens1f0np0", ATTR{queues/rx-0/rps_cpus}="ff"' in text
    assert rule in text
    assert node.text(tmpfiles.FILE) is None
    held = {(one["mechanism"], one["key"]) for one in node.stage("held")["held"]}
    assert held == {("attribute", link), ("attribute", net), ("udev_rule", "other")}
    done = node.apply(step(link, "absent"), run="r9")
    assert status(done) == [("changed", "")]
    assert "l1_aspm" not in (node.text(udev.FILE) or "")
    assert node.text(link) == "0\n"


@pytest.mark.parametrize("case", ["argument", "table", "links"])
def test_aspm_that_the_firmware_keeps_is_refused_with_the_reason(node: Node, case: str) -> None:
    """Told before anything is written."""
    node.put(ASPM, "[default] performance powersave powersupersave \n")
    if case == "argument":
        node.put("/proc/cmdline", "root=/dev/sda1 pcie_aspm=off\n")
    elif case == "table":
        node.put("/sys/firmware/acpi/tables/FACP", "F" * 109 + "\x10" + "\0" * 20)
    else:
        (node.root / "sys/bus/pci/devices/0000:18:00.0/link").mkdir(parents=True)
    told = status(node.apply(step(ASPM, "performance")))
    assert told[0][0] == "refused"
    assert "ASPM" in told[0][1]
    assert node.text(tmpfiles.FILE) is None


@pytest.mark.parametrize("number", [errno.EPERM, errno.EBUSY, errno.EIO, errno.EROFS, errno.EOPNOTSUPP])
def test_what_the_kernel_refuses_is_refused_and_leaves_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The error's name and a sentence are told; the file for the next boot is as before."""
    node.put(ASPM, "[default] performance powersave\n")
    before = node.tree()

    def refuse(_self: Place, _path: str, _text: str) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(Place, "set_value", refuse)
    done = node.apply(step(ASPM, "performance"))
    assert done["ok"]
    told = status(done)[0]
    assert told[0] == "refused"
    assert errno.errorcode[number] in told[1]
    assert node.tree() == before


def test_a_value_that_the_attribute_does_not_have_fails(node: Node) -> None:
    """EINVAL is a wrong value and not a refusal; nothing is left."""
    node.put(THP, "[always] madvise never\n")
    before = node.tree()
    done = node.apply(step(THP, "sometimes"))
    assert not done["ok"]
    assert status(done)[0][0] == "failed"
    assert node.tree() == before


def test_others_who_write_it_at_boot_are_named(node: Node) -> None:
    """A line of the same path in an earlier file counts instead of ours; a later pattern is written after it."""
    node.put(THP, "[always] madvise never\n")
    for file in ("/etc/tmpfiles.d/10-site.conf", "/usr/lib/tmpfiles.d/99-site.conf"):
        path = node.put(file, f"w! {THP} - - - - always\n")
        told = status(node.apply(step(THP, "never")))[0]
        assert told[0] == "refused"
        assert file in told[1]
        path.unlink()


@pytest.mark.parametrize("key", ["/sys/nothing/here", "/etc/passwd", "/sys/../etc/passwd", "sys/x"])
def test_a_path_that_is_not_there_is_unsupported(node: Node, key: str) -> None:
    """Nothing is created."""
    assert status(node.apply(step(key, "1")))[0][0] == "refused"


def test_an_image_gets_its_next_boot(image: Node) -> None:
    """No attribute is there, and none is needed."""
    done = image.apply(step(THP, "madvise"), step("/sys/bus/pci/devices/0000:18:00.0/link/l1_aspm", "0"))
    assert [one["status"] for one in done["results"]] == ["changed", "changed"]
    assert THP in (image.text(tmpfiles.FILE) or "")


def test_a_line_says_what_it_means_with_blanks_and_percents() -> None:
    """What tmpfiles would fill in stands for itself."""
    line = tmpfiles.line_of("/sys/a b/c", r"50% \x")
    assert line == r'w "/sys/a b/c" - - - - 50%% \\x'
    assert tmpfiles.key_of(line) == "/sys/a b/c"


def test_two_values_for_one_file_are_refused_to_the_second(node: Node) -> None:
    """A pattern and a path that meet with different values in one run."""
    cpus(node, ["powersave"])
    done = node.apply(step(GOVERNOR, "performance"), step(f"{CPU}/cpu0/cpufreq/scaling_governor", "schedutil"))
    assert [one["status"] for one in done["results"]] == ["changed", "refused"]
    assert "in the same run" in done["results"][1]["why"]


TUNED = "/usr/lib/tuned/{}/tuned.conf"


@pytest.mark.parametrize(
    ("profile", "key", "value", "taken"),
    [
        ("[cpu]\ngovernor=powersave|ondemand\n", GOVERNOR, "performance", False),
        ("[cpu]\ngovernor=performance\n", GOVERNOR, "performance", True),
        ("[main]\ninclude=base\n", THP, "never", False),
        ("[main]\ninclude=base\n[vm]\ntransparent_hugepages=never\n", THP, "never", True),
        ("[mine]\ntype=sysfs\n/sys/kernel/mm/*/enabled=always\n", THP, "never", False),
        ("[main]\ninclude=test\n", THP, "never", True),
    ],
)
def test_what_tuned_sets_otherwise_is_tuneds(node: Node, profile: str, key: str, value: str, *, taken: bool) -> None:
    """The profile is named; one of a TuneD that does not start says nothing."""
    cpus(node, ["schedutil"])
    node.put(THP, "[always] madvise never\n")
    node.put(TUNED.format("test"), profile)
    node.put(TUNED.format("base"), "[vm]\n# x\ntransparent_hugepages=always\n")
    node.put("/etc/tuned/active_profile", "test\n")
    assert node.stage("check", step(key, value))["results"][0]["status"] == "would change"
    node.put("/etc/systemd/system/multi-user.target.wants/tuned.service", "")
    told = status(node.stage("check", step(key, value)))[0]
    assert (told[0] == "would change") is taken
    assert taken or "TuneD's profile test sets" in told[1]
