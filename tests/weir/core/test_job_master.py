"""The actions of one part of the driver become events of another, in the same step and in order."""

from dataclasses import replace

import pytest

from coordinated_job import (
    EVERYONE,
    READ,
    READ_0,
    SAVEPOINT,
    STOP,
    SUM_0,
    SUM_1,
    WRITE,
    WRITE_0,
    Files,
    a_manifest,
    a_snapshot,
    a_topology,
    an_epoch,
    each,
    only,
)
from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core.attempt import FailureCause, ReportRestart, ReportStatus
from weir.core.coordinator.actions import (
    FailAttempt,
    LookForSuccessor,
    NotifyAborted,
    NotifyCompleted,
    OfferRestorePoint,
    RestoreManifest,
    RestoreNothing,
    SendToSubtask,
    SnapshotOperators,
    Trigger,
)
from weir.core.coordinator.coordinator_state import Scheduled, Unclaimed
from weir.core.coordinator.events import (
    CheckpointRequested,
    EntryCreated,
    LocationPrepared,
    ManifestWritten,
    NoSuccessorSeen,
    OperatorSnapshotted,
    SubtaskAcked,
    SubtaskDeclined,
)
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet, Pool, Splits
from weir.core.ids import ChannelId, EdgeId
from weir.core.job_master import Job, Launch, SplitsFound, SplitWanted, next_deadline, step
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.policy import Policy
from weir.core.reasons import Reason
from weir.core.restarts import UNLIMITED, FixedDelay
from weir.core.snapshots import CheckpointKind, InFlightHandle, Side, StateFile
from weir.core.stall_detector import StallDetector

DELAY = 100
POOLED = a_topology(coordinated=(READ,))
HOOKED = a_topology(coordinated=(READ, WRITE))
POOL = Splits(("a", "b", "c"))


class Driver:
    """A whole driver's decisions, fed with events."""

    def __init__(self, policy=None, topology=POOLED, epoch=None, splits=POOL, **job):
        state, _ = checkpoints.begin(policy or Policy(), topology, epoch or an_epoch())
        attempt = attempts.initial(topology, FixedDelay(UNLIMITED, DELAY))
        self.job = Job(attempt, state, {READ: splits}, **job)

    def hear(self, *events):
        said = []
        for event in events:
            self.job, actions = step(self.job, event)
            said.extend(actions)
        return said

    def start(self):
        """Slots register and the job begins; what follows up to the launch."""
        slots = [attempts.SlotRegistered(slot, f"executor-{slot}") for slot in "ab"]
        return [*self.hear(*slots, attempts.JobStarted()), *self.not_taken_over()]

    def not_taken_over(self):
        return self.hear(NoSuccessorSeen(self.job.coordinator.log.index))

    def up(self, *subtasks):
        return self.hear(*(SubtaskRunning(self.attempt(s), s) for s in subtasks or EVERYONE))

    def attempt(self, subtask=READ_0):
        return self.job.attempt.graph.executions[subtask].attempt

    def ask(self, kind=CheckpointKind.CHECKPOINT):
        return self.hear(CheckpointRequested("ada", kind))

    def complete(self, checkpoint):
        acks = [
            SubtaskAcked(self.attempt(s), checkpoint, s, a_snapshot(checkpoint, s))
            for s in EVERYONE
        ]
        self.hear(*acks, ManifestWritten(checkpoint))
        return self.hear(EntryCreated(self.job.coordinator.log.index))

    def split(self):
        return self.hear(SplitWanted(self.attempt(), READ_0))

    def restart(self):
        """A connection breaks, and everyone is launched again; the launch."""
        failed = attempts.SubtaskFailed(self.attempt(), READ_0, FailureCause.CONNECTION, 0.5)
        self.hear(failed, TimePassed(self.job.attempt.now + DELAY))
        return only(Launch, self.not_taken_over())


def a_running_driver(policy=None, topology=POOLED, **job):
    driver = Driver(policy, topology, **job)
    driver.start()
    driver.up()
    return driver


def given(said):
    return [message.message for message in each(SendToSubtask, said)]


A, B, C = AssignSplit("a"), AssignSplit("b"), AssignSplit("c")


# Status and restarts


def test_the_clock_starts_in_the_step_in_which_the_last_subtask_runs():
    """C2: no status gets lost between the parts."""
    driver = Driver(Policy(interval_ms=1000), draw=0.25)
    driver.start()
    driver.up(READ_0, SUM_0, SUM_1)

    driver.up(WRITE_0)

    assert driver.job.coordinator.status is JobStatus.RUNNING
    assert driver.job.coordinator.requests.periodic == Scheduled(250)


def test_a_failure_aborts_what_is_pending_in_the_same_step():
    """C9: a checkpoint never waits for a subtask that is known to be gone."""
    driver = a_running_driver()
    driver.ask()

    said = driver.hear(
        attempts.SubtaskFailed(driver.attempt(), SUM_0, FailureCause.CONNECTION, 0.5)
    )

    assert driver.job.coordinator.checkpoints.pending == ()
    assert [type(word) for word in said if isinstance(word, ReportRestart | NotifyAborted)] == [
        ReportRestart
    ]


def test_an_attempt_that_the_coordinator_gives_up_restarts_in_the_same_step():
    """C9: FailAttempt."""
    driver = a_running_driver()
    driver.ask()

    said = driver.hear(
        SubtaskDeclined(driver.attempt(), 1, SUM_0, Reason.CHECKPOINT_DECLINED, "no")
    )

    assert only(FailAttempt, said).why == only(ReportRestart, said).why
    assert [word.status for word in each(ReportStatus, said)] == [JobStatus.RESTARTING]


def test_an_event_of_an_attempt_that_is_over_is_ignored():
    """R3: neither the attempt nor the coordinator counts it."""
    driver = a_running_driver()
    driver.restart()
    before = driver.job

    assert driver.hear(SubtaskRunning(1, READ_0), SubtaskFinished(1, READ_0)) == []
    assert driver.job == before


def test_a_subtask_that_was_not_launched_cannot_run():
    """R3: its attempt has not begun."""
    driver = Driver()
    driver.hear(attempts.SlotRegistered("a", "e"), attempts.JobStarted())

    assert driver.hear(SubtaskRunning(driver.attempt(), READ_0)) == []
    assert driver.job.coordinator.subtasks.running == {}


def test_a_confirmed_stop_ends_the_job_when_everyone_has_left():
    """C11: STOPPED, and not FINISHED."""
    driver = a_running_driver()
    driver.ask(STOP)
    driver.hear(LocationPrepared(1))
    driver.complete(1)

    said = driver.hear(*(SubtaskFinished(driver.attempt(), s) for s in EVERYONE))

    assert [word.status for word in each(ReportStatus, said)] == [JobStatus.STOPPED]


def test_the_next_deadline_is_the_earliest_of_all_parts():
    """C2 R2: a tick, a timeout, or the end of a restart's delay."""
    driver = a_running_driver(Policy(timeout_ms=700))
    assert next_deadline(driver.job) is None

    driver.ask()
    assert next_deadline(driver.job) == 700

    driver.hear(attempts.SubtaskFailed(driver.attempt(), SUM_0, FailureCause.CONNECTION, 0.5))
    assert next_deadline(driver.job) == DELAY


# Launching


def test_nothing_is_launched_before_the_log_has_been_looked_at():
    """C17: a zombie launches nothing."""
    driver = Driver()
    said = driver.hear(
        attempts.SlotRegistered("a", "e"), attempts.SlotRegistered("b", "e"), attempts.JobStarted()
    )

    assert each(LookForSuccessor, said) == [LookForSuccessor(1)]
    assert each(Launch, said) == []
    assert only(Launch, driver.not_taken_over()).restore == RestoreNothing()


def test_the_offer_of_a_restore_point_is_an_affair_between_the_parts():
    """R1: only the launch leaves the driver."""
    assert each(OfferRestorePoint, Driver().start()) == []


def test_everyone_is_launched_with_what_it_inherits():
    """C15: from the newest completed checkpoint."""
    driver = a_running_driver()
    driver.ask()
    driver.complete(1)

    launch = driver.restart()

    assert launch.restore == RestoreManifest(
        driver.job.coordinator.checkpoints.completed[-1].manifest, since=1
    )
    assert [subtask for subtask, _, _ in launch.placements] == list(EVERYONE)
    inherited = {s: [share.handle.file.path for share in i.lists] for s, _, i in launch.placements}
    assert inherited[SUM_1] == ["store/orders/chk-1/sum-1"]


ROWS = InFlightHandle(ChannelId(EdgeId("rows"), 0, 0), Side.INPUT, StateFile("rows", 5))


def with_rows_in_flight():
    manifest = a_manifest(9, topology=POOLED)
    holder = replace(a_snapshot(9, SUM_0, Files()), in_flight=(ROWS,))
    others = tuple(s for s in manifest.snapshots if s.subtask != SUM_0)
    return replace(manifest, snapshots=(*others, holder))


def replayed(launch):
    return [share.handle for _, _, heir in launch.placements for share in heir.in_flight]


@pytest.mark.parametrize(("without", "expected"), [(False, [ROWS]), (True, [])])
def test_in_flight_data_is_replayed_unless_the_user_gave_it_up(without, expected):
    """C15: an option restores one named checkpoint without its in-flight data."""
    epoch = an_epoch(start=Unclaimed(with_rows_in_flight()), next_id=17)
    driver = Driver(epoch=epoch, without_in_flight=without)

    assert replayed(only(Launch, driver.start())) == expected


def test_what_the_user_gave_up_is_the_in_flight_data_of_the_beginning_alone():
    """C15: a checkpoint of this very driver is restored whole."""
    driver = a_running_driver(without_in_flight=True)
    driver.ask()
    acks = [SubtaskAcked(1, 1, s, a_snapshot(1, s)) for s in (READ_0, SUM_1, WRITE_0)]
    caught = replace(a_snapshot(1, SUM_0), in_flight=(ROWS,))
    driver.hear(*acks, SubtaskAcked(1, 1, SUM_0, caught), ManifestWritten(1), EntryCreated(1))

    assert replayed(driver.restart()) == [ROWS]


# Splits


def test_enumerators_are_snapshotted_within_the_step_that_asks_for_it():
    """C4: so nothing can come between; only what users brought along is asked outside."""
    driver = a_running_driver()

    said = driver.ask()

    assert each(SnapshotOperators, said) == []
    assert each(Trigger, said) != []


def test_a_user_s_hook_is_asked_outside():
    """C4: master hooks of the user."""
    driver = a_running_driver(topology=HOOKED)

    assert only(SnapshotOperators, driver.ask()) == SnapshotOperators(1, (WRITE,))


def test_the_checkpoint_holds_the_splits_that_were_free_when_it_was_asked_for():
    """C4 C1: one that is handed out behind a slow hook is still free in it."""
    driver = a_running_driver(topology=HOOKED)
    driver.split()
    driver.ask()
    assert given(driver.split()) == []
    assert given(driver.hear(OperatorSnapshotted(1, WRITE, "hook"))) == [B]
    driver.complete(1)

    (pool, _) = driver.job.coordinator.checkpoints.completed[-1].manifest.coordinators

    assert pool.state == Pool(("b", "c"), "")


def test_a_reader_gets_one_split_after_the_other_and_then_hears_that_there_are_no_more():
    """C4 C14: from the driver's pool."""
    driver = a_running_driver()

    assert [given(driver.split()) for _ in range(4)] == [[A], [B], [C], [NoMoreSplits()]]


def test_a_reader_waits_for_splits_that_are_yet_to_be_found():
    """R6: new files as they arrive; the checkpoint knows how far discovery has come."""
    driver = a_running_driver(splits=Splits((), is_final=False))

    assert given(driver.split()) == [NoSplitsYet()]
    assert given(driver.hear(SplitsFound(READ, (), "seen none", is_final=False))) == []
    assert given(driver.hear(SplitsFound(READ, ("d", "e"), "seen e", is_final=False))) == [
        AssignSplit("d")
    ]
    assert driver.job.splits[READ].pool == Pool(("e",), "seen e")


def test_readers_that_wait_hear_when_nothing_more_will_be_found():
    """C14: an unbounded source may be stopped."""
    driver = a_running_driver(splits=Splits((), is_final=False))
    driver.split()

    assert given(driver.hear(SplitsFound(READ, (), "all", is_final=True))) == [NoMoreSplits()]


def test_a_job_without_a_completed_checkpoint_for_the_window_is_restarted_and_says_why():
    """R8: it would otherwise have more and more to repeat."""
    driver = a_running_driver(health=StallDetector(5_000))
    driver.hear(TimePassed(4_999))
    assert driver.job.health.deadline == 5_000

    restart = only(ReportRestart, driver.hear(TimePassed(5_000)))

    assert restart.why == "no checkpoint was completed for 5000 ms"
    assert driver.job.health.deadline is None


def test_a_completed_checkpoint_begins_the_window_anew():
    """R8: a healthy job is left alone."""
    driver = a_running_driver(health=StallDetector(5_000))
    driver.ask()
    driver.hear(TimePassed(3_000))
    driver.complete(1)

    assert driver.job.health.deadline == 8_000
    assert next_deadline(driver.job) == 8_000


def test_a_job_without_a_stall_detector_is_never_overdue():
    """R8: the window is the user's choice."""
    driver = a_running_driver()

    assert driver.hear(TimePassed(10**12)) == []


def test_a_reader_of_an_attempt_that_is_over_gets_nothing():
    """C4: a split assigned to it would never be read."""
    driver = a_running_driver()
    driver.restart()
    driver.up()

    assert driver.hear(SplitWanted(1, READ_0)) == []
    assert given(driver.split()) == [A]


def test_after_a_restart_splits_that_no_checkpoint_holds_are_given_out_again():
    """R1 C4: what was assigned behind the checkpoint returns, what it holds does not."""
    driver = a_running_driver()
    driver.split()
    driver.ask()
    driver.complete(1)
    driver.split()
    driver.restart()
    driver.up()

    assert given(driver.split()) == [B]


def test_a_completion_lets_the_driver_forget_who_got_what_before():
    """C4: history would grow for ever otherwise."""
    driver = a_running_driver()
    driver.split()
    driver.ask()

    assert each(NotifyCompleted, driver.complete(1)) != []
    assert driver.job.splits[READ].assigned == ()


def test_a_plain_savepoint_releases_no_splits():
    """C4 R5: the job does not restart from it."""
    driver = a_running_driver()
    driver.split()
    driver.ask(SAVEPOINT)
    driver.hear(LocationPrepared(1))
    driver.complete(1)

    assert [assigned.split for assigned in driver.job.splits[READ].assigned] == ["a"]
    driver.restart()
    driver.up()
    assert given(driver.split()) == [A]
