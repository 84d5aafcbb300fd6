"""Which node, and how to get to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LOCAL, SSH, PARAMIKO = "local", "ssh", "paramiko"


@dataclass(frozen=True, slots=True)
class Become:
    """
    Reading as another user, by sudo.

    Attributes:
        user: whom to become.
        password: None where sudo asks for none. Never printed, never in argv, never in evidence.
    """

    user: str = "root"
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """
    One node.

    Attributes:
        name: what the inventory or the command line calls it.
        address: what to connect to; "" for the name.
        port, user, key_files: 0, "", () to let ssh_config decide.
        python: its Python; "" for ``python3``.
        connection: ``local``, ``ssh`` (either back end) or ``paramiko``.
        become: None to read as the user who logs in.
        password: for the login; None to use keys only.
        options: options of ssh_config that were set for this node, in order; the first of a name counts.
        profile: platform profile to judge by; "" to recognise it.
        site: profile layer of this node, from its inventory variables.
        failure_domain: what fails as a whole with this node (a rack, a row, a leaf switch), as the inventory calls it.
    """

    name: str
    address: str = ""
    port: int = 0
    user: str = ""
    key_files: tuple[str, ...] = ()
    python: str = ""
    connection: str = SSH
    become: Become | None = None
    password: str | None = field(default=None, repr=False)
    options: tuple[tuple[str, str], ...] = ()
    profile: str = ""
    site: dict[str, Any] = field(default_factory=dict)
    failure_domain: str = ""

    @property
    def host(self) -> str:
        """What to connect to."""
        return self.address or self.name
