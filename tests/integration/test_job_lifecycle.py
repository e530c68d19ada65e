"""Jobs on real Spark processes keep the promises that people start them for."""

import os
import signal

from job_setting import JobSetting
from real_job import real_job


def a_job(home, **chosen):
    return JobSetting(f"file://{home}/checkpoints", f"file://{home}/output", **chosen)


def test_a_bounded_job_ends_with_every_result_committed(tmp_path):
    """R6, C14: the last transaction of each sink is committed before the job is over."""
    with real_job(a_job(tmp_path), tmp_path) as job:
        driver = job.start()
        assert driver.until_ended()["ended"] == "finished"
        assert job.verdict().is_exactly_once


def test_a_slot_that_is_killed_again_and_again_is_replaced_and_the_other_stays(tmp_path):
    """R1, R3: only the lost slot is replaced, and no row is lost or counted twice."""
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


def test_user_code_that_stumbles_once_is_tried_again_and_every_row_counts_once(tmp_path):
    """R2, R4, U3: the message names the operator and shows the row; then the job goes on."""
    setting = a_job(tmp_path, poisoned_offset=12_345, is_poisoned_once=True)
    with real_job(setting, tmp_path) as job:
        driver = job.start()
        assert driver.until_ended()["ended"] == "finished"
        assert job.verdict().is_exactly_once
        message = next(line for line in driver.log().splitlines() if "poisoned" in line)
        assert "sums" in message
        assert "12345" in message


def test_without_a_restart_strategy_the_first_failure_of_user_code_ends_the_job(tmp_path):
    """R2: with the type none the job fails with the reason."""
    setting = a_job(tmp_path, poisoned_offset=12_345, config=(("weir.restart.type", "none"),))
    with real_job(setting, tmp_path) as job:
        driver = job.start()
        ending = driver.until_ended()
        assert ending["ended"] == "failed"
        assert "poisoned" in ending["problem"]
        assert driver.popen.returncode == 1
        assert job.traces.all()[-1].launches == 1


def test_a_job_with_too_few_slots_says_how_many_are_missing(tmp_path):
    """R3, U3: it waits for the slots it needs, and its status shows how many are missing."""
    setting = a_job(tmp_path).having(("spark.master", "local[1,1000]"))
    with real_job(setting, tmp_path) as job:
        driver = job.start()
        job.until("one slot", job.slots)
        waiting = {"status": "waiting for slots", "missing": 1}
        job.until("the status shows it", lambda: driver.ask("status") == waiting)
        driver.tell(do="cancel")
        assert driver.until_ended()["ended"] == "canceled"


def test_a_row_that_no_restart_heals_ends_the_job_with_its_reason(tmp_path):
    """R2, U3: after so many failures of one kind without a checkpoint in between."""
    setting = a_job(tmp_path, poisoned_offset=12_345)
    with real_job(setting.having(("weir.restart.maxSameFailures", "3")), tmp_path) as job:
        driver = job.start()
        ending = driver.until_ended()
        assert ending["ended"] == "failed"
        assert "poisoned" in ending["problem"]
        assert "3 times in this way" in ending["problem"]


def test_a_job_is_run_by_one_driver_and_once(tmp_path):
    """C17, R1, R6: a live namesake is refused, a dead one followed, a finished job left."""
    setting = a_job(tmp_path, rows=120_000, rate=5_000, deployment="")
    with real_job(setting, tmp_path) as job:
        first, second, third = job.prepare(), job.prepare(), job.prepare()
        for driver in (first, second, third):
            driver.until_ready()
        job.start(first)
        job.until_checkpoints()
        job.start(second)
        second.until_dead()
        assert "another driver runs a job of this name" in second.log()
        assert "--take-over" in second.log()
        job.until_checkpoints()
        first.signal(signal.SIGKILL)
        first.until_dead()
        job.start(third)
        assert third.until_ended()["ended"] == "finished"
        assert "taken over from" not in third.log()
        assert job.verdict().is_exactly_once
        fourth = job.start()
        assert fourth.until_ended() == {"ended": "finished", "problem": ""}
        assert "has finished already" in fourth.log()
        assert job.verdict().is_exactly_once
