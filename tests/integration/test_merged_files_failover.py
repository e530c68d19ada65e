"""A real job with merged files loses a slot and its driver, and goes on at another width."""

from dataclasses import replace

from faults import Fault, FaultKind, Moment, Step
from job_setting import JobSetting
from random_seed import SEED, show
from real_job import real_job

WIDTH, NEXT_WIDTH = 2, 3


def a_job(home):
    setting = JobSetting(f"file://{home}/checkpoints", f"file://{home}/output")
    setting = replace(setting, parallelism=WIDTH, interval_ms=200, is_hesitant=True)
    return setting.sized(rows=400_000, rate=4_000).having(
        ("weir.checkpointing.unaligned", "true"),
        ("weir.checkpointing.incremental", "true"),
        ("weir.checkpointing.inlineThreshold", "0 B"),
        ("weir.checkpointing.fileMerging.enabled", "true"),
        ("weir.checkpointing.fileMerging.poolBlocking", "true"),
    )


def test_a_job_with_merged_files_survives_deaths_exactly_once(tmp_path):
    """S6, S11, R1, R5: slots write few files, and a job of another width is restored from them."""
    show(f"WEIR_SEED={SEED}")
    with real_job(a_job(tmp_path), tmp_path) as job:
        driver = job.start()
        wider = job.prepare(replace(job.setting, parallelism=NEXT_WIDTH))
        job.until_checkpoints(3)
        job.inject(Fault(0, Step.UPLOAD, Moment.AFTER, FaultKind.KILL_SLOT))
        job.until_checkpoints(2)
        job.inject(Fault(1, Step.MANIFEST, Moment.AFTER, FaultKind.KILL_DRIVER))
        driver.until_dead()
        driver = job.start(wider)
        job.until_in_charge(driver)
        job.until_checkpoints(3)
        driver.tell(do="stop", path=f"file://{tmp_path}/drained", drain=True)
        assert driver.until_ended()["ended"] == "stopped"
        verdict = job.verdict_so_far()
        show(verdict)
        assert verdict.is_exactly_once
        written = [new_files(manifest) for manifest in job.traces.manifests()]
    show(f"pieces and files of each checkpoint: {written}")
    assert all(files <= 2 * NEXT_WIDTH for _, files in written)
    assert sum(files for _, files in written) < sum(pieces for pieces, _ in written) / 1.5


def new_files(manifest):
    """How many pieces the checkpoint has written itself, in how many files."""
    marks = (f"/chk-{manifest.checkpoint}/", f"-c{manifest.checkpoint}-", "/drained/")
    own = [file for file in manifest.files() if any(mark in file.path for mark in marks)]
    return len(own), len({file.path for file in own})
