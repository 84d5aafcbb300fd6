"""What a measurement is held against, and when it counts: bounds from the fleet and the node's history, validity."""

from hwcheck.baselines.bounds import Bound, fleet_bound, history_bound
from hwcheck.baselines.own import OWN, Own
from hwcheck.baselines.validity import Doubt, doubts, untold

__all__ = ["OWN", "Bound", "Doubt", "Own", "doubts", "fleet_bound", "history_bound", "untold"]
