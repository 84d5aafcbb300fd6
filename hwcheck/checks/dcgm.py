"""What DCGM says about the GPUs: its diagnostic, its health watches, its view of the NVLinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import Subject
from hwcheck.findings import Remedy, Urgency

_DIAG_FAILED = Remedy(
    "act",
    "Drain the node, reset the GPU that the row names, run dcgmi diag -r 3 again; a test that fails twice is a case "
    "for NVIDIA's field diagnostic and RMA.",
    disturbs="node",
)
_CUDA_WORDS = ("system not yet initialized", "cuInit")


@relation("baseline.dcgm_diag", needs=("dcgm.tests",), urgency=Urgency.MAINTENANCE, remedy=_DIAG_FAILED)
def dcgm_tests_pass(given: Given) -> Iterator[Answer]:
    """
    Every test of dcgmi diag passed.

    What it checks: the result of each test of ``dcgmi diag``, text or JSON; one finding a test.

    Why it matters: the diagnostic loads memory, PCIe and the SMs in ways that no counter shows beforehand.

    How to fix: read the warning of the row; reset the GPU, run the diagnostic again, then follow the RMA path.

    Applies to: tests that ran. A skipped test is a skip. A test that failed because CUDA does not initialise says
    nothing of the part that it would have tested: that is unknown, and driver.cuda_init names the cause.

    Source: NVIDIA DCGM user guide, diagnostics; DCGM prints the outcome itself.
    """
    about = given.origin("dcgm.tests")
    for test in given["dcgm.tests"]:
        yield replace(_diag(test), origin=about and about._replace(line=test["line"], excerpt=test["excerpt"]))


def _diag(test: dict[str, Any]) -> Answer:
    name, outcome, text = test["name"], test["outcome"], test["text"].strip()
    subject = Subject("measurement", f"dcgm.{name.lower().replace(' ', '_').replace('/', '_')}")
    on = f" on GPU {test['gpus']}" if test["gpus"] else ""
    said = f": {text[:160]}" if text else ""
    common: dict[str, Any] = {"subject": subject, "observed": outcome, "expected": "pass"}
    if outcome == "pass":
        return ok(f"dcgmi diag: {name} passed", **common)
    if outcome == "skip":
        return skip(f"dcgmi diag: {name} was skipped", **common)
    if any(word in text for word in _CUDA_WORDS):
        return unknown(f"dcgmi diag: {name} could not run{on}, CUDA does not initialise", **common)
    if outcome == "warn":
        return warn(f"dcgmi diag: {name} warned{on}{said}", **common)
    return fail(f"dcgmi diag: {name} failed{on}{said}", **common)


@relation(
    "gpu.dcgm_health",
    needs=("dcgm.health",),
    uses=("dcgm.health_text",),
    urgency=Urgency.JOB_END,
    remedy=Remedy(
        "act",
        "Read the incident that dcgmi health names, drain the node and reset the GPU; then run dcgmi health -c and "
        "dcgmi diag -r 3.",
        disturbs="node",
    ),
)
def dcgm_health_is_good(given: Given) -> Answer:
    """
    DCGM's health watches are content.

    What it checks: "Overall Health" of ``dcgmi health -c``.

    Why it matters: DCGM watches ECC, PCIe replays, NVLink errors, power and heat between two looks of anyone else.

    How to fix: act on the incident it lists; a Failure wants the GPU out of work, a Warning a look.

    Applies to: nodes where a watch was set (``dcgmi health -s``); without one DCGM answers Healthy and has looked at
    nothing, which its text does not tell.

    Source: NVIDIA DCGM user guide, health monitoring.
    """
    health = given["dcgm.health"]
    listed = given.maybe("dcgm.health_text")
    said = f": {listed[:160]}" if listed and health != "Healthy" else ""
    if health == "Healthy":
        return ok("DCGM health is Healthy", observed=health, expected="Healthy")
    judge = warn if health == "Warning" else fail
    return judge(f"DCGM health is {health}{said}", observed=health, expected="Healthy")


@relation(
    "nvlink.dcgm_links",
    needs=("dcgm.nvlinks",),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Look for Xid 74 (Hopper) or 144-150 (Blackwell) and SXid lines and nvidia-smi nvlink -e of this GPU, then "
        "reset the GPUs of the board and look again; a link that stays down is a case for service.",
        disturbs="board",
    ),
)
def dcgm_sees_no_link_down(given: Given) -> Answer | None:
    """
    DCGM sees no NVLink down.

    What it checks: the letters of ``dcgmi nvlink -s``: none is D.

    Why it matters: collectives run at the pace of the GPU with the fewest links.

    How to fix: find the error behind it in the kernel log, reset, then service.

    Applies to: GPUs with links. Disabled links (X) are no fault here: how many a board uses is the platform's figure.

    Source: NVIDIA DCGM user guide, dcgmi nvlink.
    """
    rows = given["dcgm.nvlinks"]
    down = [row for row in rows if row["down"]]
    if down:
        named = ", ".join(f"GPU {row['gpu']}: {row['down']}" for row in down)
        return fail(f"NVLinks down, as DCGM counts GPUs: {named}", observed=len(down), expected=0)
    up = sum(row["up"] for row in rows)
    return ok(f"DCGM sees {up} NVLinks up and none down", observed=up) if up else None
