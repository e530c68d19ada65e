"""A driver's pod that does not terminate is waited for, but not forever."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fake_cluster import BEGINNING, GRACE, FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.cluster_actions import CreateDriver, DeleteDriver
from weir_operator.plan.observed_state import DriverPod, Running, Terminated, Terminating, Waiting
from weir_operator.plan.stuck_drivers import (
    TERMINATED_DEADLINE_MS,
    TERMINATION_DEADLINE_MS,
    stuck_after,
    without_stuck,
)
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import Failure

HOLD = "example.com/hold"
UP = (LifecycleState.RUNNING, LifecycleState.STABLE)


def a_running_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=12)
    assert cluster.status.state in UP
    cluster.events.clear()
    return cluster


def a_user_deletes_the_driver(cluster):
    pod = cluster.drivers[0].pod
    cluster.perform(DeleteDriver(pod.name, pod.uid, pod.attempt))


def reported(cluster):
    return [event.message for event in cluster.events if event.reason == "DriverStuck"]


def condition(cluster, kind):
    return next(one for one in cluster.status.conditions if one.type == kind)


def attempts(cluster):
    return sorted(driver.pod.attempt for driver in cluster.drivers)


def after(milliseconds):
    return BEGINNING + timedelta(milliseconds=milliseconds)


LEFT = Terminating(BEGINNING)
FORCED = replace(LEFT, is_forced=True)


@pytest.mark.parametrize(
    ("pod", "until"),
    [
        (DriverPod(1, "d", "u", Running()), None),
        (DriverPod(1, "d", "u", Terminated(0)), None),
        (DriverPod(1, "d", "u", Running(), is_node_lost=True), None),
        (DriverPod(1, "d", "u", Waiting(), LEFT), TERMINATION_DEADLINE_MS),
        (DriverPod(1, "d", "u", Running(), LEFT), TERMINATION_DEADLINE_MS),
        (
            DriverPod(1, "d", "u", Running(), replace(LEFT, held_by=(HOLD,))),
            TERMINATION_DEADLINE_MS,
        ),
        (DriverPod(1, "d", "u", Terminated(143), LEFT), TERMINATED_DEADLINE_MS),
        (
            DriverPod(1, "d", "u", Terminated(0), replace(LEFT, held_by=(HOLD,))),
            TERMINATED_DEADLINE_MS,
        ),
        (DriverPod(1, "d", "u", Running(), FORCED, is_node_lost=True), TERMINATED_DEADLINE_MS),
    ],
)
def test_a_pod_is_waited_for_until_its_deadline_and_not_longer(pod, until):
    """K3, K10: short if its process is known to be over, or its node to be lost."""
    seen = replace(FakeCluster().observed(), drivers=(pod,))
    assert stuck_after(pod) == (None if until is None else after(until))
    if until is None:
        much_later = replace(seen, now=after(86_400_000))
        assert without_stuck(much_later).drivers == (pod,)
        return
    early, late = replace(seen, now=after(until - 1)), replace(seen, now=after(until))

    assert (without_stuck(early).drivers, without_stuck(early).stuck) == ((pod,), ())
    assert (without_stuck(late).drivers, without_stuck(late).stuck) == ((), (pod,))


def test_a_pod_of_a_lost_node_is_deleted_by_force_before_it_can_be_stuck():
    """K10: however long ago it was deleted."""
    cluster = a_running_job()
    cluster.never_ends = True
    a_user_deletes_the_driver(cluster)
    cluster.lose_node()
    cluster.pass_time(3600)

    made = cluster.planned()

    assert [action.force for action in made.actions if isinstance(action, DeleteDriver)] == [True]
    assert not any(isinstance(action, CreateDriver) for action in made.actions)


def test_a_pod_that_was_deleted_by_force_is_not_deleted_again_at_every_look():
    """K10: a finalizer holds it, and asking again changes nothing."""
    cluster = a_running_job()
    cluster.held_by = (HOLD,)
    cluster.lose_node()
    cluster.turn()

    assert not any(isinstance(action, DeleteDriver) for action in cluster.planned().actions)


def test_a_driver_held_by_a_finalizer_has_a_successor_after_its_deadline():
    """K3 K7 K10: under another name, with an Event and a condition that name pod and cause."""
    cluster = a_running_job()
    cluster.held_by = (HOLD,)
    a_user_deletes_the_driver(cluster)
    cluster.settle(rounds=2)
    assert attempts(cluster) == [1]
    hold_up = condition(cluster, "Progressing").message
    assert hold_up.startswith("waits for orders-driver-1 to terminate, until ")
    assert hold_up.endswith(f"held by {HOLD}")

    cluster.settle(rounds=12)

    assert attempts(cluster) == [1, 2]
    assert cluster.status.state in UP
    (message,) = reported(cluster)
    assert message.startswith("orders-driver-1 does not terminate: held by")
    degraded = condition(cluster, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", "DriverStuck")
    assert degraded.message == message
    assert cluster.status.last_failure.reason == "DriverStuck"
    assert cluster.status.restarts == 1


def test_when_a_stuck_pod_is_gone_at_last_nothing_is_degraded():
    """K7: and nothing else happens."""
    cluster = a_running_job()
    cluster.held_by = (HOLD,)
    a_user_deletes_the_driver(cluster)
    cluster.settle(rounds=14)
    cluster.remove_finalizer()
    cluster.settle(rounds=2)

    assert attempts(cluster) == [2]
    assert condition(cluster, "Degraded").status == "False"


def test_a_driver_whose_kubelet_is_silent_is_waited_for_longer():
    """K3 C17: its process may still run; the log in storage fences it."""
    cluster = a_running_job()
    cluster.never_ends = True
    a_user_deletes_the_driver(cluster)
    waited = GRACE.total_seconds() + TERMINATION_DEADLINE_MS / 1_000
    cluster.settle(rounds=int(waited // 15) - 1)
    assert attempts(cluster) == [1]

    cluster.settle(rounds=12)

    assert attempts(cluster) == [1, 2]
    assert cluster.status.state in UP
    (message,) = reported(cluster)
    assert "its node has not confirmed its termination" in message


@pytest.mark.parametrize("mode", ["savepoint", "last-state"])
def test_an_upgrade_does_not_wait_for_ever_for_the_old_driver(mode):
    """K3 K4: and starts from the same as ever."""
    cluster = a_running_job(upgrade={"mode": mode})
    cluster.held_by = (HOLD,)
    cluster.edit(image="orders:2")
    cluster.settle(rounds=20)

    assert attempts(cluster) == [1, 2]
    assert cluster.status.state is LifecycleState.STABLE
    assert cluster.status.deployed.spec["image"] == "orders:2"
    assert len(reported(cluster)) == 1


def test_a_suspension_does_not_wait_for_ever_for_the_old_driver():
    """K6 K7: The job is suspended, and what is left of it is named."""
    cluster = a_running_job()
    cluster.held_by = (HOLD,)
    cluster.edit(suspend=True)
    cluster.settle(rounds=12)

    assert cluster.status.state is LifecycleState.SUSPENDED
    assert len(reported(cluster)) == 1
    assert condition(cluster, "Degraded").reason == "DriverStuck"


def test_a_finished_job_whose_driver_is_held_has_still_finished():
    """K7: it is deleted, and a finalizer blocks the pod."""
    cluster = a_running_job()
    driver = cluster.drivers[0]
    driver.phase = JobPhase.FINISHED
    driver.pod = replace(driver.pod, stage=Terminated(0))
    cluster.settle(rounds=2)
    cluster.held_by = (HOLD,)
    a_user_deletes_the_driver(cluster)
    cluster.settle(rounds=10)

    assert cluster.status.state is LifecycleState.FINISHED
    assert attempts(cluster) == [1]
    assert len(reported(cluster)) == 1


def test_a_stuck_driver_is_never_said_to_be_gone():
    """K7: though another failure followed it."""
    cluster = a_running_job()
    cluster.held_by = (HOLD,)
    a_user_deletes_the_driver(cluster)
    cluster.drivers_go_on()
    cluster.pass_time(60)
    cluster.turn(cluster.observed(is_live=False))
    assert len(reported(cluster)) == 1
    other = Failure(at=cluster.now, reason="Forbidden", message="the quota is used up")
    cluster.status = cluster.status.model_copy(update={"last_failure": other})
    cluster.settle(rounds=4)

    assert attempts(cluster) == [1, 2]
    assert "DriverLost" not in [event.reason for event in cluster.events]


def test_a_pod_that_was_never_seen_before_it_was_stuck_has_a_successor_too():
    """K3: making it again would only meet it again."""
    cluster = FakeCluster()
    cluster.turn()
    cluster.never_ends = True
    a_user_deletes_the_driver(cluster)
    cluster.pass_time(3600)
    cluster.settle(rounds=8)

    assert attempts(cluster) == [1, 2]
