"""As whom nodes are read, and where the password for that comes from: never from an argument."""

from __future__ import annotations

import argparse
import os
import stat
from pathlib import Path

from hwcheck.errors import UsageError
from hwcheck.transports.target import Become


def become_of(arguments: argparse.Namespace) -> Become | None:
    """
    Say as whom nodes are read.

    Raises:
        UsageError: nobody can be asked for the password, or its file cannot be used.
    """
    password = None
    if arguments.ask_become_pass:
        import getpass  # noqa: PLC0415 - only this option asks

        try:
            password = getpass.getpass("sudo password: ")
        except EOFError as error:
            raise UsageError("no terminal to ask for sudo's password: --become-password-file reads it") from error
    elif arguments.become_password_file is not None:
        password = read_password(arguments.become_password_file)
    if not arguments.become and password is None:
        return None
    return Become(password=password)


def read_password(path: Path) -> str:
    """
    Read a password of one line.

    Raises:
        UsageError: no such file, one that others may read, or an empty one.
    """
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode) and about.st_mode & 0o077:
                raise UsageError(f"{path}: others may read it; chmod 600")
            password = file.readline(4096).decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not password:
        raise UsageError(f"{path}: the first line is empty")
    return password
