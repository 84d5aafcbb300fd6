"""
A plan as variables for Ansible: an inventory in YAML whose hosts have ``hwcheck_settings`` and ``hwcheck_acts``.

Every text is tagged ``!unsafe``: Ansible takes it as it stands, and ``{{ lookup('pipe', ...) }}`` in the name of an
interface, which a node may send, is never evaluated. Texts that YAML would take for something else (``yes``, ``0``, an
empty one) have no tag: ansible-core since 2.19 reads them as such in spite of their quotes where they have it, and none
of them can be a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from hwcheck.errors import PlanError
from hwcheck.plan import NodePlan

UNSAFE = "!unsafe"
_TEXT = "tag:yaml.org,2002:str"
_RESOLVER = yaml.resolver.Resolver()
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")


def ansible_vars(nodes: Iterable[NodePlan]) -> str:
    """
    Write the inventory; a node without a plan has no settings in it.

    Raises:
        PlanError: a node whose name is none that Ansible could take: names are keys, and keys cannot be tagged.
    """
    hosts = {}
    for node in nodes:
        name = node.name or "localhost"
        if not _NAME.fullmatch(name):
            raise PlanError(f"no host name for Ansible: {name[:60]!r}")
        hosts[name] = {
            "hwcheck_settings": [step.for_node() for step in node.steps],
            "hwcheck_acts": [{"do": act.do, "target": act.target, "disturbs": act.disturbs} for act in node.acts],
            "hwcheck_reboot": bool(node.reboot),
        }
    told: str = yaml.serialize(_node({"all": {"hosts": hosts}}), width=120)
    return f"---\n{told}"


def _node(value: Any) -> yaml.Node:
    """Make the YAML node of a value: texts tagged and quoted, keys plain."""
    if isinstance(value, dict):
        pairs = [(yaml.ScalarNode(_TEXT, str(key)), _node(item)) for key, item in value.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=False if value else None)
    if isinstance(value, list):
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_node(item) for item in value], flow_style=not value)
    if value is None:
        return yaml.ScalarNode("tag:yaml.org,2002:null", "null")
    if isinstance(value, bool):
        return yaml.ScalarNode("tag:yaml.org,2002:bool", "true" if value else "false")
    plain = _RESOLVER.resolve(yaml.ScalarNode, str(value), (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(UNSAFE if plain == _TEXT else _TEXT, str(value), style='"')
