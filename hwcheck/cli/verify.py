"""``hwcheck verify``: is a certificate what was signed, and does it count today? Needs no network and no store."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from pathlib import Path
from typing import Any

from hwcheck.errors import CertificateError


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "verify",
        help="verify a certificate",
        description="Say what a certificate says, if it is what was signed and in date. Offline.",
        epilog="Exit codes: 0 valid; 1 changed, of another key, or not in date; 2 wrong usage.",
    )
    parser.add_argument("file", metavar="CERT", type=Path, help="NODE.cert.json")
    parser.add_argument(
        "--key", metavar="PUB", type=Path,
        help="public key of the signer, PEM or OpenSSH (default: the one pinned when a key was made here)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Verify, print, and return the exit code."""
    from hwcheck.certificate import fingerprint, in_date, verify  # noqa: PLC0415 - loads cryptography
    from hwcheck.certificate.canonical import MAX_BYTES  # noqa: PLC0415 - as above
    from hwcheck.cli.main import printable  # noqa: PLC0415 - main imports this module
    from hwcheck.keyring import own_keyring, read_file, read_public  # noqa: PLC0415 - as above
    from hwcheck.places import state_home  # noqa: PLC0415 - as above

    key = read_public(arguments.key) if arguments.key is not None else own_keyring(state_home()).pin()
    data = read_file(arguments.file, MAX_BYTES)
    try:
        certificate = verify(data, key)
        in_date(certificate, dt.datetime.now(dt.UTC))
    except CertificateError as error:
        print(f"hwcheck: {printable(str(arguments.file))} is not valid: {printable(str(error))}", file=sys.stderr)
        return 1
    kind = "a SIMULATED node of a lab" if certificate["simulated"] else certificate["identity"]["product"] or "a node"
    print(f"valid: {certificate['node']} ({kind}) passed hwcheck {certificate['run']['kind']}")
    for label, text in (
        ("by", f"{certificate['who']}, key {fingerprint(key)}"),
        ("issued", certificate["issued"]),
        ("valid until", certificate["valid_until"]),
        ("boot", certificate["boot_id"]),
        ("policy", f"{certificate['policy']['name']} {certificate['policy']['hash']}, {certificate['tool']}"),
        ("measured", f"{len(certificate['baselines'])} figures"),
        ("waived", f"{len(certificate['waivers'])} findings"),
    ):
        print(f"  {label + ':':<13}{text}")
    return 0
