"""The invariants that hold after every step.

The simulator always checks them, and a driver in debug mode. Each is cheap, so that none is ever
disabled; the simulator's oracle checks files and output.
"""

from collections.abc import Iterator

from weir.core.coordinator.coordinator_state import Active, Coordinator, Scheduled, Terminated
from weir.core.coordinator.pending_checkpoint import (
    Collected,
    Collecting,
    Logging,
    Pending,
    Persisting,
    Preparing,
)
from weir.core.job_master import Job
from weir.core.lifecycle import JobStatus
from weir.core.policy import Mode


def violations(job: Job) -> tuple[str, ...]:
    """Describe every violated invariant; empty if there is none."""
    state = job.coordinator
    if isinstance(state.stage, Terminated):
        return ()
    return (
        *_ids(state),
        *_order(state),
        *_pending(state),
        *_schedule(state),
        *_commits(state),
        *_subtasks(job),
        *_shared(state),
        *_native(state),
    )


def _ids(state: Coordinator) -> Iterator[str]:
    ids = [p.properties.checkpoint for p in state.checkpoints.pending]
    if ids != sorted(set(ids)):
        yield f"pending ids {ids} are not distinct and growing"
    if ids and ids[-1] >= state.log.next_id:
        yield f"pending checkpoint {ids[-1]} has an id that was never given out"
    if state.log.next_id > state.log.ids_until:
        yield f"id {state.log.next_id - 1} was used beyond the reserved {state.log.ids_until}"
    done = [c.checkpoint for c in state.checkpoints.completed]
    if done != sorted(set(done)):
        yield f"completed ids {done} do not grow"
    if done and done[-1] >= state.log.next_id:
        yield f"completed checkpoint {done[-1]} may be used again as {state.log.next_id}"


def _order(state: Coordinator) -> Iterator[str]:
    writing = [p for p in state.checkpoints.pending if isinstance(p, Persisting | Logging)]
    if len(writing) > 1:
        yield "two checkpoints are being written at once"
    preparing = [p for p in state.checkpoints.pending if isinstance(p, Preparing)]
    if len(preparing) > 1:
        yield "two checkpoints are being prepared at once"
    unforced = [p for p in state.checkpoints.pending if not p.properties.request.forced]
    if len(unforced) > state.job.policy.max_concurrent:
        yield f"{len(unforced)} checkpoints run, {state.job.policy.max_concurrent} may"
    ranks = [request.rank for request in state.requests.queue]
    if ranks != sorted(ranks) or len(ranks) > state.job.policy.max_queued:
        yield "the queue of requests is out of order or too long"


def _pending(state: Coordinator) -> Iterator[str]:
    for pending in state.checkpoints.pending:
        match pending:
            case Collecting(awaiting=awaiting, acks=acks):
                expected = set(pending.properties.plan.wait_for)
                if awaiting | set(acks) != expected or awaiting & set(acks):
                    yield f"{_name(pending)} does not know its acks"
                if not awaiting:
                    yield f"{_name(pending)} has all acks and still waits"
            case Collected(acks=acks) | Persisting(acks=acks) | Logging(acks=acks):
                if set(acks) != set(pending.properties.plan.wait_for):
                    yield f"{_name(pending)} proceeded without all acks"
        if isinstance(pending, Preparing | Collecting | Collected) and not isinstance(
            state.stage, Active
        ):
            yield f"{_name(pending)} outlives its job"


def _name(pending: Pending) -> str:
    return f"checkpoint {pending.properties.checkpoint}"


def _schedule(state: Coordinator) -> Iterator[str]:
    if isinstance(state.requests.periodic, Scheduled) and state.status is not JobStatus.RUNNING:
        yield f"the periodic scheduler runs while the job is {state.status}"
    if state.status is not JobStatus.RUNNING and state.requests.queue:
        yield f"requests wait while the job is {state.status}"
    if (
        state.job.policy.mode is Mode.EXACTLY_ONCE
        and state.job.policy.unaligned
        and len(state.checkpoints.pending) > 1
    ):
        yield "two checkpoints run although barriers overtake"


def _commits(state: Coordinator) -> Iterator[str]:
    for ledger in state.commits.ledgers.values():
        numbers = [commit.sequence for commit in ledger.unconfirmed]
        expected = list(range(ledger.sequence - len(numbers) + 1, ledger.sequence + 1))
        if numbers != expected:
            yield f"{ledger.sink} waits for commits {numbers}, not {expected}"


def _subtasks(job: Job) -> Iterator[str]:
    subtasks = job.coordinator.subtasks
    if any(subtask in subtasks.finished for subtask in subtasks.running):
        yield "a subtask runs and has finished"
    if not all(subtask in subtasks.running for subtask in subtasks.at_end):
        yield "a subtask is at its end and does not run"
    executions = job.attempt.graph.executions
    for subtask, attempt in subtasks.running.items():
        if executions[subtask].attempt != attempt:
            yield f"{subtask} runs in attempt {attempt}, not {executions[subtask].attempt}"


def _shared(state: Coordinator) -> Iterator[str]:
    """The registry counts exactly what retained and pending checkpoints refer to."""
    expected: dict[str, int] = {}
    references = [
        f.path for c in state.checkpoints.completed for f in c.manifest.files() if f.shared
    ]
    for pending in state.checkpoints.pending:
        references += pending.properties.base_files
        if not isinstance(pending, Preparing):
            acks = pending.acks.values()
            references += [f.path for a in acks for f in a.snapshot.files() if f.shared]
    for path in references:
        expected[path] = expected.get(path, 0) + 1
    if expected != state.checkpoints.shared.references:
        yield "the registry of shared files has lost count"


def _native(state: Coordinator) -> Iterator[str]:
    """A savepoint restores in every backend, so all of it is in the open form."""
    for pending in state.checkpoints.pending:
        if isinstance(pending, Preparing) or not pending.properties.request.kind.is_savepoint:
            continue
        for ack in pending.acks.values():
            if ack.snapshot.native:
                yield f"{ack.snapshot.subtask} gave {_name(pending)} native files"
