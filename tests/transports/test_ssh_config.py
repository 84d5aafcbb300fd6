"""What the built-in client takes from ssh_config and known_hosts, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from hwcheck.errors import TransportError, UsageError
from hwcheck.transports.known_hosts import HostKey, KnownHosts, name_of
from hwcheck.transports.ssh_config import HostConfig, host_config
from hwcheck.transports.target import Target

NO_AGENT = False


def look_up(text: str, target: Target, folder: Path) -> HostConfig:
    """Look a node up in a config."""
    path = folder / f"config-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    path.write_text(text)
    return host_config(target, (), path)


def test_the_config_says_where_and_as_whom(tmp_path: Path) -> None:
    """Host name, port, user, keys, host key's name and file, patience."""
    key = tmp_path / "key"
    key.write_text("")
    text = f"""
Host gpu-*
  HostName %h.cluster
  User ops
  Port 2200
  IdentityFile {key}
  IdentityFile {key}.none
  IdentitiesOnly yes
  UserKnownHostsFile {tmp_path}/known
  GlobalKnownHostsFile none
  ConnectTimeout 3
"""
    assert look_up(text, Target("gpu-1"), tmp_path) == HostConfig(
        "gpu-1.cluster", 2200, "ops", "[gpu-1.cluster]:2200", (key,), NO_AGENT, (tmp_path / "known",), 3.0
    )


def test_the_inventory_goes_before_the_config(tmp_path: Path) -> None:
    """Port, user, and options of the command line too."""
    target = Target("gpu-1", "10.1.1.1", 22, "root", options=(("HostKeyAlias", "gpu-1"), ("ConnectTimeout", "9")))
    config = look_up("Host *\n  Port 1\n  User u\n  ConnectTimeout 3\n", target, tmp_path)
    assert (config.host, config.port, config.user, config.known_as, config.connect_timeout) == (
        "10.1.1.1",
        22,
        "root",
        "gpu-1",
        9.0,
    )


@pytest.mark.parametrize(
    "line",
    ["ProxyJump bastion", "ProxyCommand nc %h %p", "CertificateFile ~/x", "PKCS11Provider /lib/x.so",
     "BindAddress 10.0.0.1",
     "IdentityAgent /run/agent", "AddressFamily inet6"],
)  # fmt: skip
def test_what_the_client_cannot_do_is_refused_by_name(line: str, tmp_path: Path) -> None:
    """In the config as in the inventory, with the way that honours it."""
    name, _, value = line.partition(" ")
    for text, options in ((f"Host *\n  {line}\n", ()), ("", ((name, value),))):
        with pytest.raises(TransportError) as error:
            look_up(text, Target("gpu-1", options=options), tmp_path)
        assert name.lower() in str(error.value).lower()
        assert "--ssh openssh" in error.value.advice


@pytest.mark.parametrize("option", [("Ciphers", "aes128-ctr"), ("NoSuchOption", "1"), ("StrictHostKeyChecking", "no")])
def test_an_option_asked_for_and_not_known_is_refused(option: tuple[str, str], tmp_path: Path) -> None:
    """What the command line or the inventory asks for is done or refused; host keys are always checked."""
    with pytest.raises(TransportError, match=option[0]):
        look_up("", Target("gpu-1", options=(option,)), tmp_path)


@pytest.mark.parametrize(
    "text", ["Host *\n  ProxyJump none\n", "Host other\n  ProxyJump b\n", "Host *\n  StrictHostKeyChecking no\n"]
)
def test_what_asks_for_nothing_is_no_matter(text: str, tmp_path: Path) -> None:
    """A jump host of another node, or none; and we stay strict."""
    assert look_up(text, Target("gpu-1"), tmp_path).host == "gpu-1"


def test_includes_are_followed(tmp_path: Path) -> None:
    """At the top of a file; their Host blocks end with them."""
    (tmp_path / "more.conf").write_text("Host gpu-1\n  Port 77\n")
    assert look_up("Include more.conf\nUser ops\n", Target("gpu-1"), tmp_path).port == 77
    assert look_up("Include more.conf\nUser ops\n", Target("gpu-2"), tmp_path).user == "ops"
    assert look_up("Include none*.conf\n", Target("gpu-2"), tmp_path).port == 22


@pytest.mark.parametrize("text", ["Host *\n  Include more.conf\n", "Include ring\n"])
def test_includes_that_are_not_understood_are_refused(text: str, tmp_path: Path) -> None:
    """Inside of a block, or in a ring."""
    (tmp_path / "ring").write_text("Include ring\n")
    with pytest.raises(TransportError, match="Include"):
        look_up(text, Target("gpu-1"), tmp_path)


def test_a_config_that_was_named_must_be_there(tmp_path: Path) -> None:
    """The usual ones may be missing."""
    with pytest.raises(UsageError, match="none"):
        host_config(Target("gpu-1"), (), tmp_path / "none")


def test_host_keys_are_found_by_all_their_spellings(tmp_path: Path) -> None:
    """Plain, with a port, hashed, by pattern, negated, marked."""
    salt = b"s" * 20
    digest = hmac.digest(salt, b"hidden-1", "sha1")
    hashed = f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
    (tmp_path / "known").write_text(
        "gpu-1,10.0.0.1 ssh-ed25519 AAA comment\n[gpu-1]:2222 ssh-rsa BBB\n# a comment here\n\nbroken\n"
        f"{hashed} ssh-rsa CCC\n*.cluster,!bad.cluster ssh-rsa DDD\n@revoked gpu-2 ssh-rsa EEE\n|1|x|y ssh-rsa FFF\n"
        "@cert-authority *.ca ssh-rsa GGG\n"
    )
    known = KnownHosts([tmp_path / "known", tmp_path / "none"])
    assert known.of("GPU-1") == [HostKey("", "ssh-ed25519", "AAA")]
    assert known.of("10.0.0.1") == known.of("gpu-1")
    assert known.of(name_of("gpu-1", 2222)) == [HostKey("", "ssh-rsa", "BBB")]
    assert known.of("hidden-1") == [HostKey("", "ssh-rsa", "CCC")]
    assert known.of("a.cluster") == [HostKey("", "ssh-rsa", "DDD")]
    assert known.of("bad.cluster") == []
    assert known.of("gpu-2") == [HostKey("@revoked", "ssh-rsa", "EEE")]
    assert known.of("x.ca") == [HostKey("@cert-authority", "ssh-rsa", "GGG")]
    assert known.of("gpu-3") == []
