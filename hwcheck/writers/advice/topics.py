"""The topics by name, and one call for all of them."""

from __future__ import annotations

from typing import Any, Callable

from ..place import Json, Place, WriteError, words_of
from . import acs, driver_stack, nic_firmware, placement

TOPICS: dict[str, Callable[[Place, dict[str, str]], Json]] = {
    "acs": acs.advise,
    "driver_stack": driver_stack.advise,
    "nic_firmware": nic_firmware.advise,
    "placement": placement.advise,
}


def answer(request: Json) -> Json:
    """
    Advise on a topic.

    Args:
        request: ``topic``; ``versions``, wanted ones by package or board; ``root`` and ``live_root`` as for a run.

    Returns:
        ``ok``, ``why``, and what the topic tells.
    """
    place = Place(str(request.get("root") or "/"), live=bool(request.get("live_root")))
    try:
        versions = _versions(request.get("versions") or {})
        topic = TOPICS.get(str(request.get("topic")))
        if topic is None:
            raise WriteError(f"no topic {request.get('topic')!r}; there are {', '.join(TOPICS)}")
        return {"ok": True, "why": "", **topic(place, versions)}
    except (WriteError, OSError) as error:
        return {"ok": False, "why": words_of(error), "found": {}, "unknown": [], "differs": None, "advice": []}


def _versions(told: Any) -> dict[str, str]:
    if not isinstance(told, dict):
        raise WriteError("versions must map names to versions")
    for name, version in told.items():
        if not isinstance(name, str) or not isinstance(version, str) or not version:
            raise WriteError(f"versions: {name} must be text; in YAML quote versions such as '28.40'")
    return dict(told)
