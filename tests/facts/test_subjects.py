"""One name for one thing, however a tool spells it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck.facts import NODE, Subject, gpu_at, gpu_index, gpu_uuid, pci_address, port


@pytest.mark.parametrize(
    "text",
    ["00000000:18:00.0", "0000:18:00.0", "18:00.0", "PCI:0000:18:00", "pci:0000:18:00.0", "0000:18:00", " 18:00 "],
)
def test_all_spellings_of_an_address_are_one(text: str) -> None:
    """NVML writes eight digits of domain, the kernel four and no function, lspci none."""
    assert pci_address(text) == "0000:18:00.0"
    assert gpu_at(text) == Subject("gpu", "0000:18:00.0")


@pytest.mark.parametrize(
    "text", ["", "18", "18:00.8", "18:0.0", "GPU0", "g8:00.0", "0000:18:00.0.0", "12:30:01", "1:18:00.0"]
)
def test_what_is_no_address_is_none(text: str) -> None:
    """A time of day, an index or a fragment is not taken for a place."""
    assert pci_address(text) is None


def test_a_domain_that_is_not_zero_is_kept() -> None:
    """GB200 boards have a domain for each GPU."""
    assert pci_address("00000008:01:00.0") == "0008:01:00.0"
    assert pci_address("0018:01:00.0") == "0018:01:00.0"
    assert gpu_at("0008:01:00.0") != gpu_at("0009:01:00.0")


@settings(deadline=None)
@given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_an_address_in_kernel_spelling_is_itself(domain: int, bus: int, device: int, function: int) -> None:
    """Spelling an address twice changes nothing."""
    text = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert pci_address(text) == text
    assert pci_address(text.upper()) == text


def test_subjects_print_as_a_person_writes_them() -> None:
    """The kind is clear from the check."""
    assert [str(s) for s in (NODE, gpu_index("3"), gpu_uuid(" GPU-1 "), port("mlx5_0", 1))] == [
        "", "GPU3", "GPU-1", "mlx5_0/1"
    ]  # fmt: skip
    assert gpu_at("not an address") == Subject("gpu", "not an address")
