"""The queue reconciles each resource once at a time, when it is enqueued, and with backoff."""

import asyncio
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.controller.work_queue import Done, Requeue, WorkQueue

ORDERS, BILLS = NamespacedName("shop", "orders"), NamespacedName("shop", "bills")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT_S = 10.0


class Looks:
    """What was looked at, and what comes of it."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.seen = []
        self.causes = []
        self.begun, self.enough = asyncio.Event(), asyncio.Event()

    async def reconcile(self, key):
        self.seen.append(key)
        self.begun.set()
        outcome = self.outcomes.pop(0) if self.outcomes else Requeue()
        if not self.outcomes:
            self.enough.set()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def at_a_desk(reconciler, *rings):
    """Ring, wait until all outcomes were used up, and go home."""

    async def day():
        queue = WorkQueue("job", reconciler.reconcile, reconciler.causes.append, lambda: BEGINNING)
        for key in rings:
            queue.enqueue(key)
        async with asyncio.timeout(TIMEOUT_S):
            await reconciler.enough.wait()
        await queue.close()

    asyncio.run(day())


def test_ringing_twice_before_a_look_is_one_look():
    """K9: news is merged, not queued."""
    reconciler = Looks(Requeue())
    at_a_desk(reconciler, ORDERS, ORDERS)
    assert reconciler.seen == [ORDERS]


def test_a_look_is_taken_again_when_its_time_has_come():
    """K3: a plan's own hour counts even if nothing happens."""
    reconciler = Looks(Requeue(BEGINNING), Requeue(BEGINNING - timedelta(seconds=1)), Requeue())
    at_a_desk(reconciler, ORDERS)
    assert reconciler.seen == [ORDERS] * 3


def test_what_time_may_heal_is_tried_again_and_counted():
    """K9: an outage is visible and ends by itself."""
    reconciler = Looks(Unavailable("away", retry_after=0.0), Requeue())
    at_a_desk(reconciler, ORDERS)
    assert reconciler.seen == [ORDERS] * 2
    assert reconciler.causes == ["Unavailable"]


def test_an_error_of_ours_at_one_job_leaves_the_others_alone():
    """K9: a bug that one job triggers does not affect others."""
    reconciler = Looks(AssertionError("we are wrong"), Requeue())
    at_a_desk(reconciler, ORDERS, BILLS)
    assert reconciler.seen == [ORDERS, BILLS]
    assert reconciler.causes == ["Bug"]


def test_a_resource_that_is_gone_can_come_again():
    """K1: a job of the same name may be applied anew."""
    reconciler = Looks(Done(), Requeue())

    async def day():
        queue = WorkQueue("job", reconciler.reconcile, reconciler.causes.append, lambda: BEGINNING)
        queue.enqueue(ORDERS)
        async with asyncio.timeout(TIMEOUT_S):
            await reconciler.begun.wait()
            queue.enqueue(ORDERS)
            await reconciler.enough.wait()
        await queue.close()

    asyncio.run(day())
    assert reconciler.seen == [ORDERS, ORDERS]


def test_a_reconciliation_does_not_inherit_the_context_of_the_enqueuing_task():
    """K9: the objects that a watch brings are not kept with a thousand jobs."""
    in_hand = ContextVar("in_hand", default="nothing")
    reconciler = Looks(Requeue())
    found = []

    async def reconcile(key):
        found.append(in_hand.get())
        return await reconciler.reconcile(key)

    async def day():
        in_hand.set("a whole object")
        queue = WorkQueue("job", reconcile, reconciler.causes.append, lambda: BEGINNING)
        queue.enqueue(ORDERS)
        async with asyncio.timeout(TIMEOUT_S):
            await reconciler.enough.wait()
        await queue.close()

    asyncio.run(day())
    assert found == ["nothing"]


def test_a_closed_desk_hears_nothing():
    """K9: an operator that has lost its Lease must not act, whatever is still enqueued."""
    reconciler = Looks(Requeue(), Requeue())

    async def day():
        queue = WorkQueue("job", reconciler.reconcile, reconciler.causes.append, lambda: BEGINNING)
        queue.enqueue(ORDERS)
        async with asyncio.timeout(TIMEOUT_S):
            await reconciler.begun.wait()
        await queue.close()
        queue.enqueue(BILLS)
        await queue.close()

    asyncio.run(day())
    assert reconciler.seen == [ORDERS]
