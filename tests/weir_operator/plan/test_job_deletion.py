"""A deletion that must go without its last savepoint says so, once and with the cause."""

from dataclasses import replace

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.observed_state import Terminated

ASKED = {"onDeletion": True, "deletionDeadline": "1 min"}
NAME = "orders-deletion-0a1b2c3d"


def a_job_to_delete(**changes):
    cluster = FakeCluster(a_spec(savepoints=ASKED, **changes))
    cluster.settle(rounds=12)
    return cluster


def is_deleted(cluster):
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=30)
    assert cluster.is_gone


def reported(cluster):
    """Why there is no savepoint, as often as it was said."""
    found = [event for event in cluster.events if event.reason == "SavepointFailed"]
    assert all(event.is_warning for event in found)
    return [event.message.removeprefix(f"{NAME}: ").partition(";")[0] for event in found]


def falls_silent(cluster):
    cluster.drivers[0].is_silent = True


def loses_its_node(cluster):
    cluster.lose_node()


def fails_savepoints(cluster):
    cluster.fails_savepoints = True


def has_failed(cluster):
    driver = cluster.drivers[0]
    driver.phase, driver.why = JobPhase.FAILED, "division by zero"
    driver.pod = replace(driver.pod, stage=Terminated(1))
    cluster.settle(rounds=2)


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (falls_silent, "it did not complete within savepoints.deletionDeadline"),
        (loses_its_node, "the job is down"),
        (has_failed, "the job is down"),
        (fails_savepoints, "the bucket is full"),
    ],
)
def test_a_deletion_without_its_savepoint_is_reported_once_with_the_cause(trouble, why):
    """K5 K7 K10: by an Event and in the history, however long pods take to end."""
    cluster = a_job_to_delete()
    trouble(cluster)
    cluster.never_ends = True

    is_deleted(cluster)

    assert reported(cluster) == [why]
    assert [one.reason for one in cluster.status.history].count("SavepointFailed") == 1


def test_a_deletion_with_its_savepoint_has_nothing_to_warn_of():
    """K5 K7."""
    cluster = a_job_to_delete()
    is_deleted(cluster)

    assert cluster.savepoints_taken == 1
    assert reported(cluster) == []


def is_suspended(cluster):
    cluster.edit(suspend=True)
    cluster.settle(rounds=6)


def finishes_now(cluster):
    driver = cluster.drivers[0]
    driver.phase = JobPhase.FINISHED
    driver.pod = replace(driver.pod, stage=Terminated(0))


def has_finished(cluster):
    finishes_now(cluster)
    cluster.settle(rounds=2)


def stops_for_an_upgrade(cluster):
    cluster.edit(image="orders:2")
    cluster.turn()
    cluster.turn()


@pytest.mark.parametrize("before", [is_suspended, has_finished, finishes_now, stops_for_an_upgrade])
def test_a_job_that_had_nothing_left_to_save_is_not_said_to_have_lost_it(before):
    """K5 K7: it has finished, or it was stopped on purpose and with what it goes on from."""
    cluster = a_job_to_delete(upgrade={"mode": "savepoint"})
    before(cluster)

    is_deleted(cluster)

    assert reported(cluster) == []


def test_a_job_that_was_asked_for_no_savepoint_misses_none():
    """K7."""
    cluster = FakeCluster()
    cluster.settle(rounds=8)
    cluster.lose_node()
    is_deleted(cluster)

    assert reported(cluster) == []
