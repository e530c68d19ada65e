"""Each invariant notices the state that it is there to forbid."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core.checkpoint_plan import CheckpointPlan
from weir.core.coordinator.coordinator_state import (
    Checkpoints,
    Commits,
    Coordinator,
    EpochLog,
    JobIdentity,
    OwnCheckpoints,
    Requests,
    Scheduled,
    ShuttingDown,
    Subtasks,
)
from weir.core.coordinator.events import SubtaskAcked
from weir.core.coordinator.pending_checkpoint import (
    CheckpointProperties,
    Collected,
    Collecting,
    Pending,
    Persisting,
    Preparing,
)
from weir.core.ids import CheckpointId, Epoch, Millis, OperatorId, RequestId, SubtaskId
from weir.core.invariants import violations
from weir.core.job_master import Job
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.core.request_decider import Origin, Request
from weir.core.restarts import NoRestart
from weir.core.shared_state_registry import SharedStateRegistry
from weir.core.snapshots import (
    CheckpointKind,
    Commit,
    KeyGroupRange,
    NativeHandle,
    SinkLedger,
    SubtaskSnapshot,
)
from weir.core.topology import Operator, Topology

SINK = OperatorId("sink")
SUBTASK = SubtaskId(SINK, 0)
TOPOLOGY = Topology((Operator(SINK, 1, is_sink=True),), ())
REQUEST = Request(1, Origin.CLOCK, CheckpointKind.CHECKPOINT, RequestId(""))
PLAN = CheckpointPlan((SUBTASK,), (SUBTASK,), ())


def a_job(**changed: object) -> Job:
    epoch = checkpoints.EpochState(
        epoch=Epoch(1),
        driver="d",
        directory="job",
        index=0,
        next_id=CheckpointId(5),
        ids_until=CheckpointId(20),
        owned=(),
        start=OwnCheckpoints(),
    )
    state, _ = checkpoints.begin(Policy(), TOPOLOGY, epoch)
    running: Coordinator = replace(state, status=JobStatus.RUNNING)
    changed_state = replace(running, **changed)  # type: ignore[arg-type]
    return Job(attempts.initial(TOPOLOGY, NoRestart()), changed_state)


def pending(*checkpoints: Pending, concurrent: int = 1) -> dict[str, object]:
    policy = Policy(max_concurrent=concurrent)
    job = JobIdentity(policy, TOPOLOGY, Epoch(1), "d", "job")
    return {"job": job, "checkpoints": Checkpoints(pending=checkpoints)}


def some_properties(checkpoint: int) -> CheckpointProperties:
    here = CheckpointId(checkpoint)
    now = Millis(0)
    return CheckpointProperties(here, REQUEST, PLAN, now, now, now, "job", CheckpointId(0), ())


def collecting(checkpoint: int, *, awaiting: frozenset[SubtaskId]) -> Collecting:
    return Collecting(some_properties(checkpoint), (), awaiting)


AWAITED = frozenset({SUBTASK})
SAVEPOINT = replace(REQUEST, kind=CheckpointKind.SAVEPOINT)
NATIVE = NativeHandle(KeyGroupRange(0, 127), "rocksdb", 1, (), ())
NATIVE_ACK = SubtaskAcked(
    attempts.AttemptId(1), CheckpointId(4), SUBTASK, SubtaskSnapshot(SUBTASK, native=(NATIVE,))
)
RESTARTING = JobStatus.RESTARTING

BROKEN: dict[str, Callable[[], Job]] = {
    "C19: an id that was never given out": lambda: a_job(
        **pending(collecting(7, awaiting=AWAITED))
    ),
    "C19: an id beyond the reservation": lambda: a_job(
        log=EpochLog(0, 1, next_id=CheckpointId(21), ids_until=CheckpointId(20))
    ),
    "C19: two checkpoints of one id": lambda: a_job(
        **pending(*(collecting(4, awaiting=AWAITED),) * 2, concurrent=2)
    ),
    "C6: more than may run at once": lambda: a_job(
        **pending(collecting(3, awaiting=AWAITED), collecting(4, awaiting=AWAITED))
    ),
    "C7: no ack is awaited": lambda: a_job(**pending(collecting(4, awaiting=frozenset()))),
    "C8: written without all acks": lambda: a_job(
        **pending(Persisting(some_properties(4), {}, None, Millis(0)))  # type: ignore[arg-type]
    ),
    "C4: two checkpoints prepared at once": lambda: a_job(
        **pending(
            *(
                Preparing(some_properties(n), frozenset({SINK}), location_ready=True)
                for n in (3, 4)
            ),
            concurrent=2,
        )
    ),
    "C2: the clock outlives RUNNING": lambda: a_job(
        status=RESTARTING, requests=Requests(periodic=Scheduled(Millis(9)))
    ),
    "C3: requests outlive RUNNING": lambda: a_job(
        status=RESTARTING, requests=Requests(queue=(REQUEST,))
    ),
    "C5: a queue out of order": lambda: a_job(
        requests=Requests(queue=(replace(REQUEST, number=2), REQUEST))
    ),
    "C19: a gap in the commits": lambda: a_job(
        commits=Commits({SINK: SinkLedger(SINK, 3, CheckpointId(1), (Commit(SINK, 2, ()),))})
    ),
    "C14: running and finished": lambda: a_job(
        subtasks=Subtasks({SUBTASK: attempts.AttemptId(0)}, finished=frozenset({SUBTASK}))
    ),
    "C14: at its end and not running": lambda: a_job(
        subtasks=Subtasks(at_end=frozenset({SUBTASK}))
    ),
    "S4: a file without references": lambda: a_job(
        checkpoints=Checkpoints(shared=SharedStateRegistry({"shared/x": 1}))
    ),
    "S10: a savepoint in files of one backend": lambda: a_job(
        **pending(
            Collected(
                replace(some_properties(4), request=SAVEPOINT),
                (),
                {SUBTASK: NATIVE_ACK},
                Millis(0),
            )
        )
    ),
    "C12: a checkpoint outlives its job": lambda: a_job(
        stage=ShuttingDown(JobStatus.CANCELED), **pending(collecting(4, awaiting=AWAITED))
    ),
}


def test_a_sound_job_violates_nothing() -> None:
    """Otherwise the simulator would find what is not there."""
    assert violations(a_job()) == ()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_job_is_noticed(name: str) -> None:
    """C2, C3, C4, C5, C6, C7, C8, C12, C14, C19, S4, S10: one forbidden state each."""
    assert violations(BROKEN[name]()), name
