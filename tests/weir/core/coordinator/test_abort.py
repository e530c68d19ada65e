"""What aborts a checkpoint before it completes, what follows from it, and what is reported."""

import pytest

from coordinated_job import (
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
    WRITE_0,
    Files,
    a_running_job,
    a_topology,
    each,
    only,
    usual_path,
)
from weir.core.coordinator.actions import (
    CommitTransactions,
    CompleteRequest,
    DeleteFiles,
    FailAttempt,
    NotifyAborted,
    NotifyCompleted,
    ReportAborted,
    ResolveTransactions,
    Trigger,
)
from weir.core.coordinator.coordinator_state import Unscheduled
from weir.core.coordinator.events import (
    Phase,
    SubtaskProgressed,
    Timings,
)
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.core.reasons import COUNTED, Reason
from weir.core.snapshots import CheckpointKind

TOLERANT = Policy(tolerable_failures=9)


def progressed(checkpoint, subtask, phase):
    return SubtaskProgressed(FIRST, checkpoint, subtask, phase)


# What aborts


def test_a_decline_aborts_with_the_subtask_s_reason():
    """C9 C10: decline."""
    story = a_running_job(TOLERANT)

    report = only(
        ReportAborted,
        story.decline(story.trigger(), SUM_0, Reason.CHECKPOINT_ASYNC_EXCEPTION, "disk full"),
    )

    assert (report.checkpoint, report.reason) == (1, Reason.CHECKPOINT_ASYNC_EXCEPTION)
    assert "sum-0 disk full" in report.message


def test_a_timeout_aborts():
    """C9 C6: timeout, not a moment early."""
    story = a_running_job(Policy(timeout_ms=300, tolerable_failures=9))
    story.at(1000)
    story.trigger()

    assert each(ReportAborted, story.at(1299)) == []
    assert only(ReportAborted, story.at(1300)).reason is Reason.CHECKPOINT_EXPIRED


def test_a_timeout_aborts_also_while_operators_are_being_snapshotted():
    """C9: a hook that hangs must not hold the checkpoint for ever."""
    story = a_running_job(Policy(timeout_ms=300), a_topology(coordinated=(READ,)))
    story.ask()

    assert only(ReportAborted, story.at(300)).reason is Reason.CHECKPOINT_EXPIRED


@pytest.mark.parametrize(
    ("subtasks", "reason"),
    [(EVERYONE, Reason.TASK_FAILURE), ((SUM_0,), Reason.JOB_FAILOVER_REGION)],
)
def test_a_task_failure_aborts_whatever_the_failed_subtasks_still_owed(subtasks, reason):
    """C9: task failure, of the whole job or of a region."""
    story = a_running_job()
    story.trigger()

    said = story.down(*subtasks)

    assert only(ReportAborted, said).reason is reason
    assert each(FailAttempt, said) == []


def test_a_decline_of_a_subtask_that_has_acked_changes_nothing():
    """C9: what it acked is durable."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack(checkpoint, SUM_0)

    assert story.decline(checkpoint, SUM_0) == []


def test_a_checkpoint_that_is_being_written_is_aborted_by_nothing_but_storage():
    """C8 C9: the entry that completes it may already exist."""
    story = a_running_job(Policy(timeout_ms=300))
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)

    said = [*story.at(10_000), *story.decline(checkpoint, SUM_0), *story.down(*EVERYONE)]
    said += story.status(JobStatus.RESTARTING)

    assert each(ReportAborted, said) == []
    assert story.complete(checkpoint) != []


# What an abort does


def test_every_subtask_is_notified():
    """C9: notify every subtask, so that alignment is released downstream."""
    story = a_running_job(TOLERANT)

    said = story.decline(story.trigger(), SUM_0)

    assert only(NotifyAborted, said) == NotifyAborted(1, tuple((s, FIRST) for s in EVERYONE))


def test_a_subtask_that_went_down_is_not_notified():
    """C9: it has no alignment to release."""
    story = a_running_job()
    story.trigger()

    assert [s for s, _ in only(NotifyAborted, story.down(SUM_0)).targets] == [
        READ_0,
        SUM_1,
        WRITE_0,
    ]


def test_the_state_files_that_were_written_are_deleted():
    """C9: delete the state files it had written."""
    story = a_running_job(TOLERANT)
    checkpoint = story.trigger()
    story.ack(checkpoint, READ_0)
    story.ack(checkpoint, SUM_0, Files(own=("own",), shared=("shared",)))

    said = story.decline(checkpoint, SUM_1)

    assert sorted(only(DeleteFiles, said).paths) == [
        "own",
        "shared",
        usual_path(checkpoint, READ_0),
    ]


def test_a_shared_file_that_a_completed_checkpoint_refers_to_is_not_deleted():
    """C9 S4: no referenced file is ever deleted."""
    story = a_running_job(Policy(incremental=True, tolerable_failures=9))
    first = story.trigger()
    story.ack(first, SUM_0, Files(shared=("base",)))
    story.complete(first)
    second = story.trigger()
    story.ack(second, SUM_0, Files(shared=("base", "new")))

    assert only(DeleteFiles, story.decline(second, SUM_1)).paths == ("new",)
    assert dict(story.state.checkpoints.shared.references) == {"base": 1}


def test_the_request_of_an_aborted_checkpoint_fails_with_the_reason():
    """C9 C10: with the reason and the whole message."""
    story = a_running_job(TOLERANT)

    said = story.decline(story.trigger(name="ada"), SUM_0)

    answer, report = only(CompleteRequest, said), only(ReportAborted, said)
    assert answer.request == "ada"
    assert (answer.outcome.reason, answer.outcome.message) == (report.reason, report.message)


def test_a_second_ending_of_one_checkpoint_changes_nothing():
    """C9: ten subtasks decline, one checkpoint fails."""
    story = a_running_job(Policy(tolerable_failures=1))
    checkpoint = story.trigger()
    story.decline(checkpoint, SUM_0)

    assert story.decline(checkpoint, SUM_1) == []
    assert story.decline(checkpoint, WRITE_0) == []


# Sinks


def test_an_aborted_checkpoint_aborts_no_transaction():
    """C9: while the attempt lives the source does not rewind."""
    story = a_running_job(TOLERANT)
    checkpoint = story.trigger()
    story.ack(checkpoint, WRITE_0)

    said = story.decline(checkpoint, SUM_0)

    assert each(ResolveTransactions, said) == []
    assert each(CommitTransactions, said) == []


# What counts


@pytest.mark.parametrize("reason", [r for r in Reason if r is not Reason.TASK_CHECKPOINT_FAILURE])
def test_a_failure_counts_against_the_tolerable_ones_by_its_reason(reason):
    """C9: count or do not count by the reason's own rule."""
    story = a_running_job(Policy(tolerable_failures=0))

    dooms = each(FailAttempt, story.decline(story.trigger(), SUM_0, reason))

    assert [doom.reason for doom in dooms] == ([reason] if reason in COUNTED else [])


def test_the_attempt_is_doomed_when_more_fail_in_a_row_than_are_tolerable():
    """C6 C9: tolerable consecutive failures."""
    story = a_running_job(Policy(tolerable_failures=2))

    dooms = [each(FailAttempt, story.decline(story.trigger(), SUM_0)) for _ in range(3)]

    assert [len(doom) for doom in dooms] == [0, 0, 1]
    assert dooms[2][0].why.startswith("3 checkpoints failed in a row, the last one, checkpoint ")


def test_a_success_in_between_forgives():
    """C9: in a row."""
    story = a_running_job(Policy(tolerable_failures=1))
    story.decline(story.trigger(), SUM_0)
    story.checkpoint()

    assert each(FailAttempt, story.decline(story.trigger(), SUM_0)) == []


def test_after_the_attempt_was_doomed_the_count_begins_anew():
    """C9: or every failure of the next attempt would doom it too."""
    story = a_running_job(Policy(tolerable_failures=1))
    for _ in range(2):
        story.decline(story.trigger(), SUM_0)

    assert each(FailAttempt, story.decline(story.trigger(), SUM_0)) == []


def test_a_failed_savepoint_never_counts():
    """C9: a user requested it and gets an answer."""
    story = a_running_job(Policy(tolerable_failures=0))

    said = story.decline(story.trigger(SAVEPOINT), SUM_0)

    assert each(FailAttempt, said) == []
    assert only(CompleteRequest, said).outcome.reason is Reason.CHECKPOINT_DECLINED


@pytest.mark.parametrize("kind", CheckpointKind)
def test_a_failure_in_a_synchronous_part_always_fails_the_attempt(kind):
    """C9: whatever is tolerable, and whatever kind of checkpoint it was."""
    story = a_running_job(TOLERANT)

    said = story.decline(story.trigger(kind), SUM_0, Reason.TASK_CHECKPOINT_FAILURE)

    assert only(FailAttempt, said).reason is Reason.TASK_CHECKPOINT_FAILURE


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_a_synchronous_savepoint_that_fails_behind_its_barrier_fails_the_attempt(kind):
    """C11 C9: the sources stay stopped, so the job must restart."""
    story = a_running_job(TOLERANT)

    said = story.decline(story.trigger(kind), SUM_0)

    assert only(FailAttempt, said).reason is Reason.CHECKPOINT_DECLINED


def test_a_synchronous_savepoint_that_fails_before_its_barrier_leaves_the_job_alone():
    """C11 C9: the sources were not triggered, and the schedule continues."""
    story = a_running_job(Policy(interval_ms=100, timeout_ms=300), a_topology(coordinated=(READ,)))
    story.ask(STOP)

    said = story.at(300)

    assert Reason.CHECKPOINT_EXPIRED in [r.reason for r in each(ReportAborted, said)]
    assert each(FailAttempt, said) == []
    assert story.state.requests.periodic != Unscheduled()


# After an abort


def test_the_next_checkpoint_starts_as_soon_as_the_last_one_is_gone():
    """C5: an abort makes room."""
    story = a_running_job(TOLERANT)
    checkpoint = story.trigger()
    story.ask()

    assert only(Trigger, story.decline(checkpoint, SUM_0)).barrier.checkpoint == 2


def test_an_aborted_checkpoint_is_never_announced_as_complete():
    """C8: whatever arrives late."""
    story = a_running_job(TOLERANT)
    checkpoint = story.trigger()
    story.decline(checkpoint, SUM_0)

    said = [word for subtask in EVERYONE for word in story.ack(checkpoint, subtask)]

    assert each(NotifyCompleted, [*said, *story.written(checkpoint), *story.logged()]) == []


# What is reported


def test_the_message_names_the_slowest_subtask_its_phase_and_the_bytes():
    """C10: from what the coordinator knows anyway."""
    story = a_running_job(Policy(timeout_ms=300))
    checkpoint = story.trigger()
    story.ack(checkpoint, READ_0)
    story.hear(
        progressed(checkpoint, SUM_0, Phase.UPLOADING),
        progressed(checkpoint, SUM_1, Phase.ALIGNING),
        progressed(checkpoint, WRITE_0, Phase.UPLOADING),
    )

    assert only(ReportAborted, story.at(300)).message == (
        "the checkpoint did not complete before its timeout; "
        "slowest subtask sum-1 is aligning after 300 ms, 1 of 4 acked with 10 bytes"
    )


def test_a_subtask_that_was_never_heard_of_waits_for_its_barrier():
    """C10: the least advanced phase is the slowest."""
    story = a_running_job(Policy(timeout_ms=300))
    checkpoint = story.trigger()
    story.hear(progressed(checkpoint, READ_0, Phase.UPLOADING))

    assert "sum-0 is waiting for the barrier" in only(ReportAborted, story.at(300)).message


def test_progress_of_a_checkpoint_that_is_over_changes_nothing():
    """C10: a late report of a phase."""
    story = a_running_job()
    checkpoint = story.checkpoint()
    before = story.state

    assert story.hear(progressed(checkpoint, SUM_0, Phase.UPLOADING)) == []
    assert story.state == before


def test_when_all_have_acked_the_slowest_is_the_one_that_took_longest():
    """C10: a checkpoint can still fail after its last ack."""
    story = a_running_job(Policy(max_concurrent=2))
    first, second = story.trigger(), story.trigger()
    story.ack_rest(first)
    story.ack(second, SUM_1, timings=Timings(alignment_ms=70, async_ms=20))
    story.ack(second, SUM_0, timings=Timings(sync_ms=80))
    story.ack_rest(second)

    (report,) = each(ReportAborted, story.down(*EVERYONE))

    assert report.message == (
        "a subtask failed: a slot was lost; "
        "slowest subtask sum-1 acknowledged after 90 ms with 10 bytes"
    )


def test_before_any_barrier_the_message_names_the_operators_that_were_waited_for():
    """C10: a hook that hangs is found by its name."""
    story = a_running_job(Policy(timeout_ms=300), a_topology(coordinated=(READ, WRITE)))
    story.ask()

    assert only(ReportAborted, story.at(300)).message == (
        "the checkpoint did not complete before its timeout; "
        "no barrier was sent after 300 ms, waiting for read, write"
    )


def test_a_savepoint_whose_place_is_not_ready_says_that_it_waits_for_storage():
    """C10 C18: no subtask is named as slow then."""
    story = a_running_job(Policy(timeout_ms=300))
    story.ask(SAVEPOINT)

    assert only(ReportAborted, story.at(300)).message.endswith("waiting for its place in storage")


@pytest.mark.parametrize("reason", Reason)
def test_every_end_carries_one_reason_and_says_it(reason):
    """C10: one reason out of the enumerated set."""
    story = a_running_job(TOLERANT)

    report = only(ReportAborted, story.decline(story.trigger(), SUM_0, reason))

    assert report.reason is reason
    assert report.message.startswith(reason.value)
