"""A driver is listened to from its first answer to its end, and rung for when it has news."""

import asyncio
from dataclasses import dataclass, field

import pytest

from reconciled_job import KEY, UNREACHABLE
from weir.api.report import JobPhase
from weir_operator.controller.report_watcher import ReportWatcher
from weir_operator.driver_client import DriverEndpoint, VersionedReport
from weir_operator.plan.observed_state import DriverReport, Unreachable

TIMEOUT_S = 20.0
LINE = DriverEndpoint("10.0.0.7", 8081, 1, "token")
POD = "uid-of-the-pod"


def said(version, phase=JobPhase.RUNNING):
    return VersionedReport(DriverReport(1, phase), version)


@dataclass
class Talker:
    """A driver that returns its report at once, and its next report on request."""

    now: VersionedReport | Unreachable = UNREACHABLE
    asked: int = 0
    questions: asyncio.Queue = field(default_factory=asyncio.Queue)
    """The versions after which it was asked for news."""
    answers: asyncio.Queue = field(default_factory=asyncio.Queue)
    was_left: asyncio.Event = field(default_factory=asyncio.Event)

    async def report(self, _):
        self.asked += 1
        return self.now

    async def next_report(self, _, after):
        self.questions.put_nowait(after)
        try:
            return await self.answers.get()
        except asyncio.CancelledError:
            self.was_left.set()
            raise


class CallObserver:
    """A listener, its driver and its bell."""

    def __init__(self, report=UNREACHABLE):
        self.driver = Talker(report)
        self.enqueued = asyncio.Queue()
        self.reports = ReportWatcher(self.driver, self.enqueued.put_nowait, pause_s=0.001)

    async def report(self, pod=POD, endpoint=LINE):
        return await self.reports.latest(KEY, pod, endpoint)

    async def hears(self, report):
        """The driver says it, and its job rings."""
        self.driver.answers.put_nowait(report)
        assert await self.enqueued.get() == KEY


def latest(act, report=UNREACHABLE):
    """Let it act on a listener whose driver says that, and listen no more."""

    async def acted():
        listener = CallObserver(report)
        async with asyncio.timeout(TIMEOUT_S):
            await act(listener)
            await listener.reports.close()

    asyncio.run(acted())


def test_what_a_driver_said_last_holds_while_its_next_word_is_waited_for():
    """K9: looks at a job at rest cost its driver nothing."""

    async def act(listener):
        for _ in range(3):
            assert await listener.report() == DriverReport(1, JobPhase.RUNNING)
        assert listener.driver.asked == 1

    latest(act, said("1"))


def test_news_rings_and_is_what_the_next_look_hears():
    """K7: a status follows its driver."""

    async def act(listener):
        await listener.report()
        await listener.hears(said("2", JobPhase.RESTARTING))

        assert (await listener.report()).phase is JobPhase.RESTARTING
        assert [await listener.driver.questions.get() for _ in range(2)] == ["1", "2"]
        assert listener.driver.asked == 1

    latest(act, said("1"))


def test_an_unchanged_report_of_a_driver_enqueues_no_job():
    """K9: an answer that says the same only confirms it."""

    async def act(listener):
        await listener.report()
        listener.driver.answers.put_nowait(said("1"))
        assert [await listener.driver.questions.get() for _ in range(2)] == ["1", "1"]

        assert listener.enqueued.empty()

    latest(act, said("1"))


def test_silence_rings_and_the_driver_is_asked_again():
    """K10: what a driver said before it fell silent holds no longer."""

    async def act(listener):
        await listener.report()
        await listener.hears(UNREACHABLE)
        listener.driver.now = UNREACHABLE

        assert await listener.report() is UNREACHABLE
        await listener.hears(said("2"))
        assert await listener.report() == DriverReport(1, JobPhase.RUNNING)

    latest(act, said("1"))


def test_a_driver_that_does_not_answer_is_not_listened_to():
    """K10: a look asks again, and hears when it is there."""

    async def act(listener):
        assert await listener.report() is UNREACHABLE
        assert listener.driver.questions.empty()

    latest(act)


def test_a_driver_that_gives_no_version_is_asked_by_every_look():
    """K7: driver and operator are not upgraded at one moment."""

    async def act(listener):
        assert await listener.report() == await listener.report()
        assert listener.driver.asked == 2

    latest(act, said(""))


@pytest.mark.parametrize(
    ("pod", "endpoint"), [("another", LINE), (POD, DriverEndpoint("10.0.0.8", 8081, 2, "token"))]
)
def test_the_word_of_another_driver_is_not_heard(pod, endpoint):
    """K3: each attempt speaks for itself."""

    async def act(listener):
        await listener.report()
        await listener.driver.questions.get()
        listener.driver.now = said("9", JobPhase.CREATED)

        assert (await listener.report(pod, endpoint)).phase is JobPhase.CREATED
        await listener.driver.was_left.wait()

    latest(act, said("1"))


def test_a_job_that_is_forgotten_is_listened_to_no_more():
    """K9: nothing is left of a job that is gone."""

    async def act(listener):
        await listener.report()
        await listener.driver.questions.get()
        listener.reports.forget(KEY)

        await listener.driver.was_left.wait()

    latest(act, said("1"))
