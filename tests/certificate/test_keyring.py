"""Keys: read from files, made once, pinned."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hwcheck.certificate import fingerprint
from hwcheck.errors import UsageError
from hwcheck.keyring import Keyring, public_line, read_file, read_private, read_public
from tests.certificate.runs import KEY, PUBLIC


def written(path: Path, data: bytes, mode: int = 0o600) -> Path:
    """Write a key file."""
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.OpenSSH], ids=["PEM", "OpenSSH"])
def test_private_keys_of_both_forms(form: PrivateFormat, tmp_path: Path) -> None:
    """The key of a site may be PEM or what ssh-keygen makes."""
    path = written(tmp_path / "key", KEY.private_bytes(Encoding.PEM, form, NoEncryption()))
    assert read_private(path).public_key().public_bytes_raw() == PUBLIC


def test_public_keys_of_both_forms(tmp_path: Path) -> None:
    """The key to verify with may be PEM or a line of OpenSSH, with or without a comment."""
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for number, data in enumerate((pem, public_line(KEY), public_line(KEY).split(b" hwcheck")[0])):
        assert read_public(written(tmp_path / str(number), data)) == PUBLIC


def test_the_fingerprint_is_that_of_ssh_keygen(tmp_path: Path) -> None:
    """The name of a key is the one that ssh-keygen prints for it."""
    path = written(tmp_path / "key.pub", public_line(KEY))
    try:
        told = subprocess.run(["ssh-keygen", "-l", "-f", path], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("no ssh-keygen")
    assert fingerprint(PUBLIC) == told.split()[1]


def _of_other_kind() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _with_passphrase() -> bytes:
    locked = serialization.BestAvailableEncryption(b"secret")
    return KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no private key"),
        (b"\x00" * 100, "no private key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "no private key"),
        (public_line(KEY), "no private key"),
        (_with_passphrase(), "without a passphrase"),
        (_of_other_kind(), "signed by an ed25519 key"),
    ],
    ids=["empty", "garbage", "broken", "public", "passphrase", "another kind"],
)
def test_what_cannot_sign_is_said(data: bytes, words: str, tmp_path: Path) -> None:
    """A file that is no private ed25519 key without passphrase is refused in words."""
    with pytest.raises(UsageError, match=words):
        read_private(written(tmp_path / "key", data))


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """As ssh does: such a key is no secret."""
    data = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(UsageError, match="others may read this key"):
        read_private(written(tmp_path / "key", data, 0o640))


def test_who_verifies_holds_no_private_key(tmp_path: Path) -> None:
    """A private key in place of the public one is refused, with how to get that."""
    data = KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    with pytest.raises(UsageError, match="ssh-keygen -y"):
        read_public(written(tmp_path / "key", data))


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A ring of links, a pipe without writer, a device and a folder are refused, and nothing waits."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "a", tmp_path / "pipe", tmp_path, Path("/dev/zero"), tmp_path / "none"):
        with pytest.raises(UsageError):
            read_file(path, 100)


def test_of_a_huge_file_little_is_read(tmp_path: Path) -> None:
    """One byte beyond the limit tells that a file is too large."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert len(read_file(tmp_path / "huge", 1000)) == 1001


def test_a_key_is_made_once_and_pinned(tmp_path: Path) -> None:
    """The first use makes a key that only its owner may read, and pins its public part; the next use takes it."""
    ring = Keyring(tmp_path / "ours")
    first, new = ring.own()
    assert new
    assert ring.made.stat().st_mode & 0o777 == 0o600
    assert ring.made.parent.stat().st_mode & 0o777 == 0o700
    assert ring.pin() == first.public_key().public_bytes_raw()
    again, new = ring.own()
    assert not new
    assert again.private_bytes_raw() == first.private_bytes_raw()


def test_processes_that_begin_at_once_make_one_key(tmp_path: Path) -> None:
    """Several first uses at the same time end with the same key."""
    code = (
        "import sys; from pathlib import Path; from hwcheck.keyring import Keyring; "
        "print(Keyring(Path(sys.argv[1])).own()[0].private_bytes_raw().hex())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / "ours"], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    keys = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert len(keys) == 1


def test_a_lost_key_is_not_made_anew(tmp_path: Path) -> None:
    """Where the pinned key is gone nobody signs by another one without saying so."""
    ring = Keyring(tmp_path)
    ring.own()
    ring.made.unlink()
    with pytest.raises(UsageError, match="the key is gone"):
        ring.own()
    other = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    written(ring.made, other)
    with pytest.raises(UsageError, match="is not the key that"):
        ring.own()


def test_without_a_pin_the_key_has_to_be_named(tmp_path: Path) -> None:
    """Where no key was made there is none to trust."""
    with pytest.raises(UsageError, match="no key is pinned here"):
        Keyring(tmp_path).pin()
