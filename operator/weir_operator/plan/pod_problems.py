"""Reports problems of pods by Events, each problem of each pod once (spec K7).

An image that cannot be pulled, a missing Secret, a full node, an untrusted certificate, an executor
killed for its memory: users ask about these long before a deadline has passed, and Spark, time or a
person may resolve them. So nothing is decided here. Only a stuck driver is a failure and has a
history entry. The status holds the reported problems up to a limit: beyond it, as when a hundred
executors lack the same image, further Events would add nothing.
"""

from collections.abc import Iterator

from weir.errors import sentence
from weir_operator.plan.cluster_actions import EmitEvent
from weir_operator.plan.drivers import current
from weir_operator.plan.job_plan import Plan
from weir_operator.plan.observed_state import DriverPod, Observed, PodProblem, Running, Waiting
from weir_operator.plan.spec_versions import deployed_spec
from weir_operator.plan.stuck_drivers import STUCK, describe
from weir_operator.resource.status_fields import MOST_REPORTED, Failure

UNTRUSTED = "DriverMistrusted"
UNSCHEDULABLE = "Unschedulable"

_ORDINARY = ("", "ContainerCreating", "PodInitializing")
_IMAGE_WORDS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""Kubernetes alternates between these two."""
_LONGEST_REASON = 128
_LONGEST_MESSAGE = 1_024


def report_pod_problems(plan: Plan, observed: Observed) -> Plan:
    """An Event for every problem that was not reported yet."""
    answered = plan.status.answered
    problems = (driver_problem(plan, observed), *_of_stuck(observed), *observed.executor_problems)
    found = {_key(problem): problem for problem in problems if problem is not None}
    known = [key for key in answered.troubles if key in found]
    new = [key for key in found if key not in known][: MOST_REPORTED - len(known)]
    if not new:
        return plan
    past = [key for key in answered.troubles if key not in found]
    room = MOST_REPORTED - len(known) - len(new)
    kept = (*past[len(past) - min(room, len(past)) :], *known, *new)
    plan = plan.with_status(answered=answered.model_copy(update={"troubles": kept}))
    for key in new:
        plan = _with_event_for(plan, found[key], observed)
    return plan


def driver_problem(plan: Plan, observed: Observed) -> PodProblem | None:
    """What prevents the driver from running, or from being reached, with the remedy."""
    pod = current(plan, observed)
    if pod is None or pod.is_terminating:
        return None
    if isinstance(pod.stage, Waiting):
        return _missing(pod) or _of_waiting(plan, pod.name, pod.stage)
    is_up = isinstance(pod.stage, Running)
    if not is_up or observed.unreachable is None or not observed.unreachable.is_untrusted:
        return None
    return PodProblem(pod.name, UNTRUSTED, sentence(observed.unreachable.why, "", _trust(plan)))


def is_transient(problem: PodProblem) -> bool:
    """Whether it may resolve by itself: a full cluster grows, or another pod ends."""
    return problem.reason == UNSCHEDULABLE


def start_delay_reason(plan: Plan, observed: Observed) -> str:
    """What a start waits for, if it is known."""
    pod, problem = current(plan, observed), driver_problem(plan, observed)
    if problem is not None:
        return problem.message
    if pod is not None and isinstance(pod.stage, Waiting):
        return pod.stage.why
    return "" if observed.unreachable is None else observed.unreachable.why


def condition_reason(problem: PodProblem) -> str:
    """The reason for a condition; the same for reasons that alternate."""
    reason = _SAME.get(problem.reason, problem.reason)
    return reason if is_reason(reason) else "PodProblem"


def is_reason(word: str) -> bool:
    """Whether a reason of Kubernetes is valid as the reason of an Event."""
    is_word = word.isascii() and word.isalnum() and word[0].isupper()
    return is_word and len(word) <= _LONGEST_REASON


def _missing(pod: DriverPod) -> PodProblem | None:
    if not pod.missing:
        return None
    named = " and ".join(f"the {one.kind} {one.name}" for one in pod.missing)
    remedy = "create the missing object, or refer to another"
    message = sentence(f"waiting for {named}, which does not exist in its namespace", "", remedy)
    return PodProblem(pod.name, f"{pod.missing[0].kind}Missing", message)


def _of_waiting(plan: Plan, name: str, stage: Waiting) -> PodProblem | None:
    """What prevents the driver's container from running, as Kubernetes reports it."""
    why = stage.why
    if why in _ORDINARY:
        return None
    spec = deployed_spec(plan.status)
    if why in _IMAGE_WORDS and spec is not None:
        return PodProblem(name, why, f"waiting for its image {spec.image}")
    message = f": {stage.message}" if stage.message else ""
    if why == UNSCHEDULABLE:
        return PodProblem(name, why, f"waiting for a node with enough resources{message}")
    return PodProblem(name, why, f"its container does not start: {why}{message}")


def _trust(plan: Plan) -> str:
    """How to make the operator trust a driver."""
    spec = deployed_spec(plan.status)
    secret = None if spec is None else spec.tls_secret
    which = f"the Secret {secret}" if secret else "its tlsSecret"
    return f"put the certificate of the authority that signed the driver's into ca.crt of {which}"


def _of_stuck(observed: Observed) -> Iterator[PodProblem]:
    for pod in observed.stuck:
        yield PodProblem(pod.name, STUCK, describe(pod))


def _with_event_for(plan: Plan, problem: PodProblem, observed: Observed) -> Plan:
    if problem.reason != STUCK:
        return plan.with_actions(_event(problem))
    if plan.status.ended_at is None:
        failure = Failure(at=observed.now, reason=STUCK, message=problem.message)
        plan = plan.with_status(last_failure=failure)
    return plan.with_event(observed.now, STUCK, problem.message, is_warning=True)


def _key(problem: PodProblem) -> str:
    return f"{problem.name} {_SAME.get(problem.reason, problem.reason)}"[:_LONGEST_MESSAGE]


def _event(problem: PodProblem) -> EmitEvent:
    reason = problem.reason if is_reason(problem.reason) else "PodProblem"
    message = f"{problem.name}: {problem.message or problem.reason}"
    return EmitEvent(reason, message[:_LONGEST_MESSAGE], is_warning=True)
