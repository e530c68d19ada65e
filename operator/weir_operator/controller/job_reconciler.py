"""One look at a job: observe, decide, write the decision down, act (spec K3).

The status is written under a lock before anything is done, so a crash between any two calls repeats
and never doubles. When somebody else has written meanwhile, the job is read and decided anew. What
the API server refuses is kept until it is accepted, so that the next plan can tell the job's owner.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from weir_operator.cluster.api_paths import JOBS, Key
from weir_operator.cluster.api_requests import ApiRefused
from weir_operator.cluster.cluster_reader import Depth, Wanted
from weir_operator.cluster.resource_object import Opened
from weir_operator.cluster.status_writer import Unwritable
from weir_operator.controller.action_executor import Actor
from weir_operator.controller.operator_metrics import Metrics
from weir_operator.controller.work_queue import Again, Looked, Over
from weir_operator.plan import Observed, Plan, plan
from weir_operator.plan.cluster_actions import ReadLive, RemoveFinalizer
from weir_operator.plan.observed_state import DriverReport, Silence, Up
from weir_operator.plan.spec_versions import deployed_spec, goal_of
from weir_operator.plan.status_conditions import with_failure
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import Failure
from weir_operator.resource.validation import Refused, judge_job, judge_size, judge_status

log = logging.getLogger("weir_operator.jobs")

MOST_ROUNDS = 8
"""Within one look; whoever needs more waits for its next turn."""
THOROUGH_EVERY = timedelta(minutes=5)
LIVE_WHEN_SILENT_EVERY = timedelta(seconds=30)
LIVE_WHEN_LEAVING_EVERY = timedelta(seconds=5)


@dataclass(slots=True)
class JobLooks:
    """Looks at CheckpointedJobs."""

    actor: Actor
    metrics: Metrics
    now: Callable[[], datetime]
    _asked_at: dict[Key, tuple[datetime, datetime]] = field(default_factory=dict)
    """When each job was read last from the API server itself, and when thoroughly."""
    _refused: dict[Key, Failure] = field(default_factory=dict)
    _unwritable: dict[Key, str] = field(default_factory=dict)
    """Versions of jobs that the API server does not store with anything more in their status."""

    async def look(self, key: Key) -> Looked:
        """Bring a job one step nearer to what it shall be, or as many as need no waiting."""
        depth = self._due(key)
        for _ in range(MOST_ROUNDS):
            job = await self.actor.job(key)
            if job is None or (job.deleted_at is not None and not job.is_held):
                return self._forgotten(key)
            if self._unwritable.get(key) == job.version:
                return Again()
            try:
                outcome = await self._round(job, depth) if job.is_held else await self._held(job)
            except ApiRefused as refused:
                await self.actor.tell(JOBS, job, refused.reason, str(refused))
                raise
            if isinstance(outcome, Depth):
                depth = outcome
            else:
                return outcome
        return Again(self.now())

    async def _held(self, job: Opened) -> Looked | Depth:
        try:
            held = await self.actor.hold(JOBS, job)
        except Unwritable as problem:
            return await self._not_stored(job, None, problem)
        await self.actor.note(JOBS, job.key, held)
        return Depth.WATCHED

    async def _round(self, job: Opened, depth: Depth) -> Looked | Depth:
        """Decide and act once; a depth asks for another round that sees that much."""
        status = judge_status(job.status)
        if isinstance(status, Refused):
            return await self._left_alone(job, status)
        spec = judge_size(job.spec_bytes) or judge_job(
            job.key.name, job.spec, deployed_spec(status)
        )
        seen = await self._seen(job, status, spec, depth)
        planned = plan(spec, status, seen)
        self.metrics.saw_job(job.key, status, planned.status, seen.now)
        acts = tuple(action for action in planned.actions if not isinstance(action, ReadLive))
        if not acts and planned.actions and depth is Depth.WATCHED:
            return Depth.LIVE
        if acts or planned.status != status:
            try:
                written = await self.actor.write_status(JOBS, job, planned.status)
            except Unwritable as problem:
                failure = Failure(at=seen.now, reason=problem.reason, message=str(problem))
                told = with_failure(status, failure, seen)
                return await self._not_stored(job, told, problem)
            if not isinstance(written, Opened):
                await self.actor.note(JOBS, job.key, written)
                return Depth.WATCHED
            self.actor.watched.put_job(written)
            job = written
        _log(job.key, planned, acts)
        return await self._acted(job, planned, acts)

    async def _not_stored(
        self, job: Opened, told: CheckpointedJobStatus | None, problem: Unwritable
    ) -> Looked:
        """Say it where that is possible; nothing more is tried until somebody changes the job."""
        self.metrics.failed(problem.reason)
        log.warning("A job is too large.", extra={"job": str(job.key), "why": str(problem)})
        await self.actor.tell(JOBS, job, problem.reason, str(problem))
        self._unwritable[job.key] = job.version
        if told is None:
            return Again()
        with suppress(Unwritable):
            written = await self.actor.write_status(JOBS, job, told)
            await self.actor.note(JOBS, job.key, written)
            if isinstance(written, Opened):
                self._unwritable[job.key] = written.version
        return Again()

    async def _acted(self, job: Opened, planned: Plan, acts: tuple[object, ...]) -> Looked | Depth:
        try:
            for action in acts:
                if isinstance(action, RemoveFinalizer):
                    await self.actor.note(JOBS, job.key, await self.actor.let_go(JOBS, job))
                    return Depth.WATCHED
                await self.actor.carry_out(job, action, planned.status)
        except ApiRefused as refused:
            self._keep_refusal(job.key, refused)
            raise
        if self._refused.pop(job.key, None) is not None:
            return Depth.WATCHED
        if len(acts) < len(planned.actions):
            return Depth.LIVE
        loss = self.actor.eyes.next_loss(job.key, self.now())
        return Again(min(filter(None, (planned.look_again, loss)), default=None))

    async def _seen(
        self,
        job: Opened,
        status: CheckpointedJobStatus,
        spec: CheckpointedJobSpec | Refused,
        depth: Depth,
    ) -> Observed:
        """All that was seen and heard; a driver that may be gone is looked for once more."""
        goal = goal_of(spec, status, job.generation)
        wanted = Wanted(
            None if status.driver is None else status.driver.attempt,
            None if goal is None else goal.spec,
        )
        seen = await self.actor.see(job, self.now(), depth, wanted)
        heard = await self.actor.heard(job, status)
        seen = _with_words(seen, heard, self._refused.get(job.key))
        if depth is Depth.WATCHED and self._may_be_gone(job.key, seen, status):
            depth = Depth.LIVE
            live = await self.actor.see(job, self.now(), depth, wanted)
            seen = _with_words(live, heard, seen.refusal)
        self._asked(job.key, depth)
        return seen

    def _may_be_gone(self, key: Key, seen: Observed, status: CheckpointedJobStatus) -> bool:
        """Whether a driver that the watches show leaves, or fell silent, for longer than that."""
        last, _ = self._asked_at.get(key, (None, None))
        for_long = timedelta.max if last is None else self.now() - last
        if any(pod.is_leaving for pod in seen.drivers):
            return for_long >= LIVE_WHEN_LEAVING_EVERY
        driver = status.driver
        if seen.report is not None or driver is None or driver.running_since is None:
            return False
        pod = seen.driver(driver.attempt)
        is_up = pod is not None and isinstance(pod.stage, Up)
        return is_up and for_long >= LIVE_WHEN_SILENT_EVERY

    def _due(self, key: Key) -> Depth:
        """A job is looked at thoroughly now and then; for a new one there is nothing to miss."""
        _, thorough = self._asked_at.setdefault(key, (self.now(), self.now()))
        return Depth.THOROUGH if self.now() - thorough >= THOROUGH_EVERY else Depth.WATCHED

    def _asked(self, key: Key, depth: Depth) -> None:
        _, thorough = self._asked_at[key]
        if depth is Depth.THOROUGH:
            self._asked_at[key] = (self.now(), self.now())
        elif depth is Depth.LIVE:
            self._asked_at[key] = (self.now(), thorough)

    async def _left_alone(self, job: Opened, refused: Refused) -> Looked:
        """A status that cannot be read was written by another release; it knows what runs."""
        self.metrics.failed("StatusUnreadable")
        log.error("A job is left alone.", extra={"job": str(job.key), "why": str(refused)[:1_024]})
        message = f"this operator cannot read the job's status, so it leaves it alone: {refused}"
        await self.actor.tell(JOBS, job, "StatusUnreadable", message)
        return Again()

    def _keep_refusal(self, key: Key, refused: ApiRefused) -> None:
        """For the next plan; the same one again is as old as it was."""
        known = self._refused.get(key)
        failure = Failure(at=self.now(), reason=refused.reason, message=str(refused))
        if known is None or (known.reason, known.message) != (failure.reason, failure.message):
            self._refused[key] = failure

    def _forgotten(self, key: Key) -> Looked:
        self.actor.forget(key)
        self._asked_at.pop(key, None)
        self._refused.pop(key, None)
        self._unwritable.pop(key, None)
        self.metrics.forget_job(key)
        return Over()


def _with_words(
    seen: Observed, heard: DriverReport | Silence | None, refusal: Failure | None
) -> Observed:
    if isinstance(heard, Silence):
        return replace(seen, silence=heard, refusal=refusal)
    return replace(seen, report=heard, refusal=refusal)


def _log(key: Key, planned: Plan, acts: tuple[object, ...]) -> None:
    """What was decided; all else can be read off the status."""
    if acts:
        names = " ".join(type(action).__name__ for action in acts)
        about = {"job": str(key), "state": str(planned.status.state), "actions": names}
        log.info("A plan is carried out.", extra=about)
