"""A job is stopped and goes on from what it left, by path, as often as one likes."""

from dataclasses import replace

from job_setting import JobSetting
from kept_checkpoints import newest_offered
from real_job import real_job


def test_a_job_goes_on_from_savepoints_and_retained_checkpoints_by_path(tmp_path):
    """Spec C11, C12, C13, C15, C19, S10: every row once, over a stop, a cancellation and a drain.

    In the end the oldest savepoint is gone back to. It was taken while the job went on, so what the
    job did after it is done again: rows come twice, each time with the same sum.
    """
    first = JobSetting(f"file://{tmp_path}/checkpoints", f"file://{tmp_path}/output")
    first = first.sized(rows=200_000, rate=4_000)
    aside, stopped, drained = (f"file://{tmp_path}/{n}" for n in ("aside", "stopped", "drained"))

    def going_on(deployment, path):
        going = replace(first, deployment=deployment).having(("weir.recovery.path", path))
        return job.prepare(going)

    with real_job(first, tmp_path) as job:
        driver = job.start()
        job.until_checkpoints()
        assert driver.ask("savepoint", path=aside).startswith(aside)
        second = going_on("second", stopped)
        job.until_checkpoints()
        driver.tell(do="stop", path=stopped, drain=False)
        assert driver.until_ended()["ended"] == "stopped"
        assert job.verdict_so_far().is_exactly_once

        job.start(second)
        job.until_checkpoints(2)
        second.tell(do="cancel")
        assert second.until_ended()["ended"] == "canceled"
        assert job.verdict_so_far().is_exactly_once

        third = going_on("third", newest_offered(first.directory))
        job.start(third)
        fourth = going_on("fourth", aside)
        job.until_checkpoints(2)
        third.tell(do="stop", path=drained, drain=True)
        assert third.until_ended()["ended"] == "stopped"
        assert job.verdict_so_far().is_exactly_once

        job.start(fourth, rate=0)
        assert fourth.until_ended()["ended"] == "finished"
        verdict = job.verdict()
        assert verdict.is_at_least_once
        assert verdict.wrong == 0
