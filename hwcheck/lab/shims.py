"""
Tools on PATH of a lab node, as small shell scripts that print from the node's own state.

Each prints a text that stands behind it in the script, or acts (:mod:`hwcheck.lab.actor`); nothing else of the machine
is asked. What no source spawns is here only where people type it on a node: dmesg, lspci, ibstat.
"""

from __future__ import annotations

from hwcheck.lab.actor.main import LOAD_TOOLS, TOOLS
from hwcheck.lab.live import tool
from hwcheck.lab.machine import Machine

HANG = "#!/bin/sh\nexec sleep 86400\n"
_MARK = "HWCHECK_LAB_TEXT"
_INTERNAL = ("boot",)
_ONLY_DEBIAN = ("update-grub", "grub-mkconfig", "grub-reboot", "grub-set-default", "grub-editenv")
_ONLY_RHEL = ("grubby", "grub2-reboot", "grub2-set-default", "grub2-editenv")


def script(text: str, arguments: str = "", status: int = 0, other: str = "") -> str:
    """
    Return a script that prints a text.

    Args:
        text: what it prints.
        arguments: shell pattern that its arguments must match; "" for any.
        status: exit status.
        other: what it says on stderr, with status 2, for other arguments.
    """
    body = text if text.endswith("\n") or not text else text + "\n"
    guard = f'case "$*" in\n{arguments}) ;;\n*) echo {other!r} >&2; exit 2 ;;\nesac\n' if arguments else ""
    return f"#!/bin/sh\n{guard}cat <<'{_MARK}'\n{body}{_MARK}\nexit {status}\n"


def shims(machine: Machine) -> dict[str, str]:
    """Return the scripts: name → text."""
    found = {
        "pmc": script(_pmc(machine)),
        "dmesg": script("\n".join(f"[{at:12.6f}] {text}" for at, text in machine.kernel.log)),
        "uname": f'#!/bin/sh\n[ "$*" != -r ] || exec echo {machine.kernel.release}\nexec /usr/bin/uname "$@"\n',
        "hostname": script(machine.name),
        "lspci": script("\n".join(f"{at} Class {f.kind[:4]}: {f.ids}" for at, f in machine.functions.items())),
        "ibstat": script(_ibstat(machine)),
        "ibdev2netdev": script("\n".join(
            f"{nic.name} port 1 ==> {nic.netdev} ({'Up' if nic.up else 'Down'})" for nic in machine.nics
        )),
    }  # fmt: skip
    if "nvidia-fabricmanager" in machine.services:
        found["nv-fabricmanager"] = script(f"Fabric Manager version is : {machine.versions['fabric-manager']}")
    if machine.imex is not None:
        found["nvidia-imex"] = script(f"IMEX version is: {machine.versions['imex']}")
        found["nvidia-imex-ctl"] = script(_imex(machine))
    absent: tuple[str, ...] = _ONLY_DEBIAN if machine.os == "rhel" else _ONLY_RHEL
    absent = (*_INTERNAL, *absent, *(name for name in LOAD_TOOLS if name not in machine.load_tools))
    found |= {name: tool(name) for name in TOOLS if name not in absent}
    return found | dict.fromkeys(machine.slow_tools, HANG)


def _pmc(machine: Machine) -> str:
    clock = machine.clock
    if clock.ptp_offset is None:
        return "sending: GET TIME_STATUS_NP\nsending: GET CURRENT_DATA_SET\nsending: GET PORT_DATA_SET"
    port = "b83fd2.fffe.5a1e00"
    return (
        "sending: GET TIME_STATUS_NP\n"
        f"\t{port}-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP\n\t\tmaster_offset              {clock.ptp_offset}\n"
        "\t\tgmPresent                  true\n"
        f"sending: GET CURRENT_DATA_SET\n\t{port}-0 seq 1 RESPONSE MANAGEMENT CURRENT_DATA_SET\n"
        f"\t\tstepsRemoved               1\n\t\toffsetFromMaster           {clock.ptp_offset}.0\n"
        f"\t\tmeanPathDelay              410.0\nsending: GET PORT_DATA_SET\n"
        f"\t{port}-1 seq 2 RESPONSE MANAGEMENT PORT_DATA_SET\n\t\tportState               {clock.ptp_state}"
    )


def _ibstat(machine: Machine) -> str:
    blocks = []
    for number, nic in enumerate(machine.nics, 1):
        subnet = nic.up and not nic.ethernet
        blocks.append(
            f"CA '{nic.name}'\n\tCA type: {nic.hca}\n\tNumber of ports: 1\n\tFirmware version: {nic.firmware}\n"
            f"\tHardware version: 0\n"
            f"\tNode GUID: 0x{nic.guid:016x}\n\tSystem image GUID: 0x{nic.guid:016x}\n\tPort 1:\n"
            f"\t\tState: {nic.state.partition(': ')[2].capitalize()}\n"
            f"\t\tPhysical state: {nic.physical.partition(': ')[2]}\n"
            f"\t\tRate: {nic.rate if nic.up else 10}\n\t\tBase lid: {0x100 + number if subnet else 0}\n\t\tLMC: 0\n"
            f"\t\tSM lid: {1 if subnet else 0}\n\t\tCapability mask: 0xa751e848\n"
            f"\t\tPort GUID: 0x{nic.guid:016x}\n\t\tLink layer: {nic.layer}"
        )
    return "\n".join(blocks)


def _imex(machine: Machine) -> str:
    """Print nodes and connections; one that is not ready is connected to nobody."""
    assert machine.imex is not None  # noqa: S101 - the caller asks only for nodes with IMEX
    nodes = machine.imex.nodes
    lines = [
        "Connectivity Table Legend:", "I - Invalid - Node wasn't reachable, no connection status available",
        "N - Never Connected", "C - Connected - Ready for operation", "", "6/1/2026 09:15:01.114", "Nodes:",
    ]  # fmt: skip
    for number, (address, (state, version)) in enumerate(nodes.items()):
        lines.append(f"Node #{number:<3} - {address:<15} - {state:<20} - Version: {version}")
    ready = [state == "READY" for state, _ in nodes.values()]
    lines += ["", " Nodes From\\To  " + "  ".join(f"{number:<2}" for number in range(len(ready)))]
    for number, own in enumerate(ready):
        cells = "  ".join(f"{'C' if own and other else 'N':<2}" for other in ready)
        lines.append(f"       {number:<8} {cells}")
    lines += ["", f"Domain State: {'UP' if all(ready) else 'DEGRADED'}"]
    return "\n".join(lines)
