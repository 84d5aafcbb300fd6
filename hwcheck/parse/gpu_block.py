"""One GPU as a listing describes it: texts at places of the table, gathered, then put as facts."""

from __future__ import annotations

from typing import Any

from hwcheck.facts import Missing, Reason, Subject, gpu_at, gpu_index, gpu_uuid
from hwcheck.parse.gpu_table import GpuFact, by_place, read_text
from hwcheck.parse.sink import FactSink

Place = dict[str, list[tuple[int, GpuFact]]]


class GpuBlock:
    """
    Collects ``place → text`` of one GPU.

    Where a listing has two spellings of a fact ("Device Current" beside "Current"), the table's preferred one counts
    if it holds a value.

    Args:
        index: :func:`hwcheck.parse.gpu_table.by_place` of the format's column.
    """

    __slots__ = ("_index", "_read", "places")

    def __init__(self, index: Place) -> None:
        self._index = index
        self._read: dict[str, tuple[int, Any, int]] = {}
        self.places: set[str] = set()

    def feed(self, place: str, text: str, line: int) -> None:
        """Take the text that stands at a place."""
        self.places.add(place)
        for preference, row in self._index.get(place, ()):
            old = self._read.get(row.name)
            value = read_text(row, text)
            if old is None or _better(preference, value, old):
                self._read[row.name] = (preference, value, line)

    def fail(self, prefix: str, missing: Missing, line: int) -> None:
        """Record that a whole section (``remapped_rows``) has no values."""
        for place, rows in self._index.items():
            if place.startswith(prefix):
                for preference, row in rows:
                    self._read.setdefault(row.name, (preference, missing, line))

    def value(self, name: str) -> Any:
        """Return a value read so far, or None."""
        entry = self._read.get(name)
        return None if entry is None or isinstance(entry[1], Missing) else entry[1]

    def put(self, facts: FactSink, gpu: Subject) -> None:
        """Write everything read as facts of this GPU; a value the device failed to give is a fact of its own too."""
        for name, (_, value, line) in self._read.items():
            facts.put(gpu, name, value, line)
        broken = [
            (v.detail, n) for _, v, n in self._read.values() if isinstance(v, Missing) and v.reason is Reason.FAILED
        ]
        if broken:
            facts.put(gpu, "gpu.access_error", *broken[0])

    def subject(self, address: str = "") -> Subject | None:
        """Name the GPU: by address, else UUID, else index; None when the block has none of them."""
        if address:
            return gpu_at(address)
        uuid, index = self.value("gpu.uuid"), self.value("gpu.index")
        if uuid is not None and str(uuid).strip("GPU-0"):
            return gpu_uuid(uuid)
        return gpu_index(index) if index is not None else None


def _better(preference: int, value: Any, old: tuple[int, Any, int]) -> bool:
    old_preference, old_value, _ = old
    if isinstance(value, Missing):
        return value.reason is Reason.FAILED and isinstance(old_value, Missing)
    return isinstance(old_value, Missing) or preference <= old_preference


Q_INDEX = by_place("q")
XML_INDEX = by_place("xml")
CSV_INDEX = by_place("csv")
