"""Write out the ready-made integrations of ``hwcheck gate`` (:mod:`hwcheck.integrations`)."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path

from hwcheck.errors import UsageError
from hwcheck.integrations import INTEGRATIONS


def write_out(name: str, folder: Path | None) -> int:
    """
    Print the files of an integration, or write them into a folder; returns 0.

    Raises:
        UsageError: no such integration, or a file that is there already.
    """
    if name not in INTEGRATIONS:
        raise UsageError(f"no such integration: {name}; there are {', '.join(INTEGRATIONS)}")
    files = INTEGRATIONS[name]
    for file in files:
        data = resources.files("hwcheck.integrations").joinpath(file).read_bytes()
        if folder is None:
            if len(files) > 1:
                sys.stdout.write(f"# ---- {file}\n")
            sys.stdout.write(data.decode())
            continue
        place = folder / file
        mode = 0o755 if data.startswith(b"#!") else 0o644
        try:
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
                out.write(data)
        except FileExistsError as error:
            raise UsageError(f"{place} is there already") from error
        print(f"hwcheck: {place} written", file=sys.stderr)
    return 0
