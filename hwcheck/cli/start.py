"""
The start of ``hwcheck``: a gate where nothing has changed is answered before the rest is loaded.

A prolog runs before every job. Declaring all verbs costs more than the fast look itself.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process; returns the exit code."""
    if sys.argv[1:2] == ["gate"]:
        from hwcheck.gate.fast import still_ready  # noqa: PLC0415 - only a gate needs it

        try:
            line = still_ready(sys.argv[2:])
        except (OSError, ValueError):  # the full check will say what is wrong here
            line = ""
        if line:
            print(line)
            return 0
    from hwcheck.cli.main import main as run  # noqa: PLC0415 - see above

    return run()
