"""
Sign and verify: ed25519 (RFC 8032) over the canonical bytes of the certificate, both in one JSON file.

File: ``{"certificate":{...},"signature":{"algorithm":"ed25519","key":HEX,"value":HEX}}`` and a line break. What is
signed are the bytes between ``{"certificate":`` and ``,"signature":``, so any ed25519 library can verify it.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import pkgutil
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hwcheck.certificate.canonical import canonical, read_canonical
from hwcheck.certificate.content import CLOCKS, SCHEMA
from hwcheck.certificate.shape import fault
from hwcheck.errors import CertificateError

ALGORITHM = "ed25519"


def sign(certificate: dict[str, Any], key: Ed25519PrivateKey) -> bytes:
    """
    Sign a certificate.

    Returns:
        The file.

    Raises:
        CertificateError: it is not of the published schema; nothing is signed that would not be read again.
    """
    body = canonical(certificate)
    signature = {
        "algorithm": ALGORITHM,
        "key": key.public_key().public_bytes_raw().hex(),
        "value": key.sign(body).hex(),
    }
    data = canonical({"certificate": certificate, "signature": signature}) + b"\n"
    _of_schema(read_canonical(data))
    return data


def verify(data: bytes, public_key: bytes) -> dict[str, Any]:
    """
    Return the certificate that a file holds; :func:`in_date` says whether it still counts.

    Args:
        data: the file.
        public_key: the 32 bytes of the key that must have signed it.

    Raises:
        CertificateError: not a certificate of ours, of an unknown schema, by another key, or changed.
    """
    file = read_canonical(data)
    _of_schema(file)
    certificate: dict[str, Any] = file["certificate"]
    signature = file["signature"]
    if signature["key"] != public_key.hex():
        other = fingerprint(bytes.fromhex(signature["key"]))
        raise CertificateError(f"signed by another key: {other}, not {fingerprint(public_key)}")
    try:
        key = Ed25519PublicKey.from_public_bytes(public_key)
        key.verify(bytes.fromhex(signature["value"]), canonical(certificate))
    except (InvalidSignature, ValueError) as error:
        raise CertificateError("the signature does not fit: it was changed after it was signed") from error
    return certificate


def signer(data: bytes) -> bytes:
    """
    Return the public key that a file says it is signed by; nothing is proven by that.

    Raises:
        CertificateError: not a certificate of ours.
    """
    file = read_canonical(data)
    _of_schema(file)
    return bytes.fromhex(file["signature"]["key"])


def in_date(certificate: dict[str, Any], now: dt.datetime) -> None:
    """
    Refuse a certificate that does not count now.

    Args:
        certificate: one that :func:`verify` returned.
        now: with time zone.

    Raises:
        CertificateError: expired, issued in the future, or its dates contradict each other.
    """
    try:
        issued, until = (dt.datetime.fromisoformat(certificate[key]) for key in ("issued", "valid_until"))
    except ValueError as error:  # 31 February fits the schema's pattern
        raise CertificateError(f"no date: {error}") from error
    if until <= issued:
        raise CertificateError("it ends before it begins")
    if now >= until:
        raise CertificateError(f"expired: it was valid until {certificate['valid_until']}")
    if now < issued - CLOCKS:
        raise CertificateError(f"issued in the future, at {certificate['issued']}: a clock is wrong")


def fingerprint(public_key: bytes) -> str:
    """Name a key as ``ssh-keygen -l`` does: SHA-256 of its OpenSSH form."""
    name = b"ssh-ed25519"
    blob = len(name).to_bytes(4, "big") + name + len(public_key).to_bytes(4, "big") + public_key
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _of_schema(file: Any) -> None:
    certificate = file.get("certificate") if isinstance(file, dict) else None
    schema = certificate.get("schema") if isinstance(certificate, dict) else None
    if not isinstance(schema, str):
        raise CertificateError("no certificate of hwcheck")
    if schema != SCHEMA:
        raise CertificateError(f"of schema {schema}, which this hwcheck does not know (it knows {SCHEMA})")
    text = pkgutil.get_data("hwcheck.report", "certificate.schema.json") or b""
    published = json.loads(text)
    if wrong := fault(file, published, published):
        raise CertificateError(wrong)
