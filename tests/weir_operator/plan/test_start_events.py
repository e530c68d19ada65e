"""People hear of every start: that a driver was made, from what it starts, and that it runs."""

import pytest

from fake_cluster import FakeCluster, OperatorDiedError, a_spec
from weir_operator.resource.status import LifecycleState

STARTS = ("DriverStarted", "Running", "Stable")


def a_stable_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=12)
    assert cluster.status.state is LifecycleState.STABLE
    return cluster


def reported(cluster):
    return [(event.reason, event.message) for event in cluster.events if event.reason in STARTS]


def test_a_first_start_reports_driver_running_and_stable_once_each():
    """K7: as Events and in the history, however often the operator looks."""
    cluster = a_stable_job()

    expected = [
        ("DriverStarted", "orders-driver-1 starts from the newest checkpoint, if there is one"),
        ("Running", "All subtasks of orders-driver-1 are running"),
        ("Stable", "Generation 1 is stable"),
    ]
    assert reported(cluster) == expected
    assert [(entry.reason, entry.message) for entry in cluster.status.history] == expected
    assert {entry.attempt for entry in cluster.status.history} == {1}


def test_each_attempt_is_reported_with_its_restore_point():
    """K4, K7: a driver that was lost has a successor, which says where it goes on."""
    cluster = a_stable_job()
    cluster.events.clear()
    cluster.driver_dies()
    lowest = cluster.status.restore_point.lowest_checkpoint
    cluster.settle(rounds=8)

    assert reported(cluster) == [
        (
            "DriverStarted",
            f"orders-driver-2 starts from the newest checkpoint, {lowest} or later",
        ),
        ("Running", "All subtasks of orders-driver-2 are running"),
    ]


@pytest.mark.parametrize("mode", ["savepoint", "stateless"])
def test_a_start_on_purpose_names_its_savepoint_or_says_that_there_is_no_state(mode):
    """K4, K7."""
    cluster = a_stable_job(upgrade={"mode": mode})
    cluster.may_drop = True
    cluster.events.clear()
    cluster.edit(image="orders:2")
    cluster.settle(rounds=12)

    start, runs, stable = reported(cluster)
    origin = "without state" if mode == "stateless" else f"from {savepoint_of(cluster)}"
    assert start == ("DriverStarted", f"orders-driver-2 starts {origin}")
    assert (runs[0], stable) == ("Running", ("Stable", "Generation 2 is stable"))


def savepoint_of(cluster):
    return cluster.status.last_savepoint.path


def test_a_driver_whose_pod_was_not_created_is_not_reported_as_started():
    """K7: intent is no news; the operator dies here before it makes the pod."""
    cluster = FakeCluster(dies_in=3)
    with pytest.raises(OperatorDiedError):
        cluster.turn()

    assert cluster.status.driver.attempt == 1
    assert reported(cluster) == []
    assert cluster.status.history == ()
