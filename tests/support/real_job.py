"""Runs the job of the integration tests on real Spark processes.

It holds each job to what every job promises when it is over: nothing is left running, nothing is
left staged, every checkpoint that the log offers can be read, and every driver decided as the core
does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import running_sums
from faults import DIRECTORY, Fault, Orders
from job_setting import JobSetting
from real_processes import end_session, is_alive, is_frozen, of_session
from retained_checkpoints import unreadable
from sum_oracle import Verdict, committed, judge, judge_prefix
from traces import Traces
from wait_until import until
from weir.storage.stores import store_for

LOG_TAIL = 6_000
STACKS_S = 0.5
"""So long a process may take to write down where its threads are."""

SEARCHED = [str(Path(running_sums.__file__).parent), *sys.path]


@dataclass
class DriverProcess:
    """One driver: the Python process that a user starts, and whatever that starts."""

    popen: subprocess.Popen[bytes]
    home: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def tell(self, **command: object) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps(command).encode() + b"\n")
        self.popen.stdin.flush()

    def answers(self) -> list[dict[str, Any]]:
        path = self.home / "answers"
        return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []

    def explain(self) -> str:
        """The end of its log, after it has dumped the stacks of its threads."""
        with suppress(ProcessLookupError):
            self.signal(signal.SIGUSR1)
            time.sleep(STACKS_S)
        return self.last_words()

    def last_words(self) -> str:
        log = (self.home / "log").read_text(errors="replace")
        return f"--- {self.home.name} ({self.popen.poll()}):\n{log[-LOG_TAIL:]}"

    def log(self) -> str:
        return (self.home / "log").read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def until_ready(self) -> None:
        self._until("Spark starts", lambda: any("ready" in a for a in self.answers()))

    def ask(self, do: str, **more: object) -> Any:  # noqa: ANN401 - whatever the job answers
        """Send a command and wait for its result; a refusal is raised."""
        known = len(self.answers())
        self.tell(do=do, **more)
        self._until(f"an answer to {do}", lambda: self._answer(do, known))
        answer = self._answer(do, known)
        assert "answer" in answer, answer
        return answer["answer"]

    def _answer(self, do: str, known: int) -> dict[str, Any]:
        return next((a for a in self.answers()[known:] if a.get("asked") == do), {})

    def until_ended(self) -> dict[str, Any]:
        """How the job ended for this driver, as it reports it."""
        self._until("the driver ends by itself", lambda: self.popen.poll() is not None)
        return next((a for a in self.answers() if "ended" in a), {})

    def until_dead(self) -> None:
        self._until("the driver is dead", lambda: self.popen.poll() is not None)

    def until_frozen(self) -> None:
        self._until("the driver freezes", lambda: is_frozen(self.pid))

    def _until(self, what: str, look: Callable[[], object]) -> None:
        until(what, lambda: look() or self.popen.poll() is not None, self.explain)
        assert look(), f"the driver ended before: {what}\n{self.last_words()}"


@dataclass
class RealJob:
    """One job and all its drivers, one after the other or against each other."""

    setting: JobSetting
    home: Path
    storage: Mapping[str, str] = field(default_factory=dict)
    """How the test reaches the job's S3; the job has it from its environment."""
    drivers: list[DriverProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("traces", "faults"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        self.traces = Traces(self.home / "traces")
        self.orders = Orders(self.home / "faults")

    # -- drivers

    def prepare(self, setting: JobSetting | None = None) -> DriverProcess:
        """A driver whose Spark starts now and which has not taken the job over yet."""
        home = self.home / f"driver-{len(self.drivers) + 1}"
        home.mkdir()
        chosen = setting or self.setting
        with (home / "log").open("wb") as log:
            popen = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, running_sums.__file__, chosen.to_json(), home],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment(chosen),
                start_new_session=True,
            )
        self.drivers.append(DriverProcess(popen, home))
        return self.drivers[-1]

    def start(self, driver: DriverProcess | None = None, rate: int | None = None) -> DriverProcess:
        """Let a driver take the job over, at this rate."""
        chosen = driver or self.prepare()
        chosen.until_ready()
        chosen.tell(do="start", rate=self.setting.rate if rate is None else rate)
        return chosen

    def _environment(self, setting: JobSetting) -> dict[str, str]:
        names = {"endpoint_url": "AWS_ENDPOINT_URL", "key": "AWS_ACCESS_KEY_ID"}
        names |= {"secret": "AWS_SECRET_ACCESS_KEY"}
        return {
            **os.environ,
            **{names[key]: value for key, value in self.storage.items()},
            "PYTHONPATH": os.pathsep.join(SEARCHED),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "WEIR_DEPLOYMENT": setting.deployment,
            "WEIR_TRACE": str(self.home / "traces"),
            "WEIR_LOCAL_DIR": str(self.home / "local"),
            DIRECTORY: str(self.orders.directory),
        }

    # -- what happens

    def until(self, what: str, look: Any) -> Any:  # noqa: ANN401 - whatever it saw
        return until(what, look, self.explain)

    def until_checkpoints(self, more: int = 1) -> None:
        """So many more checkpoints are complete than now."""
        goal = self.traces.completed + more
        self.until(f"checkpoint number {goal}", lambda: self.traces.completed >= goal)

    def until_in_charge(self, driver: DriverProcess) -> None:
        """From now on only this driver and its slots have injected faults."""
        self.until("the driver is in charge", lambda: self.orders.driver() == driver.pid)

    def inject(self, fault: Fault) -> None:
        """Arm the fault and wait until it has happened."""
        self.orders.arm(fault)
        self.until(str(fault), lambda: self.orders.has_happened(fault) or self._has_ended())
        assert self.orders.has_happened(fault), f"the job ended before: {fault}"

    def _has_ended(self) -> bool:
        return any("ended" in a for a in self.drivers[-1].answers())

    def slots(self) -> list[int]:
        """The processes of the driver in charge's slots, as it knows them."""
        newest = self.traces.newest()
        names = sorted(newest.slots) if newest else []
        pids = (int(name.rpartition(".")[2]) for name in names)
        return sorted(pid for pid in pids if is_alive(pid))

    def explain(self) -> str:
        return "\n".join(driver.explain() for driver in self.drivers[-2:])

    # -- what is left

    def verdict(self) -> Verdict:
        return judge(self.setting, self.storage)

    def verdict_so_far(self) -> Verdict:
        return judge_prefix(self.setting, self.storage)

    def unreadable(self) -> list[str]:
        return unreadable(self.setting.directory, self.storage)

    def staged(self) -> list[str]:
        """Files only: where directories are objects too, an empty one may be listed."""
        store = store_for(self.setting.output, self.storage)
        urls = store.list(f"{self.setting.output}/_staging")
        return [url for url in urls if url.endswith(".parquet")]

    def uncommitted(self) -> list[str]:
        """Files that a reader of the directory would see and that no commit names."""
        output = self.setting.output
        store = store_for(output, self.storage)
        names = {url.rpartition("/")[2] for url in store.list(output)}
        shown = {name for name in names if name.startswith("part-")}
        return sorted(shown - set(committed(store, output)))

    def conclude(self) -> None:
        """What is true of every job when its drivers are over."""
        sessions = [driver.pid for driver in self.drivers]
        self.until("no process is left", lambda: not any(of_session(s) for s in sessions))
        left = {
            "decided otherwise by the core": self.traces.findings(),
            "offered and unreadable": self.unreadable(),
            "still staged": self.staged(),
            "shown and not committed": self.uncommitted(),
        }
        wrong = {what: found for what, found in left.items() if found}
        assert not wrong, f"the job is over: {json.dumps(wrong, indent=1)}"

    def end_all(self) -> None:
        for driver in self.drivers:
            end_session(driver.pid)
            driver.popen.wait()
            if driver.popen.stdin is not None:
                with suppress(BrokenPipeError):
                    driver.popen.stdin.close()


@contextmanager
def real_job(
    setting: JobSetting, home: Path, storage: Mapping[str, str] | None = None
) -> Iterator[RealJob]:
    """A job that is held to its promises at the end of the block."""
    job = RealJob(setting, home, storage or {})
    try:
        yield job
        job.conclude()
    finally:
        job.end_all()
