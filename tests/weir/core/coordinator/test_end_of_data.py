"""How a bounded job ends: subtasks finish, checkpoints go on, and a final one covers the rest."""

from coordinated_job import (
    EVERYONE,
    FIRST,
    READ_0,
    SAVEPOINT,
    STOP,
    SUM,
    SUM_0,
    SUM_1,
    WRITE_0,
    a_running_job,
    a_topology,
    each,
    only,
)
from weir.core.coordinator import next_deadline
from weir.core.coordinator.actions import (
    FailAttempt,
    NotifyCompleted,
    ReportAborted,
    ReportTriggered,
    Trigger,
    WriteManifest,
)
from weir.core.coordinator.events import EndOfDataReached
from weir.core.lifecycle import JobStatus, SubtaskFinished
from weir.core.policy import Policy
from weir.core.reasons import Reason

UNION_SUM = a_topology(union=(SUM,))


def triggered(said):
    return [report.checkpoint for report in each(ReportTriggered, said)]


def leaving(said):
    """Whom the completions in here let go."""
    notices = [notice for notice in each(NotifyCompleted, said) if notice.leaving]
    return [subtask for notice in notices for subtask, _ in notice.targets]


def completed_with(story, *at_end):
    """One checkpoint in which these subtasks have nothing left to process."""
    checkpoint = story.trigger()
    for subtask in at_end:
        story.ack(checkpoint, subtask, reached_end=True)
    return story.complete(checkpoint)


# Checkpoints go on


def test_checkpoints_go_on_after_some_subtasks_have_finished():
    """C14: a finished subtask contributes nothing."""
    story = a_running_job()
    story.finished(READ_0)

    said = story.start()

    assert [subtask for subtask, _ in only(Trigger, said).targets] == [SUM_0, SUM_1]
    manifest = only(WriteManifest, story.ack_rest(1)).manifest
    assert manifest.finished == (READ_0,)
    assert READ_0 not in [snapshot.subtask for snapshot in manifest.snapshots]


def test_with_the_switch_off_a_trigger_fails_once_a_subtask_has_finished():
    """C14: off → such a trigger fails with NOT_ALL_REQUIRED_TASKS_RUNNING."""
    story = a_running_job(Policy(after_tasks_finish=False))
    story.finished(READ_0)

    report = only(ReportAborted, story.ask())

    assert report.reason is Reason.NOT_ALL_REQUIRED_TASKS_RUNNING


def test_a_subtask_that_comes_back_has_not_finished():
    """C14 R4: a region that restarts takes its finished subtasks along."""
    story = a_running_job()
    story.finished(READ_0)
    story.down(*EVERYONE)
    story.up(*EVERYONE, attempt=2)

    assert [s for s, _ in only(Trigger, story.ask()).targets] == [READ_0]


def test_the_end_of_an_older_attempt_is_no_end():
    """C14 R3: a late event changes nothing."""
    story = a_running_job()
    story.down(READ_0)
    story.up(READ_0, attempt=2)

    story.hear(SubtaskFinished(FIRST, READ_0), EndOfDataReached(FIRST, READ_0))

    assert READ_0 in story.state.subtasks.running
    assert story.state.subtasks.at_end == frozenset()


# Leaving


def test_a_subtask_at_its_end_may_leave_when_a_checkpoint_covers_it():
    """C14: and no sooner, or its last transaction would never be committed."""
    story = a_running_job()
    story.at_end(READ_0)

    said = completed_with(story, READ_0)

    assert leaving(said) == [READ_0]


def test_no_subtask_leaves_with_a_plain_savepoint():
    """C14 R5: it commits nothing."""
    story = a_running_job()
    savepoint = story.trigger(SAVEPOINT)
    story.ack_rest(savepoint, reached_end=True)

    assert leaving(story.complete(savepoint)) == []


def test_everyone_leaves_with_a_synchronous_savepoint():
    """C11: the job ends with it, whether or not a subtask has reached its end."""
    story = a_running_job()

    assert leaving(story.complete(story.trigger(STOP))) == list(EVERYONE)


def test_with_the_switch_off_all_subtasks_leave_together_or_none():
    """C14: else no checkpoint could be taken any more."""
    story = a_running_job(Policy(after_tasks_finish=False))

    assert leaving(completed_with(story, READ_0, SUM_0)) == []
    assert leaving(completed_with(story, *EVERYONE)) == list(EVERYONE)


def test_half_of_an_operator_with_union_state_stays():
    """C14: union list state completes only when all or none of the subtasks have finished."""
    story = a_running_job(topology=UNION_SUM)

    assert leaving(completed_with(story, READ_0, SUM_0)) == [READ_0]
    assert leaving(completed_with(story, READ_0, SUM_0, SUM_1)) == [READ_0, SUM_0, SUM_1]


def test_a_final_notice_is_repeated_until_the_subtask_has_left():
    """C14: a subtask that missed it would keep the job running."""
    story = a_running_job()
    completed_with(story, READ_0, SUM_0)
    story.finished(READ_0)

    assert story.later(100) == []
    assert leaving(story.later(100)) == [SUM_0]
    assert story.later(100) == []
    assert leaving(story.later(100)) == [SUM_0]

    story.finished(SUM_0)
    assert story.later(200) == []
    assert next_deadline(story.state) is None


def test_a_later_checkpoint_does_not_withdraw_a_notice_that_may_be_lost():
    """C14: the other half of a union operator has left since, so this one would stay for ever."""
    story = a_running_job(Policy(max_concurrent=2), topology=UNION_SUM)
    first, second = story.trigger(), story.trigger()
    for checkpoint in (first, second):
        for subtask in (READ_0, SUM_0, SUM_1):
            story.ack(checkpoint, subtask, reached_end=True)
    story.complete(first)
    story.finished(SUM_0)
    story.ack(second, WRITE_0, reached_end=True)
    story.complete(second)

    assert SUM_1 in leaving(story.later(200))


def test_a_restart_takes_back_that_somebody_may_leave():
    """C14 R1: what comes back has rows to process again."""
    story = a_running_job()
    completed_with(story, READ_0)
    story.down(*EVERYONE)
    story.up(*EVERYONE, attempt=2)

    assert story.later(200) == []


def test_a_plain_savepoint_repeats_no_final_notice():
    """C14 R5: only the completion that covered a subtask lets it go."""
    story = a_running_job()
    completed_with(story, READ_0)

    assert leaving(story.complete(story.trigger(SAVEPOINT))) == []


# The final checkpoint


def test_when_everyone_has_reached_the_end_one_final_checkpoint_is_taken():
    """C14: without being asked, also with periodic checkpoints disabled."""
    story = a_running_job()

    assert story.at_end(READ_0, SUM_0, SUM_1) == []
    assert triggered(story.at_end(WRITE_0)) == [1]


def test_it_is_taken_once():
    """C14: one final checkpoint."""
    story = a_running_job()
    said = story.at_end(*EVERYONE)
    story.ack_rest(1, reached_end=True)
    said += story.complete(1)
    said += story.at(100_000)

    assert triggered(said) == [1]


def test_everyone_waits_for_it():
    """C14: so that two-phase sinks commit their last transaction."""
    story = a_running_job()
    story.at_end(*EVERYONE)
    story.ack_rest(1, reached_end=True)

    assert leaving(story.written(1)) == []
    assert leaving(story.logged()) == list(EVERYONE)


def test_those_who_finished_before_are_not_waited_for():
    """C14: all remaining subtasks."""
    story = a_running_job()
    story.finished(READ_0)

    assert triggered(story.at_end(SUM_0, SUM_1, WRITE_0)) == [1]


def test_the_switch_does_not_forbid_the_final_checkpoint():
    """C14: a region that lost its slot after the others had left must still come to its end."""
    story = a_running_job(Policy(after_tasks_finish=False))
    story.finished(READ_0)

    assert triggered(story.at_end(SUM_0, SUM_1, WRITE_0)) == [1]


def test_a_final_checkpoint_that_fails_is_tried_again_after_a_while():
    """C14 C18: not at once, and not never."""
    story = a_running_job(Policy(tolerable_failures=9))
    story.at_end(*EVERYONE)

    assert triggered(story.decline(1, SUM_0)) == []
    assert next_deadline(story.state) == 200
    assert triggered(story.later(200)) == [2]


def test_another_checkpoint_s_failure_does_not_delay_the_final_one():
    """C14: only a final checkpoint that failed waits."""
    story = a_running_job(Policy(tolerable_failures=9))
    story.decline(story.trigger(), SUM_0)

    assert triggered(story.at_end(*EVERYONE)) == [2]


def test_a_final_checkpoint_observes_the_pause():
    """C14 C6: when it failed."""
    story = a_running_job(Policy(tolerable_failures=9, min_pause_ms=900))
    story.at_end(*EVERYONE)
    story.decline(1, SUM_0)

    assert triggered(story.at(899)) == []
    assert triggered(story.at(900)) == [2]


def test_the_final_checkpoint_waits_for_a_region_that_is_down():
    """C14 R4: the end of the running subtasks is not the end of all."""
    story = a_running_job()
    story.down(SUM_0)

    assert story.at_end(READ_0, SUM_1, WRITE_0) == []

    story.up(SUM_0, attempt=2)
    assert triggered(story.at_end(SUM_0)) == [1]


def test_a_final_checkpoint_that_cannot_be_planned_is_tried_again_after_a_while():
    """C14: half of a union operator is gone already."""
    story = a_running_job(topology=UNION_SUM)
    story.finished(READ_0, SUM_0)

    said = story.at_end(SUM_1, WRITE_0)

    assert only(ReportAborted, said).reason is Reason.CHECKPOINT_DECLINED_TASK_CLOSING
    assert each(FailAttempt, said) == []
    assert next_deadline(story.state) == 200


def test_a_restarted_subtask_reaches_its_end_anew():
    """C14 R1: it does not leave with a checkpoint that its former self took."""
    story = a_running_job()
    story.at_end(*EVERYONE)
    story.ack_rest(1, reached_end=True)
    story.written(1)
    story.down(*EVERYONE)
    story.status(JobStatus.RESTARTING)

    assert leaving(story.logged()) == []

    story.up(*EVERYONE, attempt=2)
    story.status(JobStatus.RUNNING)
    assert triggered(story.at_end(*EVERYONE)) == [2]


def test_there_is_no_final_checkpoint_behind_a_synchronous_savepoint():
    """C11: the drained job ends with its savepoint."""
    story = a_running_job()
    savepoint = story.trigger(STOP)

    assert story.at_end(*EVERYONE) == []
    assert triggered(story.complete(savepoint)) == []
    assert story.state.requests.queue == ()
