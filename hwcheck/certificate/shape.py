"""
The few words of JSON Schema that the schema of certificates uses.

Loading jsonschema takes 85 ms of CPU, more than all else that :mod:`hwcheck.gate` does before a job starts; this takes
one. A test holds both beside each other over changed certificates, and another that the schema has no other word.
"""

from __future__ import annotations

import re
from typing import Any

WORDS = frozenset({
    "$ref", "additionalProperties", "const", "enum", "items", "minLength", "minimum", "pattern", "properties",
    "required", "type",
})  # fmt: skip
"""Words that are looked at."""
SILENT = frozenset({"$schema", "$id", "$defs", "title", "description"})
"""Words that only tell."""
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def fault(value: Any, schema: dict[str, Any], whole: dict[str, Any], where: str = "") -> str:
    """
    Say where a value is not of a schema.

    Args:
        value: as JSON gives it.
        schema: the schema, or a part of it.
        whole: the schema that ``$ref`` points into.
        where: place of the value, for the message.

    Returns:
        The first fault; "" when there is none.
    """
    if "$ref" in schema:
        target = whole
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        if found := fault(value, target, whole, where):
            return found
    if (wrong := _of_value(value, schema)) or (wrong := _of_object(value, schema)):
        return f"{where or 'the file'}: {wrong}"
    if isinstance(value, dict):
        named, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, item in value.items():
            part = named.get(key, others if isinstance(others, dict) else {})
            if found := fault(item, part, whole, f"{where}.{key}" if where else key):
                return found
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            if found := fault(item, schema["items"], whole, f"{where}.{index}"):
                return found
    return ""


def _of_value(value: Any, schema: dict[str, Any]) -> str:
    kinds = schema.get("type", [])
    if kinds and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return f"not of type {kinds}"
    if "const" in schema and value != schema["const"]:
        return f"{str(value)[:80]!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{str(value)[:80]!r} is none of {schema['enum']}"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            return f"{value[:80]!r} does not match {schema['pattern']}"
        if len(value) < schema.get("minLength", 0):
            return "is empty"
    if _is(value, "number") and value < schema.get("minimum", value):
        return f"{value} is less than {schema['minimum']}"
    return ""


def _of_object(value: Any, schema: dict[str, Any]) -> str:
    if not isinstance(value, dict):
        return ""
    missing = [key for key in schema.get("required", ()) if key not in value]
    if missing:
        return f"{missing[0]!r} is a required property"
    if schema.get("additionalProperties") is False:
        more = [key for key in value if key not in schema.get("properties", {})]
        if more:
            return f"{more[0][:80]!r} is not expected"
    return ""


def _is(value: Any, kind: str) -> bool:
    """Tell the type; true is no number, and 1.0 is an integer, as JSON Schema has it."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])
