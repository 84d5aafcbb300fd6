"""The rules that hold the code together: who may import whom, what the core must not do, what every part has."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.facts import NAMES
from hwcheck.facts.names.results import CONDITIONS
from hwcheck.parse import FORMATS
from hwcheck.profiles import ProfileSet
from tests.parse.test_pairs import CASES, parse

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "hwcheck"
SHIPPED = ProfileSet()
RESULTS = [case for case in CASES if '"result.' in case.read_text(encoding="utf-8")]
EXTREMES = {"min", "median", "max", "worst", "peak_size"}
"""Keys that :data:`CONDITIONS` describes under ``samples`` and ``peak``."""

PURE = {
    "facts": set(),
    "knowledge": {"facts"},
    "errors": {"facts"},
    "lines": {"errors"},
    "evidence": {"facts"},
    "findings": {"facts"},
    "mechanisms": set(),
    "parse": {"facts", "evidence", "errors", "knowledge", "lines"},
    "profiles": {"facts", "errors", "mechanisms"},
    "baselines": {"errors", "facts", "findings"},
    "checks": {"baselines", "facts", "findings", "knowledge", "parse", "profiles"},
    "engine": {"baselines", "facts", "findings", "parse", "profiles", "checks"},
    "incidents": {"facts", "findings"},
    "waivers": {"errors", "facts", "findings", "profiles"},
    "scrub": set(),
    "redact": set(),
    "fleet": {"baselines", "facts", "findings"},
    "topology": {"facts"},
    "describe": {"facts", "topology"},
    "certificate": {"baselines", "errors", "mechanisms"},
    "plan": {"checks", "describe", "errors", "facts", "findings", "mechanisms", "profiles"},
    "rollout": {"errors", "findings", "plan"},
    "pipeline": {
        "facts", "evidence", "parse", "profiles", "checks", "describe", "engine", "findings", "fleet", "incidents",
        "waivers",
    },
}  # fmt: skip
"""Part of the pure core → the other parts it may import."""

ADAPTERS = {
    "readers": {"facts", "evidence", "errors", "lines", "parse"},
    "report": set(PURE) - {"pipeline"},
    "transports": {"__init__", "baselines", "facts", "evidence", "errors", "lines", "parse", "sources", "scrub"},
    "evidence_dir": {"errors"},
    "keyring": {"errors"},
    "gate": {"__init__", "certificate", "errors", "findings", "sources"},
    "integrations": set(),
    "apply": {"errors", "findings", "places", "plan", "rollout", "writers"},
    "places": {"errors"},
    "history": {"facts", "places"},
    "store": {"errors", "places"},
    "lab": {"errors", "sources"},
}
"""Part that meets the outside → what it may import of the core and of what it carries to nodes; no other adapter."""

ON_NODES: dict[str, set[str]] = {"sources": set(), "writers": set()}
"""Part that runs on the nodes, where there is nothing but Python: it imports nothing else, and no library."""

ALLOWED: dict[str, set[str]] = {
    **PURE,
    **ADAPTERS,
    **ON_NODES,
    "suite": {*PURE, "transports"},
    "cli": {*PURE, *ADAPTERS, *ON_NODES, "__init__", "suite"},
    "__main__": {"cli"},
    "__init__": set(),
}

PURE_LIBRARY = {
    "__future__", "calendar", "codecs", "collections", "contextlib", "csv", "dataclasses", "enum", "fnmatch",
    "functools", "hashlib", "inspect", "itertools", "json", "jsonschema", "math", "re", "statistics",
    "typing", "xml.parsers", "yaml", "zlib",
}  # fmt: skip
"""What the core may use beside itself: nothing in it touches files, clock, environment, processes or the network."""

LIBRARY_EXCEPTIONS = {
    ("facts/names/__init__.py", "importlib"): "imports its own modules, so that each declares its names",
    ("facts/names/__init__.py", "pkgutil"): "imports its own modules, so that each declares its names",
    ("parse/__init__.py", "importlib"): "imports its own modules, so that each declares its formats",
    ("parse/__init__.py", "pkgutil"): "imports its own modules, so that each declares its formats",
    ("checks/__init__.py", "importlib"): "imports its own modules, so that each declares its relations",
    ("checks/__init__.py", "pkgutil"): "imports its own modules, so that each declares its relations",
    ("knowledge/catalogue.py", "importlib"): "reads the catalogues, which are part of the package",
    ("knowledge/catalogue.py", "io"): "gives the csv module the text it has read",
    ("knowledge/known_issues.py", "importlib"): "reads the list of known issues, which is part of the package",
    ("plan/file.py", "importlib"): "reads the schema of plans, which is part of the package",
    ("plan/file.py", "pathlib"): "reads the plan file whose path it is given",
    ("profiles/layers.py", "importlib"): "reads the shipped layers, which are part of the package",
    ("profiles/layers.py", "pathlib"): "reads the site layers whose paths it is given",
    ("parse/log_prefix.py", "datetime"): "times printed in a log; the clock itself is never read, see below",
    ("certificate/signature.py", "base64"): "spells the fingerprint of a key",
    ("certificate/signature.py", "cryptography"): "ed25519 of bytes and keys it is given; keyring.py reads keys",
    ("certificate/signature.py", "datetime"): "now is passed in; the clock itself is never read, see below",
    ("certificate/signature.py", "pkgutil"): "reads the schema of certificates, which is part of the package",
    ("certificate/content.py", "datetime"): "as in signature.py",
    ("waivers.py", "datetime"): "the day is passed in; the clock itself is never read, see below",
}
"""(module, library) → why the core may use it there."""

CALLS_OUT = {
    "open", "print", "input", "exec", "eval", "__import__", "now", "today", "utcnow", "getenv", "read_text",
    "read_bytes", "write_text", "write_bytes", "iterdir", "glob", "rglob", "urlopen",
}  # fmt: skip
"""Functions and methods that reach outside the process, read the clock, or run text as code."""

CALL_EXCEPTIONS = {
    ("knowledge/catalogue.py", "read_text"): "a catalogue of the package",
    ("knowledge/known_issues.py", "read_text"): "the list of the package",
    ("parse/gpu_block.py", "read_text"): "a method of its own that reads a text it is given",
    ("plan/file.py", "read_text"): "the schema of the package, or the plan file whose path is given",
    ("profiles/layers.py", "read_text"): "a shipped layer, or a site layer whose path is given",
    ("profiles/layers.py", "iterdir"): "the shipped layers",
}

NOT_IN_GIVES = {
    "evidence.*": "put by take_snapshot for every evidence",
    "platform.identity": "put by the pipeline",
    "platform.serial": "only root may read it, and manufacturers leave it unfilled",
    "platform.board_serial": "as platform.serial",
    "platform.gpu_names": "names that stand beside something else; for recognising the platform only",
    "platform.wsl": "read off the command at the prompt, not off the text",
    "driver.library_version": "second line of an error message; without it the message stands",
    "result.pair": "only of measurements between two nodes",
    "result.conditions": "circumstances of a result, lost or had together with the result itself",
    "rdma.port.peers": "record for comparing peers, made of facts of the ports that stand in gives",
    "rdma.device.peers": "record for comparing peers, made of facts of the device that stand in gives",
    "firmware.component.build": "record for comparing peers, made of facts of the component that stand in gives",
    "rdma.link.*": "only with options of mlxlink",
    "rdma.module.*": "only with options of mlxlink",
    "rdma.counter.*": "a listing of sysfs holds the files that somebody chose",
    "rdma.port.default_tos": "only where somebody made the folder in configfs",
    "net.carrier_changes": "not in every kernel",
    "roce.ecn.*": "only with the out-of-tree driver of DOCA or OFED",
    "roce.marks": "record for comparing peers, made of facts of the interface",
    "rdma.port.traffic_class": "a listing of sysfs holds the files that somebody chose",
    "rdma.device.fw_available": "only where the tool could reach NVIDIA's server or a package",
    "rdma.device.fw_status": "only where the tool could reach NVIDIA's server or a package",
    "rdma.device.part": "not printed by every version of the tool",
    "net.psid": "only of NVIDIA NICs",
    "net.speed_max": "only where the list of link modes is whole",
    "roce.cable_length": "not printed by every version of the tool",
    "roce.dcbx": "not printed by every version of the tool",
}
"""
Facts that no format promises, and why.

``gives`` are the names that are lost when a source fails or its text is cut off: each check that needs one is then
unknown. What a healthy source may well leave out must not stand there.
"""

FUNCTION_LINES = 50
MODULE_LINES = 300
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
HEADINGS = ("What it checks:", "Why it matters:", "How to fix:", "Applies to:", "Source:")
MODULES = sorted(PACKAGE.rglob("*.py"))
TEST_MODULES = sorted(path for path in TESTS.rglob("*.py") if path.stat().st_size)


@cache
def tree(path: Path) -> ast.Module:
    """Parse a module once."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    """Return a module's name in messages: its path below the package."""
    return path.relative_to(PACKAGE).as_posix()


def part_of(path: Path) -> str:
    """Return the part a module belongs to: the folder, or the file beside the folders."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Go through the names of all imported modules, those inside functions included."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if part_of(path) == "writers" and 0 < node.level < len(path.relative_to(PACKAGE).parts):
                # Ansible packs the writers under another name, where only relative imports find them.
                module = f"hwcheck.writers.{module}".rstrip(".")
            else:
                assert not node.level, f"{name_of(path)}: relative import"
            # ``from hwcheck import engine`` imports a part, ``from hwcheck import __version__`` the package itself
            yield from (f"{module}.{alias.name}" for alias in node.names) if module == "hwcheck" else (module,)


def imported_parts(path: Path) -> set[str]:
    """Return the parts of hwcheck that a module imports."""
    found = set()
    for module in imports(path):
        if module.partition(".")[0] == "hwcheck":
            part = module.split(".")[1] if "." in module else "__init__"
            found.add("__init__" if part.startswith("__") else part)
    return found


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Go through all functions and methods of a module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its docstring: describing arguments must not cost code."""
    first = function.body[0]
    told = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) and first.end_lineno else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - told


def needed_facts() -> dict[str, set[str]]:
    """Return each fact that some check looks at, with the ids of those checks."""
    needed: dict[str, set[str]] = {}
    for relation in RELATIONS.values():
        needs = [need if isinstance(need, str) else need.name for need in relation.needs]
        for name in (*needs, *relation.uses, *relation.any_of):
            needed.setdefault(name, set()).add(relation.id)
    for layer in SHIPPED.layers.values():
        for id, entry in (layer.data.get("checks") or {}).items():
            conditions = [*((entry or {}).get("when") or ()), *((entry or {}).get("unless") or ())]
            for item in ({"fact": (entry or {}).get("fact")}, *conditions):
                if item.get("fact"):
                    needed.setdefault(item["fact"], set()).add(id)
    return needed


def spelled_facts() -> tuple[set[str], tuple[str, ...]]:
    """Return all texts that parsers and pipeline spell out, and the beginnings of those they put together."""
    whole, beginnings = set(), set()
    for path in MODULES:
        if part_of(path) not in ("parse", "pipeline"):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
            elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                beginnings.add(str(node.values[0].value))
    return whole, tuple(text for text in beginnings if text.count(".") and re.fullmatch(r"[a-z0-9_.]+", text))


def covered(name: str, patterns: Iterator[str] | tuple[str, ...] | dict[str, str]) -> bool:
    """Tell whether a name is one of these, or under one that ends with ``*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_follow_the_dependency_rule(path: Path) -> None:
    """A module imports only the parts of hwcheck that the table allows its own part."""
    part = part_of(path)
    assert part in ALLOWED, f"say in the table above what {part} may import"
    assert imported_parts(path) - {part} <= ALLOWED[part]


def test_dependency_rule_has_no_circle() -> None:
    """The core is built in layers: each part needs only parts that stand before it in the table."""
    known: set[str] = set()
    for part, needs in PURE.items():
        assert needs <= known, part
        known.add(part)


def test_what_runs_on_nodes_needs_only_python() -> None:
    """Nothing has to be installed on a node."""
    modules = {module for path in MODULES if part_of(path) in ON_NODES for module in imports(path)}
    tops = {module.partition(".")[0] for module in modules}
    assert tops - {"hwcheck", "pynvml"} <= sys.stdlib_module_names


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) in PURE], ids=name_of)
def test_core_uses_only_pure_libraries(path: Path) -> None:
    """The core imports nothing that does I/O, reads the clock or the environment, or starts a process."""
    for module in imports(path):
        top = "xml.parsers" if module.startswith("xml.parsers") else module.partition(".")[0]
        if top != "hwcheck" and (name_of(path), top) not in LIBRARY_EXCEPTIONS:
            assert top in PURE_LIBRARY, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) in PURE], ids=name_of)
def test_core_calls_nothing_outside(path: Path) -> None:
    """The core opens no file, prints nothing, and is told what day it is."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called in CALLS_OUT and (name_of(path), called) not in CALL_EXCEPTIONS:
                pytest.fail(f"{name_of(path)}:{node.lineno} calls {called}")


def test_no_exception_is_dead() -> None:
    """An exception that nothing needs any more is taken away."""
    used = {(name_of(path), module.partition(".")[0]) for path in MODULES for module in imports(path)}
    assert sorted(set(LIBRARY_EXCEPTIONS) - used) == []
    calls = {
        (name_of(path), node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
    }
    assert sorted(set(CALL_EXCEPTIONS) - calls) == []
    promised = tuple(give for spec in FORMATS.values() for give in spec.gives)
    left = [name for name in NAMES if not covered(name, promised)]
    assert [pattern for pattern in NOT_IN_GIVES if not any(covered(name, (pattern,)) for name in left)] == []


@pytest.mark.parametrize("path", [*MODULES, *TEST_MODULES], ids=str)
def test_every_module_says_what_it_is(path: Path) -> None:
    """A module begins with a docstring."""
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_and_modules_are_short(path: Path) -> None:
    """A function has at most 50 lines, a module 300 unless its docstring says why it is long."""
    too_long = {function.name: lines_of(function) for function in functions(path)}
    assert {name: lines for name, lines in too_long.items() if lines > FUNCTION_LINES} == {}
    lines = len(path.read_text(encoding="utf-8").splitlines())
    excused = re.search(r"\bLong(?:er)?\b[^.]* because ", ast.get_docstring(tree(path)) or "")
    assert lines <= MODULE_LINES or excused, lines


@pytest.mark.parametrize("path", [*MODULES, *TEST_MODULES], ids=str)
def test_files_are_named_for_what_they_hold(path: Path) -> None:
    """No file is a drawer for all sorts of things."""
    assert path.stem not in VAGUE


@pytest.mark.parametrize("id", sorted(RELATIONS))
def test_relation_explains_itself(id: str) -> None:
    """The docstring of a relation has all five headings, in order, each with words behind it."""
    text = RELATIONS[id].text
    places = [text.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)
    for heading, start, end in zip(HEADINGS, places, [*places[1:], len(text)], strict=True):
        assert text[start + len(heading) : end].strip(), heading


@pytest.mark.parametrize("path", TEST_MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_says_what_it_shows(path: Path) -> None:
    """The docstring of a test begins with one sentence that says which behaviour it shows."""
    for function in functions(path):
        if function.name.startswith("test_"):
            first = (ast.get_docstring(function) or "").partition("\n\n")[0]
            assert re.fullmatch(r"(?s)(?!.*[a-z`)]\. [A-Z]).+\.", first), f"{function.name}: {first!r}"


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_format_promises_only_declared_facts(kind: str) -> None:
    """Each name under ``gives`` is declared, and a pattern covers at least one."""
    for give in FORMATS[kind].gives:
        assert any(covered(name, (give,)) for name in NAMES), give


def test_every_fact_is_promised() -> None:
    """A declared fact is one that some format gives, or it is known why none promises it."""
    promised = tuple(give for spec in FORMATS.values() for give in spec.gives)
    assert [name for name in NAMES if not covered(name, promised) and not covered(name, NOT_IN_GIVES)] == []


def test_no_check_waits_for_a_dead_key() -> None:
    """Each fact that a check looks at is declared, and some parser puts it."""
    whole, beginnings = spelled_facts()
    dead = {
        name: ids
        for name, ids in needed_facts().items()
        if name not in NAMES or (name not in whole and not name.startswith(beginnings))
    }
    assert dead == {}


def test_every_fact_has_a_parser() -> None:
    """A declared fact that no parser can put is dead."""
    whole, beginnings = spelled_facts()
    assert [name for name in NAMES if name not in whole and not name.startswith(beginnings)] == []


@pytest.mark.parametrize("case", RESULTS, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_conditions_of_results_are_described(case: Path) -> None:
    """The record of a result's conditions has only keys that the registry describes."""
    expected = json.loads(case.read_text(encoding="utf-8"))
    snapshot = parse(expected["kind"], case.with_suffix(".txt").read_text(), expected.get("command", ""))
    for _, fact in snapshot.with_fact("result.conditions"):
        assert set(fact.value) - EXTREMES <= set(CONDITIONS)


def test_check_ids_occur_once() -> None:
    """An id is declared in one place: by a relation, in the ids of one relation, or by one layer of the base."""
    places: dict[str, list[str]] = {}
    for relation in RELATIONS.values():
        for id in {relation.id, *relation.ids}:
            places.setdefault(id, []).append(f"relation {relation.id}")
    for layer in SHIPPED.layers.values():
        for id, entry in (layer.data.get("checks") or {}).items():
            if entry and "fact" in entry:
                places.setdefault(id, []).append(f"layer {layer.name}")
    assert {id: where for id, where in places.items() if len(where) > 1} == {}


def test_every_bound_that_a_check_reads_is_declared() -> None:
    """A site layer may only set what a shipped layer has, be it ``unset``."""
    declared = {id for layer in SHIPPED.layers.values() for id in layer.data.get("bounds") or {}}
    calls = re.compile(r"\.bound\(\s*\"([a-z0-9_]+\.[a-z0-9_.]+)\"")
    read = {name for path in (PACKAGE / "checks").glob("*.py") for name in calls.findall(path.read_text("utf-8"))}
    assert read - declared == set()
