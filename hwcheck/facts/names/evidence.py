"""What was read at all."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    evidence.read      | tuple | | outputs understood, in order: records of kind, file, first (line), lines (count)
    evidence.collected | bool  | | a manifest says what was asked (a collected node); False for posted text
    evidence.leftovers | tuple | | lines that no format claims: records of file, count, line (of the first), excerpt
    """,
)
