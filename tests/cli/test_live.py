"""``hwcheck check`` and ``collect`` on nodes: this machine, images, and others over SSH."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli.main import main
from tests.transports.sshd import Server, free_port, start_sshd

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep cache and state of whoever runs the tests out."""
    place = tmp_path_factory.mktemp("home")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        (place / name).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(place / name))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return place


def hwcheck(*arguments: object) -> int:
    """Run a command line in this process."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as error:
        return int(error.code or 0)


def run_of(capsys: Capture) -> dict[str, Any]:
    """Return the run that was printed as JSON."""
    run: dict[str, Any] = json.loads(capsys.readouterr().out)
    return run


def told(run: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return what is said, in an order that does not depend on which source answered first."""
    return sorted((finding["check"], finding["subject"], finding["status"]) for finding in run["findings"])


# ---------------------------------------------------------------------------------------------------------------- local


def test_without_a_target_this_machine_is_judged(capsys: Capture) -> None:
    """By its own name; the sources that this machine lacks are no faults of the program."""
    assert hwcheck("check", "--format", "json") in (0, 1, 3)
    run = run_of(capsys)
    assert [node["name"] for node in run["nodes"]] == [os.uname().nodename]
    assert {"kernel", "sysctl"} <= {
        finding["check"].partition(".")[0] for finding in run["findings"] if finding["status"] == "pass"
    }


def test_a_source_that_is_switched_off_is_not_asked(capsys: Capture) -> None:
    """By its id; one that does not exist is wrong usage."""
    hwcheck("check", "--format", "json", "--off", "proc-cmdline,sysctl")
    assert not any("raw/sysctl" == (finding["evidence"] or {}).get("file") for finding in run_of(capsys)["findings"])
    assert hwcheck("check", "--off", "no.such.source") == 2
    assert "no such source: no.such.source" in capsys.readouterr().err


def test_an_image_is_read_and_nothing_is_spawned(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is that of its files; what only a running node has is not asked."""
    (tmp_path / "etc" / "sysctl.d").mkdir(parents=True)
    (tmp_path / "etc" / "hostname").write_text("image-1\n")
    (tmp_path / "etc" / "sysctl.d" / "50-x.conf").write_text("vm.max_map_count = 1000000\n")
    shim = tmp_path / "bin"
    shim.mkdir()
    for tool in ("dmesg", "systemctl", "chronyc", "nvidia-smi", "df"):
        (shim / tool).write_text(f"#!/bin/sh\ntouch {tmp_path}/SPAWNED\n")
        (shim / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim}:{os.environ['PATH']}")
    hwcheck("check", "--root", tmp_path, "--format", "json")
    run = run_of(capsys)
    assert [node["name"] for node in run["nodes"]] == ["image-1"]
    assert not (tmp_path / "SPAWNED").exists()


def test_a_live_root_is_a_running_node(tmp_path: Path, capsys: Capture) -> None:
    """Its procfs and sysfs are below the root."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("lab-1\n")
    (tmp_path / "proc" / "cmdline").write_text("quiet\n")
    hwcheck("check", "--live-root", tmp_path, "--format", "json")
    assert [node["name"] for node in run_of(capsys)["nodes"]] == ["lab-1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--root", "/no/such"], "no such folder"),
        (["--root", "/", "--live-root", "/"], "exclude each other"),
        (["--root", "/", "-w", "gpu-1"], "for this machine"),
        (["--limit", "gpu"], "needs an inventory"),
        (["--evidence", "x", "-w", "gpu-1"], "without reading any node"),
        (["-w", "gpu-[1-"], "no node set"),
        (["-i", "/no/such"], "no such inventory"),
        (["-w", "gpu-1", "--ssh-option", "Compression"], "no value"),
        (["-w", "gpu-1", "--known-hosts", "/no/such"], "no such file"),
        (["-w", "gpu-1", "--become-password-file", "/no/such"], "No such file"),
        (["-w", "gpu-1", "--fanout", "0"], "from 1 to 1024"),
        (["-w", "gpu-1", "--timeout", "-1"], "not a number of seconds"),
        (["-w", "gpu-1", "--ssh-config", "/no/such"], "no such file"),
        (["-w", "-oProxyCommand=x"], ""),
        (["-w", ""], "argument -w: is empty"),
        (["-i", ""], "argument -i: is empty"),
        (["--root", ""], "--root: is empty"),
        (["--live-root", ""], "--live-root: is empty"),
    ],
)
def test_wrong_usage_is_told_and_nothing_is_read(arguments: list[str], words: str, capsys: Capture) -> None:
    """Exit code 2, and nothing on standard output."""
    assert hwcheck("check", *arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def test_a_password_needs_somebody_to_ask() -> None:
    """Without a terminal it is wrong usage, not the end of the program."""
    command = [sys.executable, "-m", "hwcheck", "check", "-w", "gpu-1", "-K"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, start_new_session=True)
    assert done.returncode == 2
    assert b"--become-password-file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_full_disk_is_no_verdict() -> None:
    """Neither a report nor evidence that cannot be written ends with 1, which means that a node fails."""
    for words in (["check", "-q"], ["check", "--evidence", "/etc/hostname"], ["check", "-q", "--format", "json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "hwcheck", *words], stdout=full, stderr=subprocess.PIPE, check=False
            )
        assert done.returncode == 2
        assert done.stderr == b"hwcheck: standard output: No space left on device\n"


@pytest.mark.parametrize("place", ["file/x", "link", "none/x.tar.gz"])
def test_evidence_that_cannot_be_written_is_told(tmp_path: Path, place: str, capsys: Capture) -> None:
    """Before or after the reading, without a traceback."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert hwcheck("collect", "-q", "-o", tmp_path / place) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user without name and home, as containers have them."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def nameless(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", nameless)


@pytest.mark.usefixtures("nobody")
def test_a_user_without_name_and_home_can_read(tmp_path: Path, capsys: Capture) -> None:
    """The reading is then not kept, which is said; a key of pseudonyms has to be named."""
    (tmp_path / "image").mkdir()
    assert hwcheck("check", "-q", "--format", "json") in (0, 1, 3)
    assert "readings are not kept: this user has no home folder" in capsys.readouterr().err
    assert hwcheck("lab", "list") == 2
    assert "--dir names a folder" in capsys.readouterr().err
    (tmp_path / "key").write_bytes(b"k" * 32)
    image = ["--root", tmp_path / "image"]
    assert hwcheck("collect", *image, "-o", tmp_path / "a.tgz", "--redact", "--redact-key", tmp_path / "key") == 0
    assert hwcheck("collect", *image, "-o", tmp_path / "b.tgz", "--redact") == 2
    assert "set HOME or XDG_STATE_HOME" in capsys.readouterr().err


def test_a_password_file_that_others_can_read_is_refused(tmp_path: Path, capsys: Capture) -> None:
    """As ssh refuses such a key."""
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    file.chmod(0o644)
    assert hwcheck("check", "-w", "gpu-1", "--become-password-file", file) == 2
    assert "others may read it" in capsys.readouterr().err


def test_the_reading_is_kept_for_the_next(home: Path) -> None:
    """For this boot, for the owner alone; not of an image, and not when it is not wanted."""
    nodes = home / "XDG_STATE_HOME" / "hwcheck" / "nodes"
    hwcheck("check", "--format", "json", "--no-state")
    assert not nodes.exists()
    hwcheck("check", "--format", "json")
    (file,) = nodes.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


# -------------------------------------------------------------------------------------------------------------- collect


@pytest.mark.parametrize("options", [(), ("--redact",), ("--redact", "--keep-serials")], ids=" ".join)
@pytest.mark.parametrize("name", ["evidence", "bundle.tar.gz"])
def test_evidence_tells_what_the_node_told(
    name: str, options: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    """Live, kept, and kept without names: the same findings."""
    hwcheck("check", "--no-state", "--format", "json")
    live = run_of(capsys)
    assert hwcheck("collect", "-o", tmp_path / name, *options) == 0
    capsys.readouterr()
    hwcheck("check", "--evidence", tmp_path / name, "--format", "json")
    kept = run_of(capsys)
    assert told(kept) == told(live)
    own = os.uname().nodename
    assert (kept["nodes"][0]["name"] == own) is (not options)


def test_redact_options_go_with_redact(tmp_path: Path, capsys: Capture) -> None:
    """Else somebody believes that serial numbers are all that is kept."""
    assert hwcheck("collect", "-o", tmp_path / "x", "--keep-serials") == 2
    assert "--redact" in capsys.readouterr().err


def test_pseudonyms_agree_between_bundles(tmp_path: Path, home: Path) -> None:
    """Their key is made once, and is for the owner alone."""
    for name in ("one", "two"):
        hwcheck("collect", "-q", "-o", tmp_path / name, "--redact")
    (one,), (two,) = ((child.name for child in (tmp_path / name).iterdir()) for name in ("one", "two"))
    assert one == two
    assert stat.S_IMODE((home / "XDG_STATE_HOME" / "hwcheck" / "redact.key").stat().st_mode) == 0o600


# ----------------------------------------------------------------------------------------------------------------- SSH


@pytest.mark.lab
@pytest.mark.parametrize("kind", ["paramiko", "openssh"])
@pytest.mark.parametrize("form", ["json", "jsonl", "text", "junit"])
def test_a_dead_node_is_a_line_of_the_report(kind: str, form: str, sshd: Server, capsys: Capture) -> None:
    """With the reason, in every form; the others are judged."""
    config = sshd.config(f"Host gpu-3\n  Port {free_port()}\n")
    config.write_text(f"Host gpu-3\n  Port {free_port()}\n{config.read_text()}")
    code = hwcheck(
        "check", "-w", "gpu-[1-3]", "--ssh", kind, "--ssh-config", config, "--format", form, "--only", "kernel"
    )
    captured = capsys.readouterr()
    assert code == 3
    assert "could not be reached" in " ".join(captured.out.split())
    assert "1 unreachable (gpu-3)" in captured.err
    if form == "json":
        run = json.loads(captured.out)
        assert [node["name"] for node in run["nodes"]] == ["gpu-1", "gpu-2", "gpu-3"]
        (finding,) = [finding for finding in run["findings"] if finding["node"] == "gpu-3"]
        assert (finding["check"], finding["status"]) == ("evidence.reachable", "unknown")


@pytest.mark.lab
def test_a_dead_node_is_in_the_bundle(sshd: Server, tmp_path: Path, capsys: Capture) -> None:
    """Collected and judged later, it is the same line."""
    config = tmp_path / "config"
    config.write_text(f"Host gpu-2\n  Port {free_port()}\n{sshd.config().read_text()}")
    assert hwcheck("collect", "-o", tmp_path / "b.tar.gz", "-w", "gpu-[1-2]", "--ssh-config", config) == 3
    assert "not read to the end: gpu-2" in capsys.readouterr().err
    assert hwcheck("check", "--evidence", tmp_path / "b.tar.gz", "--only", "kernel", "--format", "json") == 3
    assert ("evidence.reachable", "", "unknown") in told(run_of(capsys))


@pytest.mark.lab
def test_the_inventory_brings_the_layer_of_its_hosts(sshd: Server, tmp_path: Path, capsys: Capture) -> None:
    """One host of two wants something else, and is told by it."""
    pytest.importorskip("ansible")
    want = "{fact: evidence.boot_id, title: t, expect: {equals: x}, severity: fail, why: site rule, source: rule 12}"
    (tmp_path / "hosts.yml").write_text(
        f"all:\n  hosts:\n    b-1:\n    a-2:\n      hwcheck_site: {{checks: {{kernel.wanted: {want}}}}}\n"
    )
    arguments = (
        "check",
        "-i",
        tmp_path / "hosts.yml",
        "--ssh-config",
        sshd.config(),
        "--format",
        "json",
        "--only",
        "kernel",
    )
    hwcheck(*arguments)
    run = run_of(capsys)
    assert [node["name"] for node in run["nodes"]] == ["b-1", "a-2"]
    assert {finding["node"] for finding in run["findings"] if finding["check"] == "kernel.wanted"} == {"a-2"}
    (tmp_path / "hosts.yml").write_text(
        "all: {hosts: {a: {hwcheck_site: {checks: {kernel.wanted: {severity: fail}}}}}}\n"
    )
    assert hwcheck(*arguments) == 2
    assert "hwcheck_site of a: no such check: kernel.wanted" in capsys.readouterr().err


@pytest.mark.lab
def command_lines() -> list[str]:
    """Return the command lines of all processes; one that ends meanwhile has none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return found


@pytest.mark.parametrize("kind", ["paramiko", "openssh"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_quickly(
    kind: str, number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nodes are silent; nothing is left, neither a process nor a socket."""
    short = tempfile.mkdtemp(prefix="hw", dir="/tmp")  # sockets have short paths
    monkeypatch.setenv("XDG_RUNTIME_DIR", short)
    server = start_sshd(tmp_path / "ssh", "touch $HOME_OF_TEST/started; sleep 60", f"SetEnv HOME_OF_TEST={tmp_path}\n")
    command = [
        sys.executable,
        "-m",
        "hwcheck",
        "check",
        "-w",
        "gpu-[1-4]",
        "--ssh",
        kind,
        "--ssh-config",
        server.config(),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for _ in range(200):
            if (tmp_path / "started").exists():
                break
            time.sleep(0.1)
        began = time.monotonic()
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == code
        assert time.monotonic() - began < 10
        assert b"Traceback" not in errors
        assert list(Path(short).iterdir()) == []
        assert not any(short in line for line in command_lines())
    finally:
        shutil.rmtree(short)
        process.kill()
        server.stop()


@pytest.mark.lab
def test_the_inventory_tells_the_plan_what_fails_together(sshd: Server, tmp_path: Path, capsys: Capture) -> None:
    """The rack of a host is part of its plan, which the roll-out keeps its waves by."""
    pytest.importorskip("ansible")
    (tmp_path / "hosts.yml").write_text("all: {hosts: {b-1: {hwcheck_failure_domain: rack-17}, a-2: }}\n")
    hwcheck("plan", "-i", tmp_path / "hosts.yml", "--ssh-config", sshd.config(), "--format", "json", "--only", "kernel")
    assert [(one["name"], one["failure_domain"]) for one in run_of(capsys)["nodes"]] == [
        ("b-1", "rack-17"),
        ("a-2", ""),
    ]
