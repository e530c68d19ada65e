"""Slots in separate executors: what is true on one machine is true on a Spark cluster."""

import os
import signal

import table_of_squares
from job_setting import JobSetting
from real_job import real_job
from real_processes import parent_of
from spark_program import run_program
from sum_oracle import committed_frames
from table_of_squares import EXECUTORS, ROWS


def test_an_executor_that_is_killed_takes_its_slot_along_and_a_standby_on_another_goes_on(tmp_path):
    """R1, R3: Spark starts the executor again; until then the spare slot does its work."""
    home = f"file://{tmp_path}"
    setting = JobSetting(f"{home}/checkpoints", f"{home}/output", rows=200_000, rate=10_000)
    roomy = [("spark.master", "local-cluster[2,5,512]"), *EXECUTORS[1:]]
    with real_job(setting.having(*roomy, ("weir.standbySlots", "2")), tmp_path) as job:
        driver = job.start()
        job.until("all four slots", lambda: len(job.slots()) == 4)
        job.until_checkpoints()
        before = job.slots()
        executor = parent_of(parent_of(before[0]))
        os.kill(executor, signal.SIGKILL)
        job.until("its slots are gone", lambda: len(set(before) & set(job.slots())) == 2)
        job.until_checkpoints(2)
        assert driver.until_ended()["ended"] == "finished"
        assert job.verdict().is_exactly_once


def test_a_dataframe_flows_in_while_slots_hold_every_place_on_the_executors(tmp_path):
    """D1, R5, R6: what Spark reads, it reads on cores that no slot can take."""
    run_program(table_of_squares.__file__, tmp_path)

    output = f"file://{tmp_path}/output"
    read = [row for frame in committed_frames(output, {}) for row in frame.rows()]
    assert sorted(read) == [(n, n * n) for n in range(0, ROWS, 2)]
