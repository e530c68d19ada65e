"""A job is stopped and goes on from what it left, by path, as often as one likes."""

from dataclasses import replace

from job_setting import JobSetting
from real_job import real_job
from retained_checkpoints import newest_offered


def a_job(home):
    setting = JobSetting(f"file://{home}/checkpoints", f"file://{home}/output")
    return setting.sized(rows=200_000, rate=4_000)


def going_on(job, deployment, path, parallelism=2):
    """The next deployment of the job, which starts from the savepoint at the path."""
    setting = replace(job.setting, deployment=deployment, parallelism=parallelism)
    return job.prepare(setting.having(("weir.recovery.path", path)))


def stop(driver, path, *, drain):
    driver.tell(do="stop", path=path, drain=drain)
    assert driver.until_ended()["ended"] == "stopped"


def test_a_job_goes_on_from_savepoints_and_retained_checkpoints_by_path(tmp_path):
    """C11, C12, C13, C15, C19, S10, S11: every row once, over a stop, a cancellation, a drain.

    Each deployment is wider or narrower than the one before. In the end the
    oldest savepoint is gone back to. It was taken while the job went on, so what the
    job did after it is done again: rows come twice, each time with the same sum.
    """
    aside, stopped, drained = (f"file://{tmp_path}/{n}" for n in ("aside", "stopped", "drained"))
    with real_job(a_job(tmp_path), tmp_path) as job:
        first = job.start()
        job.until_checkpoints()
        assert first.ask("savepoint", path=aside) == aside
        second = going_on(job, "second", stopped, parallelism=3)
        job.until_checkpoints()
        stop(first, stopped, drain=False)
        assert job.verdict_so_far().is_exactly_once

        job.start(second)
        job.until_checkpoints(2)
        second.tell(do="cancel")
        assert second.until_ended()["ended"] == "canceled"
        assert job.verdict_so_far().is_exactly_once

        third = going_on(job, "third", newest_offered(job.setting.directory), parallelism=1)
        job.start(third)
        fourth = going_on(job, "fourth", aside)
        job.until_checkpoints(2)
        stop(third, drained, drain=True)
        assert job.verdict_so_far().is_exactly_once

        job.start(fourth, rate=0)
        assert fourth.until_ended()["ended"] == "finished"
        verdict = job.verdict()
        assert verdict.is_at_least_once
        assert verdict.wrong == 0
