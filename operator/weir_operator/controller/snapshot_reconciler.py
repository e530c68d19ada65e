"""One look at a snapshot: observe, decide, write the decision down, act (spec K5).

It goes as with a job. Files are deleted by a Job that the API server is asked about, not watched:
few snapshots are ever being deleted. A specification that cannot be read has failed, and its object
can always be deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from weir_operator.cluster.api_paths import SNAPSHOTS, Key
from weir_operator.cluster.api_requests import ApiRefused
from weir_operator.cluster.cluster_reader import see_snapshot
from weir_operator.cluster.event_recorder import tell
from weir_operator.cluster.informer_cache import job_of
from weir_operator.cluster.resource_object import Opened
from weir_operator.cluster.status_writer import Unwritable
from weir_operator.controller.action_executor import Actor
from weir_operator.controller.work_queue import Again, Looked, Over
from weir_operator.plan import SnapshotPlan, plan_snapshot
from weir_operator.plan.cluster_actions import (
    Dispose,
    EmitEvent,
    RemoveFinalizer,
    RequestCheckpoint,
    RequestSavepoint,
)
from weir_operator.plan.observed_state import Disposal, DriverReport, SeenSnapshot
from weir_operator.plan.snapshot_plan import JobSight
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus, SnapshotState
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.validation import Refused, judge_snapshot, judge_status

MOST_ROUNDS = 8
_OPEN = (SnapshotState.PENDING, SnapshotState.IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class SnapshotLooks:
    """Looks at CheckpointedJobSnapshots."""

    actor: Actor
    now: Callable[[], datetime]
    _refused: dict[Key, str] = field(default_factory=dict)
    """Why the API server starts no Job that deletes the files of one."""
    _unwritable: dict[Key, str] = field(default_factory=dict)
    """Versions of snapshots that the API server does not store with anything more in them."""

    async def look(self, key: Key) -> Looked:
        """Bring a snapshot one step nearer to its end, or as many as need no waiting."""
        for _ in range(MOST_ROUNDS):
            snapshot = await self.actor.snapshot(key)
            if snapshot is None or (snapshot.deleted_at is not None and not snapshot.is_held):
                self._refused.pop(key, None)
                self._unwritable.pop(key, None)
                return Over()
            if self._unwritable.get(key) == snapshot.version:
                return Again()
            try:
                looked = await self._step(snapshot)
            except Unwritable as problem:
                await self.actor.tell(SNAPSHOTS, snapshot, problem.reason, str(problem))
                self._unwritable[key] = snapshot.version
                return Again()
            if looked is not None:
                return looked
        return Again(self.now())

    async def _step(self, snapshot: Opened) -> Looked | None:
        if snapshot.is_held:
            return await self._round(snapshot)
        held = await self.actor.hold(SNAPSHOTS, snapshot)
        await self.actor.note(SNAPSHOTS, snapshot.key, held)
        return None

    async def _round(self, snapshot: Opened) -> Looked | None:
        """Decide and act once; none if it must be decided anew."""
        before = CheckpointedJobSnapshotStatus.model_validate(snapshot.status)
        seen = see_snapshot(snapshot, await self._disposal(snapshot))
        job = await self.actor.job(job_of(snapshot))
        planned = self._unreadable(snapshot, before)
        if seen is not None:
            seen = replace(seen, refusal=self._refused.get(snapshot.key))
            planned = plan_snapshot(seen, await self._sight(job, seen), self.now())
        if planned.actions or planned.status != before:
            written = await self.actor.write_status(SNAPSHOTS, snapshot, planned.status)
            await self.actor.note(SNAPSHOTS, snapshot.key, written)
            if not isinstance(written, Opened):
                return None
            snapshot = written
        for action in planned.actions:
            if isinstance(action, RemoveFinalizer):
                await self.actor.note(
                    SNAPSHOTS, snapshot.key, await self.actor.let_go(SNAPSHOTS, snapshot)
                )
                return None
            await self._carry_out(snapshot, job, action)
        return Again(planned.look_again)

    async def _disposal(self, snapshot: Opened) -> Disposal:
        if snapshot.deleted_at is None or not snapshot.spec.get("disposeOnDelete"):
            return Disposal.ABSENT
        return await self.actor.eyes.disposal(snapshot.key)

    async def _sight(self, job: Opened | None, seen: SeenSnapshot) -> JobSight | None:
        """Its job; what the driver says matters only while the snapshot is being taken."""
        status = None if job is None else judge_status(job.status)
        if job is None or status is None or isinstance(status, Refused):
            return None
        if seen.status.state not in _OPEN:
            return JobSight(status)
        heard = await self.actor.heard(job, status)
        return JobSight(status, heard if isinstance(heard, DriverReport) else None)

    def _unreadable(self, snapshot: Opened, before: CheckpointedJobSnapshotStatus) -> SnapshotPlan:
        """What to do about a snapshot that asks for what cannot be."""
        refused = judge_snapshot(snapshot.spec)
        changes = {"state": SnapshotState.FAILED, "message": str(refused)[:1_024]}
        planned = SnapshotPlan(before.model_copy(update=changes))
        return planned if snapshot.deleted_at is None else planned.doing(RemoveFinalizer())

    async def _dispose(self, snapshot: Opened, action: Dispose) -> None:
        """What the API server refuses is told by the next plan, and tried again."""
        try:
            await self.actor.hands.dispose(snapshot, action)
        except ApiRefused as refused:
            self._refused[snapshot.key] = str(refused)
            raise
        self._refused.pop(snapshot.key, None)

    async def _carry_out(self, snapshot: Opened, job: Opened | None, action: object) -> None:
        match action:
            case EmitEvent():
                await tell(self.actor.api, SNAPSHOTS, snapshot, action, self.now())
            case Dispose():
                await self._dispose(snapshot, action)
            case RequestSavepoint() | RequestCheckpoint():
                assert job is not None, "a driver is asked only while its job is there"
                status = judge_status(job.status)
                assert isinstance(status, CheckpointedJobStatus), "it was read a moment ago"
                await self.actor.order(job, status, action)
            case _:
                raise AssertionError(f"no plan for a snapshot asks for {action}")
