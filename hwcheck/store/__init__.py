"""What runs have found, kept: so that one can ask since when, what changed before, and how the fleet stands today."""

from hwcheck.store.record import Record
from hwcheck.store.rows import Kept, NodeState, Sample, Waived
from hwcheck.store.spells import Cause, Moment, Spell
from hwcheck.store.store import Store

__all__ = ["Cause", "Kept", "Moment", "NodeState", "Record", "Sample", "Spell", "Store", "Waived"]
