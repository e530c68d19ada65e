"""Tells of pods in trouble, of each trouble of each pod once (spec K7).

An image that cannot be pulled, a Secret that is not there, a node that is full, a certificate that
nobody trusts, an executor that was killed for its memory: people ask about these long before a
deadline has passed, and Spark, time or a person may well heal them. So nothing is decided here.
Only a driver that was told to end and is stuck is a failure, and stands in the history. What was
told is remembered in the status, and only as much of it as fits: beyond that, as when a hundred
executors lack the same image, silence says no less.
"""

from collections.abc import Iterator

from weir.errors import sentence
from weir_operator.plan.cluster_actions import EmitEvent
from weir_operator.plan.drivers import current
from weir_operator.plan.job_plan import Plan
from weir_operator.plan.observed_state import DriverPod, Observed, PodTrouble, Up, Waiting
from weir_operator.plan.spec_versions import deployed_spec
from weir_operator.plan.stuck_drivers import STUCK, in_words
from weir_operator.resource.status_fields import MOST_TOLD, Failure

MISTRUSTED = "DriverMistrusted"
UNSCHEDULABLE = "Unschedulable"

_ORDINARY = ("", "ContainerCreating", "PodInitializing")
_IMAGE_WORDS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""Kubernetes says the one and the other in turn."""
_LONGEST_REASON = 128
_LONGEST_MESSAGE = 1_024


def tell_troubles(plan: Plan, seen: Observed) -> Plan:
    """An Event for every trouble that was not told yet."""
    answered = plan.status.answered
    troubles = (hindrance(plan, seen), *_of_stuck(seen), *seen.executor_troubles)
    found = {_key(trouble): trouble for trouble in troubles if trouble is not None}
    known = [key for key in answered.troubles if key in found]
    news = [key for key in found if key not in known][: MOST_TOLD - len(known)]
    if not news:
        return plan
    past = [key for key in answered.troubles if key not in found]
    room = MOST_TOLD - len(known) - len(news)
    kept = (*past[len(past) - min(room, len(past)) :], *known, *news)
    plan = plan.writing(answered=answered.model_copy(update={"troubles": kept}))
    for key in news:
        plan = _told(plan, found[key], seen)
    return plan


def hindrance(plan: Plan, seen: Observed) -> PodTrouble | None:
    """What keeps the driver from running, or from being heard, with the remedy."""
    pod = current(plan, seen)
    if pod is None or pod.is_leaving:
        return None
    if isinstance(pod.stage, Waiting):
        return _missing(pod) or _of_waiting(plan, pod.name, pod.stage)
    is_up = isinstance(pod.stage, Up)
    if not is_up or seen.silence is None or not seen.silence.is_mistrust:
        return None
    return PodTrouble(pod.name, MISTRUSTED, sentence(seen.silence.why, "", _trust(plan)))


def heals_by_itself(trouble: PodTrouble) -> bool:
    """Whether time may well be enough: a full cluster grows, or another pod ends."""
    return trouble.reason == UNSCHEDULABLE


def why_late(plan: Plan, seen: Observed) -> str:
    """What a start waits for, as far as anybody knows."""
    pod, trouble = current(plan, seen), hindrance(plan, seen)
    if trouble is not None:
        return trouble.message
    if pod is not None and isinstance(pod.stage, Waiting):
        return pod.stage.why
    return "" if seen.silence is None else seen.silence.why


def as_reason(trouble: PodTrouble) -> str:
    """One word for programs; of words that alternate always the same."""
    reason = _SAME.get(trouble.reason, trouble.reason)
    return reason if is_reason(reason) else "PodTrouble"


def is_reason(word: str) -> bool:
    """Whether a word of Kubernetes can be the reason of an Event."""
    is_word = word.isascii() and word.isalnum() and word[0].isupper()
    return is_word and len(word) <= _LONGEST_REASON


def _missing(pod: DriverPod) -> PodTrouble | None:
    if not pod.missing:
        return None
    named = " and ".join(f"the {one.kind} {one.name}" for one in pod.missing)
    remedy = "create what is missing, or name another"
    message = sentence(f"it waits for {named}, not to be found in its namespace", "", remedy)
    return PodTrouble(pod.name, f"{pod.missing[0].kind}Missing", message)


def _of_waiting(plan: Plan, name: str, stage: Waiting) -> PodTrouble | None:
    """What keeps the driver's container from running, in the words of Kubernetes."""
    why = stage.why
    if why in _ORDINARY:
        return None
    spec = deployed_spec(plan.status)
    if why in _IMAGE_WORDS and spec is not None:
        return PodTrouble(name, why, f"it waits for its image {spec.image}")
    said = f": {stage.said}" if stage.said else ""
    if why == UNSCHEDULABLE:
        return PodTrouble(name, why, f"it waits for a node that has room for it{said}")
    return PodTrouble(name, why, f"its container does not start: {why}{said}")


def _trust(plan: Plan) -> str:
    """How the operator comes to believe a driver."""
    spec = deployed_spec(plan.status)
    secret = None if spec is None else spec.tls_secret
    which = f"the Secret {secret}" if secret else "its tlsSecret"
    return f"put the certificate of the authority that signed the driver's into ca.crt of {which}"


def _of_stuck(seen: Observed) -> Iterator[PodTrouble]:
    for pod in seen.stuck:
        yield PodTrouble(pod.name, STUCK, in_words(pod))


def _told(plan: Plan, trouble: PodTrouble, seen: Observed) -> Plan:
    if trouble.reason != STUCK:
        return plan.doing(_event(trouble))
    if plan.status.ended_at is None:
        failure = Failure(at=seen.now, reason=STUCK, message=trouble.message)
        plan = plan.writing(last_failure=failure)
    return plan.telling(seen.now, STUCK, trouble.message, is_warning=True)


def _key(trouble: PodTrouble) -> str:
    return f"{trouble.name} {_SAME.get(trouble.reason, trouble.reason)}"[:_LONGEST_MESSAGE]


def _event(trouble: PodTrouble) -> EmitEvent:
    reason = trouble.reason if is_reason(trouble.reason) else "PodTrouble"
    message = f"{trouble.name}: {trouble.message or trouble.reason}"
    return EmitEvent(reason, message[:_LONGEST_MESSAGE], is_warning=True)
