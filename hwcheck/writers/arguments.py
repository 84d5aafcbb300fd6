"""
Kernel arguments as text: a line of words, of which some names may stand several times.

Source: the kernel's Documentation/admin-guide/kernel-parameters.rst, lib/cmdline.c: double quotes keep blanks together,
anywhere in a word. Of most names the last one counts; ``pci`` and ``console`` add up. ``pci`` holds options with commas
between, and an option several devices with semicolons between.
"""

from __future__ import annotations

import re

ABSENT = "absent"
"""What a facet says where the argument does not stand."""
SEVERAL = ("pci", "console")


def split(text: str) -> list[str]:
    """Return the words of a line, without their quotes."""
    return [word.replace('"', "") for word in re.findall(r'(?:[^\s"]|"[^"]*"?)+', text)]


def name_of(word: str) -> str:
    """Return the name of a word; the kernel takes ``-`` and ``_`` for the same."""
    return word.partition("=")[0].replace("-", "_")


def of_name(words: list[str], name: str) -> list[str]:
    """Return the words of a name."""
    return [word for word in words if name_of(word) == name.replace("-", "_")]


def word_of(name: str, value: str) -> str:
    """Return the word of an argument; an empty value is a bare flag."""
    return f"{name}={value}" if value else name


def stated(words: list[str], name: str, wanted: str) -> str:
    """
    Return what a line says of an argument, to be compared with what is wanted.

    Args:
        words: of the line.
        name: of the argument.
        wanted: its value; where a name may stand several times, it is said when it is among them.
    """
    values = [word.partition("=")[2] for word in of_name(words, name)]
    if not values:
        return ABSENT
    if name not in SEVERAL:
        return values[-1]
    there = {part for value in values for part in parts(name, value)}
    return wanted if parts(name, wanted) <= there else ",".join(values)


def parts(name: str, value: str) -> set[str]:
    """Return what a value consists of: ``disable_acs_redir=a;b`` names two devices."""
    if name != "pci":
        return {value}
    found = set()
    for option in value.split(","):
        key, sign, devices = option.partition("=")
        found |= {f"{key}{sign}{device.strip()}" for device in devices.split(";")}
    return found


def with_word(words: list[str], word: str) -> list[str]:
    """Return a line with one more argument, last; another value of it goes, where only one counts."""
    name = name_of(word)
    if name in SEVERAL:
        return [*(one for one in words if one != word), word]
    return [*(one for one in words if name_of(one) != name), word]
