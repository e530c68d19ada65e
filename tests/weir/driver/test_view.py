"""What the driver shows to its API, and what it does with orders from there."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pyarrow as pa
import pytest

from weir.api.config import load_config
from weir.api.report import JobPhase, Outcome, RequestReport
from weir.core.attempt import CancelRequested, ReportRestart, ReportStatus, initial
from weir.core.coordinator import actions
from weir.core.coordinator.events import CheckpointRequested, SubtaskAcked, Timings
from weir.core.ids import (
    AttemptId,
    ChannelId,
    CheckpointId,
    EdgeId,
    Epoch,
    Millis,
    OperatorId,
    SubtaskId,
)
from weir.core.job_master import Launch
from weir.core.lifecycle import JobStatus, TimePassed
from weir.core.policy import Policy
from weir.core.reasons import Reason
from weir.core.restarts import NoRestart
from weir.core.snapshots import (
    CheckpointKind,
    InFlightHandle,
    KeyedHandle,
    KeyGroupRange,
    Manifest,
    Side,
    StateFile,
    SubtaskSnapshot,
)
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.dataflow.physical import JobGraph, RelayHead, Stage
from weir.driver.pending_requests import KEPT_ANSWERS, PendingRequests
from weir.driver.statistics import Statistics
from weir.driver.view import DriverView
from weir.errors import JobRejected
from weir.rest.commands import Cancel, RequestStatus, Stop, TakeCheckpoint, TakeSavepoint
from weir.wire.control_messages import Heartbeat, Registered, SubtaskMetrics

WORDS, SUMS = OperatorId("words"), OperatorId("sums")
TOPOLOGY = Topology(
    (Operator(WORDS, 1), Operator(SUMS, 2)), (Edge(EdgeId("e"), WORDS, SUMS, EdgeKind.HASH),)
)
NOTHING = pa.schema([])
GRAPH = JobGraph(
    TOPOLOGY,
    (Stage(WORDS, RelayHead(), (), NOTHING, "the words"), Stage(SUMS, RelayHead(), (), NOTHING)),
)
CHECKPOINT = CheckpointKind.CHECKPOINT
CHANNEL = ChannelId(EdgeId("e"), 0, 0)
TOO_SLOW = actions.RequestFailed(Reason.CHECKPOINT_EXPIRED, "too slow")
OVERTAKEN = 5
"""Bytes of rows in each subtask's snapshot."""
JOB = SimpleNamespace(attempt=initial(TOPOLOGY, NoRestart()))


@dataclass(frozen=True)
class Described:
    """A submission."""

    name: str = "orders"
    graph: JobGraph = GRAPH
    config: object = field(default_factory=lambda: load_config({}))
    directory: str = "file:///data/orders"
    attempt: int | None = 4
    policy: Policy = field(default_factory=Policy)


@dataclass
class SlotRegistry:
    """Slots that have sent one heartbeat."""

    gauges: tuple = ()

    def addresses(self):
        return {"slot-0": ("127.0.0.1", 1), "slot-1": ("127.0.0.1", 2)}

    def heartbeats(self):
        registered = Registered("slot-0", "executor", 0, "127.0.0.1", 1, 1)
        return {"slot-0": (registered, Heartbeat(0, 0, self.gauges))}


class Driver:
    """A driver without a loop: it records the requests."""

    def __init__(self):
        self.statistics = Statistics()
        self.slots = SlotRegistry()
        self.why = ""
        self.requests = PendingRequests()
        self.events = []

    def ask(self, kind, location="", key=""):
        return self.requests.ask(self.events.append, kind, location, key)[0]

    def outcome_of(self, request):
        return self.requests.find(request)

    def cancel(self):
        self.events.append(CancelRequested())

    # -- what happens to it

    def at(self, now, *said):
        self.statistics.on_step(TimePassed(Millis(now)), JOB, said)

    def ack(self, checkpoint, subtask, size, timings):
        file = KeyedHandle(KeyGroupRange(0, 127), StateFile("f", size - OVERTAKEN))
        caught = InFlightHandle(CHANNEL, Side.INPUT, StateFile("g", OVERTAKEN))
        snapshot = SubtaskSnapshot(subtask, keyed=(file,), in_flight=(caught,))
        acked = SubtaskAcked(AttemptId(1), CheckpointId(checkpoint), subtask, snapshot, timings)
        self.statistics.on_step(acked, JOB, ())


def a_manifest(checkpoint, kind=CHECKPOINT):
    return Manifest(
        CheckpointId(checkpoint),
        Epoch(1),
        kind,
        Millis(1_000),
        f"file:///data/orders/chk-{checkpoint}",
        *((),) * 6,
    )


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def view(driver):
    return DriverView(Described(), driver)


def complete(driver, checkpoint, begun, kind=CHECKPOINT):
    """All three subtasks ack, the last after 300 ms."""
    driver.at(begun, actions.ReportTriggered(CheckpointId(checkpoint), kind, Millis(begun)))
    for index, (subtask, size) in enumerate(zip(TOPOLOGY.subtasks, (10, 20, 40), strict=True)):
        driver.at(begun + 100 * (index + 1))
        driver.ack(checkpoint, subtask, size, Timings(index, 10 * index, 2, 50, 0, 100 * index))
    driver.at(begun + 350, actions.ReportCompleted(a_manifest(checkpoint, kind), 350, 50))


def abort(driver, checkpoint, begun):
    driver.at(begun, actions.ReportTriggered(CheckpointId(checkpoint), CHECKPOINT, Millis(begun)))
    gone = actions.ReportAborted(CheckpointId(checkpoint), Reason.CHECKPOINT_EXPIRED, "too slow")
    driver.at(begun + 500, gone)


# -- pages


def test_the_overview_says_how_the_job_stands(driver, view):
    """U1: status, slots, restarts and why."""
    driver.at(0, ReportStatus(JobStatus.WAITING_FOR_SLOTS, 1))
    driver.at(1, ReportRestart(AttemptId(1), (), whole_job=True, why="a slot is lost"))
    page = view.overview()

    assert (page.name, page.status, page.is_over) == ("orders", "WAITING_FOR_SLOTS", False)
    assert (page.slots.registered, page.slots.missing) == (2, 1)
    assert (page.restarts, page.last_failure) == (1, "a slot is lost")


def test_the_graph_has_what_each_subtask_said_last(driver, view):
    """U1: a subtask that no heartbeat has named is left out."""
    driver.slots.gauges = (
        SubtaskMetrics(SubtaskId(WORDS, 0), 1, 2, 3, back_pressured=True, watermark=-(1 << 62)),
        SubtaskMetrics(SubtaskId(SUMS, 1), 4, 5, 6, back_pressured=False, watermark=7),
    )
    words, sums = view.graph().operators

    assert (words.name, sums.name, sums.parallelism) == ("the words", "sums", 2)
    assert (words.subtasks[0].is_back_pressured, words.subtasks[0].watermark) == (True, None)
    assert [(s.index, s.rows_in, s.watermark) for s in sums.subtasks] == [(1, 4, 7)]
    assert [(e.source, e.target, e.kind) for e in view.graph().edges] == [("words", "sums", "hash")]


def test_a_completed_checkpoint_has_its_size_its_place_and_its_duration_to_the_last_ack(
    driver, view
):
    """U1: as Flink defines them."""
    complete(driver, 7, 1_000)
    checkpoint = view.checkpoints().latest.completed

    assert (checkpoint.id, checkpoint.status) == (7, "COMPLETED")
    assert (checkpoint.latest_ack_timestamp, checkpoint.end_to_end_duration) == (1_300, 300)
    assert (checkpoint.state_size, checkpoint.num_acknowledged_subtasks) == (70, 3)
    assert checkpoint.external_path == "file:///data/orders/chk-7"


def test_a_failed_checkpoint_says_when_and_why(driver, view):
    """C10: the reason stands first."""
    abort(driver, 8, 2_000)
    checkpoint = view.checkpoints().latest.failed

    assert (checkpoint.failure_timestamp, checkpoint.end_to_end_duration) == (2_500, 500)
    assert checkpoint.failure_message == "CHECKPOINT_EXPIRED: too slow"
    assert checkpoint.external_path is None


def test_a_checkpoint_under_way_says_who_is_missing(driver, view):
    """U3: long work shows progress."""
    driver.at(1_000, actions.ReportTriggered(CheckpointId(7), CHECKPOINT, Millis(1_000)))
    driver.ack(7, SubtaskId(WORDS, 0), 10, Timings())
    tasks = view.checkpoint(7).tasks

    assert view.checkpoints().counts.in_progress == 1
    assert {o: (t.num_acknowledged_subtasks, t.num_subtasks) for o, t in tasks.items()} == {
        "words": (1, 1),
        "sums": (0, 2),
    }


def test_checkpoints_are_counted_and_the_newest_of_each_sort_is_named(driver, view):
    """U1: a savepoint is not the latest checkpoint."""
    complete(driver, 7, 1_000)
    complete(driver, 8, 2_000, CheckpointKind.SAVEPOINT)
    abort(driver, 9, 3_000)
    page = view.checkpoints()

    assert page.counts.model_dump() == {
        "restored": 0,
        "total": 3,
        "in_progress": 0,
        "completed": 2,
        "failed": 1,
    }
    assert (page.latest.completed.id, page.latest.savepoint.id, page.latest.failed.id) == (7, 8, 9)
    assert [c.id for c in page.history] == [9, 8, 7]
    assert page.summary.state_size.avg == 70


def test_what_the_attempt_started_from_is_shown(driver, view):
    """C15: id, place and time of the restore."""
    restore = actions.RestoreManifest(a_manifest(6), CheckpointId(0))
    driver.at(900, Launch(AttemptId(1), restore, ()))
    driver.at(901)
    restored = view.checkpoints().latest.restored

    assert (restored.id, restored.restore_timestamp, restored.is_savepoint) == (6, 900, False)
    assert view.checkpoints().counts.restored == 1


def test_an_operators_part_is_summarised_over_its_subtasks(driver, view):
    """U1: min, mean and max of what each subtask measured."""
    complete(driver, 7, 1_000)
    page = view.task(7, "sums")

    assert [s.index for s in page.subtasks] == [0, 1]
    assert page.summary.state_size.model_dump() == {"min": 20, "avg": 30, "max": 40}
    assert page.summary.alignment.duration.max == 20
    assert (page.subtasks[1].start_delay, page.subtasks[1].checkpoint.async_) == (2, 50)


def test_data_processed_and_persisted_while_aligning_is_shown_at_every_level(driver, view):
    """A4, U1: of a checkpoint, of an operator, of a subtask and of all completed ones."""
    complete(driver, 7, 1_000)
    checkpoint, operator = view.checkpoint(7), view.task(7, "sums")

    assert (checkpoint.processed_data, checkpoint.persisted_data) == (300, 3 * OVERTAKEN)
    assert checkpoint.tasks["sums"].persisted_data == 2 * OVERTAKEN
    assert operator.summary.alignment.processed.model_dump() == {"min": 100, "avg": 150, "max": 200}
    assert operator.summary.alignment.persisted.max == OVERTAKEN
    assert operator.subtasks[1].alignment.processed == 200
    assert operator.subtasks[1].alignment.persisted == OVERTAKEN
    assert view.checkpoints().summary.processed_data.avg == 300
    assert view.checkpoints().summary.persisted_data.avg == 3 * OVERTAKEN


def test_what_is_not_known_is_none(driver, view):
    """U1: neither an old checkpoint nor a strange operator."""
    complete(driver, 7, 1_000)

    assert view.checkpoint(6) is None
    assert view.task(6, "sums") is None
    assert view.task(7, "unknown") is None


def test_the_settings_are_those_that_were_submitted(driver):
    """U1: with Flink's names."""
    given = {
        "checkpointing": {"interval": "1 s", "storage": "s3://b", "retention": "RETAIN_ON_FAILURE"}
    }
    page = DriverView(Described(config=load_config(given)), driver).settings()

    assert (page.mode, page.interval, page.timeout) == ("exactly_once", 1_000, 600_000)
    assert (page.externalization.enabled, page.externalization.delete_on_cancellation) == (
        True,
        True,
    )


# -- the report


def test_the_report_says_how_the_job_stands_and_whose_it_is(driver, view):
    """K7: attempt, phase, slots, restarts and why."""
    driver.at(0, ReportStatus(JobStatus.WAITING_FOR_SLOTS, 2))
    driver.at(1, ReportRestart(AttemptId(1), (), whole_job=True, why="a slot is lost"))
    driver.why = "a slot is lost (sums/1: boom)"
    report = view.report()

    assert (report.attempt, report.phase) == (4, JobPhase.WAITING_FOR_SLOTS)
    assert (report.slots_missing, report.restarts, report.why) == (2, 1, driver.why)
    assert (report.newest, report.is_rejected) == (None, False)


def test_the_newest_checkpoint_of_a_report_is_one_that_the_job_can_go_on_from(driver, view):
    """K4: a plain savepoint commits nothing, so it is no lowest acceptable checkpoint."""
    complete(driver, 7, 1_000)
    complete(driver, 8, 2_000, CheckpointKind.SAVEPOINT)
    abort(driver, 9, 3_000)
    report = view.report()

    assert (report.newest.id, report.newest.path) == (7, "file:///data/orders/chk-7")
    assert (report.newest.completed_at_ms, report.newest.duration_ms) == (1_350, 350)
    assert report.completed == 2


def test_the_newest_checkpoint_is_remembered_however_many_fail_after_it(driver, view):
    """K4: the restore point must not be forgotten with the history."""
    complete(driver, 7, 1_000)
    for checkpoint in range(8, 100):
        abort(driver, checkpoint, 1_000 * checkpoint)

    assert view.checkpoints().latest.completed is None
    assert view.report().newest.id == 7


def test_a_request_is_reported_under_its_key_with_what_it_has_made(driver, view):
    """K5: place, id and size of a savepoint."""
    view.order(TakeSavepoint(), "nonce-1")
    assert view.report().requests == (RequestReport(id="nonce-1", outcome=Outcome.IN_PROGRESS),)

    complete(driver, 8, 2_000, CheckpointKind.SAVEPOINT)
    size = driver.statistics.find(8).bytes
    succeeded = actions.RequestSucceeded(CheckpointId(8), "s3://b/savepoint-8")
    driver.requests.answer("nonce-1", succeeded)

    assert view.report().requests == (
        RequestReport(
            id="nonce-1",
            outcome=Outcome.COMPLETED,
            path="s3://b/savepoint-8",
            checkpoint=8,
            size_bytes=size,
        ),
    )


def test_a_request_that_came_to_nothing_is_reported_with_its_reason(driver, view):
    """K5 C10: one code for programs, the rest for people."""
    view.order(Stop(), "upgrade-7")
    driver.requests.answer("upgrade-7", TOO_SLOW)
    (request,) = view.report().requests

    assert request.outcome is Outcome.FAILED
    assert request.message == "CHECKPOINT_EXPIRED: too slow"


def test_only_the_last_requests_are_reported_the_newest_at_the_end(driver, view):
    """X3: a report is bounded."""
    assert driver.events == []
    for number in range(70):
        view.order(TakeCheckpoint(), f"nonce-{number}")
    keys = [request.id for request in view.report().requests]

    assert (len(keys), keys[0], keys[-1]) == (64, "nonce-6", "nonce-69")


# -- orders


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        (TakeCheckpoint(), CheckpointKind.CHECKPOINT),
        (TakeSavepoint(), CheckpointKind.SAVEPOINT),
        (Stop(), CheckpointKind.SAVEPOINT_SUSPEND),
        (Stop(drain=True), CheckpointKind.SAVEPOINT_TERMINATE),
    ],
)
def test_an_order_becomes_an_event_of_the_loop(driver, view, order, kind):
    """C11: the coordinator chooses the location if the user does not."""
    request = view.order(order, "")

    assert driver.events == [CheckpointRequested(request, kind, "")]
    assert view.request(request).status is RequestStatus.IN_PROGRESS


def test_each_savepoint_gets_a_directory_of_its_own_below_the_target(driver, view):
    """S10: as Flink does; two savepoints of one target do not meet."""
    view.order(TakeSavepoint("s3://b/d/"), "one")
    view.order(TakeSavepoint("s3://b/d/"), "two")
    one, two = (event.location for event in driver.events)

    assert one != two
    assert one.startswith("s3://b/d/savepoint-")


def test_without_a_target_the_configured_directory_is_taken(driver):
    """K5: savepointDir."""
    config = load_config({"checkpointing": {"savepointDir": "s3://b/savepoints"}})
    DriverView(Described(config=config), driver).order(Stop(), "")

    assert driver.events[0].location.startswith("s3://b/savepoints/savepoint-")


@pytest.mark.parametrize("order", [TakeSavepoint("s3://b/d"), Cancel()])
def test_the_same_key_is_the_same_request(driver, view, order):
    """K3: sent once, however often the client repeats it."""
    assert view.order(order, "upgrade-7") == view.order(order, "upgrade-7") == "upgrade-7"
    assert len(driver.events) == 1


def test_a_key_whose_answer_was_forgotten_is_a_new_request(driver, view):
    """R7 K3: neither orders nor answers are kept for the whole life of a job."""
    view.order(TakeCheckpoint(), "nonce")
    for number in range(KEPT_ANSWERS + 1):
        view.order(TakeCheckpoint(), f"nonce-{number}")
        driver.requests.answer(f"nonce-{number}", TOO_SLOW)

    assert view.request("nonce-0") is None
    assert view.order(TakeSavepoint(""), "nonce-0") == "nonce-0"
    assert view.request("nonce-0").status is RequestStatus.IN_PROGRESS
    assert view.request("nonce").status is RequestStatus.IN_PROGRESS


def test_a_key_of_another_order_is_refused(driver, view):
    """K3: a stop must not be answered with the outcome of a checkpoint."""
    view.order(TakeCheckpoint(), "upgrade-7")
    with pytest.raises(JobRejected, match=r"upgrade-7 .* belongs to another request .* new key"):
        view.order(Stop(), "upgrade-7")

    assert len(driver.events) == 1


def test_a_job_that_is_over_takes_no_orders(driver, view):
    """U3: rather than a request that never ends."""
    driver.at(1, ReportStatus(JobStatus.FINISHED, 0))
    with pytest.raises(JobRejected, match="orders accepts no requests: it is finished"):
        view.order(TakeSavepoint(), "")


def test_a_request_that_succeeded_shows_its_place(driver, view):
    """U2: location and checkpoint."""
    request = view.order(TakeSavepoint(), "")
    driver.requests.answer(request, actions.RequestSucceeded(CheckpointId(8), "s3://b/savepoint-8"))
    state = view.request(request)

    assert (state.status, state.location, state.checkpoint) == (
        "COMPLETED",
        "s3://b/savepoint-8",
        8,
    )


def test_a_request_that_failed_shows_its_reason(driver, view):
    """C10: one code of the enumerated set, and a sentence."""
    request = view.order(TakeSavepoint(), "")
    driver.requests.answer(request, TOO_SLOW)
    state = view.request(request)

    assert (state.status, state.reason, state.message) == (
        "FAILED",
        "CHECKPOINT_EXPIRED",
        "too slow",
    )


@pytest.mark.parametrize(
    ("status", "ends"),
    [
        (JobStatus.RUNNING, "IN_PROGRESS"),
        (JobStatus.CANCELED, "COMPLETED"),
        (JobStatus.FINISHED, "FAILED"),
    ],
)
def test_a_cancel_ends_with_the_job(driver, view, status, ends):
    """C12: it is done when the job is cancelled, and came too late when it ended otherwise."""
    request = view.order(Cancel(), "")
    driver.at(1, ReportStatus(status, 0))

    assert driver.events == [CancelRequested()]
    assert view.request(request).status == ends


def test_an_unknown_request_is_none(view):
    """U2: a driver that was restarted has forgotten."""
    assert view.request("unknown") is None
