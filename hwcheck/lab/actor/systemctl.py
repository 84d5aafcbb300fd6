"""``systemctl`` of a lab node. Source of words and exit statuses: systemctl(1), and systemd 255 for its messages."""

from __future__ import annotations

from collections.abc import Callable

from hwcheck.lab.actor import interrupts, power
from hwcheck.lab.actor.jobs import Manager, cpu_ranges
from hwcheck.lab.actor.place import Node, ToolError, say
from hwcheck.lab.actor.unit_file import MASK, Unit, full_name, on_disk

_OPTIONS_WITH_VALUE = (
    "-p",
    "--property",
    "-t",
    "--type",
    "-n",
    "--lines",
    "-o",
    "--output",
    "--state",
    "-s",
    "--kill-who",
)
_EXEC = (
    "{{ path={path} ; argv[]={line} ; ignore_errors={ignored} ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; "
    "code=(null) ; status=0/0 }}"
)
_EXECS = ("ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost")


class _Asked:
    """The command line: verb, units, options."""

    def __init__(self, words: list[str]) -> None:
        self.options: set[str] = set()
        self.properties: list[str] = []
        plain: list[str] = []
        rest = iter(words)
        for word in rest:
            name, sign, value = word.partition("=")
            if name in _OPTIONS_WITH_VALUE:
                value = value if sign else next(rest, "")
                if name in ("-p", "--property"):
                    self.properties += value.split(",")
            elif word.startswith("-p") and not word.startswith("--"):
                self.properties += word[2:].split(",")
            elif word.startswith("-"):
                self.options.add(word)
            else:
                plain.append(word)
        self.verb = plain[0] if plain else "list-units"
        self.units = [full_name(word) for word in plain[1:]]

    @property
    def is_quiet(self) -> bool:
        """Whether states are not printed."""
        return bool(self.options & {"-q", "--quiet"})


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``systemctl``; whatever acts does it alone, and irqbalance has had time since."""
    asked = _Asked(words)
    manager = Manager(node)
    if asked.verb in _READS:
        return _READS[asked.verb](manager, asked)
    if asked.verb in ("reboot", "kexec"):
        power.reboot(node)
        return 0
    if asked.verb not in _ACTS:
        raise ToolError(f"Unknown command verb '{asked.verb}', did the lab's systemctl need to know it?")
    with node.locked():
        status = _ACTS[asked.verb](manager, asked)
        interrupts.balance(node)
    return status


# ------------------------------------------------------------------------------------------------------------- reads


def _show(manager: Manager, asked: _Asked) -> int:
    """Print blocks of properties, an empty line between them; a unit that is not there has few."""
    names = asked.units or manager.node.live_names("daemons")
    blocks = []
    for name in names:
        rows = properties(manager, name, asked.properties)
        if "--value" in asked.options:
            blocks.append("\n".join(rows.values()))
        else:
            blocks.append("\n".join(f"{key}={value}" for key, value in rows.items()))
    say("\n\n".join(blocks))
    return 0


def properties(manager: Manager, name: str, wanted: list[str]) -> dict[str, str]:
    """Return the properties of a unit in systemd's order; all that the lab knows where none is wanted."""
    name = full_name(name)
    state = manager.state(name)
    if not manager.knows(name):
        found = {"Id": name, "LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead", "MainPID": "0"}
        return {key: value for key, value in found.items() if not wanted or key in wanted}
    unit = manager.unit(name)
    limits = manager.limits(unit)
    found = {
        "Id": name, "LoadState": "masked" if unit.is_masked else "loaded", "ActiveState": state["ActiveState"],
        "SubState": state["SubState"], "UnitFileState": manager.file_state(name), "MainPID": state["MainPID"],
        "NRestarts": state["NRestarts"], "ExecMainStatus": state["ExecMainStatus"], "Result": state["Result"],
        "FragmentPath": unit.paths[0], "DropInPaths": " ".join(unit.paths[1:]),
        "NeedDaemonReload": "yes" if manager.is_stale(name) else "no", "LimitMEMLOCK": limits["LimitMEMLOCK"],
        "LimitNOFILE": limits["LimitNOFILE"], "NUMAPolicy": unit.last("Service.NUMAPolicy", "n/a"),
        "NUMAMask": limits["NUMAMask"], "CPUAffinity": limits["CPUAffinity"],
    }  # fmt: skip
    if not wanted:
        return found
    found |= {key: _other(unit, key) for key in wanted if key not in found}
    return {key: value for key, value in found.items() if key in wanted}


def _other(unit: Unit, key: str) -> str:
    """Return a property that the unit's file sets, as systemctl prints it."""
    if key in _EXECS:
        lines = unit.all(f"Service.{key}")
        return "; ".join(
            _EXEC.format(path=line.lstrip("-@+!:").split()[0], line=line.lstrip("-@+!:"),
                         ignored="yes" if line.startswith("-") else "no") for line in lines
        )  # fmt: skip
    for section in ("Unit", "Service", "Install"):
        values = unit.all(f"{section}.{key}")
        if values:
            return cpu_ranges(values[-1]) if key == "AllowedCPUs" else " ".join(values)
    return {"Type": "simple", "Description": unit.name, "Names": unit.name}.get(key, "")


def _cat(manager: Manager, asked: _Asked) -> int:
    for name in asked.units:
        text = on_disk(manager.node, name)
        if not text:
            raise ToolError(f"No files found for {name}.")
        say(text.rstrip())
    return 0


def _is_active(manager: Manager, asked: _Asked) -> int:
    states = [manager.state(name)["ActiveState"] for name in asked.units]
    if not asked.is_quiet:
        say("\n".join(states))
    return 0 if "active" in states else 3


def _is_failed(manager: Manager, asked: _Asked) -> int:
    states = [manager.state(name)["ActiveState"] for name in asked.units]
    if not asked.is_quiet:
        say("\n".join(states))
    return 0 if "failed" in states else 1


def _is_enabled(manager: Manager, asked: _Asked) -> int:
    states = [manager.file_state(name) for name in asked.units]
    if not all(states):
        raise ToolError(f"Failed to get unit file state for {asked.units[states.index('')]}: No such file or directory")
    if not asked.is_quiet:
        say("\n".join(states))
    return 0 if any(state.startswith("enabled") or state == "static" for state in states) else 1


def _status(manager: Manager, asked: _Asked) -> int:
    worst = 0
    for name in asked.units:
        rows = properties(manager, name, [])
        if rows["LoadState"] == "not-found":
            raise ToolError(f"Unit {name} could not be found.", 4)
        say(f"* {name}\n     Loaded: {rows['LoadState']} ({rows['FragmentPath']}; {rows['UnitFileState']})")
        say(f"     Active: {rows['ActiveState']} ({rows['SubState']})\n   Main PID: {rows['MainPID']}")
        worst = max(worst, 0 if rows["ActiveState"] == "active" else 3)
    return worst


def _list(manager: Manager, _asked: _Asked) -> int:
    for name in manager.node.live_names("units"):
        state = manager.state(name)
        say(f"{name:<40} loaded {state['ActiveState']:<8} {state['SubState']}")
    return 0


def _is_running(_manager: Manager, _asked: _Asked) -> int:
    say("running")
    return 0


_READS: dict[str, Callable[[Manager, _Asked], int]] = {
    "show": _show, "cat": _cat, "is-active": _is_active, "is-failed": _is_failed, "is-enabled": _is_enabled,
    "status": _status, "list-units": _list, "list-unit-files": _list, "is-system-running": _is_running,
}  # fmt: skip

# -------------------------------------------------------------------------------------------------------------- acts


def _each(job: str, act: Callable[[Manager, str], object]) -> Callable[[Manager, _Asked], int]:
    def carry_out(manager: Manager, asked: _Asked) -> int:
        for name in asked.units:
            try:
                act(manager, name)
            except ToolError as error:
                text = str(error)
                known = f"Failed to {job} {name}: {text}"
                raise ToolError(known if text.startswith("Unit ") else text, error.status) from None
        return 0

    return carry_out


def _try_restart(manager: Manager, name: str) -> None:
    manager.unit(name)
    if manager.is_active(name):
        manager.restart(name)


def _reload(manager: Manager, name: str) -> None:
    """Have a unit read its own settings; the lab's daemons do so by starting anew, with the same process."""
    unit = manager.unit(name)
    if not manager.is_active(unit.name):
        raise ToolError(f"{unit.name} is not active, cannot reload.")
    if not unit.all("Service.ExecReload"):
        raise ToolError(f"Failed to reload {unit.name}: Job type reload is not applicable for unit {unit.name}.")


def _reload_or_restart(manager: Manager, name: str) -> None:
    if not manager.is_active(name) or not manager.unit(name).all("Service.ExecReload"):
        manager.restart(name)


def _daemon_reload(manager: Manager, _asked: _Asked) -> int:
    manager.reload()
    return 0


def _enable(manager: Manager, asked: _Asked) -> int:
    for name in asked.units:
        if manager.file_state(name) == "masked":
            raise ToolError(f"Failed to enable unit: Unit file /etc/systemd/system/{name} is masked.")
        for link, target in manager.links_of(name).items():
            if manager.node.link(link) != target:
                manager.node.make_link(link, target)
                say(f"Created symlink {link} \u2192 {target}.")
    manager.reload()
    return _ACTS["start"](manager, asked) if "--now" in asked.options else 0


def _disable(manager: Manager, asked: _Asked) -> int:
    for name in asked.units:
        for link in manager.links_of(name):
            if manager.node.link(link):
                manager.node.remove(link)
                say(f'Removed "{link}".')
    manager.reload()
    return _ACTS["stop"](manager, asked) if "--now" in asked.options else 0


def _mask(manager: Manager, asked: _Asked) -> int:
    for name in asked.units:
        path = f"/etc/systemd/system/{name}"
        if manager.node.exists(path) and not manager.node.link(path):
            raise ToolError(f"Failed to mask unit: File {path} already exists.")
        if "--now" in asked.options:
            manager.stop(name)
        manager.node.make_link(path, MASK)
        say(f"Created symlink {path} \u2192 {MASK}.")
    manager.reload()
    return 0


def _unmask(manager: Manager, asked: _Asked) -> int:
    for name in asked.units:
        path = f"/etc/systemd/system/{name}"
        if manager.node.link(path) == MASK:
            manager.node.remove(path)
            say(f'Removed "{path}".')
    manager.reload()
    return 0


def _reset_failed(manager: Manager, asked: _Asked) -> int:
    for name in asked.units or manager.node.live_names("units"):
        if manager.state(name)["ActiveState"] == "failed":
            manager.node.change(f"units/{name}", ActiveState="inactive", SubState="dead", Result="success")
    return 0


_ACTS: dict[str, Callable[[Manager, _Asked], int]] = {
    "daemon-reload": _daemon_reload, "daemon-reexec": _daemon_reload, "enable": _enable, "disable": _disable,
    "mask": _mask, "unmask": _unmask, "reset-failed": _reset_failed,
    "start": _each("start", Manager.start), "stop": _each("stop", Manager.stop),
    "restart": _each("restart", Manager.restart), "try-restart": _each("restart", _try_restart),
    "condrestart": _each("restart", _try_restart), "reload": _each("reload", _reload),
    "reload-or-restart": _each("restart", _reload_or_restart),
    "try-reload-or-restart": _each("restart", _try_restart),
}  # fmt: skip
