"""A driver that froze and wakes up finds its job taken over, and leaves it alone.

One chain of drivers for each storage: each freezes at another step around the completion of a
checkpoint, the next one takes over and makes progress, and then the frozen one goes on where it
was, as if nothing had happened.
"""

import signal
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from faults import Fault, FaultKind, Moment, Step
from job_setting import JobSetting
from random_seed import dice, runs_all
from real_job import real_job
from seaweed import seaweed

PLACES = (
    (Step.MANIFEST, Moment.BEFORE),
    (Step.MANIFEST, Moment.AFTER),
    (Step.ENTRY, Moment.AFTER),
    (Step.COMMIT, Moment.BEFORE),
)
STORAGES = ("files", "s3")


def places_of(storage):
    """All of them, or half for each storage."""
    shuffled = list(PLACES)
    dice("fencing").shuffle(shuffled)
    return shuffled if runs_all() else shuffled[STORAGES.index(storage) :: len(STORAGES)]


@pytest.fixture(params=STORAGES)
def storage(request):
    return request.param


@contextmanager
def a_job(storage, home):
    setting = JobSetting("", "", rows=400_000, rate=4_000).varied(dice("fenced job"))
    with ExitStack() as stack:
        place, options = f"file://{home}", {}
        if storage == "s3":
            (home / "seaweed").mkdir()
            server = stack.enter_context(seaweed(home / "seaweed"))
            place, options = f"s3://{server.bucket}/fencing", server.options()
        setting = replace(setting, checkpoints=f"{place}/checkpoints", output=f"{place}/output")
        yield stack.enter_context(real_job(setting, home, options))


def test_a_driver_that_wakes_after_a_takeover_ends_by_itself_and_spoils_nothing(storage, tmp_path):
    """C17, C8, R1: one driver goes on, nothing is lost, doubled or deleted by the other."""
    with a_job(storage, tmp_path) as job:
        current = job.start()
        for number, (step, moment) in enumerate(places_of(storage)):
            successor = job.prepare()
            job.until_checkpoints(2)
            job.inject(Fault(number, step, moment, FaultKind.FREEZE_DRIVER))
            current.until_frozen()
            job.start(successor)
            job.until_checkpoints(2)
            current.signal(signal.SIGCONT)
            assert_fenced(current)
            job.until_checkpoints()
            assert_nothing_is_missing(job, successor)
            current = successor
        current.tell(do="stop", path="", drain=True)
        assert current.until_ended()["ended"] == "stopped"
        assert job.verdict_so_far().is_exactly_once


def assert_fenced(driver):
    assert "another driver has taken it over" in driver.until_ended()["problem"]
    assert driver.popen.returncode == 1


def assert_nothing_is_missing(job, driver):
    """What the log offers is whole, looked at while the current driver is frozen."""
    driver.signal(signal.SIGSTOP)
    try:
        assert job.unreadable() == []
    finally:
        driver.signal(signal.SIGCONT)
