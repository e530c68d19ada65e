"""Each action of the core goes to the part of the driver that can carry it out."""

import pytest

from coordinated_job import READ_0, SUM_0, SUM_1, WRITE_0, a_manifest
from scripted_loop import SLOTS, ImmediateActionRunner, drive
from weir.core import attempt as attempts
from weir.core.barriers import AlignmentType, Barrier
from weir.core.coordinator import actions
from weir.core.coordinator.actions import RequestSucceeded
from weir.core.coordinator.events import OperatorNotSnapshotted
from weir.core.coordinator.shutdown import ALL_ATTEMPTS
from weir.core.enumerator import AssignSplit
from weir.core.ids import AttemptId, CheckpointId, Epoch, Millis, RequestId, SplitId
from weir.core.job_master import Launch
from weir.core.lifecycle import JobStatus
from weir.core.reasons import Reason
from weir.core.rescale import StateAssignment
from weir.core.snapshots import CheckpointKind, Commit
from weir.driver.action_runner import ActionRunner
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointAborted,
    CheckpointCompleted,
    DeploySubtasks,
    SubtaskAddress,
)

FIRST = AttemptId(1)
CHECKPOINT = CheckpointKind.CHECKPOINT
HERE, THERE = SLOTS
BARRIER = Barrier(CheckpointId(1), CHECKPOINT, AlignmentType.ALIGNED, Millis(0), "chk-1")


class Part:
    """Any part of the driver: notes what it is asked."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return lambda *what: self.asked.append((name, *what))


class SlotRegistry(Part):
    """Both slots are there, unless one was lost a moment ago."""

    def __init__(self):
        super().__init__()
        self.known = {HERE: ("10.0.0.1", 1), THERE: ("10.0.0.2", 2)}

    def addresses(self):
        return self.known


class Driver:
    """A driver's parts, and a job whose subtasks sit in two slots."""

    def __init__(self):
        self.slots, self.storage_actions, self.sink_committers = SlotRegistry(), Part(), Part()
        self.answers, self.events = [], []
        self.action_runner = ActionRunner(
            Epoch(3),
            self.slots,
            self.storage_actions,
            self.sink_committers,
            lambda *it: self.answers.append(it),
            self.events.append,
        )
        seen = []
        drive(ImmediateActionRunner(), lambda _, job, said: seen.append((job, said)))
        self.job = next(job for job, said in seen if any(isinstance(a, Launch) for a in said))

    def do(self, action):
        self.action_runner.carry_out(action, self.job)


@pytest.fixture
def driver():
    return Driver()


def test_a_trigger_is_sent_to_each_target_in_its_slot(driver):
    """C4."""
    driver.do(actions.Trigger(BARRIER, ((READ_0, FIRST), (SUM_1, FIRST))))
    assert driver.slots.asked == [
        ("send_to_subtask", HERE, READ_0, FIRST, BARRIER),
        ("send_to_subtask", THERE, SUM_1, FIRST, BARRIER),
    ]


def test_notices_and_splits_go_the_same_way(driver):
    """C4, C8, C9: on one link, in the order in which they were decided."""
    targets = ((SUM_0, FIRST),)
    driver.do(actions.NotifyAborted(CheckpointId(1), targets))
    driver.do(actions.NotifyCompleted(CheckpointId(2), CHECKPOINT, targets, leaving=True))
    driver.do(actions.SendToSubtask("read", (READ_0, FIRST), AssignSplit(SplitId("one"))))
    assert driver.slots.asked == [
        ("send_to_subtask", HERE, SUM_0, FIRST, CheckpointAborted(1)),
        ("send_to_subtask", HERE, SUM_0, FIRST, CheckpointCompleted(2, CHECKPOINT, leaving=True)),
        ("send_to_subtask", HERE, READ_0, FIRST, AssignSplit("one")),
    ]


def a_launch(restore):
    placed = ((READ_0, HERE), (SUM_0, HERE), (SUM_1, THERE), (WRITE_0, HERE))
    return Launch(FIRST, restore, tuple((s, slot, StateAssignment(s)) for s, slot in placed))


def launched(driver):
    return {slot: deploy for name, slot, deploy in driver.slots.asked if name == "send"}


def test_each_slot_gets_one_deployment_with_its_own_subtasks(driver):
    """R3."""
    driver.do(a_launch(actions.RestoreNothing()))
    deploys = launched(driver)
    assert {slot: [i.subtask for i in d.state_assignments] for slot, d in deploys.items()} == {
        HERE: [READ_0, SUM_0, WRITE_0],
        THERE: [SUM_1],
    }
    assert all(isinstance(deploy, DeploySubtasks) for deploy in deploys.values())
    assert {(deploy.epoch, deploy.attempt, deploy.restored) for deploy in deploys.values()} == {
        (3, 1, 0)
    }


def test_every_slot_receives_the_addresses_of_all_subtasks(driver):
    """R1: for the channels between them."""
    driver.do(a_launch(actions.RestoreNothing()))
    subtask_addresses = launched(driver)[THERE].subtask_addresses
    assert subtask_addresses == (
        SubtaskAddress(READ_0, HERE, "10.0.0.1", 1),
        SubtaskAddress(SUM_0, HERE, "10.0.0.1", 1),
        SubtaskAddress(SUM_1, THERE, "10.0.0.2", 2),
        SubtaskAddress(WRITE_0, HERE, "10.0.0.1", 1),
    )


def test_a_slot_that_was_lost_a_moment_ago_has_no_seat(driver):
    """R1: that it is lost is on its way to the core."""
    del driver.slots.known[THERE]
    driver.do(a_launch(actions.RestoreNothing()))
    assert {seated.slot for seated in launched(driver)[HERE].subtask_addresses} == {HERE}


def test_a_deployment_names_the_checkpoint_that_it_begins_from(driver):
    """C15."""
    driver.do(a_launch(actions.RestoreManifest(a_manifest(7), CheckpointId(0))))
    assert launched(driver)[HERE].restored == 7


def test_survivors_are_reset_in_place_and_a_spoilt_process_is_recycled(driver):
    """R3, R4."""
    driver.do(attempts.ResetSubtasks(HERE, (READ_0,)))
    driver.do(attempts.RecycleSlot(THERE))
    assert driver.slots.asked == [("send", HERE, CancelSubtasks((READ_0,))), ("recycle", THERE)]


@pytest.mark.parametrize(
    "action",
    [
        actions.WriteManifest(a_manifest(1)),
        actions.CreateEntry(1, None),
        actions.LookForSuccessor(1),
        actions.TruncateLog(1),
        actions.DeleteFiles(1, ()),
        actions.PrepareLocation(CheckpointId(1), "file:///sp"),
    ],
    ids=lambda action: type(action).__name__,
)
def test_what_concerns_storage_goes_to_storage(driver, action):
    """C8, C12, C17."""
    driver.do(action)
    assert driver.storage_actions.asked == [("carry_out", action)]


def test_what_concerns_sinks_goes_to_their_committers_with_the_epoch(driver):
    """R5, C17."""
    commit = actions.CommitTransactions(Epoch(3), Commit("write", 1, ()))
    resolve = actions.ResolveTransactions(1, FIRST, (WRITE_0,), ())
    driver.do(commit)
    driver.do(resolve)
    assert driver.sink_committers.asked == [("commit", commit), ("resolve", 3, resolve)]


def test_at_the_end_slots_leave_before_open_transactions_are_looked_for(driver):
    """C9: a slot could stage another one until it is gone."""
    resolve = actions.ResolveTransactions(1, ALL_ATTEMPTS, (WRITE_0,), ())
    driver.do(resolve)
    assert driver.slots.asked == [("dismiss",)]
    (_, _, asked, wait_for_slots) = driver.sink_committers.asked[0]
    wait_for_slots()
    assert (asked, driver.slots.asked) == (resolve, [("dismiss",), ("until_gone",)])


def test_a_completed_request_is_answered_by_its_id(driver):
    """C5."""
    granted = RequestSucceeded(CheckpointId(1), "chk-1")
    driver.do(actions.CompleteRequest(RequestId("r"), granted))
    assert driver.answers == [("r", granted)]


def test_a_snapshot_of_a_coordinator_that_the_driver_does_not_have_fails(driver):
    """C4 C10: else its checkpoint would wait for it until the timeout."""
    driver.do(actions.SnapshotOperators(CheckpointId(1), ("hook",)))
    assert driver.events == [
        OperatorNotSnapshotted(1, "hook", "the driver has no coordinator of hook")
    ]


def test_an_action_without_a_handler_is_an_error(driver):
    """C4: a dropped action would leave its checkpoint without an answer."""
    with pytest.raises(AssertionError):
        driver.do(actions.ConfirmStop())


@pytest.mark.parametrize(
    "report",
    [
        actions.ReportTriggered(CheckpointId(1), CHECKPOINT, Millis(0)),
        actions.ReportCompleted(a_manifest(1), 1, 1),
        actions.ReportAborted(CheckpointId(1), Reason.CHECKPOINT_EXPIRED, "late"),
        actions.FailAttempt(Reason.CHECKPOINT_EXPIRED, "late"),
        attempts.ReportStatus(JobStatus.RUNNING, 0),
        attempts.ReportRestart(FIRST, (READ_0,), whole_job=False, why="a slot was lost"),
    ],
    ids=lambda report: type(report).__name__,
)
def test_reports_are_for_people_and_move_nothing(driver, report):
    """C21."""
    driver.do(report)
    assert driver.slots.asked == driver.storage_actions.asked == driver.sink_committers.asked == []
