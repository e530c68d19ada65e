"""Decides what the operator does next; performs none of it.

Everything here takes what was asked for and what was seen, and returns what to do about it. So a
crash between any two calls to the cluster can be played through in a test, call by call.

Rule: nothing in this package waits, logs, asks the time or speaks to the API server.
"""

from weir_operator.plan.job_plan import Plan
from weir_operator.plan.observed_state import Observed
from weir_operator.plan.planner import plan
from weir_operator.plan.snapshot_plan import SnapshotPlan, plan_snapshot

__all__ = ["Observed", "Plan", "SnapshotPlan", "plan", "plan_snapshot"]
