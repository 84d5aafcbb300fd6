"""
The plan file: one JSON object, schema ``hwcheck.plan/1`` (published as ``hwcheck/report/plan.schema.json``).

``hash`` is the SHA-256 of the object without it, in canonical form: a plan is carried out exactly as it was reviewed,
or not at all. What a node said is data in it, never code: it is read as JSON and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

from hwcheck.errors import PlanError
from hwcheck.plan.words import LeftOut, NodePlan, Plan, PlannedAct, Step

SCHEMA = "hwcheck.plan/1"
MAX_BYTES = 256 << 20
"""Some 20 kB a node: a fleet of ten thousand."""


def plan_object(plan: Plan) -> dict[str, Any]:
    """Put a plan into the form of the schema, with its hash."""
    body = {
        "schema": SCHEMA,
        "tool": plan.tool,
        "profile": plan.profile,
        "created": plan.created,
        "nodes": [_node(node) for node in plan.nodes],
    }
    return {**body, "hash": digest(body)}


def digest(plan: dict[str, Any]) -> str:
    """Hash a plan: SHA-256 over its JSON without ``hash``, keys sorted, no blanks, ASCII."""
    body = {key: value for key, value in plan.items() if key != "hash"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def dump_plan(plan: Plan) -> str:
    """Write a plan, a line for each node: it is reviewed, compared and searched by line."""
    parts = []
    for key, value in plan_object(plan).items():
        rows = [f"  {json.dumps(row)}" for row in value] if key == "nodes" and value else []
        told = "[\n" + ",\n".join(rows) + "\n ]" if rows else json.dumps(value)
        parts.append(f' "{key}": {told}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _node(node: NodePlan) -> dict[str, Any]:
    return {
        "name": node.name,
        "platform": node.platform,
        "boot_id": node.boot_id,
        "cohort": node.cohort,
        "domain": node.domain,
        "failure_domain": node.failure_domain,
        "refused": node.refused,
        "steps": [_step(step) for step in node.steps],
        "acts": [
            {"id": act.id, "do": act.do, "target": act.target, "disturbs": act.disturbs, "text": act.text,
             "also": list(act.also)}
            for act in node.acts
        ],
        "reboot": list(node.reboot),
        "left_out": [_left(one) for one in node.left_out],
        "hands": [_left(one) for one in node.hands],
        "irreversible": list(node.irreversible),
    }  # fmt: skip


def _step(step: Step) -> dict[str, Any]:
    more = {
        "opt_in": step.opt_in, "text": step.text, "irreversible": step.irreversible, "owner": step.owner,
        "also": list(step.also),
    }  # fmt: skip
    return {**step.for_node(), **more}


def _left(one: LeftOut) -> dict[str, Any]:
    return {"id": one.id, "subjects": list(one.subjects), "why": one.why, "text": one.text}


def read_plan(path: Path) -> Plan:
    """
    Read a plan file.

    Raises:
        PlanError: as :func:`load_plan`, or it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return load_plan(text, str(path))


def load_plan(text: str, path: str) -> Plan:
    """
    Read a plan file.

    Args:
        text: its content.
        path: for messages.

    Raises:
        PlanError: no plan, of another version, changed since it was written, or against the schema.
    """
    if len(text) > MAX_BYTES:
        raise PlanError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    try:
        told = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path}: no JSON: {error}") from error
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        found = told.get("schema") if isinstance(told, dict) else None
        raise PlanError(f"{path}: no plan of schema {SCHEMA}" + (f", but {str(found)[:40]}" if found else ""))
    _check(told, path)
    if digest(told) != told["hash"]:
        raise PlanError(f"{path}: changed since it was written (its hash is another); make the plan again")
    return Plan(told["tool"], told["profile"], told["created"], tuple(_read_node(node) for node in told["nodes"]))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _check(told: dict[str, Any], path: str) -> None:
    import jsonschema  # noqa: PLC0415 - 40 ms, and needed only where a plan is read

    schema = json.loads(resources.files("hwcheck.report").joinpath("plan.schema.json").read_text(encoding="utf-8"))
    for error in jsonschema.Draft202012Validator(schema).iter_errors(told):
        where = ".".join(map(str, error.absolute_path)) or "the file"
        raise PlanError(f"{path}: {where}: {error.message[:200]}")


def _read_node(told: dict[str, Any]) -> NodePlan:
    steps = tuple(Step(**{**step, "also": tuple(step["also"])}) for step in told["steps"])
    acts = tuple(PlannedAct(**{**act, "also": tuple(act["also"])}) for act in told["acts"])
    left_out, hands = (tuple(_read_left(one) for one in told[key]) for key in ("left_out", "hands"))
    return NodePlan(
        told["name"], told["platform"], told["boot_id"], told["cohort"], told["domain"], steps, acts,
        tuple(told["reboot"]), left_out, hands, told["refused"], told.get("failure_domain", ""),
    )  # fmt: skip


def _read_left(told: dict[str, Any]) -> LeftOut:
    return LeftOut(told["id"], tuple(told["subjects"]), told["why"], told["text"])
