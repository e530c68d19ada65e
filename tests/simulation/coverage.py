"""Counts what schedules reach: faults, reasons, fates, transitions, verdicts.

A simulator that never reaches a state proves nothing about it. So everything that can happen has a
name here, is counted where it is seen, and a name that a long run never counts fails the run.
"""

from collections import Counter
from itertools import pairwise

from simulation.world import World
from weir.core import attempt as attempts
from weir.core.coordinator import actions, events
from weir.core.coordinator.completion import AcknowledgeResult, acknowledge_result
from weir.core.coordinator.coordinator_state import Coordinator
from weir.core.coordinator.pending_checkpoint import Collecting, Pending, Preparing
from weir.core.ids import CheckpointId
from weir.core.job_master import Action, Event, Job
from weir.core.reasons import Reason

STAGES = ("Preparing", "Collecting", "Collected", "Persisting", "Logging", "completed")

EXPECTED = (
    *(f"reason: {reason.name}" for reason in Reason),
    *(f"ack: {result.name}" for result in AcknowledgeResult),
    *(f"checkpoint: {a} -> {b}" for a, b in pairwise(STAGES)),
    *(f"checkpoint: {stage} -> aborted" for stage in STAGES[:-1]),
    *(
        f"kind: {kind}"
        for kind in (
            "CHECKPOINT",
            "FULL_CHECKPOINT",
            "SAVEPOINT",
            "SAVEPOINT_SUSPEND",
            "SAVEPOINT_TERMINATE",
        )
    ),
    *(f"snapshot: {name}" for name in ("aligned", "unaligned", "forced aligned", "at least once")),
    *(f"recovery: {name}" for name in ("StartFresh", "RestoreFrom", "ReplayCommit")),
    *(
        f"status: {name}"
        for name in (
            "waiting for slots",
            "deploying",
            "running",
            "restarting",
            "finished",
            "stopped",
            "canceled",
            "failed",
        )
    ),
    *(
        f"fault: {name}"
        for name in (
            "slot dies",
            "driver dies",
            "driver becomes a zombie",
            "zombie wakes",
            "connection drops",
            "control message lost",
            "control message doubled",
            "storage fails",
            "storage does not answer",
            "error after the entry was stored",
            "partial write",
            "slow storage",
            "deletion refused for long",
            "stale listing",
            "commit without an answer",
            "clock jumps",
            "clock goes back by an hour",
            "synchronous part fails",
            "notification fails",
            "hook fails",
            "user code fails",
            "slot stands still",
            "upgrade without a savepoint",
            "rollback to an older checkpoint",
            "snapshot declined",
            "stray ack",
            "driver dies while stopping",
            "driver dies soon after a resume",
            "a live job is started again",
            "enumerator raises",
            "committer raises",
            "a finished job is started again",
        )
    ),
    *(
        f"attempt: {way}"
        for way in (
            "Created -> WaitingForSlots",
            "WaitingForSlots -> Restoring",
            "Restoring -> Deploying",
            "Restoring -> WaitingForSlots",
            "Restoring -> BackingOff",
            "Deploying -> Running",
            "Deploying -> BackingOff",
            "Running -> BackingOff",
            "Running -> Stopping",
            "Running -> Ended",
            "BackingOff -> Restoring",
            "BackingOff -> WaitingForSlots",
            "Stopping -> Ended",
        )
    ),
    "driver: fenced",
    "takeover: too late, read again",
    "takeover: the log moved under it, read again",
    "restart: region",
    "restart: whole job",
    "restored as finished",
    "replayed in-flight data",
    "acked in-flight data",
    "a barrier turned unaligned",
    "a turn was cut",
    "rescaled on restore",
    "claimed on restore",
    "resumed without a path",
    "borrowed on restore",
    "restored from a plain savepoint",
    "a split was held back",
    "splits were found late",
    "a stuck job was noticed",
    "ids were reserved",
    "log was truncated",
    "a deletion was put off",
    "a deletion was taken up again",
    *(f"entry: {name}" for name in ("created", "taken", "not created", "in doubt")),
    "manifest in doubt",
    "shared file reused",
    "cut between checkpoints",
    "logged between checkpoints",
    "merged file",
    "restored from a merged file",
    "refused: cycle",
    "refused: externally induced",
)


def watch_step(
    world: World, before: Job, after: Job, event: Event, decided: tuple[Action, ...]
) -> None:
    """Count what one step of a job shows."""
    old, new = before.coordinator, after.coordinator
    _watch_event(world, old, event)
    for action in decided:
        _watch_action(world, action)
        _check_report(world, old, action, new)
    _check_begun(world, old, new)
    if old.checkpoints.pending is not new.checkpoints.pending:
        _watch_pending(world, old, new, decided)
    if before.attempt.phase is not after.attempt.phase:
        _watch_phase(world, type(before.attempt.phase).__name__, type(after.attempt.phase).__name__)
    if any(isinstance(p, Preparing) and p.held for p in new.checkpoints.pending):
        world.saw("a split was held back")
    if len(new.cleanup.deferred) > len(old.cleanup.deferred):
        world.saw("a deletion was put off")
    if len(new.cleanup.deferred) < len(old.cleanup.deferred):
        world.saw("a deletion was taken up again")
    is_reserved = new.log.ids_until > old.log.ids_until
    if is_reserved and new.checkpoints.completed == old.checkpoints.completed:
        world.saw("ids were reserved")


def _watch_phase(world: World, start: str, end: str) -> None:
    if start != end:
        world.saw(f"attempt: {start} -> {end}")


def _watch_event(world: World, old: Coordinator, event: Event) -> None:
    match event:
        case events.SubtaskAcked():
            world.saw(f"ack: {acknowledge_result(old, event).name}")
        case events.SubtaskDeclined(reason=reason):
            world.saw(f"reason: {reason.name}")
        case events.EntryCreated():
            world.saw("entry: created")
        case events.EntryTaken():
            world.saw("entry: taken")
        case events.EntryNotCreated():
            world.saw("entry: not created")
        case events.EntryInDoubt():
            world.saw("entry: in doubt")
        case events.ManifestInDoubt():
            world.saw("manifest in doubt")
        case _:
            pass


def _watch_pending(
    world: World, old: Coordinator, new: Coordinator, decided: tuple[Action, ...]
) -> None:
    before, after = _by_id(old.checkpoints.pending), _by_id(new.checkpoints.pending)
    done = {a.manifest.checkpoint for a in decided if isinstance(a, actions.ReportCompleted)}
    for checkpoint, pending in before.items():
        now = after.get(checkpoint)
        name = type(pending).__name__
        if now is not None and type(now) is not type(pending):
            _watch_way(world, name, type(now).__name__)
        elif now is None:
            ending = "completed" if checkpoint in done else "aborted"
            if ending == "completed":
                _watch_way(world, name, ending)
            else:
                world.saw(f"checkpoint: {name} -> aborted")


def _watch_way(world: World, start: str, end: str) -> None:
    """One step may pass several stages."""
    for a, b in pairwise(STAGES[STAGES.index(start) : STAGES.index(end) + 1]):
        world.saw(f"checkpoint: {a} -> {b}")


def _check_report(world: World, old: Coordinator, action: Action, new: Coordinator) -> None:
    """What is reported keeps the small promises that no output would show."""
    match action:
        case actions.ReportCompleted(manifest=manifest) if manifest.kind.is_savepoint:
            world.completed_at[new.job.epoch] = new.clock.now
            if any(snapshot.in_flight for snapshot in manifest.snapshots):
                world.violated(f"savepoint {manifest.checkpoint} is not aligned")
        case actions.ReportAborted(checkpoint=checkpoint, message=message):
            was = old.checkpoints.find(checkpoint)
            if isinstance(was, Collecting) and "slowest subtask" not in message:
                world.violated(f"no subtask is named for the end of checkpoint {checkpoint}")
        case actions.ReportCompleted():
            world.completed_at[new.job.epoch] = new.clock.now
        case _:
            pass


def _check_begun(world: World, old: Coordinator, new: Coordinator) -> None:
    """A checkpoint begins with all it needs, and no sooner than the pause allows."""
    if old.checkpoints.pending is new.checkpoints.pending:
        return
    passed = new.clock.now - world.completed_at.get(new.job.epoch, -1_000_000)
    for pending in new.checkpoints.pending:
        properties = pending.properties
        if properties.checkpoint < old.log.next_id:
            continue
        if not all(subtask in new.subtasks.running for subtask in properties.plan.wait_for):
            world.violated(f"checkpoint {properties.checkpoint} waits for one that does not run")
        if properties.request.is_periodic and passed < new.job.policy.min_pause_ms:
            world.violated(f"checkpoint {properties.checkpoint} began {passed} ms after another")


def _by_id(pending: tuple[Pending, ...]) -> dict[CheckpointId, Pending]:
    return {p.properties.checkpoint: p for p in pending}


def _watch_action(world: World, action: Action) -> None:
    match action:
        case actions.ReportAborted(reason=reason) | actions.FailAttempt(reason=reason):
            world.saw(f"reason: {reason.name}")
        case actions.ReportCompleted(manifest=manifest):
            world.saw(f"kind: {manifest.kind.name}")
            world.saw("completed checkpoints")
            paths = [f"c{manifest.checkpoint}-" in f.path for f in manifest.files() if f.shared]
            if not all(paths):
                world.saw("shared file reused")
        case actions.TruncateLog():
            world.saw("log was truncated")
        case _:
            _watch_attempt(world, action)


def _watch_attempt(world: World, action: Action) -> None:
    match action:
        case attempts.ReportStatus(status=status):
            world.saw(f"status: {status.value}")
        case attempts.ReportRestart(whole_job=whole, why=why):
            world.saw("restart: whole job" if whole else "restart: region")
            if why.startswith("no checkpoint was completed"):
                world.saw("a stuck job was noticed")


def missing(seen: Counter[str]) -> list[str]:
    return [name for name in EXPECTED if not seen[name]]
