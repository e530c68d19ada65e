"""The outcome of a snapshot is reported once on its job, with the newest savepoint."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fake_cluster import BEGINNING, FakeCluster, a_spec
from weir_operator.plan.cluster_actions import EmitEvent
from weir_operator.plan.observed_state import ObservedSnapshot
from weir_operator.resource import CheckpointedJobSnapshotSpec, CheckpointedJobSnapshotStatus
from weir_operator.resource.snapshot import SnapshotState
from weir_operator.resource.status_fields import MOST_REPORTED

PATH = "s3://weir/savepoints/7"


@pytest.fixture(name="cluster")
def fixture_cluster():
    cluster = FakeCluster(a_spec())
    cluster.settle(rounds=8)
    return cluster


def reported(cluster, *words):
    return [event for event in cluster.events if event.reason in words]


def a_snapshot(number, state=SnapshotState.COMPLETED, **spec):
    made_at = BEGINNING + timedelta(seconds=number)
    is_complete = state is SnapshotState.COMPLETED
    return ObservedSnapshot(
        f"by-hand-{number}",
        CheckpointedJobSnapshotSpec(job_name="orders", **spec),
        CheckpointedJobSnapshotStatus(
            state=state,
            path=PATH if is_complete else None,
            completed_at=made_at if is_complete else None,
            message=None if is_complete else "the bucket is full",
        ),
        made_at,
    )


def seen_with(cluster, *snapshots):
    return replace(cluster.observed(), snapshots=snapshots)


def test_a_complete_savepoint_is_reported_once_and_in_the_status(cluster):
    """K5, K7."""
    cluster.annotation = "one"
    cluster.settle(rounds=6)

    (event,) = reported(cluster, "SavepointCompleted")
    (snapshot,) = cluster.snapshots.values()
    assert snapshot.status.path in event.message
    assert cluster.status.last_savepoint.path == snapshot.status.path
    assert cluster.status.last_savepoint.snapshot == snapshot.name
    assert "SavepointCompleted" in [entry.reason for entry in cluster.status.history]


def test_a_savepoint_that_failed_is_reported_with_the_reason(cluster):
    """K5, K7."""
    cluster.fails_savepoints = True
    cluster.annotation = "one"
    cluster.settle(rounds=12)

    (event,) = reported(cluster, "SavepointFailed")
    assert event.is_warning
    assert "the bucket is full" in event.message
    assert cluster.status.last_savepoint is None


def test_a_requested_checkpoint_is_reported_and_is_no_savepoint(cluster):
    """K5, K7."""
    cluster.checkpoint_annotation = "one"
    cluster.settle(rounds=6)

    assert len(reported(cluster, "CheckpointCompleted")) == 1
    assert cluster.status.last_savepoint is None


def test_a_snapshot_tells_of_itself_too(cluster):
    """K7: on its own object."""
    cluster.annotation = "one"
    cluster.settle(rounds=6)

    assert [event.reason for event in cluster.snapshot_events] == ["Completed"]


def test_an_adopted_savepoint_is_not_reported_as_taken(cluster):
    """K5: it was not taken by this job."""
    made = cluster.planned(seen_with(cluster, a_snapshot(1, adopt_path=PATH)))

    assert not [action for action in made.actions if isinstance(action, EmitEvent)]
    assert made.status.last_savepoint is None


def test_the_savepoint_of_an_upgrade_is_reported_by_the_upgrade_alone():
    """K5: it has an object as well, but it is one savepoint."""
    cluster = FakeCluster(a_spec(upgrade={"mode": "savepoint"}))
    cluster.settle(rounds=8)
    cluster.edit(image="orders:2")
    cluster.settle(rounds=10)

    assert len(reported(cluster, "SavepointCompleted")) == 1
    assert cluster.status.last_savepoint.snapshot in cluster.snapshots


def test_another_savepoint_does_not_take_the_place_of_an_upgrades_own():
    """K4: what the new version starts from is that which the old one stopped with."""
    cluster = FakeCluster(a_spec(upgrade={"mode": "savepoint"}))
    cluster.settle(rounds=8)
    cluster.edit(image="orders:2")
    for _ in range(2):
        cluster.turn()
    own = cluster.status.last_savepoint
    other = a_snapshot(86_400)

    made = cluster.planned(seen_with(cluster, *cluster.snapshots.values(), other))

    assert made.status.last_savepoint == own


def test_many_snapshots_are_each_reported_once(cluster):
    """K7: the status remembers the youngest; older ones count as reported."""
    snapshots = [a_snapshot(number) for number in range(3 * MOST_REPORTED)]
    for count in range(1, len(snapshots) + 1):
        cluster.turn(seen_with(cluster, *snapshots[:count]))
    cluster.turn(seen_with(cluster, *snapshots[: MOST_REPORTED // 2]))
    cluster.turn(seen_with(cluster))
    cluster.turn(seen_with(cluster, *snapshots))

    assert len(reported(cluster, "SavepointCompleted")) == len(snapshots)
    assert len(cluster.status.answered.snapshots) == MOST_REPORTED


def test_a_snapshot_of_a_reused_name_is_reported_again(cluster):
    """K7: it is another snapshot."""
    first = a_snapshot(1, SnapshotState.FAILED)
    second = replace(first, created_at=BEGINNING + timedelta(days=1))
    cluster.turn(seen_with(cluster, first))
    cluster.turn(seen_with(cluster, second))

    assert len(reported(cluster, "SavepointFailed")) == 2


def test_a_snapshot_that_came_too_late_is_reported_as_failed(cluster):
    """K7: the job had ended before it could be taken."""
    cluster.turn(seen_with(cluster, a_snapshot(1, SnapshotState.ABANDONED)))

    assert len(reported(cluster, "SavepointFailed")) == 1
