"""Keys of a lab, made anew for each: one host key for all nodes, one client key; and the files that name them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from hwcheck.lab.actor.place import NODE

HOST_KEY, CLIENT_KEY, KNOWN_HOSTS, INVENTORY = "host_key", "client_key", "known_hosts", "inventory.yaml"


def make_keys(folder: Path) -> None:
    """
    Make the two key pairs (ed25519) where there are none.

    Raises:
        OSError: there is no ssh-keygen, or it failed.
    """
    for name in (HOST_KEY, CLIENT_KEY):
        if (folder / name).exists():
            continue
        done = subprocess.run(  # noqa: S603 - fixed words
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "hwcheck lab", "-f", str(folder / name)],  # noqa: S607
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode:
            raise OSError(0, done.stderr.strip() or "ssh-keygen failed", "ssh-keygen")


def configure_sshd(folder: Path, node: Path) -> None:
    """Write what the sshd of a node reads: its host key, who may log in, and nothing else of the machine."""
    ssh = node / "ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    _private(ssh / HOST_KEY, (folder / HOST_KEY).read_text(encoding="ascii"))
    _private(ssh / "authorized_keys", (folder / f"{CLIENT_KEY}.pub").read_text(encoding="ascii"))
    _private(
        ssh / "sshd_config",
        f"HostKey {NODE}/ssh/{HOST_KEY}\nAuthorizedKeysFile {NODE}/ssh/authorized_keys\nStrictModes no\nUsePAM no\n"
        "UseDNS no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PidFile none\nPrintMotd no\nPrintLastLog no\nSubsystem sftp internal-sftp\nAcceptEnv LANG LC_*\n",
    )


def _private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text(text, encoding="ascii")


def write_inventory(folder: Path, nodes: dict[str, str], port: int, groups: dict[str, list[str]]) -> None:
    """
    Write the inventory and the host keys for ssh, Ansible and hwcheck.

    Args:
        folder: of the lab.
        nodes: name → address.
        port: of all nodes.
        groups: group → names.
    """
    key = (folder / f"{HOST_KEY}.pub").read_text(encoding="ascii").split()[:2]
    lines = [f"[{address}]:{port} {' '.join(key)}\n" for address in nodes.values()]
    (folder / KNOWN_HOSTS).write_text("".join(lines), encoding="ascii")
    lab: dict[str, object] = {
        "hosts": {name: {"ansible_host": address} for name, address in nodes.items()},
        "vars": {
            "ansible_port": port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(folder / CLIENT_KEY),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={folder / KNOWN_HOSTS} -o IdentitiesOnly=yes",
            "ansible_python_interpreter": "/usr/bin/python3",
        },
    }
    inventory: dict[str, object] = {"lab": lab}
    inventory |= {group: {"hosts": {name: {} for name in names}} for group, names in groups.items()}
    text = "# Written by `hwcheck lab up`; gone with `hwcheck lab down`.\n" + yaml.safe_dump(
        {"all": {"children": inventory}}
    )
    (folder / INVENTORY).write_text(text.replace(": {}\n", ":\n"), encoding="utf-8")
