"""A job starts when it can, and a failure takes down what it reaches and nothing else."""

import pytest

from attempt_scenario import (
    APART,
    EVERYTHING,
    FIRST,
    FORWARDED,
    READ_0,
    READ_1,
    SECOND,
    SHUFFLED,
    SUM_0,
    SUM_1,
    Job,
    a_deploying_job,
    a_running_job,
    only,
    statuses,
)
from weir.core.attempt import (
    Deploy,
    FailureCause,
    FindRestorePoint,
    JobStarted,
    RecycleSlot,
    ReportRestart,
    ReportStatus,
    ResetSubtasks,
    RestorePointReady,
    SlotRegistered,
)
from weir.core.lifecycle import JobStatus

USER_CODE, OPERATOR, CONNECTION, CHECKPOINT = FailureCause


# Starting


def test_a_job_says_how_many_slots_it_waits_for():
    """R3: gang start is a rule of Weir, and the status has the missing slots."""
    job = Job()

    assert job.tell(JobStarted()) == [ReportStatus(JobStatus.WAITING_FOR_SLOTS, 2)]
    assert job.slots("a") == [ReportStatus(JobStatus.WAITING_FOR_SLOTS, 1)]


def test_a_restore_point_is_sought_as_soon_as_the_slots_are_there():
    """R1: no subtask starts before it is known from what."""
    job = Job()
    job.slots("a")
    job.tell(JobStarted())

    assert job.slots("b") == [
        FindRestorePoint(1, EVERYTHING),
        ReportStatus(JobStatus.DEPLOYING, 0),
    ]


def test_slots_that_came_before_the_job_count():
    """R3: slots outlive attempts, and may precede the first."""
    job = Job()

    assert job.slots("a", "b") == []
    assert FindRestorePoint(1, EVERYTHING) in job.tell(JobStarted())


def test_a_slot_hosts_one_subtask_of_each_operator():
    """R3: subtasks of one index share a slot."""
    job = Job()
    job.slots("b", "a", "c")
    job.tell(JobStarted())

    placements = ((READ_0, "a"), (READ_1, "b"), (SUM_0, "a"), (SUM_1, "b"))
    assert job.restored() == [Deploy(1, placements)]


def test_a_new_drivers_slots_take_the_indexes_whose_newest_copies_they_have():
    """S13: a disk that an index has left holds copies of it too, of an older checkpoint."""
    job = Job()
    job.tell(
        SlotRegistered("a", "e1", "d1", ((0, 3),)),
        SlotRegistered("b", "e2", "d2", ((0, 9), (1, 9))),
        SlotRegistered("c", "e3", "d3", ((0, 3),)),
        SlotRegistered("d", "e4", "d2"),
        JobStarted(),
    )

    deploy = only(Deploy, job.restored())

    assert dict(deploy.placements) == {READ_0: "b", READ_1: "d", SUM_0: "b", SUM_1: "d"}


def test_what_a_disk_held_before_this_driver_is_forgotten_once_the_index_runs_elsewhere():
    """S13: the newest copies are beside the placement that the index had last."""
    job = Job()
    job.tell(SlotRegistered("a", "e1", "d1"), SlotRegistered("b", "e2", "d2"), JobStarted())
    job.restored()
    job.tell(SlotRegistered("c", "e3", "d3", ((0, 9),)), SlotRegistered("d", "e4", "d1"))
    job.lost("a")
    job.later()

    deploy = only(Deploy, job.restored())

    assert dict(deploy.placements)[READ_0] == "d"


def test_a_job_runs_once_every_subtask_does():
    """C2: RUNNING starts the periodic scheduler: no subtask may be missing; reported once."""
    job = a_deploying_job()

    assert job.up(READ_0, READ_1, SUM_0) == []
    assert job.up(SUM_1) == [ReportStatus(JobStatus.RUNNING, 0)]
    assert job.up(SUM_1) == []


def test_a_subtask_that_finishes_at_once_does_not_delay_the_job():
    """R6: a bounded source may have finished before its peers run."""
    job = a_deploying_job()
    job.finished(READ_0)

    assert job.up(READ_1, SUM_0, SUM_1) == [ReportStatus(JobStatus.RUNNING, 0)]


def test_a_slot_lost_during_the_search_for_a_restore_point_is_waited_for():
    """R3: the slots are counted again before anything is deployed."""
    job = Job()
    job.slots("a", "b")
    job.tell(JobStarted())

    assert job.lost("b") == []
    assert job.restored() == [ReportStatus(JobStatus.WAITING_FOR_SLOTS, 1)]
    assert FindRestorePoint(2, EVERYTHING) in job.slots("c")


def test_an_answer_to_an_older_search_deploys_nothing():
    """R1: other subtasks may have joined since that search."""
    job = Job()
    job.slots("a", "b")
    job.tell(JobStarted())
    job.lost("b")
    job.restored()
    job.slots("c")

    assert job.tell(RestorePointReady(1)) == []
    assert only(Deploy, job.tell(RestorePointReady(2))).attempt == 2


# Losing a slot


def test_only_the_lost_slot_is_replaced_and_survivors_are_reset_in_place():
    """R3, R1."""
    job = a_running_job(slots=("a", "b", "standby"))

    assert job.lost("b") == [
        ReportRestart(1, EVERYTHING, whole_job=True, why="slot b on e1 was lost"),
        ResetSubtasks("a", FIRST),
        ReportStatus(JobStatus.RESTARTING, 0),
    ]
    assert job.later() == [
        FindRestorePoint(2, EVERYTHING),
        ReportStatus(JobStatus.DEPLOYING, 0),
    ]
    assert job.restored() == [
        Deploy(2, ((READ_0, "a"), (READ_1, "standby"), (SUM_0, "a"), (SUM_1, "standby")))
    ]
    assert job.up(*EVERYTHING) == [ReportStatus(JobStatus.RUNNING, 0)]


def test_a_standby_slot_on_another_executor_takes_over():
    """R3: the executor of the lost slot may be next."""
    job = a_running_job(slots=("a@e1", "b@e2", "c@e1", "d@e2"))
    job.lost("a")
    job.later()

    assert dict(only(Deploy, job.restored()).placements)[READ_0] == "d"


def test_losing_a_standby_slot_harms_nothing():
    """R3: nothing ran there."""
    job = a_running_job(slots=("a", "b", "standby"))

    assert job.lost("standby") == []


def test_without_a_standby_the_job_waits_for_the_replacement():
    """R3: and reports it, and continues by itself."""
    job = a_running_job()
    job.lost("b")

    assert job.later() == [ReportStatus(JobStatus.WAITING_FOR_SLOTS, 1)]
    assert job.slots("c") == [
        FindRestorePoint(2, EVERYTHING),
        ReportStatus(JobStatus.DEPLOYING, 0),
    ]


def test_a_replacement_that_came_during_the_delay_is_used():
    """R3: the delay and the replacement of a slot run at the same time."""
    job = a_running_job()
    job.lost("b")
    job.slots("c")

    assert FindRestorePoint(2, EVERYTHING) in job.later()


def test_a_slot_lost_while_waiting_is_missed_too():
    """R3: the number in the status is the number of slots that are needed now."""
    job = a_running_job()
    job.lost("b")
    job.later()

    assert job.lost("a") == [ReportStatus(JobStatus.WAITING_FOR_SLOTS, 2)]


def test_a_lost_slot_hits_every_region_it_hosts_and_no_other():
    """R4."""
    job = a_running_job(APART)

    assert job.lost("b") == [
        ReportRestart(1, (READ_1, SUM_1), whole_job=False, why="slot b on e1 was lost")
    ]


def test_slot_losses_end_no_job():
    """C12: only an explicit cancel is one; losing every process is a fault."""
    job = a_running_job()
    job.lost("a")
    job.lost("b")
    job.later()

    assert job.state.reported == ReportStatus(JobStatus.WAITING_FOR_SLOTS, 2)


# Failing in a live slot


def test_a_process_in_which_user_code_failed_is_recycled():
    """R4: the state of the process after the failed code is unknown."""
    job = a_running_job()

    assert job.failed(SUM_0, USER_CODE) == [
        ReportRestart(1, EVERYTHING, whole_job=True, why="sum-0: user code failed"),
        RecycleSlot("a"),
        ResetSubtasks("b", SECOND),
        ReportStatus(JobStatus.RESTARTING, 0),
    ]


def test_a_recycled_slot_is_not_used_again():
    """R4: its successor is another slot."""
    job = a_running_job()
    job.failed(SUM_0, USER_CODE)

    assert job.later() == [ReportStatus(JobStatus.WAITING_FOR_SLOTS, 1)]
    assert job.lost("a") == []
    assert FindRestorePoint(2, EVERYTHING) in job.slots("c")


def test_failed_user_code_takes_along_every_region_of_its_process():
    """R4: and leaves the others running."""
    job = a_running_job(APART)

    assert job.failed(SUM_0, USER_CODE) == [
        ReportRestart(1, FIRST, whole_job=False, why="sum-0: user code failed"),
        RecycleSlot("a"),
    ]


def test_a_failed_operator_ends_its_process_and_blames_no_user_code():
    """R4 U3: as at an input file that is broken."""
    job = a_running_job(APART)

    assert job.failed(SUM_0, OPERATOR) == [
        ReportRestart(1, FIRST, whole_job=False, why="sum-0: its operator failed"),
        RecycleSlot("a"),
    ]


def test_a_second_process_whose_user_code_failed_is_recycled_too():
    """R4: also when its subtasks have just been taken down with the first."""
    job = a_running_job()
    job.failed(SUM_0, USER_CODE)

    assert job.failed(SUM_1, USER_CODE) == [RecycleSlot("b")]
    assert job.failed(SUM_1, USER_CODE) == []


@pytest.mark.parametrize("cause", [CONNECTION, CHECKPOINT])
def test_other_failures_restart_their_region_in_place(cause):
    """R4: the process is sound."""
    job = a_running_job(APART)

    assert job.failed(SUM_0, cause) == [
        ReportRestart(1, (SUM_0,), whole_job=False, why=f"sum-0: {cause}"),
        ResetSubtasks("a", (SUM_0,)),
    ]


def test_a_region_comes_back_while_the_job_keeps_running():
    """R4, C2: the status stays RUNNING throughout, so the scheduler is not disturbed."""
    job = a_running_job(FORWARDED)

    actions = [*job.failed(SUM_0), *job.later(), *job.restored(), *job.up(*FIRST)]

    assert statuses(actions) == []
    assert FindRestorePoint(2, FIRST) in actions
    assert Deploy(2, ((READ_0, "a"), (SUM_0, "a"))) in actions


def test_the_failure_of_all_that_is_unfinished_is_that_of_the_whole_job():
    """R4: what has finished does not make a job run."""
    job = a_running_job(FORWARDED)
    job.finished(*FIRST)

    actions = job.failed(SUM_1)

    assert only(ReportRestart, actions).whole_job
    assert statuses(actions) == [JobStatus.RESTARTING]


def test_finished_subtasks_of_a_failed_region_restart_with_it():
    """R4: the restore point may be before their end."""
    job = a_running_job(FORWARDED)
    job.finished(READ_0)

    actions = job.failed(SUM_0)

    assert only(ReportRestart, actions).subtasks == FIRST
    assert only(ResetSubtasks, actions).subtasks == (SUM_0,)


def test_finished_subtasks_of_other_regions_stay_finished():
    """R4."""
    job = a_running_job(FORWARDED)
    job.finished(*SECOND)
    job.failed(SUM_0)
    job.later()
    job.restored()
    job.up(*FIRST)

    assert statuses(job.finished(*FIRST)) == [JobStatus.FINISHED]


def test_a_slot_with_finished_regions_only_can_go():
    """R4: what has finished as a whole needs no process any more."""
    job = a_running_job(FORWARDED)
    job.finished(*FIRST)

    assert job.lost("a") == []
    job.failed(SUM_1)
    assert only(FindRestorePoint, job.later()).subtasks == SECOND


def test_a_slot_whose_peers_are_unfinished_takes_its_region_down_even_when_finished_itself():
    """R4: its last rows may not have arrived."""
    job = a_running_job(SHUFFLED)
    job.finished(*FIRST)

    assert only(ReportRestart, job.lost("a")).subtasks == EVERYTHING


def test_the_coordinator_can_have_everything_restarted():
    """R8: a job without a checkpoint for too long restarts with this reason."""
    job = a_running_job(FORWARDED)

    assert job.doomed() == [
        ReportRestart(1, EVERYTHING, whole_job=True, why="no checkpoint for too long"),
        ResetSubtasks("a", FIRST),
        ResetSubtasks("b", SECOND),
        ReportStatus(JobStatus.RESTARTING, 0),
    ]
