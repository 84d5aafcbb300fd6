"""
Certificates: what was found right on one node, when, by whom and until when, signed.

Pure, but for what :mod:`hwcheck.keyring` reads: the clock, the key and the bytes of a file are arguments.
"""

from hwcheck.certificate.content import Policy, evidence_hash, make
from hwcheck.certificate.signature import fingerprint, in_date, sign, signer, verify

__all__ = [
    "Policy",
    "evidence_hash",
    "fingerprint",
    "in_date",
    "make",
    "sign",
    "signer",
    "verify",
]
