"""How long a terminating driver's pod is waited for, and what blocks it (spec K3, K10).

Usually a pod is gone soon after its process has ended. It stays if it has a finalizer, or if its
node is unreachable but not known to be lost. A job must not wait for that forever: past a deadline
such a pod counts as stuck, and the next driver is created beside it, under another name. If the old
process still runs, the log in the checkpoint storage lets only the new one complete checkpoints
(spec C17). Finalizers are not removed here: another controller set them.
"""

from dataclasses import replace
from datetime import datetime

from weir.errors import sentence
from weir_operator.plan.job_plan import later
from weir_operator.plan.observed_state import DriverPod, Observed, Terminated

STUCK = "DriverStuck"
TERMINATED_DEADLINE_MS = 30_000
"""For a pod whose process has ended, or whose node is lost: only the object is left."""
TERMINATION_DEADLINE_MS = 300_000
"""For a pod whose process is not known to have ended."""


def without_stuck(observed: Observed) -> Observed:
    """The observed state, with stuck pods moved to ``stuck``."""
    stuck = tuple(pod for pod in observed.drivers if _is_stuck(pod, observed.now))
    rest = tuple(pod for pod in observed.drivers if pod not in stuck)
    return replace(observed, drivers=rest, stuck=stuck)


def stuck_after(pod: DriverPod) -> datetime | None:
    """When a terminating pod counts as stuck."""
    if pod.terminating is None:
        return None
    is_over = pod.is_node_lost or isinstance(pod.stage, Terminated)
    return later(pod.terminating.by, TERMINATED_DEADLINE_MS if is_over else TERMINATION_DEADLINE_MS)


def termination_blocker(pod: DriverPod) -> str:
    """What a terminating pod waits for."""
    if pod.terminating is not None and pod.terminating.held_by:
        return f"held by {', '.join(pod.terminating.held_by)}"
    return "its node has not confirmed its termination"


def describe(pod: DriverPod) -> str:
    """That a pod is stuck, why, and the remedy."""
    has_finalizer = pod.terminating is not None and pod.terminating.held_by
    remedy = "remove these finalizers from it" if has_finalizer else "check its node"
    return sentence(
        f"{pod.name} does not terminate",
        f"{termination_blocker(pod)}; the job continues without waiting for it",
        remedy,
    )


def _is_stuck(pod: DriverPod, now: datetime) -> bool:
    until = stuck_after(pod)
    if until is None or pod.terminating is None:
        return False
    is_yet_to_be_forced = pod.is_node_lost and not pod.terminating.is_forced
    return until <= now and not is_yet_to_be_forced
