"""Our few words of JSON Schema, beside the real thing."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck.certificate import sign
from hwcheck.certificate.shape import SILENT, WORDS, fault
from tests.certificate.runs import KEY, certificate

SCHEMA = json.loads(resources.files("hwcheck.report").joinpath("certificate.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FILE = json.loads(sign(certificate(), KEY))
VALUES = st.sampled_from([None, True, 0, -1, 1.0, 1.5, "", "x", "pass", "lab", "0" * 64, [], {}, ["x"], {"x": 1}])


def schemas(part: Any) -> Iterator[dict[str, Any]]:
    """Go through the schema and all schemas in it."""
    if not isinstance(part, dict):
        return
    yield part
    for word in ("properties", "$defs"):
        for inner in part.get(word, {}).values():
            yield from schemas(inner)
    for word in ("items", "additionalProperties"):
        yield from schemas(part.get(word))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Go through the places of all values."""
    yield path
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


PLACES = [path for path in places(FILE) if path]


def changed(path: tuple[Any, ...], value: Any, deed: str) -> Any:
    """Return the file with one place set, removed, or another beside it."""
    file = copy.deepcopy(FILE)
    parent = file
    for key in path[:-1]:
        parent = parent[key]
    if deed == "set":
        parent[path[-1]] = value
    elif deed == "remove":
        del parent[path[-1]]
    elif isinstance(parent, dict):
        parent["new"] = value
    else:
        parent.append(value)
    return file


def test_the_schema_has_no_other_word() -> None:
    """A word that is not looked at would be a rule that nobody keeps."""
    assert {word for schema in schemas(SCHEMA) for word in schema} - WORDS - SILENT == set()


def test_a_whole_certificate_has_no_fault() -> None:
    """What is signed is of the schema."""
    assert fault(FILE, SCHEMA, SCHEMA) == ""


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(PLACES), VALUES, st.sampled_from(["set", "remove", "add"]))
def test_it_agrees_with_jsonschema(path: tuple[Any, ...], value: Any, deed: str) -> None:
    """Whatever is set, removed or added, both find a fault or neither does."""
    file = changed(path, value, deed)
    assert bool(fault(file, SCHEMA, SCHEMA)) == (not VALIDATOR.is_valid(file))
