"""Decides what the operator does next; performs none of it.

Every function takes what the user requested and what was observed, and returns what to do. So a
test can simulate a crash between any two calls to the cluster.

Rule: nothing in this package waits, logs, reads the clock or calls the API server.
"""

from weir_operator.plan.job_plan import Plan
from weir_operator.plan.observed_state import Observed
from weir_operator.plan.planner import plan
from weir_operator.plan.snapshot_plan import SnapshotPlan, plan_snapshot

__all__ = ["Observed", "Plan", "SnapshotPlan", "plan", "plan_snapshot"]
