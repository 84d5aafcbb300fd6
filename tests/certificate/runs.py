"""Runs made by hand, with all that a certificate rests on; a test changes what it is about."""

from __future__ import annotations

import datetime as dt
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hwcheck.certificate import Policy, make
from hwcheck.profiles import ProfileSet

NOW = dt.datetime(2030, 5, 1, 12, tzinfo=dt.UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
POLICY = Policy(
    {"clocks.persistence": ("gpu",), "pcie.acs": ("pci_bits",)},
    {"baseline.hbm.copy": "measured on 24 GPUs"},
    {"nvml": "lab", "kernel.log": "iron"},
)
GPUS = ("0000:18:00.0", "0000:2a:00.0")
SOURCES = {"nvml": "read", "kernel.log": "read", "sysfs.pci": "read", "sysfs.machine": "read", "dcb": "absent"}
REQUIRES = ProfileSet().profile("hgx-h200").requires
WAIVED = {"owner": "ops", "reason": "known since acceptance", "expires": "2030-12-31"}


def finding(check: str, subject: str = "", status: str = "pass", **more: Any) -> dict[str, Any]:
    """Return a finding without its number."""
    urgency = None if status in ("pass", "skip") else "now"
    return {
        "node": "gpu-1", "check": check, "subject": subject, "status": status, "urgency": urgency, "observed": None,
        "expected": None, "message": f"{check} is {status}", "evidence": None, "remedy": None, "waived": None, **more,
    }  # fmt: skip


def run(*more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """
    Return the run of one healthy node.

    Args:
        more: findings beside the healthy ones.
        changes: of the run itself.
    """
    healthy = [
        *(finding(check) for check in ("driver.loaded", "pcie.link", "thermal.limit", "xid.log")),
        *(finding(check, gpu) for check in ("gpu.ecc_mode", "hbm.total") for gpu in GPUS),
        *(finding("clocks.persistence", gpu, observed=True, expected="yes") for gpu in GPUS),
        finding("imex.domain", status="skip"),
        finding("baseline.hbm_copy", GPUS[0], expected=">= 3600 GB/s"),
    ]
    findings = [{"id": number, **one} for number, one in enumerate([*healthy, *more])]
    counts = {
        status: sum(one["status"] == status for one in findings)
        for status in ("pass", "warn", "fail", "unknown", "skip")
    }
    about = {
        "boot_id": "b00710ca-0000-4000-8000-000000000001", "taken": 1904470000.5, "cohort": "hgx-h200, driver 580",
        "product": "PowerEdge XE9680", "serial": "7H2K9X3", "versions": {"driver": "580.105.08", "kernel": "6.8.0"},
        "gpus": [{"id": gpu, "index": n, "uuid": f"GPU-{n}", "serial": f"165000000000{n}", "name": "NVIDIA H200"}
                 for n, gpu in enumerate(GPUS)],
        "nics": [{"id": "mlx5_0", "guid": "a088:c203:0012:3456", "psid": "MT_0000000838", "firmware": "28.43.2566"}],
        "sources": dict(SOURCES), "requires": {words: list(kinds) for words, kinds in REQUIRES.items()},
        "topology": {"parts": []},
    }  # fmt: skip
    verdict = "fail" if any(f["status"] == "fail" and not f["waived"] for f in findings) else "pass"
    node = {
        "name": "gpu-1", "platform": "hgx-h200", "confidence": "pci-id", "verdict": verdict, "simulated": False,
        "coverage": counts, "about": about,
    }  # fmt: skip
    measured = {
        "node": "gpu-1", "name": "hwcheck.hbm.copy", "subject": "hwcheck.hbm.copy@0000:18:00.0", "value": 3890.5,
        "unit": "GB/s", "conditions": {"bytes": 1 << 30, "samples": [3890.5, 3889.0]},
    }  # fmt: skip
    return {
        "schema": "hwcheck.run/1", "tool": "hwcheck 1.0", "profile": {"name": "auto", "hash": "0123456789abcdef"},
        "started": "2030-05-01T11:00:00+00:00", "ended": "2030-05-01T11:30:00+00:00", "verdict": verdict,
        "kind": "accept", "run": "20300501-110000-a1b2", "who": "ana@control", "nodes": [node], "findings": findings,
        "incidents": [], "measurements": [measured], **changes,
    }  # fmt: skip


def certificate(record: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Make the certificate of the healthy node, or of another run's ``gpu-1``."""
    given: dict[str, Any] = {
        "settings": POLICY, "who": "ana@control", "issued": NOW, "valid_days": 90, "evidence_hash": "ab" * 32,
    }  # fmt: skip
    return make(record or run(), "gpu-1", **{**given, **changes})
