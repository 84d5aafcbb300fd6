"""
Kernel modules: versions of the loaded ones, files of each installed kernel, DKMS, options and parameters.

Source: /sys/module; the section .modinfo of module files (modinfo(8)) and modules.dep; /var/lib/dkms; modprobe.d(5),
    modules-load.d(5); /proc/driver/nvidia/params.
Shape: ``kernel.module.*``, ``kernel.dkms`` and ``driver.parameters`` of the node. Option lines add up over all files;
    a file in /etc masks one of the same name in /run and /usr/lib.
Units: none.
Missing: a compressed module file is read in the deep tier only; its record has the gap. A module without a version
    (mlx5_core of the inbox driver) has "".
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.file_text import by_folder, gap_of, links, rows, sections
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_LOADED = re.compile(r"^/sys/module/(\w{1,64})/(version|srcversion|taint|initstate)$")
_FILE = re.compile(r"^/lib/modules/([^/]{1,100})/(?:.{1,300}/)?([\w-]{1,64})\.ko(?:\.\w{1,4})?$")
_BUILT = re.compile(r"^/var/lib/dkms/([\w.+-]{1,80})/kernel-([^/]{1,120})-(x86_64|aarch64)$")
_DRIVER = re.compile(r"\d{3,4}\.\d{1,4}(?:\.\d{1,4})?")
_ROOTS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
_NOTHING = [["/bin/false"], ["/bin/true"], ["/usr/bin/false"], ["/usr/bin/true"]]
_MODPROBE = tuple(f"{root}/modprobe.d" for root in _ROOTS)
_LOAD = tuple(f"{root}/modules-load.d" for root in _ROOTS)


@fmt("sysfs.module", "/sys/module", gives=("kernel.module.versions", "driver.module_version"))
def sysfs_module(output: Output, facts: FactSink) -> None:
    """Read one attribute a line."""
    modules: dict[str, dict[str, str]] = {}
    for path, text, number in rows(output):
        match = _LOADED.match(path)
        if not match or gap_of(text) is not None:
            continue
        record = modules.setdefault(match[1], {"version": "", "srcversion": "", "taint": ""})
        if match[2] != "initstate":
            record[match[2]] = text[:100]
        if match[1] == "nvidia" and match[2] == "version" and _DRIVER.fullmatch(text):
            facts.put(NODE, "driver.module_version", text, number)
    facts.put(NODE, "kernel.module.versions", modules, output.first_line)


@fmt("module.files", "module files", gives=("kernel.module.files", "driver.module_installed"))
def module_files(output: Output, facts: FactSink) -> None:
    """Read what the files of each kernel say; that of the running kernel is what the next load takes."""
    running = ""
    kernels: dict[str, dict[str, dict[str, Any]]] = dict(facts.seen(NODE, "kernel.module.files") or {})
    for section in sections(output):
        match = _FILE.match(section.path)
        if section.path == "running":
            running = section.lines[0][1].strip() if section.lines else ""
        if not match:
            continue
        record: dict[str, Any] = {"path": section.path, "version": "", "license": "", "vermagic": "", "gap": ""}
        for number, text in section.lines:
            key, _, value = text.partition(": ")
            if text.startswith("!"):
                record["gap"] = text[1:80]
            elif key in record and not record[key]:
                record[key] = value.strip()[:200]
            if key == "version" and match[2] == "nvidia" and match[1] == running and _DRIVER.fullmatch(value.strip()):
                facts.put(NODE, "driver.module_installed", value.strip(), number)
        name = match[2].replace("-", "_")
        before = kernels.setdefault(match[1], {}).get(name)
        if before is None or not record["gap"]:
            kernels[match[1]] = {**kernels[match[1]], name: record}
    facts.put(NODE, "kernel.module.files", kernels, output.first_line)


@fmt("dkms.links", "DKMS", gives=("kernel.dkms",))
def dkms_links(output: Output, facts: FactSink) -> None:
    """Read ``/var/lib/dkms/nvidia/kernel-6.8.0-60-generic-x86_64 -> 570.172.08/6.8.0-60-generic/x86_64``."""
    records = []
    for path, target, _ in links(output):
        match = _BUILT.match(path)
        if match:
            records.append({"module": match[1], "version": target.partition("/")[0][:60], "kernel": match[2]})
    facts.put(NODE, "kernel.dkms", tuple(records[:200]), output.first_line)


@fmt(
    "modprobe.dropins",
    "modprobe.d and modules-load.d",
    gives=("kernel.module.options", "kernel.module.blacklist", "kernel.modules.boot"),
    opens=r"==> (?:/etc|/run|/usr/local/lib|/usr/lib|/lib)/(?:modprobe|modules-load)\.d/\S{1,200} <==",
)
def modprobe_dropins(output: Output, facts: FactSink) -> None:
    """Read options, blacklists and the modules to load at boot."""
    found = sections(output)
    options: dict[str, tuple[str, ...]] = {}
    blacklist: list[str] = []
    for section in by_folder(found, _MODPROBE):
        for words in (text.split() for _, text in section.lines):
            if len(words) > 2 and words[0] == "options":
                module = words[1].replace("-", "_")[:64]
                options[module] = (*options.get(module, ()), " ".join(words[2:])[:500])
            elif (words[:1], len(words)) == (["blacklist"], 2) or (words[:1] == ["install"] and words[2:] in _NOTHING):
                blacklist.append(words[1].replace("-", "_")[:64])
    boot = [
        text.strip().replace("-", "_")[:64]
        for section in [*by_folder(found, _LOAD), *(one for one in found if one.path == "/etc/modules")]
        for _, text in section.lines
        if text.strip() and text.strip()[0] not in "#;!"
    ]
    facts.put(NODE, "kernel.module.options", options, output.first_line)
    facts.put(NODE, "kernel.module.blacklist", tuple(dict.fromkeys(blacklist)), output.first_line)
    facts.put(NODE, "kernel.modules.boot", tuple(dict.fromkeys(boot)), output.first_line)


@fmt(
    "nvidia.params",
    "/proc/driver/nvidia/params",
    gives=("driver.parameters",),
    opens=r"ResmanDebugLevel: \d",
    continues=r"^\w{1,80}: ",
    command=r"/proc/driver/nvidia/params\b",
)
def nvidia_params(output: Output, facts: FactSink) -> None:
    """Read ``Name: value`` lines."""
    pairs = (text[:500].partition(": ") for text in output.lines)
    values = {key: value.strip().strip('"') for key, colon, value in pairs if colon and re.fullmatch(r"\w{1,80}", key)}
    if not values:
        facts.unparsable(NODE, "driver.parameters", output.lines[0] if output.lines else "", output.first_line)
        return
    facts.put(NODE, "driver.parameters", values, output.first_line)
