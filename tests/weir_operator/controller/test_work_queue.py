"""A desk looks at each resource once at a time, again when it rings, and later when it failed."""

import asyncio
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import Key
from weir_operator.controller.work_queue import Again, Desk, Over

ORDERS, BILLS = Key("shop", "orders"), Key("shop", "bills")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_S = 10.0


class Looks:
    """What was looked at, and what comes of it."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.seen = []
        self.causes = []
        self.begun, self.enough = asyncio.Event(), asyncio.Event()

    async def look(self, key):
        self.seen.append(key)
        self.begun.set()
        outcome = self.outcomes.pop(0) if self.outcomes else Again()
        if not self.outcomes:
            self.enough.set()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def at_a_desk(looks, *rings):
    """Ring, wait until all outcomes were used up, and go home."""

    async def day():
        desk = Desk("job", looks.look, looks.causes.append, lambda: BEGINNING)
        for key in rings:
            desk.ring(key)
        async with asyncio.timeout(PATIENCE_S):
            await looks.enough.wait()
        await desk.close()

    asyncio.run(day())


def test_ringing_twice_before_a_look_is_one_look():
    """K9: news is merged, not queued."""
    looks = Looks(Again())
    at_a_desk(looks, ORDERS, ORDERS)
    assert looks.seen == [ORDERS]


def test_a_look_is_taken_again_when_its_time_has_come():
    """K3: a plan's own hour counts even if nothing happens."""
    looks = Looks(Again(BEGINNING), Again(BEGINNING - timedelta(seconds=1)), Again())
    at_a_desk(looks, ORDERS)
    assert looks.seen == [ORDERS] * 3


def test_what_time_may_heal_is_tried_again_and_counted():
    """K9: an outage is visible and ends by itself."""
    looks = Looks(Unavailable("away", retry_after=0.0), Again())
    at_a_desk(looks, ORDERS)
    assert looks.seen == [ORDERS] * 2
    assert looks.causes == ["Unavailable"]


def test_an_error_of_ours_at_one_job_leaves_the_others_alone():
    """K9: one job's bug is not everybody's outage."""
    looks = Looks(AssertionError("we are wrong"), Again())
    at_a_desk(looks, ORDERS, BILLS)
    assert looks.seen == [ORDERS, BILLS]
    assert looks.causes == ["Bug"]


def test_a_resource_that_is_gone_can_come_again():
    """K1: a job of the same name may be applied anew."""
    looks = Looks(Over(), Again())

    async def day():
        desk = Desk("job", looks.look, looks.causes.append, lambda: BEGINNING)
        desk.ring(ORDERS)
        async with asyncio.timeout(PATIENCE_S):
            await looks.begun.wait()
            desk.ring(ORDERS)
            await looks.enough.wait()
        await desk.close()

    asyncio.run(day())
    assert looks.seen == [ORDERS, ORDERS]


def test_a_look_keeps_nothing_of_what_whoever_rang_has_in_hand():
    """K9: the objects that a watch brings are not kept with a thousand jobs."""
    in_hand = ContextVar("in_hand", default="nothing")
    looks = Looks(Again())
    found = []

    async def look(key):
        found.append(in_hand.get())
        return await looks.look(key)

    async def day():
        in_hand.set("a whole object")
        desk = Desk("job", look, looks.causes.append, lambda: BEGINNING)
        desk.ring(ORDERS)
        async with asyncio.timeout(PATIENCE_S):
            await looks.enough.wait()
        await desk.close()

    asyncio.run(day())
    assert found == ["nothing"]


def test_a_closed_desk_hears_nothing():
    """K9: an operator that has lost its Lease must not act, whoever still rings."""
    looks = Looks(Again(), Again())

    async def day():
        desk = Desk("job", looks.look, looks.causes.append, lambda: BEGINNING)
        desk.ring(ORDERS)
        async with asyncio.timeout(PATIENCE_S):
            await looks.begun.wait()
        await desk.close()
        desk.ring(BILLS)
        await desk.close()

    asyncio.run(day())
    assert looks.seen == [ORDERS]
