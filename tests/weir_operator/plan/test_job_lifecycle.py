"""A job is started, kept alive and taken down by plans alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.cluster_actions import (
    CreateDriver,
    DeleteDriver,
    ForceDeletePod,
    ReadLive,
    RequestStop,
)
from weir_operator.plan.observed_state import (
    Dependent,
    DriverReport,
    LostPod,
    Terminated,
    Terminating,
)
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState
from weir_operator.resource.status_fields import Action, RestoreType


def a_running_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=8)
    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)
    return cluster


def reasons(cluster):
    return [event.reason for event in cluster.events]


def condition(status, kind):
    return next((one for one in status.conditions if one.type == kind), None)


def test_a_new_job_gets_a_driver_that_may_start_without_state():
    """K1, K3: the attempt and what it starts from are written before the pod is made."""
    made = FakeCluster().planned()

    created = next(a for a in made.actions if isinstance(a, CreateDriver))
    assert (created.attempt, created.restore.type) == (1, RestoreType.LAST_STATE)
    assert made.status.driver.pod_name == created.name
    assert made.status.restore_point == created.restore
    assert made.status.intent.target == created.name


def test_a_job_becomes_stable_by_its_checkpoints():
    """K6: having been seen running once is not enough."""
    cluster = FakeCluster()
    cluster.settle(rounds=5)
    assert cluster.status.state is LifecycleState.RUNNING

    cluster.settle(rounds=5)

    assert cluster.status.state is LifecycleState.STABLE
    assert cluster.status.stable.generation == 1


def test_a_lost_driver_is_replaced_within_its_deployment():
    """K4: its successor goes on from the newest checkpoint, no older than the last reported."""
    cluster = a_running_job()
    before = cluster.status

    cluster.driver_dies()
    cluster.settle(rounds=6)

    assert cluster.status.driver.attempt == before.driver.attempt + 1
    assert cluster.status.restore_point.deployment == before.restore_point.deployment
    assert cluster.status.restarts == 1
    assert "OOMKilled" in reasons(cluster)


def test_a_driver_that_a_cache_does_not_show_is_looked_for_before_it_counts_as_lost():
    """K3: a destructive verdict needs a live look."""
    cluster = a_running_job()
    cluster.drivers.clear()

    made = cluster.planned(cluster.observed(is_live=False))

    assert made.actions == (ReadLive(),)


def test_pods_of_a_lost_node_are_deleted_by_force():
    """K10: no kubelet on that node will terminate them."""
    cluster = a_running_job()
    cluster.lose_node()

    made = cluster.turn()
    assert [a.force for a in made.actions if isinstance(a, DeleteDriver)] == [True]

    cluster.settle(rounds=6)
    assert cluster.status.driver.attempt == 2
    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)


def test_an_image_that_is_not_there_is_given_up_after_its_deadline_and_tried_again():
    """K7: the phase that hangs is named, and time may heal it."""
    cluster = FakeCluster(bad_images={"orders:1"})
    cluster.settle(rounds=30)
    assert "StartTimedOut" in reasons(cluster)
    assert "phase pod" in cluster.status.last_failure.message

    cluster.bad_images.clear()
    cluster.settle(rounds=40)

    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)


def test_a_finished_job_stays_until_its_time_is_over():
    """K1: ttlAfterEnd."""
    cluster = a_running_job(ttlAfterEnd="1 h")
    driver = cluster.drivers[0]
    driver.phase = JobPhase.FINISHED
    driver.pod = type(driver.pod)(1, driver.pod.name, driver.pod.uid, Terminated(0))
    cluster.settle(rounds=3)
    assert cluster.status.state is LifecycleState.FINISHED
    assert cluster.planned().requeue_at == cluster.status.ended_at + timedelta(hours=1)

    cluster.pass_time(3600)
    cluster.settle(rounds=5)

    assert cluster.is_gone


def test_an_edit_that_cannot_be_run_leaves_the_job_alone():
    """K1: the deployed version goes on, and the status says why."""
    cluster = a_running_job()
    before = cluster.drivers[0].pod.uid

    cluster.edit(parallelism=-1)
    cluster.settle(rounds=4)

    assert cluster.drivers[0].pod.uid == before
    accepted = {c.type: c.status for c in cluster.status.conditions}
    assert accepted["SpecAccepted"] == "False"
    assert accepted["Ready"] == "True"


def test_what_only_the_operator_reads_restarts_nothing():
    """K1: a schedule or a policy takes effect at once."""
    cluster = a_running_job()
    before = cluster.drivers[0].pod.uid

    cluster.edit(ttlAfterEnd="1 h")
    cluster.settle(rounds=3)

    assert cluster.drivers[0].pod.uid == before
    assert cluster.status.deployed.generation == 2


def test_a_suspended_job_has_no_pods_and_goes_on_where_it_was():
    """K6."""
    cluster = a_running_job()
    cluster.edit(suspend=True)
    cluster.settle(rounds=5)
    assert cluster.status.state is LifecycleState.SUSPENDED
    assert not cluster.drivers

    cluster.edit(suspend=False)
    cluster.settle(rounds=6)

    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)
    assert cluster.status.restore_point.lowest_checkpoint > 1


def test_a_restart_nonce_restarts_once():
    """K6."""
    cluster = a_running_job()
    cluster.edit(restartNonce=1)
    cluster.settle(rounds=12)

    assert cluster.status.driver.attempt == 2


def test_a_deleted_job_goes_with_its_pods():
    """K10."""
    cluster = a_running_job()
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=4)

    assert cluster.is_gone


def test_a_deletion_takes_a_savepoint_if_asked():
    """K5: the snapshot's object stays behind."""
    cluster = a_running_job(savepoints={"onDeletion": True})
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=6)

    assert cluster.is_gone
    assert cluster.savepoints_taken == 1
    assert [s.spec.trigger for s in cluster.snapshots.values()] == ["deletion"]


def test_a_deletion_does_not_wait_for_a_dead_job():
    """K10: a job that is down takes no savepoint, and a lost node ends nothing."""
    cluster = a_running_job(savepoints={"onDeletion": True})
    cluster.lose_node()
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=3)

    assert cluster.is_gone


def test_a_deletion_waits_for_a_silent_driver_no_longer_than_its_deadline():
    """K10."""
    cluster = a_running_job(savepoints={"onDeletion": True, "deletionDeadline": "2 min"})
    cluster.drivers[0].is_silent = True
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=4)
    assert not cluster.is_gone

    cluster.settle(rounds=8)

    assert cluster.is_gone


def test_a_deletion_does_not_wait_for_ever_for_pods():
    """K10: Kubernetes deletes what is left after its owner."""
    cluster = a_running_job()
    cluster.never_ends = True
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=3)
    assert not cluster.is_gone

    cluster.settle(rounds=10)

    assert cluster.is_gone


def test_a_job_that_was_stopped_by_somebody_else_goes_on_in_a_new_deployment():
    """K4: within the old one the driver would only find that it has ended."""
    cluster = a_running_job()
    before = cluster.status.restore_point.deployment
    cluster.perform(RequestStop(1, "by-hand"))
    cluster.settle(rounds=8)

    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)
    assert cluster.status.restore_point.deployment == before + 1


def test_a_silent_driver_is_not_a_dead_one():
    """K3: as long as its pod runs, nothing is done to it."""
    cluster = a_running_job()
    cluster.drivers[0].is_silent = True
    cluster.settle(rounds=60)

    assert cluster.status.driver.attempt == 1
    ready = next(c for c in cluster.status.conditions if c.type == "Ready")
    assert ready.status == "Unknown"


def test_a_first_specification_that_cannot_be_run_starts_nothing():
    """K1: and can be deleted like any other."""
    cluster = FakeCluster(a_spec(parallelism=-1))
    cluster.settle(rounds=2)
    assert cluster.status.state is LifecycleState.CREATED
    assert not cluster.drivers

    cluster.deleted_at = cluster.now
    cluster.settle(rounds=2)

    assert cluster.is_gone


def test_a_job_that_gave_up_waits_for_a_person():
    """K7: the next edit starts it again."""
    cluster = a_running_job()
    cluster.drivers[0].phase, cluster.drivers[0].why = JobPhase.FAILED, "division by zero"
    cluster.settle(rounds=10)
    assert cluster.status.state is LifecycleState.FAILED
    assert "division by zero" in cluster.status.last_failure.message

    cluster.edit(image="orders:2")
    cluster.settle(rounds=10)

    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)


def test_executors_of_a_lost_node_are_deleted_by_force():
    """K10: Spark asks for no others as long as they hang there."""
    cluster = a_running_job()
    seen = replace(cluster.observed(), lost_executors=(LostPod("orders-exec-1", "uid"),))

    assert cluster.planned(seen).actions == (ForceDeletePod("orders-exec-1", "uid"),)
    assert cluster.planned(seen).status.intent.action is Action.FORCE_DELETE_PODS


def test_the_schedulers_state_and_local_recovery_are_shown():
    """K7, K8."""
    cluster = a_running_job(state={"localRecovery": True})

    assert cluster.status.scheduler_running is True
    assert not cluster.status.local_recovery.enabled
    assert "mount no local volume" in cluster.status.local_recovery.reason


def test_an_autoscaler_finds_the_executors_once_the_job_was_deployed():
    """K6: the scale subresource."""
    cluster = FakeCluster(a_spec(suspend=True))
    cluster.turn()
    assert cluster.status.selector is None

    cluster.edit(suspend=False)
    cluster.turn()

    assert cluster.status.selector == "weir.dev/job=orders,weir.dev/role=executor"


@pytest.mark.parametrize(
    ("missing", "message"),
    [(1, "phase slots: waits for 1 more slot"), (2, "phase slots: waits for 2 more slots")],
)
def test_a_job_that_waits_for_slots_says_for_how_many(missing, message):
    """K7."""
    cluster = FakeCluster()
    for _ in range(2):
        cluster.turn()
        cluster.drivers_go_on()
    report = DriverReport(1, JobPhase.WAITING_FOR_SLOTS, slots_missing=missing)

    made = cluster.planned(replace(cluster.observed(), report=report))

    assert condition(made.status, "Progressing").message == message


def test_a_start_that_falls_back_gets_no_new_deadline():
    """K6, K7: a job that restarts for ever before it runs is late all the same."""
    cluster = FakeCluster(a_spec(startDeadlines={"restore": "5 min"}))
    cluster.settle(rounds=2)
    driver = cluster.drivers[0]
    for turn in range(60):
        driver.phase = (JobPhase.RESTARTING, JobPhase.WAITING_FOR_SLOTS)[turn % 2]
        driver.is_silent = turn % 3 == 0
        cluster.turn()
        cluster.pass_time(10)

    assert "StartTimedOut" in reasons(cluster)


def test_a_driver_whose_keys_were_deleted_is_replaced():
    """K3: it could not be reached with new ones; a cache is not sufficient for that."""
    cluster = a_running_job()
    cluster.dependents.remove(Dependent.KEYS)
    assert cluster.planned(cluster.observed(is_live=False)).actions == (ReadLive(),)

    cluster.settle(rounds=6)

    assert "KeysLost" in reasons(cluster)
    assert cluster.status.driver.attempt == 2
    assert cluster.status.state in (LifecycleState.RUNNING, LifecycleState.STABLE)


@pytest.mark.parametrize("part", [Dependent.SERVICE, Dependent.CONFIG, Dependent.BUDGET])
def test_what_was_deleted_beside_a_driver_is_made_again(part):
    """K2: and the driver goes on."""
    cluster = a_running_job()
    cluster.dependents.remove(part)
    cluster.turn()

    assert cluster.dependents == set(Dependent)
    assert cluster.status.driver.attempt == 1


def test_what_a_job_first_starts_from_can_be_edited_until_it_starts():
    """K4: a job that was made suspended has not begun."""
    cluster = FakeCluster(a_spec(suspend=True))
    cluster.settle(rounds=2)
    recorded = cluster.status.restore_point
    cluster.settle(rounds=2)
    assert cluster.status.restore_point == recorded

    cluster.edit(suspend=False, recovery={"path": "s3://weir/savepoints/old"})

    created = next(a for a in cluster.planned().actions if isinstance(a, CreateDriver))
    assert created.restore.path == "s3://weir/savepoints/old"


def test_a_pod_that_is_ending_is_looked_at_again():
    """K3: the word that it is gone may never come."""
    cluster = a_running_job()
    driver = cluster.drivers[0]
    driver.pod = replace(driver.pod, terminating=Terminating(cluster.now))
    cluster.status = CheckpointedJobStatus()

    made = cluster.planned()

    assert made.actions == ()
    assert made.requeue_at is not None
