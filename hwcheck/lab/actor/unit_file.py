"""
Unit files as systemd reads them: the fragment, then its drop-ins in the order of their names.

Source: systemd.unit(5), "unit file load path" and "drop-in": the first folder wins a name, a later drop-in wins a
value, an empty value empties a list; ``%i`` is what stands between ``@`` and the suffix.
"""

from __future__ import annotations

from hwcheck.lab.actor.place import Node

FOLDERS = (
    "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
    "/lib/systemd/system",
)  # fmt: skip
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SUFFIXES = (".service", ".target", ".socket", ".timer", ".mount", ".path", ".slice")
_HEAD = "# "
MASK = "/dev/null"


def full_name(name: str) -> str:
    """Return a unit's name with its suffix, as systemctl completes it."""
    return name if name.endswith(_SUFFIXES) else name + ".service"


def split(name: str) -> tuple[str, str]:
    """Return the template and the instance of a name: ``a@b.service`` → ``a@.service``, ``b``; no instance is ""."""
    stem, dot, suffix = name.rpartition(".")
    first, at, instance = stem.partition("@")
    return (f"{first}@{dot}{suffix}", instance) if at and instance else (name, "")


def fragment(node: Node, name: str) -> str:
    """Return the path of a unit's own file; "" where there is none."""
    for wanted in dict.fromkeys((name, split(name)[0])):
        for folder in FOLDERS:
            if node.exists(f"{folder}/{wanted}"):
                return f"{folder}/{wanted}"
    return ""


def drop_ins(node: Node, name: str) -> list[str]:
    """Return the paths of a unit's drop-ins, in the order in which they are read."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for place in dict.fromkeys((name, split(name)[0], name.rpartition(".")[2])):
            for file in node.names(f"{folder}/{place}.d"):
                if file.endswith(".conf"):
                    found.setdefault(file, f"{folder}/{place}.d/{file}")
    return [found[file] for file in sorted(found)]


def on_disk(node: Node, name: str) -> str:
    """Return a unit as ``systemctl cat`` prints it; "" where there is none."""
    path = fragment(node, name)
    if not path:
        return ""
    paths = [path, *drop_ins(node, name)]
    return "\n".join(f"{_HEAD}{one}\n{'' if node.link(one) == MASK else node.text(one)}\n" for one in paths)


class Unit:
    """
    A unit as it was read.

    Args:
        name: with suffix.
        text: as :func:`on_disk` gives it.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.paths: list[str] = []
        self._values: dict[str, list[str]] = {}
        self._read(text)

    def _read(self, text: str) -> None:
        section = ""
        for row in text.replace("\\\n", " ").splitlines():
            line = row.strip()
            if line.startswith(_HEAD + "/"):
                self.paths.append(line[len(_HEAD) :])
            elif line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
            elif line and line[0] not in "#;":
                key, sign, value = line.partition("=")
                if sign:
                    self._put(f"{section}.{key.strip()}", value.strip())

    def _put(self, key: str, value: str) -> None:
        if value:
            self._values.setdefault(key, []).append(value)
        else:
            self._values[key] = []

    def all(self, key: str) -> list[str]:
        """Return the values of ``Section.Key``, specifiers filled in."""
        return [self.filled(value) for value in self._values.get(key, [])]

    def last(self, key: str, otherwise: str = "") -> str:
        """Return the value that counts."""
        values = self.all(key)
        return values[-1] if values else otherwise

    def words(self, key: str) -> list[str]:
        """Return the words of all values: names of units."""
        return [word for value in self.all(key) for word in value.split()]

    def filled(self, text: str) -> str:
        """Fill in the specifiers that a unit of a node has need of."""
        stem = self.name.rpartition(".")[0]
        instance = split(self.name)[1]
        plain = instance.replace("-", "/").replace("\\x2d", "-")
        for sign, value in (
            ("%i", instance),
            ("%I", plain),
            ("%n", self.name),
            ("%N", stem),
            ("%p", stem.split("@")[0]),
        ):
            text = text.replace(sign, value)
        return text.replace("%%", "%")

    @property
    def is_masked(self) -> bool:
        """Whether its file is a link to /dev/null: systemd reads it as empty."""
        return bool(self.paths) and not self._values

    def limit(self, key: str, otherwise: str, section: str = "Service") -> str:
        """Return a limit as ``systemctl show`` prints it: bytes or ``infinity``; of ``soft:hard`` the hard one."""
        value = self.last(f"{section}.{key}", otherwise).rpartition(":")[2]
        if value[:-1].isdigit() and value[-1:] in _UNITS:
            return str(int(value[:-1]) * _UNITS[value[-1]])
        return "infinity" if value in ("unlimited", "-1") else value
