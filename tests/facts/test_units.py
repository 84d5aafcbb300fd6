"""Numbers and units as tools print them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck.facts import convert, number, quantity

RATES = ("GB/s", "Gb/s", "GT/s", "GB", "GiB", "GHz", "W", "C", "%", "s", "ppm", "bit")
NOT_ALIKE = [(one, two) for one in RATES for two in RATES if one != two and {one, two} != {"GB", "GiB"}]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("700.00 W", "W", 700.0),
        ("81559 MiB", "MiB", 81559),
        ("140.37 GiB", "MiB", 143738.88),
        ("1,234 MHz", "MHz", 1234),
        ("1.98 GHz", "MHz", 1980.0),
        ("-5 C", "C", -5),
        ("16x", "", 16),
        ("2560 bank(s)", "", 2560),
        ("86 %", "%", 86),
        ("3.9e+02 GB/s", "GB/s", 390.0),
        ("1.2 TB/s", "GB/s", 1200.0),
        ("400000 Mb/s", "Gb/s", 400.0),
        ("12", "W", 12),
        ("250 us", "ms", 0.25),
        ("65536 kB", "B", 65_536_000),
    ],
)
def test_a_printed_quantity_is_a_number_in_the_wanted_unit(text: str, unit: str, value: float) -> None:
    """The unit in the text is converted; a text without one is in the wanted unit already."""
    assert quantity(text, unit) == pytest.approx(value)


def test_whole_numbers_stay_whole() -> None:
    """A count of MiB is an integer, in MiB and in bytes."""
    assert isinstance(quantity("81559 MiB", "MiB"), int)
    assert isinstance(quantity("81559 MiB", "B"), int)
    assert isinstance(convert(1.5, "GB", "MB"), float)


@pytest.mark.parametrize(("unit", "to"), NOT_ALIKE)
def test_units_of_different_things_refuse_each_other(unit: str, to: str) -> None:
    """Bytes per second are no bits per second and no transfers: a factor of eight never slips through."""
    with pytest.raises(ValueError, match=f"{unit}.*{to}"):
        convert(1, unit, to)


def test_decimal_and_binary_prefixes_are_told_apart() -> None:
    """10 GiB/s are more than 10 GB/s."""
    assert convert(10, "GiB/s", "GB/s") == pytest.approx(10.73741824)
    assert convert(1, "GB", "MiB") == pytest.approx(953.67431640625)


@pytest.mark.parametrize("unit", ["GBps", "Gbit/s", "gb/s", "GB/S", "furlongs", "MIB"])
def test_an_unknown_spelling_is_refused(unit: str) -> None:
    """A unit that is not known by its very letters is not guessed."""
    with pytest.raises(ValueError, match="unknown unit"):
        quantity(f"5 {unit}", "GB/s")


@pytest.mark.parametrize(
    "text",
    ["", " ", "N/A", "[N/A]", "ERR!", "--5", "0x10", "1_000", "nan", "inf", "-Infinity", "1e999", "9" * 31, "\u0663",
     "\uff15", "1.2.3", "W 5", "five"],
)  # fmt: skip
def test_what_is_no_number_is_refused(text: str) -> None:
    """No digits of other scripts, no underscores, nothing infinite, nothing endless."""
    with pytest.raises(ValueError, match=r"."):
        number(text)


def test_a_megabyte_of_digits_takes_no_time() -> None:
    """A hostile number is refused by its length, before it is computed."""
    with pytest.raises(ValueError, match="too long"):
        number("7" * 1_000_000)
    with pytest.raises(ValueError, match=r"."):
        quantity("7" * 1_000_000 + " W", "W")


def test_a_quantity_too_great_for_its_unit_is_refused() -> None:
    """A finite number may become infinite by its unit; a parser must see the ValueError it expects."""
    with pytest.raises(ValueError, match=r"."):
        quantity("9e307 GiB", "B")


@settings(deadline=None)
@given(st.integers(-(10**18), 10**18))
def test_a_whole_number_survives(value: int) -> None:
    """What a tool prints is what is read, with or without separators."""
    assert number(str(value)) == value
    assert number(f"{value:,}") == value


@settings(deadline=None)
@given(st.text(max_size=40), st.sampled_from(["", "W", "MiB", "GB/s"]))
def test_any_text_is_a_finite_number_or_refused(text: str, unit: str) -> None:
    """Nothing but ValueError leaves, and nothing infinite."""
    try:
        value = quantity(text, unit)
    except ValueError:
        return
    assert math.isfinite(value)


@settings(deadline=None)
@given(
    st.floats(-1e12, 1e12),
    st.sampled_from([("GB/s", "GiB/s"), ("MiB", "B"), ("GHz", "MHz"), ("us", "h"), ("mW", "W"), ("Gb/s", "Mb/s")]),
)
def test_there_and_back_is_the_same(value: float, units: tuple[str, str]) -> None:
    """Conversions lose nothing but the last digits."""
    one, two = units
    assert convert(convert(value, one, two), two, one) == pytest.approx(value, rel=1e-9, abs=1e-9)
