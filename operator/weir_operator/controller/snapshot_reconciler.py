"""Reconciles a CheckpointedJobSnapshot: observe, plan, write the status, execute (spec K5).

It works like the reconciler of jobs. The Job that deletes the files is read from the API server and
not watched, since few snapshots are being deleted at a time. A snapshot with an invalid
specification fails, and its object can always be deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from weir_operator.cluster.api_paths import SNAPSHOTS, NamespacedName
from weir_operator.cluster.api_requests import ApiRejected
from weir_operator.cluster.cluster_reader import parse_snapshot
from weir_operator.cluster.event_recorder import record_event
from weir_operator.cluster.informer_cache import job_of
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.cluster.status_writer import ResourceTooLarge
from weir_operator.controller.action_executor import ActionExecutor
from weir_operator.controller.work_queue import Done, ReconcileResult, Requeue
from weir_operator.plan import SnapshotPlan, plan_snapshot
from weir_operator.plan.cluster_actions import (
    Dispose,
    EmitEvent,
    RemoveFinalizer,
    RequestCheckpoint,
    RequestSavepoint,
)
from weir_operator.plan.observed_state import Disposal, DriverReport, ObservedSnapshot
from weir_operator.plan.snapshot_plan import ObservedJob
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus, SnapshotState
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.validation import Rejected, parse_status, validate_snapshot

MAX_ROUNDS = 8
_OPEN = (SnapshotState.PENDING, SnapshotState.IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class SnapshotReconciler:
    """The reconciler of CheckpointedJobSnapshots."""

    executor: ActionExecutor
    now: Callable[[], datetime]
    _rejected: dict[NamespacedName, str] = field(default_factory=dict)
    """Why the API server rejects the Job that deletes the files of a snapshot."""
    _too_large: dict[NamespacedName, str] = field(default_factory=dict)
    """Versions of snapshots whose status the API server rejects as too large."""

    async def reconcile(self, key: NamespacedName) -> ReconcileResult:
        """Bring a snapshot closer to its end, in as many steps as need no waiting."""
        for _ in range(MAX_ROUNDS):
            snapshot = await self.executor.snapshot(key)
            if snapshot is None or (snapshot.deleted_at is not None and not snapshot.has_finalizer):
                self._rejected.pop(key, None)
                self._too_large.pop(key, None)
                return Done()
            if self._too_large.get(key) == snapshot.version:
                return Requeue()
            try:
                result = await self._reconcile_step(snapshot)
            except ResourceTooLarge as problem:
                await self.executor.warn(SNAPSHOTS, snapshot, problem.reason, str(problem))
                self._too_large[key] = snapshot.version
                return Requeue()
            if result is not None:
                return result
        return Requeue(self.now())

    async def _reconcile_step(self, snapshot: ResourceObject) -> ReconcileResult | None:
        if snapshot.has_finalizer:
            return await self._reconcile_once(snapshot)
        written = await self.executor.add_finalizer(SNAPSHOTS, snapshot)
        await self.executor.update_cache(SNAPSHOTS, snapshot.key, written)
        return None

    async def _reconcile_once(self, snapshot: ResourceObject) -> ReconcileResult | None:
        """Plan and execute once; none if it must be planned again."""
        before = CheckpointedJobSnapshotStatus.model_validate(snapshot.status)
        observed = parse_snapshot(snapshot, await self._disposal(snapshot))
        job = await self.executor.job(job_of(snapshot))
        planned = self._plan_for_invalid(snapshot, before)
        if observed is not None:
            observed = replace(observed, refusal=self._rejected.get(snapshot.key))
            planned = plan_snapshot(observed, await self._observed_job(job, observed), self.now())
        if planned.actions or planned.status != before:
            written = await self.executor.write_status(SNAPSHOTS, snapshot, planned.status)
            await self.executor.update_cache(SNAPSHOTS, snapshot.key, written)
            if not isinstance(written, ResourceObject):
                return None
            snapshot = written
        for action in planned.actions:
            if isinstance(action, RemoveFinalizer):
                await self.executor.update_cache(
                    SNAPSHOTS,
                    snapshot.key,
                    await self.executor.remove_finalizer(SNAPSHOTS, snapshot),
                )
                return None
            await self._execute_action(snapshot, job, action)
        return Requeue(planned.requeue_at)

    async def _disposal(self, snapshot: ResourceObject) -> Disposal:
        if snapshot.deleted_at is None or not snapshot.spec.get("disposeOnDelete"):
            return Disposal.ABSENT
        return await self.executor.reader.disposal(snapshot.key)

    async def _observed_job(
        self, job: ResourceObject | None, observed: ObservedSnapshot
    ) -> ObservedJob | None:
        """Its job; the driver's report matters only while the snapshot is being taken."""
        status = None if job is None else parse_status(job.status)
        if job is None or status is None or isinstance(status, Rejected):
            return None
        if observed.status.state not in _OPEN:
            return ObservedJob(status)
        report = await self.executor.driver_report(job, status)
        return ObservedJob(status, report if isinstance(report, DriverReport) else None)

    def _plan_for_invalid(
        self, snapshot: ResourceObject, before: CheckpointedJobSnapshotStatus
    ) -> SnapshotPlan:
        """The plan for a snapshot with an invalid specification."""
        rejected = validate_snapshot(snapshot.spec)
        changes = {"state": SnapshotState.FAILED, "message": str(rejected)[:1_024]}
        planned = SnapshotPlan(before.model_copy(update=changes))
        return planned if snapshot.deleted_at is None else planned.with_actions(RemoveFinalizer())

    async def _dispose(self, snapshot: ResourceObject, action: Dispose) -> None:
        """The next plan reports a rejection by the API server, and retries."""
        try:
            await self.executor.writer.dispose(snapshot, action)
        except ApiRejected as rejected:
            self._rejected[snapshot.key] = str(rejected)
            raise
        self._rejected.pop(snapshot.key, None)

    async def _execute_action(
        self, snapshot: ResourceObject, job: ResourceObject | None, action: object
    ) -> None:
        match action:
            case EmitEvent():
                await record_event(self.executor.api, SNAPSHOTS, snapshot, action, self.now())
            case Dispose():
                await self._dispose(snapshot, action)
            case RequestSavepoint() | RequestCheckpoint():
                assert job is not None, "a request is sent only while the job exists"
                status = parse_status(job.status)
                assert isinstance(status, CheckpointedJobStatus), "it was read a moment ago"
                await self.executor.send_request(job, status, action)
            case _:
                raise AssertionError(f"no plan for a snapshot contains {action}")
