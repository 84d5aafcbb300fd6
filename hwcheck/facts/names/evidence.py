"""What was read at all."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    evidence.read      | tuple | | outputs understood, in order: records of kind, file, first (line), lines (count)
    evidence.collected | bool  | | a manifest says what was asked (a collected node); False for posted text
    evidence.changes   | tuple | | states that two outputs contradict: records of subject, name, before, after, line
    evidence.leftovers | tuple | | lines that no format claims: records of file, count, line (of the first), excerpt
    evidence.boot_id   | str   | | boot id of the kernel that answered; rates are told within one boot only
    evidence.taken     | float | s | seconds since 1970 by the node's clock, when reading began
    time.skew          | float | s | node's clock minus the reader's; 0 when the round trip hides the difference
    time.skew.slack    | float | s | width of the round trip that the skew was told by; half of it is the doubt
    """,
)
