"""One JSON document as a tool printed it, perhaps with text in front of it or cut off. Declares no format."""

from __future__ import annotations

import json
from typing import Any

from hwcheck.evidence import Output
from hwcheck.parse.sink import FactSink


def line_with(output: Output, text: str) -> int:
    """Return the line of the file where this text first stands; the first one where it does not."""
    return next((index for index, line in enumerate(output.lines) if text in line), 0) + output.first_line


def load_document(output: Output, facts: FactSink, gives: tuple[str, ...]) -> dict[str, Any]:
    """Read a JSON document, passing over text in front; {} and a gap when it ends early or is none."""
    text = output.text
    try:
        document = json.loads(text[max(text.find("{"), 0) :])
    except (ValueError, RecursionError) as error:
        facts.cut_off(f"no complete JSON document: {str(error)[:80]}", gives)
        return {}
    return document if isinstance(document, dict) else {}
