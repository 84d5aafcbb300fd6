"""What was known before: the previous snapshot of each node, so that rates, growth and flaps can be told."""

from hwcheck.history.state import State

__all__ = ["State"]
