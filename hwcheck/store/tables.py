"""
The tables of the store, as the newest migration leaves them.

Texts that repeat (what a finding says, what a node is, the fold of what passed) lie once in ``content`` under the hash
of what they say: a fault that lasts costs a row of some hundred bytes a run, and a healthy fleet hardly more than a row
a node. Times are seconds since 1970 by the controller's clock; ``node.taken`` alone is by the node's, and nothing is
ordered by it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

METADATA = MetaData()


def _table(table: str, /, **columns: type[TypeEngine[Any]]) -> Table:
    return Table(f"hwcheck_{table}", METADATA, *(Column(name, kind) for name, kind in columns.items()))


SCHEMA = _table("schema", version=Integer)
CONTENT = _table("content", hash=Text, body=LargeBinary)
RUN = _table(
    "run",
    id=BigInteger, name=Text, kind=Text, at=Double, ended=Double, kept=Double, doubt=Text, who=Text, tool=Text,
    verdict=Text, nodes=Integer, digest=Text, rest=Text,
)  # fmt: skip
"""``rest``: content with all of the run JSON that has no table."""
NODE = _table(
    "node",
    run_id=BigInteger, position=Integer, name=Text, at=Double, platform=Text, verdict=Text, simulated=Integer,
    cohort=Text, boot_id=Text, taken=Double, about=Text, fold=Text, rest=Text,
)  # fmt: skip
FINDING = _table(
    "finding",
    run_id=BigInteger, number=Integer, position=Integer, check_id=Text, subject=Text, status=Text, urgency=Text,
    said=Text,
)  # fmt: skip
WAIVER = _table("waiver", run_id=BigInteger, number=Integer, owner=Text, reason=Text, expires=Text)
MEASUREMENT = _table(
    "measurement",
    run_id=BigInteger, number=Integer, node=Text, cohort=Text, at=Double, name=Text, subject=Text, value=Double,
    unit=Text, conditions=Text,
)  # fmt: skip
CHANGE = _table(
    "change",
    run_id=BigInteger, number=Integer, node=Text, at=Double, check_id=Text, subject=Text, mechanism=Text, key=Text,
    before=Text, after=Text, status=Text, why=Text,
)  # fmt: skip
JOURNAL = _table("journal", run_id=BigInteger, node=Text, body=Text)

CONTENTS = (
    RUN.c.rest, NODE.c.about, NODE.c.fold, NODE.c.rest, FINDING.c.said, MEASUREMENT.c.conditions, JOURNAL.c.body,
)  # fmt: skip
"""Columns that hold hashes of contents; what none of them names is forgotten."""
