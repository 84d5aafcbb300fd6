"""
Many processes that write at once: ``python -m tests.store.writers URL COUNT RUNS [EXTRA]`` forks COUNT of them.

All wait until the last has started. Each opens the store, where there may be none yet, and keeps RUNS runs named
``writer-N-M``. With EXTRA, each of them knows one migration more than this hwcheck has. Ends with the number of those
that failed.
"""

from __future__ import annotations

import os
import sys

from sqlalchemy import Connection, text

from hwcheck.store import Store, migrations
from tests.store.runs import DOWN, HOUR, PASSED, START, XID, make_run


def main(url: str, count: int, runs: int) -> int:
    """Start them, and count those that fail."""
    ready, go = os.pipe()
    children = []
    for writer in range(count):
        child = os.fork()
        if not child:
            os.close(go)
            os.read(ready, 1)  # the end of the pipe: all have started
            os._exit(write(url, writer, runs))
        children.append(child)
    os.close(go)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def write(url: str, writer: int, runs: int) -> int:
    """Keep runs; returns 0."""
    store = Store.open(url)
    for number in range(runs):
        store.keep(run_of(writer, number))
    return 0


def run_of(writer: int, number: int) -> dict[str, object]:
    """Make a run whose contents others share, and which has some of its own."""
    nodes = {f"gpu-{writer}-{node}": {XID: "fail", DOWN: "warn", PASSED: "pass"} for node in range(20)}
    about = {"versions": {"driver": f"570.{number}", "kernel": str(writer)}}
    return make_run(START + number * HOUR, nodes, f"writer-{writer}-{number}", about=about)


def _extra(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE hwcheck_extra (one INTEGER)"))  # fails when it is done twice
    connection.execute(text("INSERT INTO hwcheck_extra VALUES (1)"))


if __name__ == "__main__":
    if sys.argv[4:]:
        migrations.STEPS.append(_extra)
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
