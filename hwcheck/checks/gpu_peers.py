"""
A GPU against the other GPUs of its node: what all of one model have alike, whatever the platform's figures are.

Where no figure is known, the peers are the yardstick; and where all figures are right, a part that differs from its
peers was exchanged, or missed in an update.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from hwcheck.checks.relation import Answer, Every, Given, Some, ok, relation, skip, warn
from hwcheck.facts import Subject
from hwcheck.findings import Remedy, Urgency

_LINK = Remedy(
    "hands",
    "Drain the node and compare slot, riser, retimer and BIOS link speed of this GPU with those of its peers (LnkCap "
    "and LnkSta, lspci -vvv); reseat it and power-cycle. In a guest ask the operator of the host.",
    disturbs="node",
)
_MAP = Remedy(
    "act",
    "Turn on Above 4G Decoding and Resizable BAR in the BIOS, power-cycle the node and compare Region 1 of this GPU "
    "with its peers (lspci -vv); pci=realloc helps where the kernel log says that it found no space for the BAR.",
    disturbs="node",
)
_UPDATE = Remedy(
    "act",
    "Compare board part number and serial with the service records: a spare part brings its own firmware. Bring the "
    "GPU that differs to the version of its peers from one firmware package in the next maintenance window.",
    disturbs="node",
)
_VBIOS = re.compile(r"[0-9A-F]{2}(\.[0-9A-F]{2}){4}", re.IGNORECASE)
_INFOROM = re.compile(r"[0-9A-Z]{4}\.\d{4}\.\d{2}\.\d{2}", re.IGNORECASE)


def _by_model(names: dict[Subject, str], values: dict[Subject, int]) -> Iterable[dict[Subject, int]]:
    """Split the values by product name; one GPU alone has no peers."""
    groups: dict[str, dict[Subject, int]] = defaultdict(dict)
    for gpu, value in values.items():
        if gpu in names:
            groups[names[gpu]][gpu] = value
    return [group for group in groups.values() if len(group) > 1]


def _below_peers(given: Given, fact: str, words: str) -> list[Answer]:
    """Warn of each GPU whose value is below the best of its model; words take the value: ``Gen{}``."""
    answers = []
    for group in _by_model(given["gpu.name"], given[fact]):
        best = max(group.values())
        count = sum(value == best for value in group.values())
        answers += [
            warn(
                f"{words.format(value)}, while {count} other GPU{'s' if count > 1 else ''} of the node have "
                f"{words.format(best)}",
                subject=gpu, observed=value, expected=best,
            )
            for gpu, value in group.items() if value < best
        ]  # fmt: skip
    return answers


@relation("pcie.gpu_gen_peers", needs=(Some("gpu.pcie.gen_max"), Some("gpu.name")), remedy=_LINK)
def links_can_do_what_peers_can(given: Given) -> list[Answer]:
    """
    No GPU's PCIe link can do less than those of its peers.

    What it checks: the highest generation of GPU and slot together, against the other GPUs of the same model.

    Why it matters: a slot that fell back to a lower generation looks whole by its own word, current equals maximum.
    Its GPU is the straggler of every job.

    How to fix: compare slot, riser, retimer and BIOS setting; reseat; power-cycle.

    Applies to: nodes with two or more GPUs of one model, guests too.

    Source: nvidia-smi -q of healthy nodes of eight H100, H200 and B200: one generation on all.
    """
    return _below_peers(given, "gpu.pcie.gen_max", "PCIe link up to Gen{}")


@relation("pcie.gpu_width_peers", needs=(Some("gpu.pcie.width_max"), Some("gpu.name")), remedy=_LINK)
def links_are_as_wide_as_peers(given: Given) -> list[Answer]:
    """
    No GPU's PCIe link has fewer lanes than those of its peers.

    What it checks: the most lanes of GPU and slot together, against the other GPUs of the same model.

    Why it matters: a slot wired or bifurcated to fewer lanes looks whole by its own word and halves host copies.

    How to fix: compare slot, riser and BIOS bifurcation; reseat; power-cycle.

    Applies to: nodes with two or more GPUs of one model, guests too.

    Source: nvidia-smi -q of healthy nodes of eight H100, H200 and B200: x16 on all.
    """
    return _below_peers(given, "gpu.pcie.width_max", "PCIe link up to x{}")


@relation("pcie.bar1_peers", needs=(Some("gpu.bar1.total"), Some("gpu.name")), remedy=_MAP)
def bar1_as_large_as_peers(given: Given) -> list[Answer]:
    """
    No GPU's BAR1 is smaller than those of its peers.

    What it checks: the BAR1 aperture, against the other GPUs of the same model.

    Why it matters: GPUDirect RDMA and peers over PCIe reach GPU memory through BAR1; what does not fit into it cannot
    be registered.

    How to fix: Above 4G Decoding and Resizable BAR in the BIOS; power-cycle.

    Applies to: nodes with two or more GPUs of one model. A GH200 has no BAR1.

    Source: nvidia-smi -q of healthy H100, H200, B200, GB200 and GB300 nodes: one size on all.
    """
    return _below_peers(given, "gpu.bar1.total", "BAR1 of {} MiB")


@relation("firmware.gpu_vbios", needs=(Every("gpu.vbios"), Some("gpu.name")), remedy=_UPDATE)
def gpus_of_one_vbios(given: Given) -> list[Answer]:
    """
    GPUs of one model have one VBIOS version.

    What it checks: the VBIOS version of each GPU against the other GPUs of the same model. Which version is no matter:
    boards of one product are shipped with many.

    Why it matters: GPUs with differing firmware differ in power, clock and link behaviour; one straggler sets the pace.

    How to fix: update the ones that differ; check the board part number first.

    Applies to: nodes with two or more GPUs of one model. Redacted versions are not compared.

    Source: nvidia-smi -q of healthy nodes of eight H100, H200 and B200, trays of GB200 and GB300: one version a node.
    """
    return _uniform(given, "gpu.vbios", "VBIOS", _VBIOS)


@relation("firmware.gpu_inforom", needs=(Every("gpu.inforom"), Some("gpu.name")), remedy=_UPDATE)
def gpus_of_one_inforom(given: Given) -> list[Answer]:
    """
    GPUs of one model have one InfoROM image version.

    What it checks: the InfoROM image of each GPU against the other GPUs of the same model.

    Why it matters: the image belongs to the board: another one is another board variant, or a missed update.

    How to fix: compare board part numbers; update the ones that differ from one package.

    Applies to: nodes with two or more GPUs of one model. Redacted versions are not compared.

    Source: nvidia-smi -q of healthy nodes of eight H100, H200 and B200, trays of GB200 and GB300: one image a node.
    """
    return _uniform(given, "gpu.inforom", "InfoROM image", _INFOROM)


def _uniform(given: Given, fact: str, what: str, form: re.Pattern[str]) -> list[Answer]:
    """Warn of the GPUs whose version is not the one most of their model have."""
    names, answers = given["gpu.name"], []
    told = {gpu: text.upper() for gpu, text in given[fact].items() if form.fullmatch(text) and text.strip("0.")}
    for model in sorted({names[gpu] for gpu in told if gpu in names}):
        group = {gpu: version for gpu, version in told.items() if names.get(gpu) == model}
        counts = Counter(group.values()).most_common(2)
        usual, number = counts[0]
        if len(group) < 2:
            continue
        if len(counts) == 1:
            answers.append(ok(f"all {number} {model} have {what} {usual}", observed=usual))
        elif number == counts[1][1]:
            text = f"{model} of this node have different {what} versions: {', '.join(sorted(set(group.values())))}"
            answers.append(warn(text, observed=sorted(set(group.values()))))
        else:
            answers += [
                warn(f"{what} is {version}, {number} other {model} of the node have {usual}",
                     subject=gpu, observed=version, expected=usual)
                for gpu, version in group.items() if version != usual
            ]  # fmt: skip
    return answers


@relation("evidence.serials", needs=(Some("gpu.serial"),), urgency=Urgency.NOTE)
def serials_are_distinct(given: Given) -> list[Answer]:
    """
    Each board has a serial number of its own.

    What it checks: serial numbers that more than one GPU has. Placeholders of redacted captures do not count, nor do
    boards that carry two GPUs (GB200, GB300), where all serials come in pairs.

    Why it matters: such a text was edited, or one GPU was copied over the others; what it says of them is in doubt,
    and a service case needs the right serial number.

    How to fix: post the listing as the tool printed it.

    Applies to: nodes with two or more GPUs.

    Source: nvidia-smi -q of HGX boards (eight serials) and of GB200 and GB300 trays (two pairs).
    """
    holders: dict[str, list[str]] = defaultdict(list)
    for gpu, serial in given["gpu.serial"].items():
        if serial.isalnum() and len(set(serial)) > 1 and any(char.isdigit() for char in serial):
            holders[serial].append(str(gpu))
    in_pairs = all(len(gpus) == 2 for gpus in holders.values()) and given.bound("fabric.kind") != "nvswitch"
    return [
        skip(f"{len(gpus)} GPUs have one serial number, {serial}: {', '.join(gpus[:8])}; the text is in doubt",
             observed=len(gpus), expected=1)
        for serial, gpus in sorted(holders.items()) if len(gpus) > 1 and not in_pairs
    ]  # fmt: skip
