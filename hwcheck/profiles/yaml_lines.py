"""YAML with line numbers: errors in a profile name the line, as a compiler would."""

from __future__ import annotations

from typing import Any

import yaml

from hwcheck.errors import ProfileError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_BYTES = 4 << 20
Lines = dict[tuple[str | int, ...], int]


def load_yaml(text: str, path: str) -> tuple[Any, Lines]:
    """
    Read one YAML document.

    Returns:
        The data, and for each path of keys the 1-based line of its key.

    Raises:
        ProfileError: no YAML, a key twice in one map, an alias (layers have no use for them, bombs do), or too large.
    """
    if len(text) > MAX_BYTES:
        raise ProfileError(f"larger than {MAX_BYTES >> 20} MiB", path)
    try:
        for token in yaml.scan(text, Loader=_Loader):  # first: merge keys of aliases are a bomb already while loading
            if isinstance(token, yaml.AliasToken):
                raise ProfileError("YAML aliases are not allowed", path, token.start_mark.line + 1)
        node = yaml.compose(text, Loader=_Loader)
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, see above
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ProfileError(f"no valid YAML: {error.problem}", path, mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ProfileError(f"no valid YAML: {error}", path) from error
    lines: Lines = {}
    if node is not None:
        _walk(node, (), lines, path)
    return data, lines


def _walk(node: yaml.Node, keys: tuple[str | int, ...], lines: Lines, path: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*keys, key.value)
            if here in lines:
                raise ProfileError(f"key twice: {key.value}", path, key.start_mark.line + 1)
            lines[here] = key.start_mark.line + 1
            _walk(value, here, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            here = (*keys, index)
            lines[here] = item.start_mark.line + 1
            _walk(item, here, lines, path)


def line_of(lines: Lines, keys: tuple[str | int, ...]) -> int | None:
    """Return the line of a path of keys, or of its nearest parent that has one."""
    while keys:
        if keys in lines:
            return lines[keys]
        keys = keys[:-1]
    return None
