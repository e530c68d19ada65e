"""A real job from one Python data source into another, as a program with injected faults.

It is the program of ``running_sums`` with another stream in it: numbers of a ``Counter`` go into a
``Ledger``. The third argument holds the options of both.
"""

import faulthandler
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import running_sums
from fault_injector import inject_driver_faults
from job_setting import JobSetting
from real_job import DriverProcess, RealJob
from recorded_sources import Counter, Ledger, ledger_rows, notes
from weir import StreamingJob


class CounterToLedger(running_sums.Program):
    """One driver process of the job."""

    def _submit(self, rate: int) -> StreamingJob:
        del rate
        options = json.loads(sys.argv[3])
        self._session.dataSource.register(Counter)
        self._session.spark.dataSource.register(Ledger)
        numbers = self._session.readStream.format("counter").options(**options).load()
        out = numbers.uid("numbers").writeStream.format("ledger").options(**options).uid("ledger")
        job = out.start()
        assert isinstance(job, StreamingJob), "what was started is a job of this session"
        return job


class LedgerJob(RealJob):
    """The job and all its drivers, with what the outside has recorded of them."""

    limit = 8_000
    is_idempotent = True

    def prepare(self, setting: JobSetting | None = None) -> DriverProcess:
        home = self.home / f"driver-{len(self.drivers) + 1}"
        home.mkdir()
        chosen = setting or self.setting
        with (home / "log").open("wb") as log:
            popen = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, __file__, chosen.to_json(), home, json.dumps(self._options())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**self._environment(chosen), "HOME": str(self.home)},
                start_new_session=True,
            )
        self.drivers.append(DriverProcess(popen, home))
        return self.drivers[-1]

    def _options(self) -> dict[str, str]:
        """A partition takes longer than the time between two checkpoints."""
        return {
            "step": "1000",
            "pauseMs": "60",
            "limit": str(self.limit),
            "log": str(self.home / "offsets"),
            "path": str(self.home / "ledger.db"),
            "idempotent": str(self.is_idempotent).lower(),
        }

    @property
    def numbers(self) -> list[tuple[int, ...]]:
        """What the ledger holds, as (batch, number)."""
        return ledger_rows(self.home / "ledger.db", "numbers")

    @property
    def batches(self) -> list[int]:
        """The numbers of all commits that the ledger has seen, repetitions too."""
        return [batch for (batch,) in ledger_rows(self.home / "ledger.db", "commits")]

    @property
    def offsets(self) -> list[int]:
        """What the source was notified that it may forget."""
        words = notes(self.home / "offsets")
        return [end["next"] for what, *rest in words if what == "commit" for end in rest]


@contextmanager
def ledger_job(home: Path, *, is_idempotent: bool) -> Iterator[LedgerJob]:
    """A job that is held to what every job promises at the end of the block."""
    setting = JobSetting(f"file://{home}/checkpoints", f"file://{home}/output")
    job = LedgerJob(setting, home)
    job.is_idempotent = is_idempotent
    try:
        yield job
        job.conclude()
    finally:
        job.end_all()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    faulthandler.register(signal.SIGUSR1)
    inject_driver_faults()
    sys.exit(CounterToLedger(JobSetting.from_json(sys.argv[1]), Path(sys.argv[2])).run())
