"""
The root of a node: built on a tmpfs of its own from the machine's programs and the node's files, then changed into.

Of the machine a node sees ``/usr`` alone: no home, settings, devices or processes. What a node keeps over a reboot
(``/etc``, ``/var``, ``/boot`` …) is its folder on disk, writable, and what it writes to ``/usr`` goes there too;
``/sys`` is its own, read only but for its attributes; ``/proc`` is a tmpfs of the node's files, with what programs need
of the kernel's own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hwcheck.lab.actor.main import TOOLS
from hwcheck.lab.actor.place import HAND, NODE
from hwcheck.lab.cuda.build import PLACEMENT
from hwcheck.lab.host.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, bind, mount

WORK = "work"
"""Folder beside a node's tree that the kernel needs for the writable /usr."""
_MADE = frozenset(
    ("proc", "sys", "dev", "run", "tmp", "home", "root", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
)
_OF_TREE = (
    "usr/lib/sysctl.d", "usr/lib/modprobe.d", "usr/lib/modules", "usr/lib/modules-load.d", "usr/lib/systemd/system",
    "usr/lib/systemd/system.conf.d", "usr/lib/udev", "usr/local/lib/sysctl.d", "usr/local/lib/modprobe.d",
    "usr/local/lib/systemd",
)  # fmt: skip
"""Settings below /usr: the node's own or none, never the machine's."""
_OF_KERNEL = ("filesystems", "loadavg", "stat", "version", "meminfo", "cpuinfo", "uptime", "vmstat", "swaps", "devices")
_OF_PROCESS = frozenset(("mountinfo", "mounts", "mountstats"))
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_FROM_MACHINE = (
    "nsswitch.conf", "ld.so.conf", "ld.so.conf.d", "ld.so.cache", "alternatives", "protocols", "services", "login.defs",
    "shells", "host.conf", "gai.conf",
)  # fmt: skip
"""Files of /etc that programs need to run, and that say nothing about the node."""
_LIBRARIES = ("libnvidia-ml.so.1", "libcuda.so.1")


def furnish(folder: Path, name: str) -> None:
    """Put on a node's disk what every Linux has there and the node's tree lacks; before its first start."""
    etc = folder / "root/etc"
    etc.mkdir(parents=True, exist_ok=True)
    for entry in _FROM_MACHINE:
        source, target = Path("/etc", entry), etc / entry
        if target.exists() or target.is_symlink() or not source.exists():
            continue
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy(source, target, follow_symlinks=not source.is_symlink())
    texts = {
        "hostname": f"{name}\n",
        "hosts": f"127.0.0.1 localhost {name}\n",
        "passwd": _passwd(),
        "group": "root:x:0:\nnogroup:x:65534:\n",
        "shadow": "root:*:20000:0:99999:7:::\n",
    }
    if (folder / "lib" / PLACEMENT).exists():
        texts["ld.so.preload"] = f"{NODE}/lib/{PLACEMENT}\n"
    for entry, text in texts.items():
        if not (etc / entry).exists():
            (etc / entry).write_text(text, encoding="utf-8")
    for entry in ("var/tmp", "var/log", "var/lib", "var/cache", "var/empty"):
        (folder / "root" / entry).mkdir(parents=True, exist_ok=True)


def mounts_of(mountinfo: str) -> str:
    """Return what /proc/mounts shows of a mountinfo: device, place, type, options of both."""
    rows = []
    for line in mountinfo.splitlines():
        mine, separator, theirs = line.partition(" - ")
        if not separator:
            continue
        place, options = mine.split()[4:6]
        kind, device, of_super = theirs.split()
        kept = [word for word in of_super.split(",") if word not in options.split(",") and word not in ("ro", "rw")]
        rows.append(f"{device} {place} {kind} {','.join([options, *kept])} 0 0\n")
    return "".join(rows)


def _passwd() -> str:
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    return (
        f"root:x:0:0:root:/root:{shell}\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )


class RootBuilder:
    """
    Builds the root of one node, from inside its new mount namespace.

    Args:
        folder: of the node.
        place: empty folder on the keeper's tmpfs where the root is built; ``place.usr`` beside it is for a layer.
        served: path on the node → file in the mount of attributes.
    """

    def __init__(self, folder: Path, place: Path, served: dict[str, Path]) -> None:
        self._folder = folder
        self._tree = folder / "root"
        self._place = place
        self._served = served

    def build(self) -> None:
        """Mount everything."""
        mount("node", str(self._place), "tmpfs", MS_NOSUID, "mode=755,size=256m")
        self._system()
        self._disk()
        self._run()
        self._proc()
        self._dev()
        bind(str(self._tree / "sys"), self._make("sys"), writable=False)
        for path, file in self._served.items():
            if path.startswith("/sys/"):
                mount(str(file), str(self._place) + path, flags=MS_BIND)
        self._make("tmp", 0o1777)
        self._make("root", 0o700)
        self._make("home")

    def _make(self, path: str, mode: int = 0o755) -> str:
        target = self._place / path
        target.mkdir(parents=True, exist_ok=True)
        target.chmod(mode)
        return str(target)

    def _system(self) -> None:
        """Show the machine's programs, with the node's part of /usr over them; what is written there is the node's."""
        for entry in os.scandir("/"):
            if not entry.name.startswith(("bin", "sbin", "lib")):
                continue
            if entry.is_symlink():
                (self._place / entry.name).symlink_to(os.readlink(entry.path))  # noqa: PTH115 - an entry, not a Path
            else:
                bind(entry.path, self._make(entry.name), writable=False)
        layer = self._place.with_name(self._place.name + ".usr")
        shown = self._layer(layer / "usr")
        self._mount_usr(str(layer / "usr"))
        for path, source in shown.items():
            mount(str(source), f"{self._place}/{path}", flags=MS_BIND)

    def _mount_usr(self, layer: str) -> None:
        """Mount /usr, writable where the file system of the lab allows an overlay's upper layer."""
        own, work = self._tree / "usr", self._folder / WORK
        own.mkdir(exist_ok=True)
        work.mkdir(exist_ok=True)
        try:
            layers = f"lowerdir={layer}:/usr,upperdir={own},workdir={work}"
            mount("usr", self._make("usr"), "overlay", MS_NOSUID, layers)
        except OSError:
            mount("usr", self._make("usr"), "overlay", MS_RDONLY | MS_NOSUID, f"lowerdir={layer}:{own}:/usr")

    def _layer(self, usr: Path) -> dict[str, Path]:
        """
        Lay over the machine's /usr what hides its settings, and the way to the node's tools.

        Returns:
            Path on the node → what is shown there beside: the lab's libraries, and folders that the tree has elsewhere.
        """
        shown: dict[str, Path] = {}
        for path in _OF_TREE:
            hiding = usr.parent / path
            hiding.mkdir(parents=True, exist_ok=True)
            os.setxattr(hiding, "trusted.overlay.opaque", b"y")
            short = self._tree / path.removeprefix("usr/")
            if short.is_dir() and not (self._tree / path).exists():  # as /lib/modules
                shown[path] = short
        (usr / "local").mkdir(parents=True, exist_ok=True)
        (usr / "local/sbin").symlink_to(f"{NODE}/bin")
        for tool in TOOLS:  # units and rules name a tool by its usual place
            for folder in ("bin", "sbin"):
                if (self._folder / "bin" / tool).exists():
                    (usr / folder).mkdir(exist_ok=True)
                    (usr / folder / tool).write_text(f'#!/bin/sh\nexec {NODE}/bin/{tool} "$@"\n', encoding="ascii")
                    (usr / folder / tool).chmod(0o755)
        for soname in _LIBRARIES:
            if (self._folder / "lib" / soname).exists():
                file = self._place_of(soname)
                (usr.parent / file).parent.mkdir(parents=True, exist_ok=True)
                (usr.parent / file).touch()
                shown[str(file)] = self._folder / "lib" / soname
        return shown

    def _place_of(self, soname: str) -> Path:
        """Return where the loader finds a library of the driver: the file that the node's own link leads to."""
        machine = Path("usr/lib", f"{os.uname().machine}-linux-gnu")
        place = machine if (Path("/") / machine).is_dir() else Path("usr/lib64")
        name = self._tree / place / soname
        target = os.readlink(name) if name.is_symlink() else soname  # noqa: PTH115 - text, not a Path
        return place / target.rpartition("/")[2]

    def _disk(self) -> None:
        """Show the node's disk, writable."""
        for entry in os.scandir(self._tree):
            if entry.name not in _MADE and entry.is_dir(follow_symlinks=False):
                bind(entry.path, self._make(entry.name), writable=True)

    def _run(self) -> None:
        run = self._make("run")
        mount("run", run, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m")
        self._make("run/sshd")
        bind(str(self._folder), self._make(NODE[1:]), writable=True)  # whole: bin and nvml are made anew by the lab
        bind(str(self._tree), f"{self._place}{NODE}/root", writable=False)
        bind(str(self._tree), self._make(HAND[1:], 0o700), writable=True)
        for path, file in self._served.items():
            if not path.startswith(("/sys/", "/proc/")):
                mount(str(file), str(self._place) + path, flags=MS_BIND)
        self._link_tree("run", f"{NODE}/root/run")

    def _link_tree(self, path: str, to: str, skip: frozenset[str] = frozenset()) -> None:
        """Put links to the node's files into a folder that is partly the kernel's."""
        folder = self._tree / path
        if not folder.is_dir():
            return
        for name in (entry.name for entry in folder.iterdir()):
            target = self._place / path / name
            if name not in skip and not target.exists() and not target.is_symlink():
                target.symlink_to(f"{to}/{name}")

    def _proc(self) -> None:
        proc = Path(self._make("proc"))
        mount("proc", str(proc), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=16m")
        kernel = proc / ".kernel"
        kernel.mkdir()
        mount("proc", str(kernel), "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
        self._own_process(proc)
        self._link_tree("proc", f"{NODE}/root/proc", frozenset(("self", "sys", "irq")))
        for name in _OF_KERNEL:
            if not (proc / name).is_symlink():
                (proc / name).symlink_to(f".kernel/{name}")
        for name, target in {"thread-self": ".kernel/thread-self", "mounts": "self/mounts", "net": "self/net"}.items():
            if not (proc / name).is_symlink():
                (proc / name).symlink_to(target)
        self._attributes_of_proc(proc)
        for path in [path for path in self._served if path.startswith("/proc/") and path.count("/") == 2]:
            file = proc / path.rpartition("/")[2]
            file.unlink(missing_ok=True)
            file.touch()
            mount(str(self._served[path]), str(file), flags=MS_BIND)

    def _own_process(self, proc: Path) -> None:
        """Make /proc/self: the kernel's entries, but for the node's mounts."""
        own = proc / "self"
        own.mkdir()
        shown = self._tree / "proc/self"
        mine = {entry.name for entry in shown.iterdir()} if shown.is_dir() else set()
        for name in (entry.name for entry in Path("/proc/self").iterdir()):
            if name in mine:
                (own / name).symlink_to(f"{NODE}/root/proc/self/{name}")
            elif name not in _OF_PROCESS:
                (own / name).symlink_to(f"../.kernel/self/{name}")
        if "mountinfo" in mine and "mounts" not in mine:
            text = (shown / "mountinfo").read_text(encoding="utf-8", errors="replace")
            (own / "mounts").write_text(mounts_of(text), encoding="utf-8")

    def _attributes_of_proc(self, proc: Path) -> None:
        """Make /proc/sys and /proc/irq: each file one attribute, or a link to the node's file."""
        for top in ("sys", "irq"):
            for base, _, names in os.walk(self._tree / "proc" / top):
                folder = proc / Path(base).relative_to(self._tree / "proc")
                folder.mkdir(parents=True, exist_ok=True)
                for name in names:
                    path = f"/proc/{folder.relative_to(proc)}/{name}"
                    if path in self._served:
                        (folder / name).touch()
                        mount(str(self._served[path]), str(folder / name), flags=MS_BIND)
                    else:
                        (folder / name).symlink_to(f"{NODE}/root{path}")

    def _dev(self) -> None:
        dev = Path(self._make("dev"))
        mount("dev", str(dev), "tmpfs", MS_NOSUID, "mode=755,size=16m")
        for name in _DEVICES:
            (dev / name).touch()
            mount(f"/dev/{name}", str(dev / name), flags=MS_BIND)
        (dev / "pts").mkdir()
        mount("devpts", str(dev / "pts"), "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=0")
        self._make("dev/shm", 0o1777)
        links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
        for name, target in links.items():
            (dev / name).symlink_to(target)
        self._link_tree("dev", f"{NODE}/root/dev")
