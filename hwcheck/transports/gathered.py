"""Answers of a node → evidence: the same that its evidence directory reads as."""

from __future__ import annotations

import io

from hwcheck.evidence import EXCERPT_LENGTH, Evidence, Output
from hwcheck.parse.fill import REASONS, fill
from hwcheck.transports.outcome import Outcome


def evidence_of(outcome: Outcome) -> Evidence:
    """Make evidence of what came; of a node that did not answer, with the reason and nothing else."""
    evidence = Evidence(outcome.name, simulated=outcome.simulated, collected=True, broken=outcome.broken())
    if outcome.error is not None:
        evidence.unreachable, evidence.advice = str(outcome.error)[:500], outcome.error.advice[:1000]
    taken = outcome.time
    for file, answer in outcome.files():
        output = Output(answer.kind, file=file or answer.kind, command=answer.command[:EXCERPT_LENGTH], time=taken)
        output.seconds = answer.seconds
        output.reason, output.detail = REASONS[answer.status], answer.detail[:EXCERPT_LENGTH]
        if file:
            fill(output, io.BytesIO(answer.payload))
        evidence.outputs.append(output)
    return evidence
