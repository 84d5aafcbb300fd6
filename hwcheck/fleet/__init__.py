"""Fleet checks: what only a look at all nodes can tell, as folds over a few facts of each node."""

from hwcheck.fleet import checks as _checks  # noqa: F401 - declares the fleet checks
from hwcheck.fleet import pairs as _pairs  # noqa: F401 - as above
from hwcheck.fleet.fold import FLEET, FOLDS, Fleet, FleetAnswer, Fold, Row, fold

__all__ = ["FLEET", "FOLDS", "Fleet", "FleetAnswer", "Fold", "Row", "fold"]
