"""What is asked of a node, and the program text that asks it."""

from __future__ import annotations

import base64
import functools
import hashlib
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hwcheck import __version__, sources
from hwcheck.transports import cache
from hwcheck.transports.stream import Answer

PACKAGE = "hwcheck.sources"
OLDEST_PYTHON = (3, 9)


@dataclass(frozen=True, slots=True)
class Request:
    """
    What to read on a node.

    Attributes:
        tier: ``quick``, ``deep`` (those and the slower ones), or ``load``: what measures, alone, one after the other.
        off: ids of sources that are switched off.
        only: ids to ask; empty for all.
        root: prefix of all paths on the node; "" for its own.
        live: False for an image.
        deadline: seconds within which the node program ends.
        heard: called with each answer as it comes; None for nobody.
    """

    tier: str = "quick"
    off: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    root: str = ""
    live: bool = True
    deadline: float = 60.0
    heard: Callable[[Answer], None] | None = field(default=None, compare=False)

    def program(self) -> bytes:
        """
        Return the text to feed to ``python3 -I -S -`` on the node.

        All modules of the node program as one compressed literal, a loader of ten lines, and this request.
        """
        return _LOADER.replace(b"@BLOB@", _blob(load=self.tier == "load")) + self.call().encode() + b"\n"

    def call(self) -> str:
        """Return the last line of the program, which starts it."""
        return (
            f"main(tier={self.tier!r}, off={self.off!r}, only={self.only!r}, root={self.root!r}, live={self.live!r}, "
            f"deadline={self.deadline!r})"
        )

    def owed(self, came: Iterable[str]) -> Counter[str]:
        """
        Count the answers of each kind that a node still owes; for what is missing when its stream breaks off.

        Args:
            came: kinds of the answers that came. One that stands in for another (nvidia-smi for NVML) pays for it.
        """
        asked = self._asked()
        left, own = Counter(source.kind for source in asked), {source.kind for source in asked}
        paid = {source.instead: source.kind for source in asked if source.instead and source.instead not in own}
        return left - Counter(paid.get(kind, kind) for kind in came)

    def _asked(self) -> list[Any]:
        from hwcheck.sources import catalogue, load_catalogue  # noqa: PLC0415 - only a broken stream asks

        return [
            source
            for source in (load_catalogue.SOURCES if self.tier == "load" else catalogue.SOURCES)
            if (self.tier != "quick" or source.tier == "quick")
            and source.id not in self.off
            and (not self.only or source.id in self.only)
            and (self.live or (source.argv is None and not source.child))
        ]


_LOADER = b"""import sys
_V = sys.version_info[:2]
_V < (@OLDEST@) and sys.exit("hwcheck needs Python %d.%d, this is %d.%d" % ((@OLDEST@) + _V))
import zlib, base64
_T = type(sys)
_S = eval(zlib.decompress(base64.b64decode("@BLOB@")))
for _n in ("hwcheck", "hwcheck.sources"):
    _m = _T(_n); _m.__path__ = []; sys.modules[_n] = _m
sys.modules["hwcheck"].sources = sys.modules["hwcheck.sources"]
for _n, _t in _S:
    _m = _T("hwcheck.sources." + _n); sys.modules["hwcheck.sources." + _n] = _m
    setattr(sys.modules["hwcheck.sources"], _n, _m)
    exec(compile(_t, "<hwcheck.sources." + _n + ">", "exec"), _m.__dict__)
from hwcheck.sources.program import main
""".replace(b"@OLDEST@", b"%d, %d" % OLDEST_PYTHON)


_BUILDING = threading.Lock()
"""Nodes are asked by many threads, and ast.parse of Python 3.11 must not run in two of them at once (SystemError)."""


def _blob(*, load: bool) -> bytes:
    with _BUILDING:
        return _built(load=load)


@functools.cache
def _built(*, load: bool) -> bytes:
    """
    Return the modules as one literal; made once for each state of their files, since taking them apart is slow.

    Args:
        load: with those that measure; every other node would compile them for nothing.
    """
    every = {path.stem: path for path in Path(sources.__path__[0]).glob("*.py") if path.stem != "__init__"}
    files = {name: path for name, path in every.items() if load or not name.startswith("load_")}
    key = hashlib.sha256(f"{__version__} {sys.version_info[:2]}".encode())
    for path in (*sorted(files.values()), Path(__file__)):
        about = path.stat()
        key.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode())
    name = f"program-{key.hexdigest()[:32]}"
    blob = cache.load(name)
    if blob is None:
        blob = _build(files)
        cache.keep(name, blob)
    return blob


def _build(files: dict[str, Path]) -> bytes:
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    modules = [(name, strip(texts[name])) for name in in_order(texts)]
    return base64.b64encode(zlib.compress(repr(modules).encode(), 6))


def strip(text: str) -> str:
    """Take docstrings and comments out of a module's source: the node compiles it at every start."""
    import ast  # noqa: PLC0415 - only the builder of the program needs it

    tree = ast.parse(text)
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def in_order(texts: dict[str, str]) -> list[str]:
    """
    Sort modules so that each comes after those it imports at its top level.

    Raises:
        ValueError: two modules import each other.
    """
    import ast  # noqa: PLC0415 - only the builder of the program needs it

    wants: dict[str, set[str]] = {}
    for name, text in texts.items():
        found: set[str] = set()
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE + "."):
                found.add(node.module.rpartition(".")[2])
        wants[name] = found & texts.keys()
    order: list[str] = []
    while len(order) < len(texts):
        ready = sorted(name for name in texts if name not in order and wants[name] <= set(order))
        if not ready:
            raise ValueError(
                "modules of hwcheck.sources import each other: " + ", ".join(sorted(set(texts) - set(order)))
            )
        order += ready
    return order
