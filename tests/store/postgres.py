"""A PostgreSQL server of the tests' own: in a folder, on a socket, as a user that is not root."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

USER = "hwcheck"
DEADLINE = 60.0


def folder_of_programs() -> Path | None:
    """Return where Debian (or PATH) has the newest server; None where there is none, or no library to reach it."""
    if importlib.util.find_spec("psycopg") is None:
        return None
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    return max(found, key=lambda path: float(path.parent.name) if path.parent.name.isdigit() else 0.0, default=None)


class Server:
    """
    A running server.

    Args:
        programs: folder of initdb and postgres.

    Attributes:
        folder: of its socket and data.
    """

    def __init__(self, programs: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hwcheck-pg-"))
        self._programs = programs
        self._databases = 0
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:  # which initdb refuses
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._call("initdb", "-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = ("-D", "data", "-F", "-k", str(self.folder), "-c", "listen_addresses=", "-c", "max_connections=50")
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", *options], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, **self._as,
            )  # fmt: skip
        self._wait()

    def database(self, connections: int = 0) -> str:
        """
        Make an empty database and return its URL.

        Args:
            connections: how many at once; 0 for all that the server has.
        """
        self._databases += 1
        name, limit = f"d{self._databases}", ("--connection-limit", str(connections)) if connections else ()
        self._call("createuser", "-h", str(self.folder), "-U", USER, *limit, name)
        self._call("createdb", "-h", str(self.folder), "-U", USER, "-O", name, name)
        return f"postgresql://{name}@/{name}?host={self.folder}"

    def stop(self) -> None:
        """End it, and remove its folder."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(DEADLINE)
        shutil.rmtree(self.folder)

    def _wait(self) -> None:
        until = time.monotonic() + DEADLINE
        while True:
            asked = subprocess.run(
                [self._programs / "pg_isready", "-q", "-h", self.folder], check=False, timeout=DEADLINE
            )
            if asked.returncode == 0:
                return
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until, "PostgreSQL does not come up"
            time.sleep(0.05)

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments], cwd=self.folder, check=False, capture_output=True, text=True,
            timeout=DEADLINE, **self._as,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
