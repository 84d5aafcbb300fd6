"""
Units that start and stop: systemd's jobs as far as a node of the lab needs them.

``live/units/UNIT`` has the state of a unit that was ever started, ``live/loaded/UNIT`` what systemd has read of it, and
``live/daemons/UNIT`` what the lab's daemon is. Anything else of which a file says ``ExecStart=`` runs for real.
Sources: systemd.unit(5) for Requires, Wants, PartOf, After and the ``.wants`` folders; systemd.service(5) for Type.
"""

from __future__ import annotations

from hwcheck.lab.actor import daemons, oneshot, process
from hwcheck.lab.actor.place import Node, ToolError
from hwcheck.lab.actor.unit_file import FOLDERS, Unit, full_name, on_disk, split

_NEW = {
    "ActiveState": "inactive", "SubState": "dead", "MainPID": "0", "NRestarts": "0", "ExecMainStatus": "0",
    "Result": "success",
}  # fmt: skip
_MEMLOCK, _NOFILE = "8388608", "1048576"
_DEPTH = 8


class Manager:
    """
    systemd of one node.

    Args:
        node: whose.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self._units: dict[str, Unit] = {}

    # ------------------------------------------------------------------------------------------------------- units

    def unit(self, name: str) -> Unit:
        """
        Return a unit as systemd knows it: as of the last daemon-reload, or of its first use.

        Raises:
            ToolError: there is none of that name.
        """
        name = full_name(name)
        if name not in self._units:
            text = self.node.live_text(f"loaded/{name}") or on_disk(self.node, name)
            if not text:
                raise ToolError(f"Unit {name} not found.", 5)
            self._units[name] = Unit(name, text)
        return self._units[name]

    def knows(self, name: str) -> bool:
        """Tell whether there is a unit of that name."""
        return bool(self.node.live_text(f"loaded/{full_name(name)}") or on_disk(self.node, full_name(name)))

    def state(self, name: str) -> dict[str, str]:
        """Return the state of a unit."""
        return {**_NEW, **self.node.live(f"units/{full_name(name)}")}

    def is_active(self, name: str) -> bool:
        """Tell whether a unit is up."""
        return self.state(name)["ActiveState"] in ("active", "reloading")

    def is_stale(self, name: str) -> bool:
        """Tell whether a unit's files are not those that systemd has read."""
        loaded = self.node.live_text(f"loaded/{full_name(name)}")
        return bool(loaded) and loaded != on_disk(self.node, full_name(name))

    def reload(self) -> None:
        """Read the files of all units that were read before."""
        self._units.clear()
        for name in self.node.live_names("loaded"):
            text = on_disk(self.node, name)
            if text:
                self.node.keep(f"loaded/{name}", text)
            elif not self.is_active(name):
                self.node.forget(f"loaded/{name}")

    def _load(self, name: str) -> Unit:
        unit = self.unit(name)
        if not self.node.live_text(f"loaded/{unit.name}"):
            self.node.keep(f"loaded/{unit.name}", on_disk(self.node, unit.name))
        return unit

    def limits(self, unit: Unit) -> dict[str, str]:
        """Return what a process of the unit is started with."""
        found = {
            "LimitMEMLOCK": unit.limit("LimitMEMLOCK", self._default("MEMLOCK", _MEMLOCK)),
            "LimitNOFILE": unit.limit("LimitNOFILE", self._default("NOFILE", _NOFILE)),
        }
        for key in ("CPUAffinity", "NUMAMask"):
            found[key] = cpu_ranges(" ".join(unit.all(f"Service.{key}")))
        return found

    def _default(self, limit: str, otherwise: str) -> str:
        paths = ["/etc/systemd/system.conf", *self.node.expand("/etc/systemd/system.conf.d/*.conf")]
        text = "\n".join(self.node.text(path) for path in paths)
        unit = Unit("manager", text)
        return unit.limit(f"DefaultLimit{limit}", otherwise, "Manager")

    # -------------------------------------------------------------------------------------------------------- jobs

    def start(self, name: str, depth: int = 0) -> None:
        """
        Start a unit, and what it requires before it; what wants to come with it after it.

        Raises:
            ToolError: there is none, it is masked, or it failed.
        """
        unit = self._load(name)
        if unit.is_masked:
            raise ToolError(f"Unit {unit.name} is masked.")
        if self.is_active(unit.name) or depth > _DEPTH:
            return
        for key, must in (("Requires", True), ("BindsTo", True), ("Wants", False)):
            for other in unit.words(f"Unit.{key}"):
                self._bring(other, depth, must=must)
        if not self._conditions(unit):
            return
        self._run(unit)
        for other in self._wanted_by(unit.name):
            self._bring(other, depth, must=False)

    def _bring(self, name: str, depth: int, *, must: bool) -> None:
        if not name.endswith(".service") or not self.knows(name):
            return
        try:
            self.start(name, depth + 1)
        except ToolError:
            if must:
                raise

    def stop(self, name: str) -> list[str]:
        """Stop a unit and what is part of it; returns what was up of it, in order."""
        unit = self._load(name)
        if not self.is_active(unit.name):
            self._set(unit.name, ActiveState="inactive", SubState="dead")
            return []
        were = [unit.name]
        for other in self._parts_of(unit.name):
            were += self.stop(other)
        state = self.state(unit.name)
        settings = unit.all("Service.Environment")
        for line in unit.all("Service.ExecStop"):
            if not self.node.live(f"daemons/{unit.name}"):
                oneshot.run(self.node, line, settings)
        process.end(self.node, unit.name, int(state["MainPID"]))
        self._set(unit.name, ActiveState="inactive", SubState="dead", MainPID="0")
        daemons.stopped(self.node, unit.name)
        return were

    def restart(self, name: str) -> None:
        """Stop a unit and what is part of it, and start what was up; and the unit itself in any case."""
        were = self.stop(name)
        for one in dict.fromkeys([full_name(name), *were]):
            self.start(one)

    def _run(self, unit: Unit) -> None:
        about = self.node.live(f"daemons/{unit.name}")
        lines = unit.all("Service.ExecStart")
        if about:
            why = daemons.started(self.node, unit.name, lines[-1] if lines else "")
            if why:
                self._failed(unit.name, 1)
            command = self._command(unit, lines[-1] if lines else "")
            pid = process.begin(self.node, unit.name, {**about, "command": command}, self.limits(unit))
            self._set(unit.name, ActiveState="active", SubState="running", MainPID=str(pid), Result="success",
                      ExecMainStatus="0")  # fmt: skip
            return
        settings = unit.all("Service.Environment")
        for line in [*unit.all("Service.ExecStartPre"), *lines, *unit.all("Service.ExecStartPost")]:
            status = oneshot.run(self.node, line, settings)
            if status:
                self._failed(unit.name, status)
        stays = unit.last("Service.RemainAfterExit") in ("yes", "true", "1", "on")
        shown = ("active", "exited") if stays else ("inactive", "dead")
        self._set(unit.name, ActiveState=shown[0], SubState=shown[1], Result="success", ExecMainStatus="0")

    def _command(self, unit: Unit, line: str) -> str:
        """Return what a daemon is started with; its own files of settings fill it in."""
        rows = [
            row for path in unit.all("Service.EnvironmentFile") for row in self.node.text(path.lstrip("-")).splitlines()
        ]
        known = dict(row.split("=", 1) for row in [*unit.all("Service.Environment"), *rows] if "=" in row)
        known = {key.strip('"'): value.strip("\"'") for key, value in known.items() if not key.startswith("#")}
        words = [word for one in line.split() for word in oneshot.expanded(one, known)]
        return " ".join(word for word in words if not word.startswith("$"))

    def _failed(self, name: str, status: int) -> None:
        self._set(name, ActiveState="failed", SubState="failed", Result="exit-code", ExecMainStatus=str(status))
        raise ToolError(
            f"Job for {name} failed because the control process exited with error code.\n"
            f'See "systemctl status {name}" and "journalctl -xeu {name}" for details.'
        )

    def _set(self, name: str, **rows: str) -> None:
        self.node.keep(f"units/{name}", {**self.state(name), **rows})

    def _conditions(self, unit: Unit) -> bool:
        """Tell whether the paths are there that the unit makes its condition; else it is skipped, which is no error."""
        for value in unit.all("Unit.ConditionPathExists"):
            path = value.lstrip("|!")
            if bool(self.node.expand(path)) == value.lstrip("|").startswith("!"):
                return False
        return True

    def _wanted_by(self, name: str) -> list[str]:
        """Return the units that come with one: links in its .wants folders."""
        return [one for folder in FOLDERS for kind in ("wants", "requires")
                for one in self.node.names(f"{folder}/{name}.{kind}")]  # fmt: skip

    def _parts_of(self, name: str) -> list[str]:
        """Return the units that are up and part of one."""
        found = []
        for other in self.node.live_names("units"):
            if other != name and self.is_active(other) and self.knows(other):
                unit = self.unit(other)
                if name in unit.words("Unit.PartOf") + unit.words("Unit.BindsTo") + unit.words("Unit.Requires"):
                    found.append(other)
        return found

    # --------------------------------------------------------------------------------------------------- enablement

    def file_state(self, name: str) -> str:
        """Return what ``systemctl is-enabled`` says."""
        name = full_name(name)
        template = split(name)[0]
        if self.node.link(f"/etc/systemd/system/{name}") == "/dev/null":
            return "masked"
        for folder in self._install_folders():
            if {name, template} & set(self.node.names(folder)):
                return "enabled" if folder.startswith("/etc") else "enabled-runtime"
        text = on_disk(self.node, name)
        unit = Unit(name, text)
        installs = [*unit.words("Install.WantedBy"), *unit.words("Install.RequiredBy"), *unit.words("Install.Also")]
        return "" if not text else "disabled" if installs else "static"

    def _install_folders(self) -> list[str]:
        kinds = (".wants", ".requires")
        return [f"{folder}/{name}" for folder in ("/etc/systemd/system", "/run/systemd/system")
                for name in self.node.names(folder) if name.endswith(kinds)]  # fmt: skip

    def links_of(self, name: str) -> dict[str, str]:
        """Return the links that enable a unit: where → to its file."""
        name = full_name(name)
        text = on_disk(self.node, name)
        if not text:
            raise ToolError(f"Failed to enable unit: Unit file {name} does not exist.")
        unit = Unit(name, text)
        found = {}
        for key, kind in (("WantedBy", "wants"), ("RequiredBy", "requires")):
            for target in unit.words(f"Install.{key}"):
                found[f"/etc/systemd/system/{target}.{kind}/{name}"] = unit.paths[0]
        for alias in unit.words("Install.Alias"):
            found[f"/etc/systemd/system/{alias}"] = unit.paths[0]
        return found


def cpu_ranges(text: str) -> str:
    """Print a list of CPUs or nodes as systemctl does: ``0-3 8``."""
    numbers: set[int] = set()
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            numbers.update(range(int(first), int(last or first) + 1))
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
