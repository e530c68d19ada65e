"""A driver that froze and wakes up finds its job taken over, and leaves it alone.

One chain of drivers for each storage: each freezes at another step around the completion of a
checkpoint, the next one takes over and makes progress, and then the frozen one goes on where it
was, as if nothing had happened.
"""

import signal
from dataclasses import replace

import pytest

from chance import RUNS_ALL, dice
from faults import Deed, Fault, Moment, Step
from job_setting import JobSetting
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
    return shuffled if RUNS_ALL else shuffled[STORAGES.index(storage) :: len(STORAGES)]


@pytest.fixture(params=STORAGES)
def fenced_job(request, tmp_path):
    if request.param == "files":
        with a_job(f"file://{tmp_path}", tmp_path, {}) as job:
            yield job, places_of(request.param)
        return
    (tmp_path / "seaweed").mkdir()
    with (
        seaweed(tmp_path / "seaweed") as server,
        a_job(f"s3://{server.bucket}/fencing", tmp_path, server.options()) as job,
    ):
        yield job, places_of(request.param)


def a_job(place, home, storage):
    setting = JobSetting(f"{place}/checkpoints", f"{place}/output").varied(dice("fenced job"))
    return real_job(replace(setting, rows=400_000, rate=4_000), home, storage)


def test_a_driver_that_wakes_after_a_takeover_ends_by_itself_and_spoils_nothing(fenced_job):
    """Spec C17, C8, R1: one driver goes on, nothing is lost, doubled or deleted by the other."""
    job, places = fenced_job
    reigning = job.start()
    for number, (step, moment) in enumerate(places):
        successor = job.prepare()
        job.until_checkpoints(2)
        job.suffer(Fault(number, step, moment, Deed.FREEZE_DRIVER))
        reigning.until_frozen()

        job.start(successor)
        job.until_checkpoints(2)
        reigning.signal(signal.SIGCONT)
        ending = reigning.until_ended()
        assert "another driver has taken it over" in ending["problem"]
        assert reigning.popen.returncode == 1

        job.until_checkpoints()
        successor.signal(signal.SIGSTOP)
        assert job.unreadable() == []
        successor.signal(signal.SIGCONT)
        reigning = successor
    reigning.tell(do="stop", path="", drain=True)
    assert reigning.until_ended()["ended"] == "stopped"
    assert job.verdict_so_far().is_exactly_once
