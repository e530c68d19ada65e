"""How soon a lost driver is replaced: at once, unless one after the other has come to nothing."""

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.driver_recovery import backoff_ms
from weir_operator.resource.status import LifecycleState

A_WHILE_S = 20
NEVER = {"storage": "s3://weir/checkpoints", "savepointDir": "s3://weir/savepoints"}
"""Checkpoints only on request."""


def a_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.turn()
    return cluster


def lives_until_it_runs(cluster):
    while cluster.drivers[0].phase is not JobPhase.RUNNING:
        cluster.drivers_go_on()
        cluster.turn()


def lives_for_a_moment_unseen(cluster):
    """It starts, runs, completes a checkpoint, and restarts the job."""
    (driver,) = cluster.drivers
    while not driver.completed:
        cluster.drivers_go_on()
    driver.phase = JobPhase.RESTARTING


def lives_for(cluster, seconds):
    cluster.settle(rounds=seconds, seconds=1)


def waited_for_the_next(cluster):
    """How many seconds the job had no driver; the old pod goes in the first of them."""
    lost = cluster.status.driver.attempt
    cluster.driver_dies()
    for seconds in range(1_000):
        cluster.turn()
        cluster.drivers_go_on()
        if cluster.status.driver.attempt > lost:
            return seconds
        cluster.pass_time(1)
    raise AssertionError("there was never another driver")


def test_a_driver_that_is_lost_again_and_again_is_waited_for_longer_each_time():
    """K7: without an end, but without a storm either."""
    waits = [backoff_ms(in_a_row) for in_a_row in range(1, 9)]

    assert waits == [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]


def test_drivers_that_are_lost_before_they_run_wait_longer_each_time():
    """K7: without an end, but without a storm either."""
    cluster = a_job()
    waits = []
    for _ in range(8):
        lives_for(cluster, 1)
        waits.append(waited_for_the_next(cluster))

    assert waits == [1, 10, 20, 40, 80, 160, 300, 300]


def test_a_driver_that_completed_a_checkpoint_is_replaced_at_once_however_many_were_lost():
    """R1: it brought the job forward, so the next one will, and nothing is won by waiting."""
    cluster = a_job()
    waits = []
    for _ in range(8):
        lives_for(cluster, A_WHILE_S)
        waits.append(waited_for_the_next(cluster))

    assert set(waits) == {1}


def test_a_driver_that_only_ran_brought_nothing_forward():
    """K7: a job that is lost each time before its first checkpoint begins at the same place."""
    cluster = a_job()
    waits = []
    for _ in range(4):
        lives_until_it_runs(cluster)
        waits.append(waited_for_the_next(cluster))

    assert waits == [1, 10, 20, 40]


def test_a_checkpoint_makes_up_for_every_loss_before_it():
    """K7: what was lost in a row was lost before it."""
    cluster = a_job()
    for _ in range(4):
        lives_for(cluster, 1)
        waited_for_the_next(cluster)
    lives_for(cluster, A_WHILE_S)

    assert cluster.status.driver.failed_starts == 0
    assert waited_for_the_next(cluster) == 1


def test_without_periodic_checkpoints_a_long_run_counts_instead():
    """K7: and the time without a driver is not a part of it."""
    cluster = a_job(checkpointing=NEVER, upgrade={"mode": "savepoint"})
    waits = []
    for run in (A_WHILE_S,) * 7 + (400,):
        lives_for(cluster, run)
        waits.append(waited_for_the_next(cluster))

    assert waits == [1, 10, 20, 40, 80, 160, 300, 1]


def test_a_job_that_was_never_seen_to_run_again_is_still_recovering():
    """K7: though its driver has completed a checkpoint before it was observed."""
    cluster = a_job()
    lives_for(cluster, A_WHILE_S)
    waited_for_the_next(cluster)
    lives_for_a_moment_unseen(cluster)

    cluster.turn()

    assert cluster.status.driver.running_since is None
    assert cluster.status.state is LifecycleState.RECOVERING
