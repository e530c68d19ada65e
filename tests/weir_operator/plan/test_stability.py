"""A version proves itself by checkpoints or, where none are taken by themselves, by running on."""

from datetime import timedelta

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import StepName

WITHIN_S = 600
ONLY_ON_DEMAND = {"storage": "s3://weir/checkpoints", "savepointDir": "s3://weir/savepoints"}
"""No interval."""


def a_stable_job(**changes):
    given = {"checkpointing": ONLY_ON_DEMAND, "upgrade": {"mode": "savepoint"}} | changes
    cluster = FakeCluster(a_spec(rollback={"within": "10 min"}, **given))
    cluster.settle(rounds=60)
    assert cluster.status.state is LifecycleState.STABLE
    cluster.edit(image="orders:2")
    while not (cluster.status.driver.attempt == 2 and cluster.status.driver.running_since):
        cluster.settle(rounds=1)
    return cluster


def live(cluster, seconds, restarts_every=None):
    """Let the new version run for so long, and restart so often."""
    for elapsed in range(0, seconds, 15):
        if restarts_every is not None and elapsed and elapsed % restarts_every == 0:
            cluster.drivers[0].restarts += 1
        cluster.settle(rounds=1)


def outcome(cluster):
    return cluster.status.state, cluster.status.deployed.spec["image"]


def restart(cluster):
    cluster.drivers[0].restarts += 1


BACK = (LifecycleState.ROLLED_BACK, "orders:1")
CACHE_TTL = (LifecycleState.STABLE, "orders:2")


def test_it_runs_for_the_whole_time_without_a_restart():
    """K6: then it is stable, and not before."""
    cluster = a_stable_job()
    live(cluster, WITHIN_S - 60)
    assert cluster.status.state is LifecycleState.RUNNING
    live(cluster, 120)

    assert outcome(cluster) == CACHE_TTL


def test_one_that_keeps_restarting_is_rolled_back_at_its_deadline():
    """K6: it has twice the time, which the status shows."""
    cluster = a_stable_job()
    began = cluster.status.driver.running_since
    live(cluster, 60)
    step = next(s for s in cluster.status.upgrade.steps if s.name is StepName.BECOME_STABLE)
    assert step.deadline == began + timedelta(seconds=2 * WITHIN_S)
    live(cluster, 2 * WITHIN_S - 120, restarts_every=120)
    assert cluster.status.state is LifecycleState.RUNNING

    live(cluster, 240, restarts_every=120)

    assert outcome(cluster) == BACK
    assert "rollback.within without a restart" in cluster.status.rollback.because


def test_one_restart_does_not_decide():
    """K6: it has time enough to prove itself after it."""
    cluster = a_stable_job()
    live(cluster, WITHIN_S // 2)
    restart(cluster)
    live(cluster, WITHIN_S + 60)

    assert outcome(cluster) == CACHE_TTL


def test_one_that_restarts_and_does_not_come_back_is_rolled_back():
    """K6: the time in which it does not run proves nothing."""
    cluster = a_stable_job()
    live(cluster, 60)
    cluster.drivers[0].phase = JobPhase.RESTARTING
    for _ in range(2 * WITHIN_S // 15):
        cluster.turn()
        cluster.pass_time(15)
    cluster.settle(rounds=10)

    assert outcome(cluster) == BACK


@pytest.mark.parametrize("checkpointing", [ONLY_ON_DEMAND, {**ONLY_ON_DEMAND, "interval": "10 s"}])
def test_a_version_that_proved_itself_while_no_operator_looked_is_not_rolled_back(checkpointing):
    """K3 K6: the deadline is the version's, not the operator's."""
    cluster = a_stable_job(checkpointing=checkpointing)
    cluster.turn()
    for _ in range(10):
        cluster.drivers_go_on()
    cluster.pass_time(10 * WITHIN_S)
    cluster.settle(rounds=2)

    assert outcome(cluster) == CACHE_TTL
