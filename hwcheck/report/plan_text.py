"""
A plan for a terminal: nodes with the same plan once, as a node set; what is written, done, left out, and by whom.

Readable in 80 columns and without colour. What a node sent passes :func:`hwcheck.report.sheet.visible`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from hwcheck.mechanisms import DEEDS
from hwcheck.plan import LeftOut, NodePlan, Step
from hwcheck.report.entries import DISTURBS
from hwcheck.report.sheet import Sheet, terminal, visible

_LABEL = 10
_NAMED = 6
_HEADINGS = {
    "opt-in": "Left out, opt-in (add --opt-in CHECK or FAMILY, or opt_in in a site layer)",
    "refused": "Left out, the node refuses it",
    "waived": "Left out, waived",
    "by hand": "Left out, needs something else first",
    "unknown": "Could not be told, so nothing is planned",
}
"""Why something is left out → heading, in the order of the report."""

Fold = Callable[[list[str]], str]


@dataclass(frozen=True, slots=True)
class _Row:
    """Steps that differ in their subject only."""

    step: Step
    subjects: tuple[str, ...]


def print_plan(nodes: Sequence[NodePlan], fold: Fold, *, is_all: bool = True) -> None:
    """Write the plans of nodes to standard output; see :func:`render_plan`."""
    render_plan(nodes, terminal(), fold, is_all=is_all)


def render_plan(nodes: Sequence[NodePlan], console: Console, fold: Fold, *, is_all: bool = True) -> None:
    """
    Write the plans of nodes, and of two or more a summary.

    Args:
        nodes: in order.
        console: where to.
        fold: writes names as a node set.
        is_all: nothing is done after this, which is said.
    """
    sheet = Sheet(console)
    groups: dict[object, list[NodePlan]] = {}
    for node in nodes:
        groups.setdefault(_alike(node), []).append(node)
    for number, group in enumerate(groups.values()):
        if number:
            sheet.blank()
        _write_node(sheet, group[0], visible(fold([node.name for node in group])) or "this machine", len(group))
    sheet.blank()
    work, none = sum(not node.is_empty for node in nodes), sum(bool(node.refused) for node in nodes)
    if len(nodes) > 1:
        rest = len(nodes) - work - none
        sheet.text(f"{len(nodes)} nodes: {work} with work, {rest} with nothing to do, {none} without a plan.")
    if is_all:
        sheet.text("Nothing was changed." if work else "Nothing to do, nothing was changed.")


def _alike(node: NodePlan) -> object:
    """Return what nodes with one plan share: all but their names, boots, and the wording of what was found."""
    return (
        node.platform, node.refused, node.reboot, node.hands,
        tuple(str((step.for_node(), step.owner, step.opt_in)) for step in node.steps),
        tuple(replace(act, text="") for act in node.acts),
        tuple(one if one.why != "unknown" else replace(one, text="") for one in node.left_out),
    )  # fmt: skip


def _write_node(sheet: Sheet, node: NodePlan, names: str, count: int) -> None:
    word, style = (
        ("NONE", "bold magenta") if node.refused else ("OK", "bold green") if node.is_empty else ("PLAN", "bold")
    )
    line = Text(names, style="bold").append(f"  {visible(node.platform)}", style="not bold")
    if count > 1:
        line.append(f", {count} nodes alike", style="not bold")
    sheet.row(Text(word, style=style), line, 0, 6)
    if node.refused:
        sheet.text(f"No plan for it: {visible(node.refused)}", indent=6)
        return
    sheet.text(_impact(node), indent=6)
    if node.cohort and not node.is_empty:
        sheet.text(Text(visible(node.cohort), style="dim"), indent=6)
    _write_steps(sheet, "Settings", [step for step in node.steps if not step.retires])
    _write_steps(sheet, "Retired, what runs stays until the next boot", [step for step in node.steps if step.retires])
    _write_acts(sheet, node)
    for why, heading in _HEADINGS.items():
        left = [one for one in node.left_out if one.why == why]
        _write_left(sheet, heading, _by_gap(left) if why == "unknown" else left)
    _write_left(sheet, "Needs a person", node.hands)


def _impact(node: NodePlan) -> str:
    if node.is_empty:
        return "Nothing to do."
    scopes = {step.disturbs for step in node.steps} | {act.disturbs for act in node.acts}
    scopes |= {"node"} if node.reboot else set()
    disturbs = [words for scope, words in DISTURBS.items() if scope in scopes]
    gone = sum(step.retires for step in node.steps)
    sets = len(node.steps) - gone
    parts = [f"{sets} settings" if sets != 1 else "1 setting"] if sets or not gone else []
    parts += [f"{gone} retired"] if gone else []
    parts += [f"{len(node.acts)} acts" if len(node.acts) != 1 else "1 act"] if node.acts else []
    parts.append("one reboot" if node.reboot else "no reboot")
    return f"{', '.join(parts)}; {' and '.join(disturbs) or 'disturbs nothing'}."


def _write_steps(sheet: Sheet, heading: str, steps: Iterable[Step]) -> None:
    rows: dict[object, _Row] = {}
    for step in steps:
        key = str({**step.for_node(), "subject": "", "owner": step.owner})
        old = rows.get(key)
        rows[key] = _Row(step, (*old.subjects, step.subject)) if old else _Row(step, (step.subject,))
    if rows:
        sheet.heading(heading)
    for row in rows.values():
        step = row.step
        line = Text(visible(step.id), style="bold").append(
            f"  {visible(step.mechanism)} {visible(step.key)}{_value(step)}", style="not bold"
        )
        sheet.text(line, indent=2, hang=2)
        _label(sheet, "on", _named([subject for subject in row.subjects if subject]))
        seen = [f"{facet} {visible(value)}" for facet, value in step.seen.items() if value is not None]
        _label(sheet, "was", ", ".join(seen) or visible(step.text))
        _label(sheet, "impact", DISTURBS.get(step.disturbs, ""))
        _label(sheet, "restart", visible(step.restart))
        _label(sheet, "owner", f"{visible(step.owner)} sets it at boot" if step.owner else "")
        _label(sheet, "undo", "cannot be undone" if step.irreversible else "")
        _label(sheet, "also for", visible(", ".join(step.also)))


def _value(step: Step) -> str:
    return "" if step.retires else f" = {visible(step.value) or '(flag)'}"


def _write_acts(sheet: Sheet, node: NodePlan) -> None:
    if node.acts or node.reboot:
        sheet.heading("Acts")
    for act in node.acts:
        line = Text(visible(act.id), style="bold")
        line.append(f"  {DEEDS.get(act.do, visible(act.do))} {visible(act.target)}".rstrip(), style="not bold")
        sheet.text(line, indent=2, hang=2)
        _label(sheet, "why", visible(act.text))
        _label(sheet, "impact", DISTURBS.get(act.disturbs, ""))
        _label(sheet, "undo", "cannot be undone" if act.do == "reset_gpu" else "")
        _label(sheet, "also for", visible(", ".join(act.also)))
    if node.reboot:
        sheet.text(Text("reboot", style="bold").append("  once, after all settings", style="not bold"), indent=2)
        _label(sheet, "why", visible(", ".join(node.reboot)))


def _write_left(sheet: Sheet, heading: str, left: Sequence[LeftOut]) -> None:
    if not left:
        return
    sheet.heading(heading)
    for one in left:
        subjects = _named([subject for subject in one.subjects if subject])
        line = Text(visible(one.id), style="bold")
        line.append(f"{f' on {subjects}' if subjects else ''}: {visible(one.text)}", style="not bold")
        sheet.text(line, indent=2, hang=2)


def _by_gap(left: Iterable[LeftOut]) -> list[LeftOut]:
    """Fold the checks that one silent source keeps from an answer."""
    gaps: dict[str, list[LeftOut]] = {}
    for one in left:
        gaps.setdefault(one.text, []).append(one)
    return [
        LeftOut(
            _checks([one.id for one in ones]), tuple(dict.fromkeys(id for one in ones for id in one.subjects)), "", text
        )
        for text, ones in gaps.items()
    ]


def _label(sheet: Sheet, label: str, text: str) -> None:
    if text:
        sheet.row(label, text, 4, _LABEL)


def _checks(ids: Sequence[str]) -> str:
    return _named(ids).replace(": ", " checks: ", 1)


def _named(subjects: Sequence[str]) -> str:
    more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
    count = f"{len(subjects)}: " if len(subjects) > 1 else ""
    return count + ", ".join(map(visible, subjects[:_NAMED])) + more
