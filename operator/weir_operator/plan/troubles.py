"""Tells of pods in trouble, of each trouble of each pod once (K7).

An image that cannot be pulled, a node that is full, an executor that was killed for its memory:
people ask about these long before a deadline has passed, and Spark or time may well heal them. So
nothing is decided here. Only a driver that was told to end and is stuck is a failure, and stands in
the history. What was told is remembered in the status, and only as much of it as fits: beyond that,
as when a hundred executors lack the same image, silence says no less.
"""

from collections.abc import Iterator

from weir_operator.plan.actions import EmitEvent
from weir_operator.plan.drafting import Plan
from weir_operator.plan.drivers import current
from weir_operator.plan.leaving import STUCK, in_words
from weir_operator.plan.observing import Observed, PodTrouble, Waiting
from weir_operator.resource.progress import MOST_TOLD, Failure

_ORDINARY = ("", "ContainerCreating", "PodInitializing")
_IMAGE_WORDS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""Kubernetes says the one and the other in turn."""
_LONGEST_REASON = 128
_LONGEST_MESSAGE = 1_024


def tell_troubles(plan: Plan, seen: Observed) -> Plan:
    """An Event for every trouble that was not told yet."""
    answered = plan.status.answered
    troubles = (*_of_driver(plan, seen), *_of_stuck(seen), *seen.executor_troubles)
    found = {_key(trouble): trouble for trouble in troubles}
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


def is_reason(word: str) -> bool:
    """Whether a word of Kubernetes can be the reason of an Event."""
    is_word = word.isascii() and word.isalnum() and word[0].isupper()
    return is_word and len(word) <= _LONGEST_REASON


def _of_driver(plan: Plan, seen: Observed) -> Iterator[PodTrouble]:
    """What keeps the driver's container from running."""
    pod, deployed = current(plan, seen), plan.status.deployed
    if pod is None or not isinstance(pod.stage, Waiting) or pod.stage.why in _ORDINARY:
        return
    why = pod.stage.why
    if why in _IMAGE_WORDS and deployed is not None:
        yield PodTrouble(pod.name, why, f"it waits for its image {deployed.spec.get('image')}")
    elif why == "Unschedulable":
        yield PodTrouble(pod.name, why, "it waits for a node that has room for it")
    else:
        yield PodTrouble(pod.name, why, f"its container does not start: {why}")


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
