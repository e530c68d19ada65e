"""How long a driver that was told to end is waited for, and what holds its pod (spec K3, K10).

Usually a pod is gone soon after its process has ended. It stays if somebody's finalizer is on it,
or if its node says nothing and nobody has established that it is lost. A job must not wait for that
for ever: past a deadline such a pod counts as stuck, and the next driver is made beside it, under
another name. Should the old process live after all, the log in the checkpoint storage lets only the
new one complete anything (spec C17). Nothing is taken off a pod here: a finalizer is somebody's
wish.
"""

from dataclasses import replace
from datetime import datetime

from weir.errors import sentence
from weir_operator.plan.job_plan import later
from weir_operator.plan.observed_state import DriverPod, Observed, Terminated

STUCK = "DriverStuck"
SOON_MS = 30_000
"""For a pod whose process is over, or whose node is lost: only the object is left."""
LONG_MS = 300_000
"""For a pod of which nobody has said that its process is over."""


def without_stuck(seen: Observed) -> Observed:
    """What was seen, with the pods that are waited for no longer set apart."""
    stuck = tuple(pod for pod in seen.drivers if _is_stuck(pod, seen.now))
    rest = tuple(pod for pod in seen.drivers if pod not in stuck)
    return replace(seen, drivers=rest, stuck=stuck)


def waited_for_until(pod: DriverPod) -> datetime | None:
    """When a pod that was told to end counts as stuck."""
    if pod.leaving is None:
        return None
    is_over = pod.node_is_lost or isinstance(pod.stage, Terminated)
    return later(pod.leaving.by, SOON_MS if is_over else LONG_MS)


def holding(pod: DriverPod) -> str:
    """What a pod waits for that was told to end."""
    if pod.leaving is not None and pod.leaving.held_by:
        return f"held by {', '.join(pod.leaving.held_by)}"
    return "its node has not confirmed its end"


def in_words(pod: DriverPod) -> str:
    """That a pod is stuck, why, and what to do."""
    is_held = pod.leaving is not None and pod.leaving.held_by
    remedy = "remove these finalizers from it" if is_held else "see to its node"
    return sentence(
        f"{pod.name} was told to end and is still there",
        f"{holding(pod)}; the job goes on without waiting for it",
        remedy,
    )


def _is_stuck(pod: DriverPod, now: datetime) -> bool:
    until = waited_for_until(pod)
    if until is None or pod.leaving is None:
        return False
    is_yet_to_be_forced = pod.node_is_lost and not pod.leaving.is_forced
    return until <= now and not is_yet_to_be_forced
