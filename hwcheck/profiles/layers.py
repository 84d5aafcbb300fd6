"""Load, check and merge the layers of a profile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from hwcheck.errors import ProfileError
from hwcheck.facts import NAMES, FactName
from hwcheck.profiles.expectation import Expectation
from hwcheck.profiles.layer import Entry, Layer, Profile
from hwcheck.profiles.remedies import contradiction, faults, laid_over
from hwcheck.profiles.yaml_lines import line_of, load_yaml

__all__ = ["Entry", "Layer", "Profile", "ProfileSet", "check_layer"]

SHIPPED = "hwcheck.profiles"


class ProfileSet:
    """
    All shipped layers, and merged profiles on demand.

    Args:
        sites: extra layers (YAML files) on top of every profile, in order.

    Raises:
        ProfileError: a layer does not load.
    """

    def __init__(self, sites: Iterable[Path] = ()) -> None:
        self.layers: dict[str, Layer] = {}
        self._profiles: dict[str, Profile] = {}
        for item in sorted(resources.files(SHIPPED).iterdir(), key=lambda item: item.name):
            if item.name.endswith(".yaml"):
                layer = _read(item.read_text(encoding="utf-8"), item.name, item.name[:-5])
                self.layers[layer.name] = layer
        self._sites = [_read_file(path) for path in sites]
        for layer in self._sites:
            check_layer(layer)
            self._known_ids(layer)

    @property
    def sites(self) -> tuple[Layer, ...]:
        """The layers of the site, in order."""
        return tuple(self._sites)

    def over(self, data: dict[str, Any], where: str) -> ProfileSet:
        """
        Return these layers with one more on top: what the site says of one host.

        Args:
            data: as in a site file.
            where: whose it is, for messages.

        Raises:
            ProfileError: it does not load.
        """
        layer = Layer(where, where, data, {})
        check_layer(layer)
        self._known_ids(layer)
        other = object.__new__(ProfileSet)  # the shipped layers are loaded once
        other.layers, other._profiles, other._sites = self.layers, {}, [*self._sites, layer]
        return other

    def _known_ids(self, layer: Layer) -> None:
        """Refuse a site's entry for a check or bound that exists nowhere: a typo would silently demand nothing."""
        for section in ("checks", "bounds"):
            known = {id for other in self.layers.values() for id in (other.data.get(section) or {})}
            for id, entry in (layer.data.get(section) or {}).items():
                new = section == "checks" and isinstance(entry, dict) and "fact" in entry
                if id not in known and not new:
                    raise ProfileError(f"no such {section[:-1]}: {id}", layer.path, line_of(layer.lines, (section, id)))

    @property
    def platforms(self) -> dict[str, dict[str, Any]]:
        """Platform name → its ``match`` rules."""
        return {name: layer.data["match"] for name, layer in self.layers.items() if layer.data.get("match")}

    @property
    def families(self) -> set[str]:
        """All check families, from the schema."""
        schema = _schema()
        pattern = schema["properties"]["checks"]["propertyNames"]["pattern"]
        return set(pattern[pattern.index("(") + 1 : pattern.index(")")].split("|"))

    @property
    def hash(self) -> str:
        """Hash of all layers, shipped and the site's: part of the record of a run."""
        return _digest([layer.data for layer in (*self.layers.values(), *self._sites)])

    def profile(self, name: str) -> Profile:
        """
        Merge a platform's layers.

        Raises:
            ProfileError: no such platform, or a merged entry that is incomplete.
        """
        if name not in self._profiles:
            self._profiles[name] = self._merge(name)
        return self._profiles[name]

    def _merge(self, name: str) -> Profile:
        chain: list[Layer] = []
        current: str | None = name
        while current:
            layer = self.layers.get(current)
            if layer is None:
                raise ProfileError(f"no such profile: {current}; there are {', '.join(sorted(self.layers))}")
            if layer in chain:
                raise ProfileError("extends itself", layer.path)
            chain.insert(0, layer)
            current = layer.data.get("extends")
        chain += self._sites
        merged: dict[str, dict[str, Entry]] = {"checks": {}, "bounds": {}}
        for layer in chain:
            for section, entries in merged.items():
                _merge_section(entries, layer, section)
        _complete(merged["checks"], chain)
        opt_in = frozenset(asked for la in chain for asked in la.data.get("opt_in") or ())
        requires = {words: kinds for la in chain for words, kinds in (la.data.get("requires") or {}).items()}
        needed = {words: tuple(kinds) for words, kinds in requires.items() if kinds}
        told: dict[str, Any] = {s: {i: e.data for i, e in es.items()} for s, es in merged.items()}
        digest = _digest({**told, "opt_in": sorted(opt_in), "requires": needed})
        title = next((la.data["title"] for la in reversed(chain) if la.data.get("title")), name)
        names = tuple(la.name for la in chain)
        return Profile(name, title, names, merged["checks"], merged["bounds"], digest, opt_in, needed)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _merge_section(entries: dict[str, Entry], layer: Layer, section: str) -> None:
    for id, data in (layer.data.get(section) or {}).items():
        if data is None:
            entries.pop(id, None)
            continue
        old = entries.get(id) or Entry(id, {}, {})
        new, layers = dict(old.data), dict(old.layers)
        for key, value in data.items():
            if value is None:
                new.pop(key, None)
                layers.pop(key, None)
            else:
                # expect and when are replaced as a whole: half an expectation means nothing
                new[key] = laid_over(old.data.get(key), value) if key == "remedy" else value
                layers[key] = layer.name
        entries[id] = Entry(id, new, layers)


def _complete(checks: dict[str, Entry], chain: list[Layer]) -> None:
    """Check what no single layer can tell: that an entry is whole, and wants a value its fact can have."""
    paths = {layer.name: layer for layer in chain}
    for id, entry in checks.items():
        for key in ("fact", "title", "why", "source"):
            if not entry.data.get(key):
                raise ProfileError(f"check {id} has no {key}", chain[-1].path)
        for key in ("expect", "prefer"):
            if entry.data.get(key):
                layer = paths[entry.layers[key]]
                _check_expectation(id, entry.data[key], NAMES[entry.data["fact"]], layer, ("checks", id, key))
        wrong = contradiction(entry.data)
        if wrong:
            by = {entry.layers[key]: key for key in ("remedy", "expect", "prefer") if key in entry.layers}
            layer = next(layer for layer in reversed(chain) if layer.name in by)  # the last that had a say
            raise ProfileError(f"check {id}: {wrong}", layer.path, line_of(layer.lines, ("checks", id, by[layer.name])))


def check_layer(layer: Layer) -> None:
    """
    Check one layer against the schema and the registry of facts.

    Raises:
        ProfileError: with the line; the first error only.
    """
    import jsonschema  # noqa: PLC0415 - 40 ms, and needed only for layers that are not shipped

    schema = _schema()
    validator = jsonschema.Draft202012Validator(schema)
    for error in sorted(validator.iter_errors(layer.data), key=lambda e: list(map(str, e.absolute_path))):
        keys = tuple(error.absolute_path)
        where = ".".join(map(str, keys)) or "the file"
        raise ProfileError(f"{where}: {error.message}", layer.path, line_of(layer.lines, keys))
    for id, entry in (layer.data.get("checks") or {}).items():
        if entry:
            _check_entry(id, entry, layer)


def _check_entry(id: str, entry: dict[str, Any], layer: Layer) -> None:
    fact = entry.get("fact")
    if fact is not None and fact not in NAMES:
        raise ProfileError(
            f"check {id}: no such fact: {fact}", layer.path, line_of(layer.lines, ("checks", id, "fact"))
        )
    spec = NAMES.get(fact) if fact is not None else None
    for key in ("expect", "prefer"):
        if entry.get(key):
            _check_expectation(id, entry[key], spec, layer, ("checks", id, key))
    for path, wrong in faults(entry.get("remedy") or {}):
        keys = ("checks", id, "remedy", *path)
        raise ProfileError(f"check {id}: {wrong}", layer.path, line_of(layer.lines, keys))
    for key in ("when", "unless"):
        for index, condition in enumerate(entry.get(key) or ()):
            _check_condition(id, condition, spec, layer, ("checks", id, key, index))


def _check_condition(
    id: str, condition: dict[str, Any], spec: FactName | None, layer: Layer, keys: tuple[str | int, ...]
) -> None:
    """Check ``{fact: NAME, OPERATOR: VALUE}``; a bound may be of any platform, so its name is not known here."""
    of_fact = None
    if "fact" in condition:
        of_fact = NAMES.get(condition["fact"])
        if of_fact is None:
            raise ProfileError(f"check {id}: no such fact: {condition['fact']}", layer.path, line_of(layer.lines, keys))
        if spec is not None and of_fact.scope not in (spec.scope, "node"):
            text = f"check {id}: {of_fact.name} belongs to a {of_fact.scope}, the check asks a {spec.scope}"
            raise ProfileError(text, layer.path, line_of(layer.lines, keys))
    wanted = {key: value for key, value in condition.items() if key not in ("fact", "bound")}
    _check_expectation(id, wanted, of_fact, layer, keys)


def _check_expectation(
    id: str, data: dict[str, Any], spec: FactName | None, layer: Layer, keys: tuple[str | int, ...]
) -> None:
    try:
        expectation = Expectation.of(data)
        if spec is not None:
            expectation.check_type(spec.type)
    except ValueError as error:
        raise ProfileError(f"check {id}: {error}", layer.path, line_of(layer.lines, keys)) from error


def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(resources.files(SHIPPED).joinpath("schema.json").read_text(encoding="utf-8"))
    return schema


def _read_file(path: Path) -> Layer:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(path)) from error
    return _read(text, str(path), path.stem)


def _read(text: str, path: str, name: str) -> Layer:
    data, lines = load_yaml(text, path)
    if not isinstance(data, dict):
        raise ProfileError("a profile is a map", path, 1)
    try:
        json.dumps(data, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:  # dates, bytes, keys that are no text, .nan: YAML has more than we judge
        raise ProfileError(f"a value that no check can compare: {error}", path) from error
    return Layer(str(data.get("name") or name), path, data, lines)
