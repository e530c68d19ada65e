"""Keyed state in RocksDB survives deaths exactly once, and a job moves to it and back."""

from dataclasses import replace

import pytest

from faults import Fault, FaultKind, Moment, Step
from job_setting import JobSetting
from random_seed import show
from real_job import real_job
from wait_until import until

SST = "checkpoints/*/shared/*-rocksdb-*.sst-*"


def backend(name):
    return ("weir.state.backend", name)


@pytest.mark.timeout(180)
def test_a_job_in_rocksdb_survives_deaths_and_switches_its_backend_by_a_savepoint(tmp_path):
    """S2 S10 S14 R1: begun in memory, killed twice in RocksDB, ended in memory; every row once."""
    to_disk, to_memory = (f"file://{tmp_path}/{name}" for name in ("to-disk", "to-memory"))
    setting = JobSetting(f"file://{tmp_path}/checkpoints", f"file://{tmp_path}/output")
    on_disk = (
        backend("rocksdb"),
        ("weir.state.rocksdbLocalDir", f"{tmp_path}/local"),
        ("weir.checkpointing.incremental", "true"),
        ("weir.checkpointing.inlineThreshold", "0 B"),
        ("weir.state.localRecovery", "true"),
    )
    with real_job(setting.sized(rows=200_000, rate=6_000), tmp_path) as job:
        first = job.start(job.prepare(job.setting.having(backend("hashmap"))))
        job.until_checkpoints()
        moved = replace(job.setting, deployment="second").having(*on_disk)
        second = job.prepare(moved.having(("weir.recovery.path", to_disk)))
        first.tell(do="stop", path=to_disk, drain=False)
        assert first.until_ended()["ended"] == "stopped"

        job.start(second)
        until("RocksDB's files are uploaded", lambda: list(tmp_path.glob(SST)), second.explain)
        job.until_checkpoints()
        job.inject(Fault(1, Step.UPLOAD, Moment.AFTER, FaultKind.KILL_SLOT))
        taking_over = job.prepare(moved.having(("weir.recovery.path", to_disk)))
        job.until_checkpoints()
        job.inject(Fault(2, Step.RECORD, Moment.BEFORE, FaultKind.KILL_DRIVER))
        second.until_dead()
        job.start(taking_over)
        job.until_checkpoints()
        back = replace(job.setting, deployment="third").having(backend("hashmap"))
        last = job.prepare(back.having(("weir.recovery.path", to_memory)))
        taking_over.tell(do="stop", path=to_memory, drain=False)
        assert taking_over.until_ended()["ended"] == "stopped"
        assert job.verdict_so_far().is_exactly_once

        job.start(last, rate=0)
        assert last.until_ended()["ended"] == "finished"
        show(verdict := job.verdict())
        assert verdict.is_exactly_once
