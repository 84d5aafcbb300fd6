"""
Plans: what would be changed on nodes, made of findings and their remedies.

A plan is data: it is reviewed, kept in a file with a hash, and carried out as it stands.
"""

from hwcheck.mechanisms import ABSENT
from hwcheck.plan.node import check_asked, fixable, plan_node
from hwcheck.plan.words import LeftOut, NodePlan, Plan, PlannedAct, Step

__all__ = ["ABSENT", "LeftOut", "NodePlan", "Plan", "PlannedAct", "Step", "check_asked", "fixable", "plan_node"]
