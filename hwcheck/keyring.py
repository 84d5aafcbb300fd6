"""
Keys of certificates: read from files, or made at first use and pinned.

A key that is made lies in a folder of ours (0600), its public part beside it: ``key`` and ``pinned.pub``, both in
OpenSSH's form, so that ``ssh-keygen -l -f`` shows the same fingerprint. Whoever verifies without naming a key means the
pinned one.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hwcheck.errors import UsageError

MAX_KEY = 64 << 10
_MADE, _PINNED = "key", "pinned.pub"
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)
"""What the library raises for garbage, for a key with a passphrase, and for a kind that it does not know."""


def read_file(path: Path, limit: int) -> bytes:
    """
    Read a file of at most ``limit`` bytes; of a longer one, one byte more.

    Raises:
        UsageError: not there, a ring of links, no file (a device or pipe would have no end), or not to be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"{path}: no file")
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def read_private(path: Path) -> Ed25519PrivateKey:
    """
    Read the key that signs: PEM (PKCS 8) or OpenSSH's form, without a passphrase.

    Raises:
        UsageError: no such key, or others may read it.
    """
    data = read_file(path, MAX_KEY)
    if path.stat().st_mode & 0o077:
        raise UsageError(f"{path}: others may read this key; chmod 600")
    openssh = b"BEGIN OPENSSH PRIVATE KEY" in data
    try:
        key = (
            serialization.load_ssh_private_key(data, None)
            if openssh
            else serialization.load_pem_private_key(data, None)
        )
    except _UNREADABLE as error:
        raise UsageError(f"{path}: no private key in PEM or OpenSSH form without a passphrase") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path}: certificates are signed by an ed25519 key (ssh-keygen -t ed25519)")
    return key


def read_public(path: Path) -> bytes:
    """
    Read the key to verify with: PEM or a line of OpenSSH.

    Returns:
        Its 32 bytes.

    Raises:
        UsageError: no such key; also for a private one, which no one who verifies should hold.
    """
    data = read_file(path, MAX_KEY)
    if b"PRIVATE KEY" in data:
        raise UsageError(f"{path}: a private key; give the public one (ssh-keygen -y -f KEY prints it)")
    try:
        pem = b"BEGIN PUBLIC KEY" in data
        key = serialization.load_pem_public_key(data) if pem else serialization.load_ssh_public_key(data.strip())
    except _UNREADABLE as error:
        raise UsageError(f"{path}: no public key in PEM or OpenSSH form") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{path}: no ed25519 key")
    return key.public_bytes_raw()


def public_line(key: Ed25519PrivateKey) -> bytes:
    """Spell the public part as OpenSSH does."""
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_key().public_bytes(*form) + b" hwcheck certificates\n"


class Keyring:
    """
    The key that is made at first use, and its pin.

    Args:
        folder: where they lie.
    """

    def __init__(self, folder: Path) -> None:
        self.made, self.pinned = folder / _MADE, folder / _PINNED

    def own(self) -> tuple[Ed25519PrivateKey, bool]:
        """
        Return our key, and whether it was made just now.

        Raises:
            UsageError: the pinned key is gone, or the key that is there is not the pinned one.
            OSError: the folder cannot be written.
        """
        new = not self.made.exists()
        if new and self.pinned.exists():
            raise UsageError(
                f"{self.made}: the key is gone that {self.pinned} names: put it back, give another with --key, or "
                "remove the pin, after which certificates of the old key are refused"
            )
        if new:
            key = Ed25519PrivateKey.generate()
            form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            self.made.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = _keep_once(self.made, key.private_bytes(*form))
        key = read_private(self.made)  # where two made one at once, both go on with the first
        if not self.pinned.exists():
            _keep_once(self.pinned, public_line(key))
        if self.pin() != key.public_key().public_bytes_raw():
            raise UsageError(f"{self.made} is not the key that {self.pinned} names")
        return key, new

    def pin(self) -> bytes:
        """
        Return the pinned public key.

        Raises:
            UsageError: none was made here.
        """
        if not self.pinned.exists():
            raise UsageError(f"no key is pinned here ({self.pinned}): name the signer's public key with --key")
        return read_public(self.pinned)


def own_keyring(home: Path) -> Keyring:
    """Return the keyring of this user, below the folder of our state."""
    return Keyring(home / "certificates")


def _keep_once(place: Path, data: bytes) -> bool:
    """Write a file whole, unless it is there; returns whether it was written."""
    descriptor, begun = tempfile.mkstemp(prefix=".begun-", dir=place.parent)  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.link(begun, place)  # fails where another was first
    except FileExistsError:
        return False
    finally:
        Path(begun).unlink(missing_ok=True)
    return True
