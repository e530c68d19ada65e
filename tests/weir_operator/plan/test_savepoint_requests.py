"""Savepoints are taken once for every wish, become objects, and stay as long as they should."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fake_cluster import BEGINNING, DURATION_MS, SIZE, FakeCluster, a_spec
from weir.api.report import JobPhase, Outcome
from weir_operator.plan import plan_snapshot
from weir_operator.plan.cluster_actions import CreateSnapshot, Dispose, EmitEvent, RemoveFinalizer
from weir_operator.plan.observed_state import (
    Disposal,
    DriverReport,
    ObservedSnapshot,
    RequestReport,
)
from weir_operator.plan.snapshot_plan import ObservedJob
from weir_operator.resource import CheckpointedJobSnapshotSpec, CheckpointedJobSnapshotStatus
from weir_operator.resource.snapshot import DisposalMeans, SnapshotState
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState
from weir_operator.resource.status_fields import RestorePoint, RestoreType

PATH = "s3://weir/savepoints/1"
MEANS = DisposalMeans(image="orders:1", service_account="weir-driver")


def a_running_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=8)
    return cluster


def a_complete_one(**changes):
    spec = CheckpointedJobSnapshotSpec(job_name="orders", dispose_on_delete=True)
    status = CheckpointedJobSnapshotStatus(state=SnapshotState.COMPLETED, path=PATH, disposal=MEANS)
    return ObservedSnapshot("orders-1", spec, status, BEGINNING, is_deleted=True, **changes)


def test_an_annotation_is_answered_once_for_each_value():
    """K5."""
    cluster = a_running_job()
    cluster.annotation = "one"
    cluster.settle(rounds=5)
    assert cluster.savepoints_taken == 1

    cluster.annotation = "two"
    cluster.settle(rounds=5)

    assert cluster.savepoints_taken == 2
    assert {s.status.state for s in cluster.snapshots.values()} == {SnapshotState.COMPLETED}


def test_a_nonce_is_answered_once():
    """K5."""
    cluster = a_running_job()
    cluster.edit(savepointNonce=1)
    cluster.settle(rounds=6)

    assert [s.spec.trigger for s in cluster.snapshots.values()] == ["nonce"]
    assert cluster.savepoints_taken == 1


def test_periodic_ones_are_taken_in_their_rhythm_and_only_the_newest_stay():
    """K5: retention by count deletes files too."""
    cluster = a_running_job(savepoints={"interval": "1 min", "maxCount": 2})
    cluster.settle(rounds=40, seconds=15)

    assert cluster.savepoints_taken >= 5
    assert len(cluster.snapshots) <= 3


@pytest.mark.parametrize(("age", "is_old"), [("2 min", True), ("2 h", False)])
def test_periodic_ones_that_are_too_old_are_deleted_but_for_the_newest(age, is_old):
    """K5: retention by age."""
    cluster = a_running_job(savepoints={"interval": "1 min", "maxCount": 100, "maxAge": age})
    cluster.settle(rounds=12)
    cluster.edit(savepoints={"interval": "1 d", "maxCount": 100, "maxAge": age})
    cluster.pass_time(600)
    cluster.settle(rounds=4)

    assert len(cluster.snapshots) == (1 if is_old else cluster.savepoints_taken)
    assert cluster.savepoints_taken > 2


def test_those_that_a_person_asked_for_stay():
    """K5: whatever their age and number."""
    policy = {"interval": "1 d", "maxCount": 1, "maxAge": "1 min"}
    cluster = a_running_job(savepoints=policy)
    for value in ("one", "two"):
        cluster.annotation = value
        cluster.settle(rounds=4)
    cluster.pass_time(3600)
    cluster.settle(rounds=4)

    assert len(cluster.snapshots) == 2


def test_a_schedule_that_was_missed_is_not_made_up_for():
    """K5."""
    cluster = a_running_job(savepoints={"cron": "*/5 * * * *"})
    cluster.pass_time(3600)
    cluster.settle(rounds=4, seconds=1)

    assert cluster.savepoints_taken == 1


def test_a_snapshot_without_a_job_is_abandoned():
    """K5: it does not wait for ever."""
    seen = ObservedSnapshot(
        "orders-1",
        CheckpointedJobSnapshotSpec(job_name="orders"),
        CheckpointedJobSnapshotStatus(),
        BEGINNING,
    )

    assert plan_snapshot(seen, None, BEGINNING).status.state is SnapshotState.ABANDONED


def test_a_snapshot_that_fails_again_and_again_has_failed():
    """K5: retries are counted and end."""
    cluster = a_running_job()
    cluster.fails_savepoints = True
    cluster.annotation = "one"
    cluster.settle(rounds=12)

    (seen,) = cluster.snapshots.values()
    assert (seen.status.state, seen.status.failures) == (SnapshotState.FAILED, 3)


def test_files_are_deleted_without_the_job_and_before_the_object_goes():
    """K5: two steps, the object last."""
    started = plan_snapshot(a_complete_one(), None, BEGINNING)
    assert [type(action) for action in started.actions] == [Dispose]

    done = plan_snapshot(a_complete_one(disposal=Disposal.DONE), None, BEGINNING)
    assert [type(action) for action in done.actions] == [EmitEvent, RemoveFinalizer]


@pytest.mark.parametrize("disposal", [Disposal.ABSENT, Disposal.ACTIVE])
def test_a_disposal_is_looked_at_until_it_has_ended(disposal):
    """K5: no event reports when its Job has ended."""
    made = plan_snapshot(a_complete_one(disposal=disposal), None, BEGINNING)

    assert made.requeue_at is not None


def test_what_a_driver_is_to_start_from_is_not_deleted():
    """K5."""
    point = RestorePoint(type=RestoreType.PATH, path=PATH, recorded_at=BEGINNING)
    job = ObservedJob(CheckpointedJobStatus(restore_point=point))

    made = plan_snapshot(a_complete_one(), job, BEGINNING + timedelta(days=1))

    assert [action.reason for action in made.actions] == ["DisposalBlocked"]
    assert made.status.in_use


def test_a_blocked_disposal_is_reported_once():
    """K5, K7."""
    made = plan_snapshot(a_complete_one(disposal=Disposal.FAILED), None, BEGINNING)
    again = plan_snapshot(
        replace(a_complete_one(disposal=Disposal.FAILED), status=made.status), None, BEGINNING
    )

    assert [action.reason for action in made.actions] == ["DisposalBlocked"]
    assert again.actions == ()


ON_A_VOLUME = "file:///data/savepoints/1"


@pytest.mark.parametrize("disposal", Disposal)
def test_files_on_a_volume_are_never_said_to_be_deleted(disposal):
    """K5: no pod of ours has that volume; the object waits for a person and says so once."""
    complete = a_complete_one(disposal=disposal)
    seen = replace(complete, status=complete.status.model_copy(update={"path": ON_A_VOLUME}))

    made = plan_snapshot(seen, None, BEGINNING)
    again = plan_snapshot(replace(seen, status=made.status), None, BEGINNING)

    assert [action.reason for action in made.actions] == ["DisposalBlocked"]
    assert "set disposeOnDelete to false" in made.status.message
    assert again.actions == ()

    kept = replace(seen, spec=CheckpointedJobSnapshotSpec(job_name="orders"))
    assert plan_snapshot(kept, None, BEGINNING).actions[-1:] == (RemoveFinalizer(),)


@pytest.mark.parametrize(
    ("directory", "is_disposed_of"), [("s3://weir/savepoints", True), ("file:///data", False)]
)
def test_retention_promises_to_delete_only_files_that_it_can_reach(directory, is_disposed_of):
    """K5."""
    place = {"storage": "s3://weir/checkpoints", "interval": "10 s", "savepointDir": directory}
    cluster = a_running_job(checkpointing=place, savepoints={"interval": "1 min"})
    cluster.pass_time(60)

    (made,) = [a for a in cluster.planned().actions if isinstance(a, CreateSnapshot)]

    assert made.spec.dispose_on_delete is is_disposed_of


def test_files_that_retention_leaves_behind_are_reported():
    """K5, K7."""
    spec = CheckpointedJobSnapshotSpec(job_name="orders", trigger="periodic")
    status = CheckpointedJobSnapshotStatus(state=SnapshotState.COMPLETED, path=ON_A_VOLUME)
    seen = ObservedSnapshot("orders-1", spec, status, BEGINNING, is_deleted=True)

    event, last = plan_snapshot(seen, None, BEGINNING).actions

    assert (event.reason, event.is_warning) == ("FilesRetained", True)
    assert ON_A_VOLUME in event.message
    assert last == RemoveFinalizer()


def test_files_of_a_savepoint_that_is_being_taken_are_not_forgotten():
    """K5: its object waits for the outcome, so that the files are deleted."""
    spec = CheckpointedJobSnapshotSpec(job_name="orders", dispose_on_delete=True)
    status = CheckpointedJobSnapshotStatus(state=SnapshotState.IN_PROGRESS)
    seen = ObservedSnapshot("orders-1", spec, status, BEGINNING, is_deleted=True)

    waits = plan_snapshot(seen, ObservedJob(CheckpointedJobStatus()), BEGINNING)
    assert RemoveFinalizer() not in waits.actions
    assert plan_snapshot(seen, None, BEGINNING).actions == (RemoveFinalizer(),)


def test_a_deleted_snapshot_does_not_wait_for_a_suspended_job():
    """K10: there is no driver that could still be taking it."""
    spec = CheckpointedJobSnapshotSpec(job_name="orders", dispose_on_delete=True)
    status = CheckpointedJobSnapshotStatus(state=SnapshotState.IN_PROGRESS)
    seen = ObservedSnapshot("orders-1", spec, status, BEGINNING, is_deleted=True)
    job = ObservedJob(CheckpointedJobStatus(state=LifecycleState.SUSPENDED))

    assert plan_snapshot(seen, job, BEGINNING).actions == (RemoveFinalizer(),)


@pytest.mark.parametrize("path", [None, "memory://", "savepoints/1", "s3://user:word@host/x"])
def test_a_place_that_a_driver_made_up_is_not_believed(path):
    """X3: the snapshot has failed, and nothing else has."""
    cluster = a_running_job()
    cluster.annotation = "one"
    cluster.turn()
    (seen,) = cluster.snapshots.values()
    key = seen.status.request_id
    report = DriverReport(
        1, JobPhase.RUNNING, requests=(RequestReport(key, Outcome.COMPLETED, path, 0),)
    )

    made = plan_snapshot(seen, ObservedJob(cluster.status, report), cluster.now)

    assert (made.status.failures, made.status.path) == (1, None)


def test_an_annotation_asks_for_a_checkpoint_too():
    """K5: once for each value, whatever was said of savepoints."""
    cluster = a_running_job()
    cluster.annotation = cluster.checkpoint_annotation = "one"
    cluster.settle(rounds=5)

    assert sorted(s.spec.type for s in cluster.snapshots.values()) == ["checkpoint", "savepoint"]
    assert (cluster.savepoints_taken, cluster.checkpoints_taken) == (1, 1)

    cluster.checkpoint_annotation = "two"
    cluster.settle(rounds=5)

    assert (cluster.savepoints_taken, cluster.checkpoints_taken) == (1, 2)


def deleted(cluster):
    cluster.deleted_at = cluster.now


def upgraded(cluster):
    cluster.edit(image="orders:2")


def suspended(cluster):
    cluster.edit(suspend=True)


@pytest.mark.parametrize("befalls", [deleted, upgraded, suspended])
def test_the_savepoint_that_a_job_stops_with_is_written_down_like_any_other(befalls):
    """K5: its number, size, duration and version, and what its disposal will need."""
    cluster = a_running_job(upgrade={"mode": "savepoint"}, savepoints={"onDeletion": True})
    befalls(cluster)
    cluster.settle(rounds=6)

    (seen,) = cluster.snapshots.values()
    taken = cluster.status.last_savepoint
    assert seen.status.state is SnapshotState.COMPLETED
    assert (seen.status.path, seen.status.checkpoint_id) == (taken.path, taken.checkpoint_id)
    assert (seen.status.size_bytes, seen.status.duration) == (SIZE, DURATION_MS)
    assert seen.status.completed_at == taken.completed_at
    assert seen.status.job_generation == 1
    assert seen.status.disposal.image == "orders:1"


def test_a_deletion_waits_until_its_savepoint_is_written_down():
    """K5 K10: only the job knows its number; but not forever."""
    cluster = a_running_job(savepoints={"onDeletion": True})
    cluster.deleted_at = cluster.now
    while not cluster.snapshots:
        cluster.turn()
        cluster.drivers_go_on()
    (name,) = cluster.snapshots
    unwritten = replace(cluster.snapshots[name], status=CheckpointedJobSnapshotStatus())
    cluster.drivers.clear()
    seen = replace(cluster.observed(), snapshots=(unwritten,))

    made = cluster.planned(seen)
    late = cluster.planned(replace(seen, now=seen.now + timedelta(hours=1)))

    assert (RemoveFinalizer() in made.actions, made.requeue_at is not None) == (False, True)
    assert RemoveFinalizer() in late.actions


def test_what_a_driver_says_of_another_checkpoint_is_not_written_on_a_savepoint():
    """K5: its duration is then not known."""
    cluster = a_running_job(upgrade={"mode": "savepoint"})
    cluster.edit(suspend=True)
    cluster.settle(rounds=6)
    (seen,) = cluster.snapshots.values()
    newer = cluster.status.last_checkpoint.model_copy(update={"id": 99})
    status = cluster.status.model_copy(update={"last_checkpoint": newer})
    unwritten = replace(seen, status=CheckpointedJobSnapshotStatus())

    made = plan_snapshot(unwritten, ObservedJob(status), cluster.now).status

    assert made.checkpoint_id == cluster.status.last_savepoint.checkpoint_id
    assert (made.size_bytes, made.duration) == (None, None)


def test_failed_savepoints_of_a_schedule_drive_out_none_that_can_be_restored():
    """K5: retention counts what is complete."""
    cluster = a_running_job(savepoints={"interval": "1 min", "maxCount": 2})
    cluster.settle(rounds=12)
    cluster.fails_savepoints = True
    cluster.settle(rounds=60)

    states = [seen.status.state for seen in cluster.snapshots.values()]
    assert states.count(SnapshotState.COMPLETED) == 2
    assert states.count(SnapshotState.FAILED) >= 2
