"""Barriers that overtake rows, and snapshots that build on each other, lose nothing either."""

import os
import signal
from dataclasses import replace

from job_setting import JobSetting
from real_job import real_job


def test_overtaken_rows_and_layers_of_state_survive_the_death_of_a_slot_and_of_the_driver(tmp_path):
    """Spec A4, A10, S4: in-flight rows come back once, in order, over state laid in layers.

    The driver that goes on is wider than the one that died, so both are shared out anew (S11).
    """
    places = f"file://{tmp_path}/checkpoints", f"file://{tmp_path}/output"
    setting = JobSetting(*places, rows=200_000, rate=15_000).having(
        ("weir.checkpointing.unaligned", "true"),
        ("weir.checkpointing.incremental", "true"),
        ("weir.checkpointing.inlineThreshold", "0 B"),
    )
    with real_job(setting, tmp_path) as job:
        first = job.start()
        job.until_checkpoints(2)
        os.kill(job.slots()[0], signal.SIGKILL)
        job.until_checkpoints(2)
        second = job.prepare(replace(job.setting, parallelism=3))
        os.kill(first.pid, signal.SIGKILL)
        first.until_dead()

        job.start(second, rate=0)

        assert second.until_ended()["ended"] == "finished"
        assert job.verdict().is_exactly_once
