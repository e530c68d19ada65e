"""Jobs on real Spark processes keep the promises that people start them for."""

import os
import signal

from job_setting import JobSetting
from real_job import real_job


def a_job(home, **chosen):
    return JobSetting(f"file://{home}/checkpoints", f"file://{home}/output", **chosen)


def test_a_bounded_job_ends_with_every_result_committed(tmp_path):
    """Spec R6, C14: the last transaction of each sink is committed before the job is over."""
    with real_job(a_job(tmp_path), tmp_path) as job:
        driver = job.start()
        assert driver.until_ended()["ended"] == "finished"
        assert job.verdict().is_exactly_once


def test_a_slot_that_is_killed_again_and_again_is_replaced_and_the_other_stays(tmp_path):
    """Spec R1, R3: only the lost slot is replaced, and no row is lost or counted twice."""
    with real_job(a_job(tmp_path, rows=120_000), tmp_path) as job:
        driver = job.start()
        job.until_checkpoints()
        survivor, *_ = job.slots()
        for _ in range(3):
            victim = next(pid for pid in job.slots() if pid != survivor)
            os.kill(victim, signal.SIGKILL)
            job.until("another slot", lambda: is_another(job, survivor, victim))  # noqa: B023
            job.until_checkpoints()
            assert survivor in job.slots()
        assert driver.until_ended()["ended"] == "finished"
        assert job.verdict().is_exactly_once


def is_another(job, survivor, victim):
    return [pid for pid in job.slots() if pid not in (survivor, victim)]
