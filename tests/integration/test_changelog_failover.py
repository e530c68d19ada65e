"""A real job with a changelog loses a slot and its driver, and goes on at another width."""

import re
from dataclasses import replace

import pytest

from faults import Fault, FaultKind, Moment, Step
from job_setting import JobSetting
from random_seed import SEED, show
from real_job import real_job

WIDTH, NEXT_WIDTH = 2, 3
BETWEEN_CHECKPOINTS = re.compile(r"-p\d+-e\d+-a\d+$")


def a_job(home, backend):
    setting = JobSetting(f"file://{home}/checkpoints", f"file://{home}/output")
    setting = replace(setting, parallelism=WIDTH, interval_ms=200, is_hesitant=True)
    return setting.sized(rows=400_000, rate=4_000).having(
        ("weir.state.backend", backend),
        ("weir.state.changelog.enabled", "true"),
        ("weir.state.changelog.materializationInterval", "1 s"),
        ("weir.state.changelog.preemptivePersistThreshold", "64 KiB"),
        ("weir.checkpointing.unaligned", "true"),
        ("weir.checkpointing.inlineThreshold", "0 B"),
        ("weir.checkpointing.fileMerging.enabled", "true"),
    )


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_job_with_a_changelog_survives_deaths_exactly_once(tmp_path, backend):
    """S5, S6, S11, R1, R5: its log is replayed, by a job of another width too."""
    show(f"WEIR_SEED={SEED}")
    with real_job(a_job(tmp_path, backend), tmp_path) as job:
        driver = job.start()
        wider = job.prepare(replace(job.setting, parallelism=NEXT_WIDTH))
        job.until_checkpoints(8)
        job.inject(Fault(0, Step.UPLOAD, Moment.AFTER, FaultKind.KILL_SLOT))
        job.until_checkpoints(8)
        job.inject(Fault(1, Step.MANIFEST, Moment.AFTER, FaultKind.KILL_DRIVER))
        driver.until_dead()
        driver = job.start(wider)
        job.until_in_charge(driver)
        job.until_checkpoints(8)
        driver.tell(do="stop", path=f"file://{tmp_path}/drained", drain=True)
        assert driver.until_ended()["ended"] == "stopped"
        verdict = job.verdict_so_far()
        show(verdict)
        assert verdict.is_exactly_once
        names = [file.path for manifest in job.traces.manifests() for file in manifest.files()]
    logged = {name.rpartition("/")[2] for name in names if BETWEEN_CHECKPOINTS.search(name)}
    show(f"files written between checkpoints that were referred to: {sorted(logged)}")
    assert logged, "a materialized state is part of some checkpoint"
