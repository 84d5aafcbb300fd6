"""Several steps written as one: what people and roles hand to the module."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers.place import WriteError
from hwcheck.writers.step import MOST_STEPS, read_steps

KNOWN = ("sysctl", "unit_property")


def told(*groups: Any) -> list[tuple[str, str, str, str]]:
    """Return subject, key, value and restart of each step that groups come to."""
    return [(step.subject, step.key, step.value, step.restart) for step in read_steps(list(groups), KNOWN)]


def test_values_map_keys_to_values() -> None:
    """One entry brings about many keys; what is null or empty is not asked for."""
    group = {"mechanism": "sysctl", "values": {"vm.a": "1", "vm.b": 2, "vm.c": None, "vm.d": ""}}
    assert told(group) == [("", "vm.a", "1", ""), ("", "vm.b", "2", "")]


def test_subjects_stand_in_key_and_restart() -> None:
    """Each subject is put where the braces are, in the order of the list."""
    group = {
        "mechanism": "unit_property",
        "subjects": ["a.service", "b.service"],
        "values": {"{subject} LimitMEMLOCK": "infinity"},
        "restart": "{subject}",
    }
    assert told(group) == [
        ("a.service", "a.service LimitMEMLOCK", "infinity", "a.service"),
        ("b.service", "b.service LimitMEMLOCK", "infinity", "b.service"),
    ]


def test_a_value_that_is_asked_for_may_be_empty() -> None:
    """With key and value, an empty value is a value: a bare kernel argument."""
    assert told({"mechanism": "sysctl", "subjects": ["quiet"], "key": "{subject}", "value": ""}) == [
        ("quiet", "quiet", "", "")
    ]


def test_steps_are_numbered_as_they_stand_after_spreading() -> None:
    """Results are told by number, groups or not."""
    steps = read_steps(
        [
            {"mechanism": "sysctl", "values": {"a.a": 1, "a.b": 1}},
            {"mechanism": "sysctl", "key": "a.c", "value": "{subject}"},
        ],
        KNOWN,
    )
    assert [(step.number, step.key) for step in steps] == [(0, "a.a"), (1, "a.b"), (2, "a.c")]
    assert steps[2].value == "{subject}"


def test_nothing_asked_is_nothing_done() -> None:
    """The empty lists and maps that a role has by default come to no step."""
    assert told({"mechanism": "sysctl", "subjects": [], "values": {"vm.a": "1"}}) == []
    assert told({"mechanism": "sysctl", "values": {}}) == []


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ({"mechanism": "sysctl", "subjects": "ens1", "key": "a", "value": "1"}, "subjects must be a list"),
        ({"mechanism": "sysctl", "subjects": ["a"], "subject": "b", "key": "a", "value": "1"}, "subject is not given"),
        ({"mechanism": "sysctl", "values": ["vm.a"]}, "values must map"),
        ({"mechanism": "sysctl", "values": {"vm.a": "1"}, "key": "vm.b"}, "key and value are not given"),
        ({"mechanism": "sysctl", "values": {"vm.a": True}}, "quote words such as 'on'"),
        ({"mechanism": "sysctl", "values": {"vm.a": False}}, "quote words such as 'on'"),
        ({"mechanism": "sysctl", "subjects": [1], "key": "a", "value": "1"}, "subject must be one line of text"),
        ({"mechanism": "sysctl", "values": {7: "1"}}, "key must be one line of text"),
        ({"mechanism": "sysctl", "subjects": ["a"], "key": "a"}, "value"),
        ({"mechanism": "nothing", "values": {"vm.a": "1"}}, "no mechanism 'nothing'"),
        ({"mechanism": "sysctl", "values": {f"a.a{n}": 1 for n in range(MOST_STEPS + 1)}}, "more than"),
    ],
)
def test_what_is_not_understood_is_refused(group: dict[str, Any], why: str) -> None:
    """A group that is none is refused with a sentence before the node is looked at."""
    with pytest.raises(WriteError, match=why):
        told(group)


def test_an_empty_word_of_yaml_is_an_empty_text() -> None:
    """``subject:`` with nothing after it is no subject."""
    group = {"id": None, "subject": None, "restart": None, "mechanism": "sysctl", "key": "vm.a", "value": 10}
    assert told(group) == [("", "vm.a", "10", "")]
