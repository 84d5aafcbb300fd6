"""Pseudonyms: consistent, of the same form, and never where they would change what is judged."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwcheck.lines import clean
from hwcheck.redact import Redactor

KEY = b"a key of the tests"


def redact(text: str, *, hosts: tuple[str, ...] = (), users: tuple[str, ...] = (), keep_serials: bool = False) -> str:
    """Redact one text."""
    redactor = Redactor(KEY, keep_serials=keep_serials, hosts=hosts, users=users)
    redactor.learn(text)
    return redactor.text(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("inet 10.20.30.40/24", r"inet 10\.\d+\.\d+\.\d+/24"),
        (
            "GPU UUID : GPU-8f3a11c2-77aa-4e5d-b0c1-5566778899aa",
            r"GPU UUID : GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        ),
        ("link/ether b8:3f:d2:9a:bc:de", r"link/ether b8:3f:d2(:[0-9a-f]{2}){3}"),
        ("Node GUID: 0xb83fd203009abcde", r"Node GUID: 0xb83fd2[0-9a-f]{10}"),
        ("node_guid: b83f:d203:009a:bcde", r"node_guid: b83f:d2[0-9a-f]{2}(:[0-9a-f]{4}){2}"),
        ("fe80:0000:0000:0000:ba3f:d2ff:fe9a:bcde", r"fe80:0000:0000:0000:ba3f:d2[0-9a-f]{2}(:[0-9a-f]{4}){2}"),
        ("[140] Device Serial Number 9c-63-c0-03-00-d6-ea-ec", r".* 9c-63-c0(-[0-9a-f]{2}){5}"),
        ("Serial Number : 1654123098765", r"Serial Number : \d{13}"),
        ("<serial>1654123098765</serial>", r"<serial>\d{13}</serial>"),
        ('"serial": "MT2334X01234"', r'"serial": "[A-Z]{2}\d{4}[A-Z]\d{5}"'),
        ("server ntp1.corp.acme.com iburst", r"server host-[0-9a-f]{8}\.example iburst"),
        ("/home/jdoe/run.sh", r"/home/user-[0-9a-f]{6}/run\.sh"),
    ],
)
def test_what_tells_who_it_is_gets_a_pseudonym_of_its_form(text: str, form: str) -> None:
    """A parser reads the pseudonym as it reads the name."""
    new = redact(text)
    assert new != text
    assert re.fullmatch(form, new), new


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1 255.255.255.0 0.0.0.0 169.254.169.254 224.0.1.129",
        "VBIOS Version : 96.00.61.00.01",
        "FW Version: 28.39.1002, BMC version 7.10.30.4, MLNX_OFED_LINUX-23.10-1.1.9.0",
        "00000000-0000-0000-0000-000000000000",
        "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        "00000000:18:00.0 0000:18:00.0 12:34:56",
        "mask 0xffffffffffffffff 0x0000000000000003 guid",
        "::1 fe80 ::",
        "GUID: 0x0000000000000000",
        "ff:ff:ff:ff:ff:ff 00:00:00:00:00:00",
        "serial: N/A, Serial Number : 0",
        "hwdb mlx5_0 PSID MT_0000000838 nvidia 10de:2335",
        "2.pool.ntp.org www.nvidia.com",
        "vm.swappiness = 10 and login is a word",
    ],
)
def test_what_tells_nothing_stays(text: str) -> None:
    """Versions, masks, well-known addresses, placeholders; nothing that a verdict rests on changes."""
    assert redact(text, hosts=("vm", "login", "localhost"), users=("root",)) == text


def test_two_addresses_of_one_network_stay_of_one_network() -> None:
    """However long the prefix is; and different ones stay different."""
    addresses = redact("10.1.2.3 10.1.2.200 10.1.9.1 10.77.0.1").split()
    bits = [int.from_bytes(bytes(map(int, address.split("."))), "big") for address in addresses]

    def common(one: int, other: int) -> int:
        return 32 - (bits[one] ^ bits[other]).bit_length()

    assert [common(0, 1), common(0, 2), common(0, 3)] == [24, 20, 9]


def test_an_address_in_a_gid_is_the_same_address() -> None:
    """RoCE v2 GIDs hold the IPv4 address of their interface."""
    address, gid = redact("10.1.2.3 0000:0000:0000:0000:0000:ffff:0a01:0203").split()
    high, low = gid.split(":")[6:]
    assert ".".join(str(int((high + low)[at : at + 2], 16)) for at in (0, 2, 4, 6)) == address


def test_hosts_go_wherever_they_stand() -> None:
    """With and without domain, in logs too; a name that is also a word only where a host stands."""
    new = redact("gpu-017 gpu-017.corp.acme.com kernel: gpu-0171", hosts=("gpu-017.corp.acme.com",))
    node = Redactor(KEY).host("gpu-017")
    assert new == f"{node} {node} kernel: gpu-0171"
    text = "host=login\nOct  1 10:00:00 login kernel: the login of root\nlogin\nkernel.hostname = login\n"
    node = Redactor(KEY).host("login")
    assert redact(text, hosts=("login",)) == (
        f"host={node}\nOct  1 10:00:00 {node} kernel: the login of root\n{node}\nkernel.hostname = {node}\n"
    )


def test_serials_are_kept_for_an_rma() -> None:
    """And everything else goes."""
    new = redact("Serial Number : 1654123098765 at 10.1.2.3", keep_serials=True)
    assert "1654123098765" in new
    assert "10.1.2.3" not in new


def test_a_serial_number_goes_from_other_lines_too() -> None:
    """Also where nothing says that it is one."""
    assert "1654123098765" not in redact("Serial Number : 1654123098765\nlabel 1654123098765-B\n")


def test_pseudonyms_are_of_their_key() -> None:
    """The same key gives the same ones in every bundle; another gives others."""
    text = "10.1.2.3 b8:3f:d2:9a:bc:de"
    assert Redactor(KEY).text(text) == Redactor(KEY).text(text)
    assert Redactor(KEY).text(text) != Redactor(b"another key").text(text)


@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=20), max_size=3))
def test_any_text_keeps_its_lines(text: str, hosts: list[str]) -> None:
    """Line numbers of findings stay; nothing raises."""
    redactor = Redactor(KEY, hosts=hosts)
    redactor.learn(text)
    if not any("\n" in host for host in hosts):
        assert redactor.text(text).count("\n") == text.count("\n")
    clean(redactor.text(text))


def test_bytes_that_are_no_text_stay() -> None:
    """Only what is recognised changes."""
    assert Redactor(KEY).data(b"\xff\xfe\x00 10.1.2.3").startswith(b"\xff\xfe\x00 10.")
