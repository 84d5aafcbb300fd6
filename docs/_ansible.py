"""Roles and modules of Ansible → pages, without Ansible."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import yaml
from _markdown import table


def roles(folder: Path) -> str:
    """Tell of each role its variables, by its argument specification."""
    lines = ["# Roles", "", "Thin entries to the module [hwcheck_apply](modules.md#hwcheck_apply)."]
    for file in sorted(folder.glob("*/meta/argument_specs.yml")):
        main = yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"]["main"]
        name = file.parent.parent.name
        lines += ["", f"## {name}", "", f"{main['short_description']} ([README](../../roles/{name}/README.md)).", ""]
        lines += _options(main.get("options") or {})
    return "\n".join([*lines, ""])


def modules(folder: Path) -> str:
    """Tell of each Ansible module what its documentation says."""
    lines = ["# Ansible modules"]
    for file in sorted(folder.glob("*.py")):
        told = _documentation(file)
        about = yaml.safe_load(told["DOCUMENTATION"])
        lines += ["", f"## {about['module']}", "", f"{about['short_description']}.", ""]
        lines += [f"- {marked(text)}" for text in _listed(about["description"])]
        lines += ["", *_options(about.get("options") or {})]
        if "EXAMPLES" in told:
            lines += ["", "```yaml", told["EXAMPLES"].strip(), "```"]
        returned = yaml.safe_load(told.get("RETURN", "")) or {}
        rows = [
            (name, one.get("type", ""), " ".join(_listed(one["description"])), one.get("returned", ""))
            for name, one in returned.items()
        ]
        if rows:
            lines += ["", *table(("returns", "type", "what", "when"), [[marked(cell) for cell in row] for row in rows])]
    return "\n".join([*lines, ""])


def _documentation(file: Path) -> dict[str, str]:
    """Return the texts of a module by name, without importing it: that would need Ansible."""
    found = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.targets[0], ast.Name)
        ):
            found[node.targets[0].id] = str(node.value.value)
    return found


def _options(options: dict[str, Any]) -> list[str]:
    rows = []
    for name, one in options.items():
        kind = f"{one.get('type', 'str')} of {one['elements']}" if "elements" in one else one.get("type", "str")
        default = (
            "required"
            if one.get("required")
            else yaml.safe_dump(one["default"]).split("\n")[0]
            if "default" in one
            else ""
        )
        among = f" One of {', '.join(repr(choice) for choice in one['choices'])}." if "choices" in one else ""
        rows.append((name, kind, default, " ".join(_listed(one["description"])) + among))
    return table(("option", "type", "default", "what"), [(row[0], row[1], row[2], marked(row[3])) for row in rows])


def _listed(text: str | list[str]) -> list[str]:
    return [" ".join(part.split()) for part in ([text] if isinstance(text, str) else text)]


def marked(text: str) -> str:
    """Turn Ansible's marks, ``V(on)``, into Markdown's."""
    return re.sub(r"\b[CIVOP]\(([^)]*)\)", r"`\1`", text)
