"""Reconciles a CheckpointedJob: observe, plan, write the status, execute (spec K3).

The status is written under an optimistic lock before any action, so a crash between two calls
repeats actions and never duplicates them. After a conflict the job is read and planned again. A
rejection by the API server is kept until the request succeeds, so that the next plan can report it
to the user.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from weir_operator.cluster.api_paths import JOBS, NamespacedName
from weir_operator.cluster.api_requests import ApiRejected
from weir_operator.cluster.cluster_reader import ReadDepth, ReadTarget
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.cluster.status_writer import ResourceTooLarge
from weir_operator.controller.action_executor import ActionExecutor
from weir_operator.controller.operator_metrics import OperatorMetrics
from weir_operator.controller.work_queue import Done, ReconcileResult, Requeue
from weir_operator.plan import Observed, Plan, plan
from weir_operator.plan.cluster_actions import ReadLive, RemoveFinalizer
from weir_operator.plan.observed_state import DriverReport, Running, Unreachable
from weir_operator.plan.spec_versions import deployed_spec, desired_version
from weir_operator.plan.status_conditions import with_failure
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import Failure
from weir_operator.resource.validation import Rejected, parse_status, validate_job, validate_size

log = logging.getLogger("weir_operator.job_reconciler")

MAX_ROUNDS = 8
"""Within one reconcile; a job that needs more rounds is requeued."""
FULL_READ_PERIOD = timedelta(minutes=5)
LIVE_READ_WHEN_UNREACHABLE = timedelta(seconds=30)
LIVE_READ_WHEN_TERMINATING = timedelta(seconds=5)


@dataclass(slots=True)
class JobReconciler:
    """The reconciler of CheckpointedJobs."""

    executor: ActionExecutor
    metrics: OperatorMetrics
    now: Callable[[], datetime]
    _read_at: dict[NamespacedName, tuple[datetime, datetime]] = field(default_factory=dict)
    """When each job was last read from the API server itself, and when in full."""
    _rejected: dict[NamespacedName, Failure] = field(default_factory=dict)
    _too_large: dict[NamespacedName, str] = field(default_factory=dict)
    """Versions of jobs whose status the API server rejects as too large."""

    async def reconcile(self, key: NamespacedName) -> ReconcileResult:
        """Bring a job closer to its desired state, in as many steps as need no waiting."""
        depth = self._depth_due(key)
        for _ in range(MAX_ROUNDS):
            job = await self.executor.job(key)
            if job is None or (job.deleted_at is not None and not job.has_finalizer):
                return self._forget(key)
            if self._too_large.get(key) == job.version:
                return Requeue()
            try:
                outcome = (
                    await self._reconcile_once(job, depth)
                    if job.has_finalizer
                    else await self._add_finalizer(job)
                )
            except ApiRejected as rejected:
                await self.executor.warn(JOBS, job, rejected.reason, str(rejected))
                raise
            if isinstance(outcome, ReadDepth):
                depth = outcome
            else:
                return outcome
        return Requeue(self.now())

    async def _add_finalizer(self, job: ResourceObject) -> ReconcileResult | ReadDepth:
        try:
            written = await self.executor.add_finalizer(JOBS, job)
        except ResourceTooLarge as problem:
            return await self._report_too_large(job, None, problem)
        await self.executor.update_cache(JOBS, job.key, written)
        return ReadDepth.CACHED

    async def _reconcile_once(
        self, job: ResourceObject, depth: ReadDepth
    ) -> ReconcileResult | ReadDepth:
        """Plan and execute once; a depth requests another round that reads that much."""
        status = parse_status(job.status)
        if isinstance(status, Rejected):
            return await self._skip_unreadable(job, status)
        spec = validate_size(job.spec_bytes) or validate_job(
            job.key.name, job.spec, deployed_spec(status)
        )
        observed = await self._observe(job, status, spec, depth)
        planned = plan(spec, status, observed)
        self.metrics.observe_job(job.key, status, planned.status, observed.now)
        effects = tuple(action for action in planned.actions if not isinstance(action, ReadLive))
        if not effects and planned.actions and depth is ReadDepth.CACHED:
            return ReadDepth.LIVE
        if effects or planned.status != status:
            try:
                written = await self.executor.write_status(JOBS, job, planned.status)
            except ResourceTooLarge as problem:
                failure = Failure(at=observed.now, reason=problem.reason, message=str(problem))
                reported = with_failure(status, failure, observed)
                return await self._report_too_large(job, reported, problem)
            if not isinstance(written, ResourceObject):
                await self.executor.update_cache(JOBS, job.key, written)
                return ReadDepth.CACHED
            self.executor.cache.put_job(written)
            job = written
        _log(job.key, planned, effects)
        return await self._execute(job, planned, effects)

    async def _report_too_large(
        self, job: ResourceObject, reported: CheckpointedJobStatus | None, problem: ResourceTooLarge
    ) -> ReconcileResult:
        """Report it where possible; then wait until the resource changes."""
        self.metrics.failed(problem.reason)
        log.warning(
            "A job is too large to be stored.", extra={"job": str(job.key), "why": str(problem)}
        )
        await self.executor.warn(JOBS, job, problem.reason, str(problem))
        self._too_large[job.key] = job.version
        if reported is None:
            return Requeue()
        with suppress(ResourceTooLarge):
            written = await self.executor.write_status(JOBS, job, reported)
            await self.executor.update_cache(JOBS, job.key, written)
            if isinstance(written, ResourceObject):
                self._too_large[job.key] = written.version
        return Requeue()

    async def _execute(
        self, job: ResourceObject, planned: Plan, effects: tuple[object, ...]
    ) -> ReconcileResult | ReadDepth:
        try:
            for action in effects:
                if isinstance(action, RemoveFinalizer):
                    await self.executor.update_cache(
                        JOBS, job.key, await self.executor.remove_finalizer(JOBS, job)
                    )
                    return ReadDepth.CACHED
                await self.executor.execute(job, action, planned.status)
        except ApiRejected as rejected:
            self._keep_rejection(job.key, rejected)
            raise
        if self._rejected.pop(job.key, None) is not None:
            return ReadDepth.CACHED
        if len(effects) < len(planned.actions):
            return ReadDepth.LIVE
        loss = self.executor.reader.next_node_loss(job.key, self.now())
        return Requeue(min(filter(None, (planned.requeue_at, loss)), default=None))

    async def _observe(
        self,
        job: ResourceObject,
        status: CheckpointedJobStatus,
        spec: CheckpointedJobSpec | Rejected,
        depth: ReadDepth,
    ) -> Observed:
        """The observed state; a driver that may be gone is read from the API server."""
        goal = desired_version(spec, status, job.generation)
        wanted = ReadTarget(
            None if status.driver is None else status.driver.attempt,
            None if goal is None else goal.spec,
        )
        observed = await self.executor.observe(job, self.now(), depth, wanted)
        report = await self.executor.driver_report(job, status)
        observed = _with_report(observed, report, self._rejected.get(job.key))
        if depth is ReadDepth.CACHED and self._may_be_gone(job.key, observed, status):
            depth = ReadDepth.LIVE
            live = await self.executor.observe(job, self.now(), depth, wanted)
            observed = _with_report(live, report, observed.refusal)
        self._record_read(job.key, depth)
        return observed

    def _may_be_gone(
        self, key: NamespacedName, observed: Observed, status: CheckpointedJobStatus
    ) -> bool:
        """Whether a driver has been terminating or unreachable for too long without a live read."""
        last, _ = self._read_at.get(key, (None, None))
        for_long = timedelta.max if last is None else self.now() - last
        if any(pod.is_terminating for pod in observed.drivers):
            return for_long >= LIVE_READ_WHEN_TERMINATING
        driver = status.driver
        if observed.report is not None or driver is None or driver.running_since is None:
            return False
        pod = observed.driver(driver.attempt)
        is_up = pod is not None and isinstance(pod.stage, Running)
        return is_up and for_long >= LIVE_READ_WHEN_UNREACHABLE

    def _depth_due(self, key: NamespacedName) -> ReadDepth:
        """A job is read in full periodically; for a new one nothing can have been missed."""
        _, thorough = self._read_at.setdefault(key, (self.now(), self.now()))
        return ReadDepth.FULL if self.now() - thorough >= FULL_READ_PERIOD else ReadDepth.CACHED

    def _record_read(self, key: NamespacedName, depth: ReadDepth) -> None:
        _, thorough = self._read_at[key]
        if depth is ReadDepth.FULL:
            self._read_at[key] = (self.now(), self.now())
        elif depth is ReadDepth.LIVE:
            self._read_at[key] = (self.now(), thorough)

    async def _skip_unreadable(self, job: ResourceObject, rejected: Rejected) -> ReconcileResult:
        """Leave a job alone whose status another release wrote and this one cannot read."""
        self.metrics.failed("StatusUnreadable")
        log.error(
            "A job has a status that cannot be read.",
            extra={"job": str(job.key), "why": str(rejected)[:1_024]},
        )
        message = (
            f"This operator cannot read the status of the job and does not reconcile it: {rejected}"
        )
        await self.executor.warn(JOBS, job, "StatusUnreadable", message)
        return Requeue()

    def _keep_rejection(self, key: NamespacedName, rejected: ApiRejected) -> None:
        """Keep it for the next plan; a repeated rejection keeps its first time."""
        known = self._rejected.get(key)
        failure = Failure(at=self.now(), reason=rejected.reason, message=str(rejected))
        if known is None or (known.reason, known.message) != (failure.reason, failure.message):
            self._rejected[key] = failure

    def _forget(self, key: NamespacedName) -> ReconcileResult:
        self.executor.forget(key)
        self._read_at.pop(key, None)
        self._rejected.pop(key, None)
        self._too_large.pop(key, None)
        self.metrics.forget_job(key)
        return Done()


def _with_report(
    observed: Observed, report: DriverReport | Unreachable | None, refusal: Failure | None
) -> Observed:
    if isinstance(report, Unreachable):
        return replace(observed, unreachable=report, refusal=refusal)
    return replace(observed, report=report, refusal=refusal)


def _log(key: NamespacedName, planned: Plan, effects: tuple[object, ...]) -> None:
    """Log what was planned; the rest is in the status."""
    if effects:
        names = " ".join(type(action).__name__ for action in effects)
        about = {"job": str(key), "state": str(planned.status.state), "actions": names}
        log.info("Executing a plan.", extra=about)
