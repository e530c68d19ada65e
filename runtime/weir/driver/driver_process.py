"""Assembles the driver of one job and runs it from the start of its epoch to its end."""

import logging
import os
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import uuid4

from weir.api.config import JobConfig
from weir.core import attempt as attempts
from weir.core import restore_decision
from weir.core.coordinator import events
from weir.core.enumerator import Pool
from weir.core.ids import OperatorId, RequestId
from weir.core.job_master import Action, Event, Job
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.core.snapshots import CheckpointKind
from weir.core.stall_detector import StallDetector
from weir.dataflow.physical import JobGraph, SinkHead, SourceHead
from weir.driver.action_runner import ActionRunner
from weir.driver.job_startup import AlreadyEnded, JobStartup, TakenOver
from weir.driver.liveness_probe import LivenessProbe
from weir.driver.loop import Loop, StepListener
from weir.driver.pending_requests import Outcome, PendingRequests
from weir.driver.policy_settings import policy_of, strategy_of
from weir.driver.sink_committers import SinkCommitters
from weir.driver.slot_registry import Patience, SlotPool, SlotRegistry
from weir.driver.source_commits import SourceCommits
from weir.driver.split_discovery import SplitDiscovery
from weir.driver.state_compatibility import check_state_compatibility
from weir.driver.statistics import Statistics
from weir.driver.storage_actions import StorageActions
from weir.driver.trace import InitialState, Trace
from weir.errors import WeirError
from weir.storage.job_log_store import JobLog
from weir.storage.stores import ObjectStore
from weir.wire.authenticated_sockets import Address, Listener, Purpose, Tls

log = logging.getLogger("weir.driver")

STORAGE_THREADS = 4


@dataclass(frozen=True, slots=True)
class DriverResult:
    """How a driver's work ended."""

    status: JobStatus
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """What a driver is started with."""

    name: str
    deployment: str
    graph: JobGraph
    config: JobConfig
    directory: str
    """Of this job, below the checkpoint storage: everything it keeps is there."""
    secret: bytes
    tls: Tls | None = None
    bind_host: str = "127.0.0.1"
    patience: Patience = field(default_factory=Patience)
    trace_directory: Path | None = None
    """Where the driver's life is written down, if it shall be."""
    attempt: int | None = None
    """Of the driver, as an operator counts; none if no operator owns the job."""

    @property
    def policy(self) -> Policy:
        return policy_of(self.config, managed=self.attempt is not None)


class Driver:
    """One driver process of one submission."""

    def __init__(self, submission: Submission, store: ObjectStore, pool: SlotPool) -> None:
        self._submission = submission
        self._store = store
        self._journal = JobLog(store, submission.directory)
        self._threads = ThreadPoolExecutor(STORAGE_THREADS, thread_name_prefix="weir-storage")
        self._queue: list[Event] = []
        self._loop: Loop | None = None
        self._lock = threading.Lock()
        self._requests = PendingRequests()
        self._trace: Trace | None = None
        self.statistics = Statistics()
        listener = Listener(
            submission.bind_host, submission.secret, Purpose.SLOT_CONTROL, submission.tls
        )
        self.slots = SlotRegistry(listener, pool, submission.patience, self.enqueue)
        heads = {stage.operator: stage.head for stage in submission.graph.stages}
        sources = {o: h.source for o, h in heads.items() if isinstance(h, SourceHead)}
        self._split_discovery = SplitDiscovery(sources, self.enqueue, self.fail, self._free_splits)
        self._source_commits = SourceCommits(sources, store)
        committers = {o: h.sink.committer() for o, h in heads.items() if isinstance(h, SinkHead)}
        self._sink_committers = SinkCommitters(committers, self.enqueue, self.fail)

    @property
    def address(self) -> Address:
        """Where slots register."""
        return self.slots.address

    def _free_splits(self, operator: OperatorId) -> int:
        """Those that wait for a reader, as the loop has it now."""
        return len(self._loop.job.splits[operator].free) if self._loop is not None else 0

    @property
    def why(self) -> str:
        """Why the job failed or restarted last: the decision, and the reason of the subtask."""
        decided, failed = self.statistics.last_failure, self.statistics.failed_subtask
        reported = self.slots.reason_of(failed) if failed is not None else ""
        return f"{decided} ({reported})" if reported else decided

    def enqueue(self, event: Event) -> None:
        """From any thread; events that come before the epoch has started wait for it."""
        with self._lock:
            if self._loop is None:
                self._queue.append(event)
            else:
                self._loop.enqueue(event)

    def fail(self, problem: WeirError) -> None:
        """From any thread, once the epoch has started: end the driver, leave the job as it is."""
        assert self._loop is not None, "nothing acts before the epoch is ours"
        self._loop.fail(problem)

    # -- requests

    def ask(self, kind: CheckpointKind, location: str = "", key: str = "") -> RequestId:
        usual = self._submission.config.checkpointing.savepoint_dir
        if kind.is_savepoint and usual and not location:
            location = f"{usual.rstrip('/')}/savepoint-{uuid4().hex[:12]}"
        request, _ = self._requests.ask(self.enqueue, kind, location, key)
        return request

    def outcome_of(self, request: str) -> Future[Outcome] | None:
        return self._requests.find(request)

    def cancel(self) -> None:
        self.enqueue(attempts.CancelRequested())

    # -- life

    def run(
        self, restore_request: restore_decision.RestoreRequest, address: str = ""
    ) -> DriverResult:
        """Take the job over and run it to its end, or until another driver has it.

        The address is the URL of this driver's API.
        """
        who = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        submission = self._submission
        judge = partial(
            check_state_compatibility,
            self._store,
            graph=submission.graph,
            allow_non_restored=restore_request.allow_non_restored,
            backend=submission.config.state.backend,
        )
        starting = JobStartup(
            self._store,
            self._journal,
            submission.directory,
            who,
            restore_request,
            judge=judge,
            address=address,
            ask=LivenessProbe(submission.directory, submission.tls),
        )
        begun = starting.take_over(submission.graph.topology)
        if isinstance(begun, AlreadyEnded):
            self._log_already_ended(begun)
            self.close()
            return DriverResult(begun.status)
        try:
            return self._run_epoch(begun)
        finally:
            self.close()

    def _log_already_ended(self, over: AlreadyEnded) -> None:
        name = self._submission.name
        if over.earlier:
            log.warning(
                "Job %s has finished already: all its results are committed, and nothing is run."
                " To run it again from its beginning use `weir run --rerun`, or set weir.rerun ="
                " true; another query needs another name (appName or queryName).",
                name,
            )
        else:
            log.info("Job %s is over already: %s.", name, over.status)

    def _run_epoch(self, begun: TakenOver) -> DriverResult:
        loop, first = self._make_loop(begun)
        with self._lock:
            self._loop = loop
            for event in self._queue:
                loop.enqueue(event)
        self._claim_sinks(begun, loop.job)
        self.slots.open()
        if isinstance(begun.resolution, restore_decision.ReplayCommit):
            loop.enqueue(events.StatusReported(JobStatus.STOPPED, 0.5))
        else:
            loop.enqueue(attempts.JobStarted())
            self._split_discovery.start(loop.job.splits)
            self._source_commits.start()
        end = loop.run(first)
        return DriverResult(end.status, end.fenced)

    def _claim_sinks(self, begun: TakenOver, job: Job) -> None:
        commits = {
            sink: ledger.sequence for sink, ledger in job.coordinator.commits.ledgers.items()
        }
        directory, resolution = self._submission.directory, begun.resolution
        restores_another = isinstance(
            resolution, restore_decision.RestoreFrom
        ) and not resolution.path.startswith(f"{directory}/")
        self._sink_committers.claim(directory, commits, may_take_over=restores_another)

    def _make_loop(self, begun: TakenOver) -> tuple[Loop, tuple[Action, ...]]:
        submission, epoch_state = self._submission, begun.epoch_state
        topology = submission.graph.topology
        without = (
            isinstance(begun.resolution, restore_decision.RestoreFrom)
            and begun.resolution.without_in_flight
        )
        beginning = InitialState(
            submission.policy,
            topology,
            strategy_of(submission.config.restart),
            epoch_state,
            self._split_discovery.pools(_pools(begun.resolution)),
            without_in_flight=without,
            health=StallDetector(submission.config.health_window or 0),
        )
        job, commits = beginning.job()
        action_runner = ActionRunner(
            epoch_state.epoch,
            self.slots,
            StorageActions(self._store, self._journal, self._threads, self.enqueue),
            self._sink_committers,
            self._requests.answer,
            self.enqueue,
        )
        listeners: list[StepListener] = [self.statistics.on_step, self._source_commits.on_step]
        if submission.trace_directory is not None:
            path = submission.trace_directory / f"{submission.name}-{epoch_state.epoch}.jsonl"
            self._trace = Trace(path, beginning)
            listeners.append(self._trace.on_step)
        return Loop(submission.name, action_runner, listeners, job), commits

    def close(self) -> None:
        self._requests.close()
        self._split_discovery.close()
        self._source_commits.close()
        self.slots.close()
        self._sink_committers.close()
        self._threads.shutdown(wait=True)
        if self._trace is not None:
            self._trace.close()


def _pools(resolution: restore_decision.Resolution) -> Mapping[OperatorId, Pool]:
    if not isinstance(resolution, restore_decision.RestoreFrom | restore_decision.ReplayCommit):
        return {}
    return {
        operator: state
        for operator, state in resolution.manifest.coordinators
        if isinstance(state, Pool)
    }
