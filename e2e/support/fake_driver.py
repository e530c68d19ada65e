"""A driver without Spark and without a job: it reports and handles requests like a real one.

Its behaviour is in the name of its image, so that a new version of a job is one that behaves
otherwise. It reads only its environment, as its pod would provide it, and never waits: the caller
advances its time.
"""

import time
from dataclasses import dataclass, field
from enum import StrEnum

from fake_storage import Completion, MissingObject, PretendStorage, Start
from weir.api.report import CheckpointReport, JobPhase, JobReport, Outcome, RequestReport


class Manner(StrEnum):
    """How a driver behaves."""

    WORKS = "works"
    """It handles every request."""
    FAILS_SAVEPOINTS = "fails-savepoints"
    """It takes checkpoints, but no savepoint."""
    IS_REFUSED = "is-refused"
    """It fails at once, because a person must change something."""
    NEVER_CHECKPOINTS = "never-checkpoints"
    """It runs, and completes nothing."""


REPOSITORY = "pretend"


def image(manner: Manner, version: int = 1) -> str:
    return f"{REPOSITORY}/{manner}:{version}"


def manner_of(image: str) -> Manner:
    return Manner(image.removeprefix(f"{REPOSITORY}/").partition(":")[0])


def start_of(environment: dict[str, str]) -> Start:
    """As the contract between operator and driver has it."""
    return Start(
        environment["WEIR_DEPLOYMENT"],
        environment.get("WEIR_FROM"),
        int(environment.get("WEIR_LOWEST_CHECKPOINT", "0")),
        environment.get("WEIR_FRESH") == "true",
    )


@dataclass(frozen=True, slots=True)
class Order:
    """A request to a driver."""

    kind: str
    directory: str


@dataclass(slots=True)
class PretendDriver:
    """One attempt."""

    attempt: int
    token: str
    manner: Manner
    start: Start
    storage: PretendStorage
    savepoint_directory: str
    phase: JobPhase = JobPhase.CREATED
    why: str = ""
    is_rejected: bool = False
    newest: CheckpointReport | None = None
    completed: int = 0
    has_ended: bool = False
    requests: dict[str, RequestReport] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    """Those in progress, by their keys."""

    @property
    def is_over(self) -> bool:
        return self.phase.is_over

    @property
    def exit_code(self) -> int:
        return 1 if self.phase is JobPhase.FAILED else 0

    def begin(self) -> None:
        """Restore and run, or refuse to."""
        try:
            self.storage.begin(self.attempt, self.start)
        except MissingObject as missing:
            self._reject(str(missing))
            return
        if self.manner is Manner.IS_REFUSED:
            self._reject("this version refuses to run")
            return
        self.phase = JobPhase.RUNNING

    def end(self) -> None:
        """Its process is gone."""
        self.has_ended = True
        self.storage.end(self.attempt)

    def complete_checkpoint(self) -> Completion | None:
        """One more is complete, if this driver completes any."""
        if self.phase is not JobPhase.RUNNING or self.manner is Manner.NEVER_CHECKPOINTS:
            return None
        return self._heard_of(self.storage.complete(self.start.deployment))

    def order(self, kind: str, key: str, directory: str | None) -> bool:
        """Begin a request; one with the same key again has no effect."""
        if key in self.requests:
            return False
        self.requests[key] = RequestReport(id=key, outcome=Outcome.IN_PROGRESS)
        self.orders[key] = Order(kind, directory or self.savepoint_directory)
        return True

    def finish(self, key: str) -> None:
        """End what was begun, unless the driver has ended before."""
        order = self.orders.pop(key)
        if self.phase is not JobPhase.RUNNING or self.has_ended:
            return
        if order.kind == "checkpoints":
            done = self.storage.complete(self.start.deployment)
        elif self.manner is Manner.FAILS_SAVEPOINTS:
            failed = RequestReport(id=key, outcome=Outcome.FAILED, message="the disk is full")
            self.requests[key] = failed
            return
        else:
            done = self.storage.take_savepoint(key, self.start.deployment, order.directory)
        self.requests[key] = _answered(key, self._heard_of(done))
        if order.kind == "stop":
            self.phase = JobPhase.STOPPED

    @property
    def signs(self) -> tuple[object, ...]:
        """The contents of a report, to compare without building one."""
        outcomes = tuple(request.outcome for request in self.requests.values())
        return (self.phase, self.completed, self.why, outcomes)

    def report(self) -> JobReport:
        return JobReport(
            attempt=self.attempt,
            phase=self.phase,
            newest=self.newest,
            completed=self.completed,
            restarts=0,
            why=self.why,
            is_rejected=self.is_rejected,
            scheduler_running=self.phase is JobPhase.RUNNING,
            slots_missing=0,
            requests=tuple(self.requests.values()),
        )

    def _reject(self, why: str) -> None:
        self.phase, self.why, self.is_rejected = JobPhase.FAILED, why, True

    def _heard_of(self, done: Completion) -> Completion:
        self.completed += 1
        self.newest = _reported(done)
        return done


def _reported(done: Completion) -> CheckpointReport:
    return CheckpointReport(
        id=done.number,
        path=done.path,
        completed_at_ms=int(time.time() * 1_000),
        size_bytes=1_000,
        duration_ms=10,
    )


def _answered(key: str, done: Completion) -> RequestReport:
    return RequestReport(
        id=key,
        outcome=Outcome.COMPLETED,
        path=done.path,
        checkpoint=done.number,
        size_bytes=1_000,
    )
