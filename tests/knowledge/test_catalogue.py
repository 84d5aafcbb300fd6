"""The error catalogues: complete, typed, and able to answer for every code."""

from __future__ import annotations

import pytest

from hwcheck.knowledge import catalogue
from hwcheck.knowledge.catalogue import NVLINK5_SEVERITIES, SXID_SEVERITIES, XID_SEVERITIES


def test_every_xid_has_a_severity_and_a_remedy() -> None:
    """Each GPU code can be judged and answered for."""
    codes = catalogue.xids()
    assert len(codes) == 176
    assert [entry for entry in codes.values() if entry.severity not in XID_SEVERITIES or len(entry.remedy) < 20] == []


def test_every_sxid_has_a_severity_and_a_remedy() -> None:
    """Each NVSwitch code can be judged and answered for."""
    codes = catalogue.sxids()
    assert len(codes) == 96
    assert [entry for entry in codes.values() if entry.severity not in SXID_SEVERITIES or not entry.remedy] == []


def test_every_row_names_its_source() -> None:
    """No row stands without saying where it comes from."""
    sources = [entry.source for entry in catalogue.xids().values()]
    sources += [entry.source for entry in catalogue.sxids().values()]
    sources += [entry.source for entry in catalogue.nvlink5_table()]
    assert [source for source in sources if len(source) < 8] == []


def test_codes_that_need_hands_or_a_reset_say_so() -> None:
    """The remedy of a critical or fatal code names a reset, a reboot, a power cycle or a replacement."""
    words = ("reset", "reboot", "power", "replacement", "restart")
    bad = [entry for entry in catalogue.xids().values() if entry.severity in ("critical", "fatal")]
    assert [entry.code for entry in bad if not any(word in entry.remedy.lower() for word in words)] == []


@pytest.mark.parametrize(
    ("read", "row"),
    [
        ("_xid", {"code": "7", "name": "X", "severity": "grave", "action": "now=IGNORE", "source": "made up"}),
        ("_sxid", {"code": "7", "name": "X", "severity": "grave", "action": "none", "source": "made up"}),
        (
            "_nvlink5",
            {
                "xid": "145", "unit": "X", "intrinfo_mask_before_r575": "-" * 32, "intrinfo_mask_from_r575": "-" * 32,
                "error_status": "", "resolution": "IGNORE", "investigate": "", "severity": "Grave", "source": "made up",
            },
        ),
    ],
)  # fmt: skip
def test_an_unknown_severity_does_not_load(read: str, row: dict[str, str]) -> None:
    """A severity outside of the known words is refused, not guessed at."""
    with pytest.raises(ValueError, match="unknown severity"):
        getattr(catalogue, read)(row)


def test_an_unlisted_code_is_none() -> None:
    """A code that the catalogue does not know has no entry."""
    assert catalogue.xid(9999) is None
    assert catalogue.sxid(9999) is None


def test_masks_cover_a_word() -> None:
    """Every mask of the NVLink5 decoding stands for 32 bits."""
    assert {len(mask) for cause in catalogue.nvlink5_table() for mask in cause.masks} == {32}
    assert {cause.severity for cause in catalogue.nvlink5_table()} == set(NVLINK5_SEVERITIES)


@pytest.mark.parametrize(
    ("code", "unit", "word", "status", "severity", "resolution"),
    [
        (145, "RLW_RXPIPE", 0x040848C2, 0x8, "Non-fatal", "IGNORE"),  # layout before R575
        (144, "SAW_MVB", 0x00000001, 0x2, "Fatal", "RESET_GPU"),  # layout from R575
        (145, "RLW_SRC_TRACK", 0x040868E2, 0x4, "Non-fatal", "XID_154_EVAL"),
        (149, "NETIR_LINK_EVT", 0x02A001C6, 0x0, "Link Fatal", "RESET_GPU"),
        (149, "NETIR_BER_EVENT", 0x00000226, 0x2, "Non-fatal", "IGNORE"),
        (150, "MSE_WATCHDOG", 0x0, 0x0, "Fatal", "RESET_GPU"),
    ],
)
def test_nvlink5_words_decode(code: int, unit: str, word: int, status: int, severity: str, resolution: str) -> None:
    """Unit, first and second word of an NVLink5 Xid give the catalogue's severity and action."""
    cause = catalogue.nvlink5_causes(code, unit, word, status)[0]
    assert (cause.severity, cause.resolution) == (severity, resolution)


def test_two_status_bits_are_two_causes() -> None:
    """A status word with a fatal and a harmless bit gives both causes, the fatal one first."""
    causes = catalogue.nvlink5_causes(145, "RLW_REMAP", 0x4, 0x40 | 0x100)
    assert [cause.severity for cause in causes] == ["Fatal", "Non-fatal"]


def test_a_foreign_unit_does_not_decode() -> None:
    """The words of one unit mean nothing for another one."""
    assert catalogue.nvlink5_causes(145, "NETIR", 0x040848C2, 0x8) == []
