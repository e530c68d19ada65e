"""How a checkpoint starts: operator coordinators first, then the trigger, then their messages."""

import pytest

from coordinated_job import (
    CHECKPOINT,
    DRAIN,
    EVERYONE,
    FIRST,
    READ,
    READ_0,
    SAVEPOINT,
    STOP,
    SUM_0,
    SUM_1,
    WRITE,
    a_running_job,
    a_topology,
    each,
    only,
)
from weir.core.barriers import AlignmentType
from weir.core.coordinator.actions import (
    CompleteRequest,
    FailAttempt,
    NotifyAborted,
    PrepareLocation,
    ReportAborted,
    ReportTriggered,
    RequestFailed,
    RequestSucceeded,
    SendToSubtask,
    SnapshotOperators,
    Trigger,
    WriteManifest,
)
from weir.core.coordinator.coordinator_state import Unscheduled
from weir.core.coordinator.events import (
    LocationNotPrepared,
    LocationPrepared,
    OperatorEventSent,
    OperatorNotSnapshotted,
    OperatorSnapshotted,
)
from weir.core.lifecycle import JobStatus, TimePassed
from weir.core.policy import Mode, Policy
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind, CoordinatorSnapshot

BOTH = a_topology(coordinated=(READ, WRITE))
FULL = CheckpointKind.FULL_CHECKPOINT


def split(name, subtask=READ_0):
    return OperatorEventSent(subtask.operator, subtask, name)


def sent(said):
    return [message.message for message in each(SendToSubtask, said)]


# The order on the link


def test_operators_in_the_driver_are_snapshotted_before_anything_is_triggered():
    """C4: before triggering, operator coordinators are snapshotted."""
    story = a_running_job(topology=BOTH)

    assert story.ask() == [SnapshotOperators(1, (READ, WRITE))]


def test_the_trigger_waits_for_the_last_of_them():
    """C4: enumerators, committers, hooks: all of them."""
    story = a_running_job(topology=BOTH)
    story.ask()

    assert story.hear(OperatorSnapshotted(1, READ, "pool")) == []
    assert only(Trigger, story.hear(OperatorSnapshotted(1, WRITE, "hook"))).targets == (
        (READ_0, FIRST),
    )


def test_without_such_operators_the_trigger_goes_out_at_once():
    """C4: nothing to wait for."""
    report, trigger = a_running_job().ask()

    assert report == ReportTriggered(1, CHECKPOINT, 0)
    assert trigger.targets == ((READ_0, FIRST),)


def test_what_an_operator_says_between_its_snapshot_and_the_trigger_follows_the_trigger():
    """C4: snapshot, trigger and every later split assignment travel in that order on one link."""
    story = a_running_job(topology=BOTH)
    story.ask()
    story.hear(OperatorSnapshotted(1, READ, "pool"))

    assert story.hear(split("a"), split("b")) == []

    _, trigger, first, second = story.hear(OperatorSnapshotted(1, WRITE, "hook"))
    assert isinstance(trigger, Trigger)
    assert [first.message, second.message] == ["a", "b"]


def test_what_an_operator_says_before_its_snapshot_goes_before_the_trigger():
    """C4: the snapshot knows of it already, so the reader's state must have it too."""
    story = a_running_job(topology=BOTH)
    story.ask()

    assert sent(story.hear(split("a"))) == ["a"]


def test_what_an_operator_says_while_no_checkpoint_is_being_prepared_passes_at_once():
    """C4: barriers in flight hold nothing up."""
    story = a_running_job(topology=BOTH)
    story.trigger()

    assert story.hear(split("a")) == [SendToSubtask(READ, (READ_0, FIRST), "a")]


def test_what_waited_for_a_trigger_that_does_not_come_is_let_go():
    """C4 C9: an aborted preparation must not swallow a split."""
    story = a_running_job(topology=BOTH)
    story.ask()
    story.hear(OperatorSnapshotted(1, READ, "pool"), split("a"))

    assert sent(story.hear(OperatorNotSnapshotted(1, WRITE, "the hook raised"))) == ["a"]
    assert sent(story.hear(split("b"))) == ["b"]


def test_the_end_of_another_checkpoint_does_not_let_it_go():
    """C4: its own trigger has not been sent."""
    story = a_running_job(Policy(max_concurrent=2, tolerable_failures=9), BOTH)
    first = story.trigger()
    story.ask()
    story.hear(OperatorSnapshotted(2, READ, "pool"), split("a"))

    assert sent(story.decline(first, SUM_0)) == []


def test_a_split_that_waited_for_a_reader_that_went_down_is_not_sent():
    """C4: the enumerator has it back by then; sent as well, it would be read twice."""
    story = a_running_job(topology=BOTH)
    story.ask()
    story.hear(OperatorSnapshotted(1, READ, "pool"), split("a"))

    assert sent(story.down(*EVERYONE)) == []


def test_a_message_to_a_subtask_that_does_not_run_goes_nowhere():
    """C4: no subtask can read that split."""
    story = a_running_job(topology=BOTH)
    story.down(READ_0)

    assert story.hear(split("a")) == []


def test_the_operators_snapshots_are_in_the_checkpoint():
    """C1 C4: a source's position is its enumerator's and its readers' together."""
    story = a_running_job(topology=BOTH)
    checkpoint = story.trigger()
    story.complete(checkpoint)

    assert story.state.checkpoints.completed[0].manifest.coordinators == (
        CoordinatorSnapshot(READ, "state of read"),
        CoordinatorSnapshot(WRITE, "state of write"),
    )


def test_an_operator_that_cannot_be_snapshotted_ends_the_checkpoint_before_any_barrier():
    """C4 C9: no subtask has been triggered, so none is notified."""
    story = a_running_job(topology=BOTH)
    story.ask(name="ada")

    said = story.hear(OperatorNotSnapshotted(1, WRITE, "the hook raised"))

    assert only(ReportAborted, said).reason is Reason.TRIGGER_CHECKPOINT_FAILURE
    assert "the hook raised" in only(ReportAborted, said).message
    assert each(NotifyAborted, said) == []
    assert only(CompleteRequest, said).outcome.reason is Reason.TRIGGER_CHECKPOINT_FAILURE


def test_a_second_checkpoint_is_not_prepared_while_one_is():
    """C4: a split between the two would be in both pools, or in neither."""
    story = a_running_job(Policy(max_concurrent=3), BOTH)
    story.ask()

    assert each(SnapshotOperators, story.ask()) == []
    assert only(SnapshotOperators, story.prepare()).checkpoint == 2


def test_an_answer_about_a_checkpoint_that_is_over_changes_nothing():
    """C4: a slow hook answers late."""
    story = a_running_job(topology=BOTH)
    story.ask()
    story.status(JobStatus.RESTARTING)
    before = story.state

    assert story.hear(OperatorSnapshotted(1, WRITE, "hook")) == []
    assert story.hear(OperatorNotSnapshotted(1, WRITE, "raised")) == []
    assert story.hear(LocationPrepared(1), LocationNotPrepared(1, "denied")) == []
    assert story.state == before


# Not everyone runs


def test_not_all_running_fails_the_trigger_and_nothing_else_happens():
    """C4: NOT_ALL_REQUIRED_TASKS_RUNNING; no id is used, no operator asked, no one doomed."""
    story = a_running_job(topology=BOTH)
    story.down(SUM_0)

    report, answer = story.ask(name="ada")

    assert report.checkpoint == 0
    assert report.reason is Reason.NOT_ALL_REQUIRED_TASKS_RUNNING
    assert answer.outcome.reason is Reason.NOT_ALL_REQUIRED_TASKS_RUNNING
    assert story.state.log.next_id == 1
    assert story.state.checkpoints.pending == ()


def test_a_failed_trigger_never_counts_against_the_job():
    """C4 C9: nothing else happens."""
    story = a_running_job(Policy(interval_ms=10, tolerable_failures=0))
    story.down(SUM_0)

    said = [word for now in range(5, 100, 10) for word in story.at(now)]

    assert len(each(ReportAborted, said)) == 10
    assert each(FailAttempt, said) == []


def test_the_trigger_reaches_each_subtask_in_the_attempt_that_it_runs_in():
    """C4 R3: a message to an older attempt would be lost."""
    story = a_running_job()
    story.down(READ_0)
    story.up(READ_0, attempt=7)

    assert only(Trigger, story.ask()).targets == ((READ_0, 7),)


# Ids


def test_each_checkpoint_has_an_id_of_its_own_also_after_an_abort():
    """C19: ids never repeat."""
    story = a_running_job()
    used = []
    for _ in range(20):
        used.append(story.trigger())
        story.decline(used[-1], SUM_0, Reason.CHECKPOINT_DECLINED_TASK_NOT_READY)

    assert used == list(range(1, 21))


# Types


@pytest.mark.parametrize("kind", CheckpointKind)
def test_the_barrier_says_what_kind_of_checkpoint_it_is(kind):
    """C11: the barrier's kind decides whether sources stop, drain or continue."""
    assert only(Trigger, a_running_job().start(kind)).barrier.kind is kind


def test_only_a_synchronous_savepoint_suspends_or_terminates():
    """C11: SAVEPOINT_SUSPEND stops without drain, SAVEPOINT_TERMINATE with."""
    assert [kind for kind in CheckpointKind if kind.is_synchronous] == [STOP, DRAIN]
    assert [kind for kind in CheckpointKind if kind.drains] == [DRAIN]
    assert [kind for kind in CheckpointKind if kind.is_savepoint] == [SAVEPOINT, STOP, DRAIN]


def test_a_savepoint_waits_for_its_place_in_storage():
    """C11: its directory must be new, so it is made before a barrier is sent."""
    story = a_running_job()

    assert story.ask(SAVEPOINT, location="store/mine") == [PrepareLocation(1, "store/mine")]
    trigger = only(Trigger, story.hear(LocationPrepared(1)))
    assert trigger.barrier.location == "store/mine"


def test_a_savepoint_without_a_place_of_its_own_gets_one_next_to_the_checkpoints():
    """C11: named by its id, so never the same twice."""
    assert a_running_job().ask(SAVEPOINT) == [PrepareLocation(1, "store/orders/savepoint-1")]


def test_a_savepoint_whose_place_cannot_be_made_fails_with_the_storage_s_words():
    """C18: IO_EXCEPTION, and the request is answered."""
    story = a_running_job()
    story.ask(SAVEPOINT, name="ada")

    said = story.hear(LocationNotPrepared(1, "permission denied"))

    assert only(ReportAborted, said).reason is Reason.IO_EXCEPTION
    assert "permission denied" in only(CompleteRequest, said).outcome.message
    assert each(FailAttempt, said) == []


def test_a_savepoint_does_not_wait_for_a_checkpoint_in_flight():
    """C5: it is forced, while barriers are aligned anyway."""
    story = a_running_job()
    story.trigger()

    assert only(Trigger, story.start(SAVEPOINT)).barrier.checkpoint == 2


def test_with_unaligned_barriers_a_savepoint_waits_its_turn():
    """C5 A4: overtaking allows one checkpoint at a time."""
    story = a_running_job(Policy(unaligned=True))
    first = story.trigger()

    assert story.ask(SAVEPOINT) == []
    assert only(PrepareLocation, story.complete(first)).checkpoint == 2


def test_a_full_checkpoint_builds_on_nothing():
    """C11 S4: FULL_CHECKPOINT; an ordinary one names the newest completed one."""
    story = a_running_job(Policy(incremental=True))
    story.checkpoint()

    assert only(Trigger, story.start()).barrier.base == 1
    story.complete(2)
    assert only(Trigger, story.start(FULL)).barrier.base == 0


@pytest.mark.parametrize("kind", [SAVEPOINT, STOP, DRAIN])
def test_a_savepoint_builds_on_nothing(kind):
    """S10: it is self-contained."""
    story = a_running_job(Policy(incremental=True))
    story.checkpoint()

    assert only(Trigger, story.start(kind)).barrier.base == 0


def test_without_incremental_checkpoints_every_one_is_whole():
    """S4: no checkpoint refers to another checkpoint's files."""
    story = a_running_job()
    story.checkpoint()

    assert only(Trigger, story.start()).barrier.base == 0


# How barriers are aligned


@pytest.mark.parametrize(
    ("policy", "kind", "alignment", "timeout"),
    [
        (Policy(), CHECKPOINT, AlignmentType.ALIGNED, 0),
        (Policy(mode=Mode.AT_LEAST_ONCE), CHECKPOINT, AlignmentType.AT_LEAST_ONCE, 0),
        (Policy(unaligned=True), CHECKPOINT, AlignmentType.UNALIGNED, 0),
        (Policy(unaligned=True, aligned_timeout_ms=5), CHECKPOINT, AlignmentType.ALIGNED, 5),
        (Policy(unaligned=True), SAVEPOINT, AlignmentType.FORCED_ALIGNED, 0),
        (Policy(unaligned=True), STOP, AlignmentType.FORCED_ALIGNED, 0),
        (
            Policy(unaligned=True, aligned_timeout_ms=5),
            DRAIN,
            AlignmentType.FORCED_ALIGNED,
            0,
        ),
        (Policy(), SAVEPOINT, AlignmentType.ALIGNED, 0),
    ],
)
def test_the_barrier_says_how_it_wants_to_be_aligned(policy, kind, alignment, timeout):
    """A2 A3 A4 A5 A6: a subtask needs no configuration."""
    barrier = only(Trigger, a_running_job(policy).start(kind)).barrier

    assert (barrier.alignment, barrier.aligned_timeout_ms) == (alignment, timeout)


# Stopping


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_no_checkpoint_starts_behind_a_synchronous_savepoint(kind):
    """C11: no record leaves a source behind its barrier, so nothing else could complete."""
    story = a_running_job(Policy(interval_ms=100, max_concurrent=3))
    story.trigger(kind)

    assert story.state.requests.periodic == Unscheduled()
    assert story.ask() == []
    assert each(Trigger, story.at(1000)) == []


def test_a_periodic_request_in_the_queue_ends_with_the_scheduler():
    """C11 C5: PERIODIC_SCHEDULER_SHUTDOWN."""
    story = a_running_job(Policy(interval_ms=100))
    story.at(50)
    story.at(150)
    assert [request.is_periodic for request in story.state.requests.queue] == [True]

    said = story.start(STOP)

    assert only(ReportAborted, said).reason is Reason.PERIODIC_SCHEDULER_SHUTDOWN
    assert story.state.requests.queue == ()


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_no_checkpoint_starts_after_a_synchronous_savepoint_completed(kind):
    """C11: the job ends with it."""
    story = a_running_job()
    story.complete(story.trigger(kind))

    assert story.ask() == []
    assert story.state.checkpoints.pending == ()


def test_the_clock_goes_on_behind_a_plain_savepoint():
    """C11: only a synchronous savepoint stops the job."""
    story = a_running_job(Policy(interval_ms=100))
    story.trigger(SAVEPOINT)

    assert story.state.requests.periodic != Unscheduled()


# The queue


def test_a_request_that_finds_the_queue_full_is_refused():
    """C5: TOO_MANY_CHECKPOINT_REQUESTS."""
    story = a_running_job(Policy(max_queued=1))
    story.trigger()
    story.ask(name="ada")

    said = story.ask(name="bob")

    assert only(CompleteRequest, said) == CompleteRequest(
        "bob",
        RequestFailed(
            Reason.TOO_MANY_CHECKPOINT_REQUESTS, Reason.TOO_MANY_CHECKPOINT_REQUESTS.value
        ),
    )


def test_every_request_is_answered_exactly_once():
    """C5: with where the checkpoint is, or with why there is none."""
    story = a_running_job()
    said = story.ask(name="ada")
    said += story.complete(1)
    said += story.complete(story.trigger(name="bob"))
    said += story.at(10_000_000)

    assert each(CompleteRequest, said) == [
        CompleteRequest("ada", RequestSucceeded(1, "store/orders/chk-1")),
        CompleteRequest("bob", RequestSucceeded(2, "store/orders/chk-2")),
    ]


def test_nothing_starts_while_too_much_is_being_cleaned_up():
    """C5: nothing starts while more than max-concurrent checkpoints are still being cleaned up."""
    story = a_running_job(Policy(tolerable_failures=9))
    for _ in range(2):
        checkpoint = story.trigger()
        story.ack(checkpoint, SUM_0)
        story.decline(checkpoint, SUM_1)

    assert each(Trigger, story.ask()) == []
    story.tidy_up()
    assert story.state.checkpoints.pending[0].properties.checkpoint == 3


def test_stamps_are_by_the_wall_clock_and_deadlines_are_not():
    """C6 C21: a clock that was set back shows in what people read, and expires nothing."""
    job = a_running_job()
    job.hear(TimePassed(50_000, ahead=-40_000))

    said = job.start()

    assert only(ReportTriggered, said).at == 10_000
    assert only(Trigger, said).barrier.triggered_at == 10_000
    (pending,) = job.state.checkpoints.pending
    assert pending.properties.deadline == 50_000 + job.state.job.policy.timeout_ms
    written = only(WriteManifest, job.ack_rest(pending.properties.checkpoint))
    assert written.manifest.taken_at == 10_000


def test_a_checkpoint_does_not_wait_for_a_subtask_that_finished_while_it_was_prepared():
    """C4 C9 C14: no subtask would ack for it, and the checkpoint would wait for its timeout."""
    job = a_running_job(topology=BOTH)
    job.ask()
    job.finished(READ_0)

    said = job.prepare()

    assert only(ReportAborted, said).reason is Reason.CHECKPOINT_DECLINED_TASK_CLOSING
    assert not each(Trigger, said)
    assert job.state.checkpoints.pending == ()
