"""Signed files: what verifies, and all that does not."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck.certificate import in_date, sign, signer, verify
from hwcheck.certificate.canonical import MAX_BYTES, canonical, plain, read_canonical
from hwcheck.errors import CertificateError
from tests.certificate.runs import KEY, NOW, OTHER, PUBLIC, certificate

FILE = sign(certificate(), KEY)
TEXTS = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def resigned(**changes: Any) -> bytes:
    """Sign a changed certificate past the check of its schema, as somebody with the key could."""
    body = {**certificate(), **changes}
    signature = {"algorithm": "ed25519", "key": PUBLIC.hex(), "value": KEY.sign(canonical(body)).hex()}
    return canonical({"certificate": body, "signature": signature}) + b"\n"


def refused(data: bytes) -> str:
    """Return why a file is refused."""
    with pytest.raises(CertificateError) as caught:
        verify(data, PUBLIC)
    return str(caught.value)


def test_what_was_signed_verifies() -> None:
    """A file gives back the certificate that was signed, and names its key."""
    assert verify(FILE, PUBLIC) == json.loads(FILE)["certificate"]
    assert signer(FILE) == PUBLIC


def test_any_library_can_verify_it() -> None:
    """What is signed are the bytes of the file between ``{"certificate":`` and ``,"signature":``."""
    body = FILE[len(b'{"certificate":') : FILE.index(b',"signature":')]
    Ed25519PublicKey.from_public_bytes(PUBLIC).verify(bytes.fromhex(json.loads(FILE)["signature"]["value"]), body)
    assert json.loads(body)["node"] == "gpu-1"


def test_another_key_is_refused_by_name() -> None:
    """A certificate of another key is refused, and both keys are named."""
    told = refused(sign(certificate(), OTHER))
    assert told.startswith("signed by another key: SHA256:")
    assert told.count("SHA256:") == 2


@settings(max_examples=400, deadline=None)
@given(st.integers(0, len(FILE) - 1), st.integers(1, 255))
def test_a_changed_byte_anywhere_is_refused(place: int, change: int) -> None:
    """There is no byte that can be changed to anything else."""
    changed = bytearray(FILE)
    changed[place] ^= change
    assert refused(bytes(changed))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(FILE)), st.binary(max_size=3), st.integers(0, 3))
def test_bytes_more_or_fewer_are_refused(place: int, more: bytes, fewer: int) -> None:
    """Nothing can be put in or taken out, a blank included; only the whole file verifies."""
    changed = FILE[:place] + more + FILE[place + fewer :]
    if changed != FILE:
        assert refused(changed)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(FILE) - 1))
def test_a_cut_off_file_is_refused(length: int) -> None:
    """A file that ends early is refused, wherever it ends."""
    assert refused(FILE[:length])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_refused_in_words(data: bytes) -> None:
    """Bytes and JSON of any kind are refused with a reason, and never with another error."""
    assert refused(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (FILE.replace(b'"node":"gpu-1"', b'"node":"gpu-1","node":"gpu-1"'), "a key stands twice"),
        (FILE.replace(b"3890.5", b"NaN", 1), "NaN is no number"),
        (FILE.replace(b"3890.5", b"1e999", 1), "Infinity|Out of range|inf"),
        (FILE.replace(b"3890.5", b"38905e-1", 1), "not in canonical form"),
        (FILE.replace(b"gpu-1", "gpu-\u0661".encode()), "no JSON of ours"),
        (FILE.replace(b"gpu-1", b"gpu\\u202e1"), "a text that cannot be printed"),
        (FILE.replace(b"gpu-1", b"gpu\\ud8001"), "a text that cannot be printed"),
        (FILE.replace(b"gpu-1", b"\\u0067pu-1"), "not in canonical form"),
        (b"\xef\xbb\xbf" + FILE, "no JSON of ours"),
        (FILE + b" " * MAX_BYTES, "larger than 4 MiB"),
        (b"[" * 100_000, "no JSON of ours"),
        (b"9" * 10_000, "no JSON of ours"),
        (json.dumps(json.loads(FILE), indent=1).encode(), "not in canonical form"),
        (b"{}\n", "no certificate of hwcheck"),
        (b"", "no JSON of ours"),
    ],
)  # fmt: skip
def test_what_is_no_certificate_says_why(data: bytes, words: str) -> None:
    """Doubled keys, NaN, marks of reading direction, other spellings and huge or empty files are named."""
    assert any(word in refused(data) for word in words.split("|"))


def test_another_schema_is_refused_even_when_signed() -> None:
    """A version that this hwcheck does not know is refused by its name, as is a field that the schema has not."""
    assert "hwcheck.certificate/2, which this hwcheck does not know" in refused(
        resigned(schema="hwcheck.certificate/2")
    )
    assert "verdict" in refused(resigned(verdict="fail"))
    assert "extra" in refused(resigned(extra=1))


def test_nothing_is_signed_that_would_not_be_read() -> None:
    """Signing looks at the schema too."""
    with pytest.raises(CertificateError, match="verdict"):
        sign({**certificate(), "verdict": "unknown"}, KEY)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (dt.timedelta(0), ""),
        (dt.timedelta(minutes=-4), ""),
        (dt.timedelta(minutes=-6), "issued in the future"),
        (dt.timedelta(days=89), ""),
        (dt.timedelta(days=90), "expired"),
    ],
    ids=["at once", "clock a little behind", "clock wrong", "last day", "expired"],
)
def test_it_counts_between_its_dates(now: dt.timedelta, words: str) -> None:
    """A certificate counts from its issue to its end; a clock may be five minutes behind."""
    found = ""
    try:
        in_date(certificate(), NOW + now)
    except CertificateError as error:
        found = str(error)
    assert (words in found) if words else (found == "")


def test_dates_that_are_none_are_refused() -> None:
    """A day that the calendar has not, or an end before the beginning, is refused."""
    for until, words in (
        ("2030-02-31T00:00:00+00:00", "no date"),
        ("2029-01-01T00:00:00+00:00", "ends before it begins"),
    ):
        with pytest.raises(CertificateError, match=words):
            in_date(verify(resigned(valid_until=until), PUBLIC), NOW)


@given(JSON.map(plain))
def test_canonical_form_is_one(value: Any) -> None:
    """What is written reads back as the same value, and is written the same again."""
    data = canonical(value) + b"\n"
    read = read_canonical(data)
    assert canonical(read) + b"\n" == data
    assert read == value


@given(JSON)
def test_plain_is_printable_and_stays(value: Any) -> None:
    """Making plain gives texts that can be printed, and doing it again changes nothing but what was cut."""
    once = plain(value)
    assert read_canonical(canonical(once) + b"\n") == once
    assert plain(plain(once)) == plain(once)
