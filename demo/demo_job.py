"""Starts the processes of the demo's job, watches them through its API, and kills them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weir import CheckpointStatistics, Client, WeirError, running_jobs

DAEMON = b"\0weir.daemon\0"
"""In the command of Spark's Python daemon, and of the slots that it forks."""
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.05


class DemoFailed(Exception):
    """The demo cannot continue; the message says what happened and names the log."""


@dataclass
class DemoJob:
    """One job, run by one driver process after the other."""

    directory: Path
    rows: int
    rows_per_second: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "job.log"

    @property
    def output(self) -> str:
        return f"file://{self.directory}/output"

    def start(self, restore: str = "") -> None:
        """Start the driver as a user would: python sums_by_key.py."""
        environment = {
            **os.environ,
            "DEMO_CHECKPOINTS": f"file://{self.directory}/checkpoints",
            "DEMO_OUTPUT": self.output,
            "DEMO_ROWS": str(self.rows),
            "DEMO_ROWS_PER_SECOND": str(self.rows_per_second),
            "WEIR_FROM": restore,
        }
        script = Path(__file__).with_name("sums_by_key.py")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, script], env=environment, stdout=log, stderr=log
            )

    @property
    def client(self) -> Client | None:
        if self.process is None:
            return None
        found = [job for job in running_jobs() if job.pid == self.process.pid]
        return Client(found[0].url, found[0].token) if found else None

    def newest_checkpoint(self) -> int:
        """The newest completed checkpoint that this driver took; zero before the first."""
        statistics = self._statistics()
        done = [c.id for c in statistics.history if c.external_path] if statistics else []
        return max(done, default=0)

    def _completed(self) -> int:
        """How many this driver has completed."""
        statistics = self._statistics()
        return statistics.counts.completed if statistics else 0

    def _statistics(self) -> CheckpointStatistics | None:
        """None while no driver answers."""
        client = self.client
        try:
            return client.checkpoints() if client else None
        except WeirError:
            return None

    def await_checkpoints(self, count: int) -> int:
        """Wait until so many more are complete; the newest."""
        wanted = self._completed() + count
        self.until(lambda: self._completed() >= wanted, f"{count} more checkpoints")
        return self.newest_checkpoint()

    def until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if self.process is None or self.process.poll() is not None:
                raise DemoFailed(f"The job ended while we waited for {what}; see {self.log}.")
            if time.monotonic() > deadline:
                raise DemoFailed(f"{what} did not happen in time; see {self.log}.")
            time.sleep(POLL_SECONDS)

    def slots(self) -> list[int]:
        """The processes of the slots: what Spark's Python daemon of this driver has forked."""
        assert self.process is not None, "slots belong to a driver"
        family = _descendants(self.process.pid)
        daemons = {pid for pid in family if DAEMON in _command(pid)}
        return sorted(pid for pid in daemons if _parent(pid) in daemons)

    def kill_slot(self) -> int:
        victim = self.slots()[0]
        os.kill(victim, signal.SIGKILL)
        return victim

    def kill_driver(self) -> int:
        assert self.process is not None, "only what was started can be killed"
        self.process.kill()
        self.process.wait()
        return self.process.pid

    def wait(self) -> None:
        assert self.process is not None, "only what was started can end"
        if self.process.wait(PATIENCE_SECONDS) != 0:
            raise DemoFailed(f"The job failed; see {self.log}.")

    def end(self) -> None:
        """Kill the driver if it still runs."""
        if self.process is not None and self.process.poll() is None:
            self.kill_driver()


def _descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            children.setdefault(_parent(int(entry.name)), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return found


def _parent(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
