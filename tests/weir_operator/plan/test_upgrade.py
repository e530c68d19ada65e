"""Upgrades keep state, rollbacks go back, and each step is done once."""

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.cluster_actions import CreateDriver, RequestStop
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import RestoreType, StepName, StepState

SAVEPOINT = {"mode": "savepoint"}
UP = (LifecycleState.RUNNING, LifecycleState.STABLE)


def a_stable_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=12)
    assert cluster.status.state is LifecycleState.STABLE
    return cluster


def image_of(cluster):
    return cluster.status.deployed.spec["image"]


def step(cluster, name):
    return next(step for step in cluster.status.upgrade.steps if step.name is name)


def restored_by(cluster):
    """The restore point of the next driver that is made."""
    for _ in range(20):
        made = cluster.turn()
        for action in made.actions:
            if isinstance(action, CreateDriver):
                return action.restore
        cluster.drivers_go_on()
        cluster.pass_time(5)
    pytest.fail("no driver was made")


def test_last_state_goes_on_from_the_newest_checkpoint_that_is_known():
    """K4: the operator names the lowest acceptable one, and the driver takes the newest."""
    cluster = a_stable_job()
    known = cluster.status.last_checkpoint.id
    cluster.edit(image="orders:2")

    point = restored_by(cluster)

    assert point.type is RestoreType.LAST_STATE
    assert point.lowest_checkpoint >= known
    cluster.settle(rounds=10)
    assert (cluster.status.state, image_of(cluster)) == (LifecycleState.STABLE, "orders:2")


def test_savepoint_starts_the_new_version_from_the_savepoint_of_the_old():
    """K4, K5: and the savepoint becomes an object."""
    cluster = a_stable_job(upgrade=SAVEPOINT)
    cluster.edit(image="orders:2")

    point = restored_by(cluster)

    assert (point.type, point.path) == (RestoreType.PATH, cluster.status.last_savepoint.path)
    cluster.settle(rounds=10)
    assert cluster.status.state is LifecycleState.STABLE
    assert [s.spec.trigger for s in cluster.snapshots.values()] == ["upgrade"]


def test_stateless_drops_state_because_it_was_asked_to():
    """K4."""
    cluster = a_stable_job()
    cluster.may_drop = True
    cluster.edit(image="orders:2", upgrade={"mode": "stateless"})

    assert restored_by(cluster).type is RestoreType.NOTHING


def test_a_failed_savepoint_leaves_the_old_version_running():
    """K4: tried a few times, then given up until the next edit."""
    cluster = a_stable_job(upgrade=SAVEPOINT | {"fallback": "none"})
    cluster.fails_savepoints = True
    before = cluster.drivers[0].pod.uid
    cluster.edit(image="orders:2")
    cluster.settle(rounds=20)

    assert cluster.drivers[0].pod.uid == before
    assert image_of(cluster) == "orders:1"
    assert step(cluster, StepName.TAKE_SAVEPOINT).state is StepState.FAILED
    assert cluster.status.state in UP

    cluster.fails_savepoints = False
    cluster.edit(image="orders:3")
    cluster.settle(rounds=12)
    assert image_of(cluster) == "orders:3"


def test_a_failed_savepoint_falls_back_to_the_newest_checkpoint():
    """K4: never to nothing."""
    cluster = a_stable_job(upgrade=SAVEPOINT)
    cluster.fails_savepoints = True
    cluster.edit(image="orders:2")

    assert restored_by(cluster).type is RestoreType.LAST_STATE
    assert "bucket is full" in cluster.status.upgrade.mode_because


def test_a_job_that_is_down_is_brought_back_for_its_savepoint_where_nothing_else_will_do():
    """K4: fallback none."""
    cluster = a_stable_job(upgrade=SAVEPOINT | {"fallback": "none"})
    cluster.driver_dies()
    cluster.edit(image="orders:2")
    cluster.settle(rounds=20)

    assert image_of(cluster) == "orders:2"
    assert cluster.savepoints_taken == 1


def test_a_newer_specification_takes_the_place_of_the_one_on_its_way():
    """K4: with the savepoint that was taken for the older one."""
    cluster = a_stable_job(upgrade=SAVEPOINT)
    cluster.edit(image="orders:2")
    cluster.turn()
    cluster.edit(image="orders:3")
    cluster.settle(rounds=12)

    assert image_of(cluster) == "orders:3"
    assert (cluster.savepoints_taken, cluster.status.driver.attempt) == (1, 2)


def test_a_version_that_never_came_up_does_not_lose_its_restore_point():
    """K4: FLINK-30406's trap: the first driver of the new version has never started."""
    cluster = a_stable_job(upgrade=SAVEPOINT, rollback={"enabled": False})
    cluster.bad_images.add("orders:2")
    cluster.edit(image="orders:2")
    first = restored_by(cluster)
    cluster.edit(image="orders:3")

    second = restored_by(cluster)

    assert (second.path, second.deployment) == (first.path, first.deployment)
    cluster.settle(rounds=10)
    assert cluster.status.state in UP


def test_a_rescale_is_an_upgrade_and_says_so():
    """K6."""
    cluster = a_stable_job()
    cluster.edit(parallelism=4)
    cluster.settle(rounds=12)

    assert cluster.status.upgrade.cause == "Rescaled"
    assert cluster.status.parallelism == 4


def test_a_redeployment_starts_from_the_chosen_snapshot():
    """K6: once for each nonce."""
    cluster = a_stable_job()
    cluster.annotation = "before the flood"
    cluster.settle(rounds=4)
    path = next(s.status.path for s in cluster.snapshots.values())
    cluster.may_drop = True
    cluster.edit(redeployNonce=1, recovery={"path": path})

    assert restored_by(cluster).path == path
    cluster.settle(rounds=12)
    assert cluster.status.driver.attempt == 2


def test_a_suspension_does_not_swallow_a_redeployment():
    """K6: what was asked for before the job was suspended is done when it goes on."""
    cluster = a_stable_job()
    path = min(cluster.storage.places)
    cluster.may_drop = True
    cluster.edit(redeployNonce=1, recovery={"path": path})
    cluster.turn()
    cluster.edit(suspend=True)
    cluster.settle(rounds=5)
    assert cluster.status.state is LifecycleState.SUSPENDED
    cluster.edit(suspend=False)

    assert restored_by(cluster).path == path


def test_a_version_that_does_not_come_up_is_rolled_back():
    """K6: from what the newer one left, without consent."""
    cluster = a_stable_job()
    cluster.bad_images.add("orders:2")
    cluster.edit(image="orders:2")
    cluster.settle(rounds=60)

    assert cluster.status.state is LifecycleState.ROLLED_BACK
    assert image_of(cluster) == "orders:1"
    assert not cluster.status.rollback.repeats_output


def test_a_rollback_goes_on_from_what_the_newer_version_completed_last():
    """K6: so that nothing is written twice, and no consent is needed."""
    cluster = a_stable_job(rollback={"checkpoints": 5, "within": "2 min"})
    cluster.edit(image="orders:2")
    restored_by(cluster)
    while cluster.status.rollback is None:
        known = cluster.status.last_checkpoint.id
        cluster.drivers[0].restarts += 1
        cluster.settle(rounds=1)

    point = restored_by(cluster)

    assert (point.type, image_of(cluster)) == (RestoreType.LAST_STATE, "orders:1")
    assert point.lowest_checkpoint >= known > 0
    assert not cluster.status.rollback.repeats_output


def test_what_was_rolled_back_is_not_tried_again_until_it_is_edited():
    """K6."""
    cluster = a_stable_job()
    cluster.bad_images.add("orders:2")
    cluster.edit(image="orders:2")
    cluster.settle(rounds=60)
    attempt = cluster.status.driver.attempt
    cluster.settle(rounds=30)
    assert cluster.status.driver.attempt == attempt

    cluster.edit(image="orders:3")
    cluster.settle(rounds=20)

    assert (image_of(cluster), cluster.status.rollback) == ("orders:3", None)


def test_an_edit_back_to_what_runs_after_a_rollback_ends_the_rollback():
    """K6 K7: nothing restarts, and nothing is wrong any more."""
    cluster = a_stable_job()
    cluster.bad_images.add("orders:2")
    cluster.edit(image="orders:2")
    cluster.settle(rounds=60)
    attempt = cluster.status.driver.attempt
    cluster.edit(image="orders:1")
    cluster.settle(rounds=5)

    assert cluster.status.state is LifecycleState.STABLE
    assert cluster.status.rollback is None
    assert cluster.status.driver.attempt == attempt


@pytest.mark.parametrize("agreed", [True, False])
def test_output_is_repeated_only_with_consent(agreed):
    """K6: the stable version cannot read what the newer one left."""
    policy = {"allowRepeatedOutput": agreed}
    cluster = a_stable_job(upgrade=SAVEPOINT, rollback=policy)
    cluster.refusing_images.add("orders:2")
    cluster.edit(image="orders:2")
    restored_by(cluster)
    cluster.refusing_images.add("orders:1")
    cluster.settle(rounds=6)
    cluster.refusing_images.clear()
    cluster.may_drop = agreed
    cluster.settle(rounds=20)

    reasons = [event.reason for event in cluster.events]
    assert ("OutputRepeats" in reasons) is agreed
    expected = LifecycleState.ROLLED_BACK if agreed else LifecycleState.FAILED
    assert cluster.status.state is expected


def test_asking_again_uses_the_same_key():
    """K3: a stop that was asked for twice is one stop."""
    cluster = a_stable_job(upgrade=SAVEPOINT)
    cluster.edit(image="orders:2")
    first, second = cluster.planned(), cluster.planned()

    keys = [[a.key for a in made.actions if isinstance(a, RequestStop)] for made in (first, second)]
    assert keys[0] == keys[1] != []


def test_a_checkpoint_that_is_too_old_is_renewed_before_the_stop():
    """K4: maxCheckpointAge, while the job runs."""
    cluster = a_stable_job(upgrade={"mode": "last-state", "maxCheckpointAge": "1 min"})
    known = cluster.status.last_checkpoint.id
    cluster.pass_time(3600)
    cluster.edit(image="orders:2")

    point = restored_by(cluster)

    assert point.lowest_checkpoint > known
    assert step(cluster, StepName.TAKE_SAVEPOINT).tries == 1


def test_a_job_that_is_down_with_an_old_checkpoint_is_not_upgraded():
    """K4: maxCheckpointAge, when nothing newer can be had; the old version comes back."""
    cluster = a_stable_job(upgrade={"mode": "last-state", "maxCheckpointAge": "1 min"})
    cluster.pass_time(3600)
    cluster.driver_dies()
    cluster.edit(image="orders:2")
    cluster.settle(rounds=10)

    assert image_of(cluster) == "orders:1"
    assert step(cluster, StepName.TAKE_SAVEPOINT).state is StepState.FAILED
    assert cluster.status.state in UP


def test_an_upgrade_says_what_it_waits_for():
    """K7."""
    cluster = a_stable_job(upgrade=SAVEPOINT)
    cluster.edit(image="orders:2")
    cluster.turn()

    assert "waits for its savepoint" in cluster.status.upgrade.next


def test_an_edit_that_cannot_be_run_does_not_resume_a_suspended_job():
    """K6: not while it is being suspended, and not afterwards."""
    cluster = a_stable_job()
    cluster.edit(suspend=True)
    cluster.turn()
    cluster.edit(parallelism=-1)
    cluster.settle(rounds=6)
    assert (cluster.status.state, cluster.drivers) == (LifecycleState.SUSPENDED, [])

    cluster.edit(parallelism=2, suspend=False)
    cluster.settle(rounds=10)

    assert cluster.status.state in UP


def test_an_edit_that_cannot_be_run_does_not_end_a_rollback():
    """K6: what failed is not tried again for it."""
    cluster = a_stable_job()
    cluster.refusing_images.add("orders:2")
    cluster.edit(image="orders:2")
    while cluster.status.rollback is None:
        cluster.settle(rounds=1)
    cluster.edit(parallelism=-1)
    attempt = cluster.status.driver.attempt
    cluster.settle(rounds=12)

    assert cluster.status.state is LifecycleState.ROLLED_BACK
    assert image_of(cluster) == "orders:1"
    assert cluster.status.driver.attempt == attempt + 1


def test_a_redeployment_that_was_rolled_back_is_not_done_again():
    """K6: its nonce was answered; only a new value asks again."""
    cluster = a_stable_job()
    cluster.may_drop = True
    cluster.refusing_images.add("orders:2")
    cluster.edit(image="orders:2", redeployNonce=1, recovery={"path": min(cluster.storage.places)})
    cluster.settle(rounds=12)
    assert cluster.status.state is LifecycleState.ROLLED_BACK
    cluster.may_drop = False

    cluster.edit(image="orders:3")

    assert restored_by(cluster).type is RestoreType.LAST_STATE


def test_a_restart_that_comes_with_an_edit_of_an_upgrade_is_one_restart():
    """K6: the upgrade restarts the job as it is."""
    cluster = a_stable_job()
    cluster.edit(image="orders:2")
    cluster.turn()
    cluster.edit(restartNonce=1)
    cluster.settle(rounds=15)

    assert cluster.status.driver.attempt == 2


def test_a_redeployment_asked_for_as_a_job_resumes_is_not_swallowed():
    """K6: what the new driver starts from is written down anew."""
    cluster = a_stable_job()
    path = min(cluster.storage.places)
    cluster.edit(suspend=True)
    cluster.settle(rounds=5)
    cluster.edit(suspend=False)
    cluster.turn(cluster.observed(is_live=False))
    cluster.may_drop = True
    cluster.edit(redeployNonce=1, recovery={"path": path})

    assert restored_by(cluster).path == path


def test_a_deletion_in_the_middle_of_an_upgrade_leaves_its_savepoint_behind():
    """K5, K10: as an object, though the upgrade never came to make it."""
    cluster = a_stable_job(upgrade=SAVEPOINT)
    cluster.edit(image="orders:2")
    cluster.turn()
    made = cluster.planned()
    cluster.status = made.status
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=6)

    assert cluster.is_gone
    assert [s.spec.trigger for s in cluster.snapshots.values()] == ["upgrade"]


def test_a_rollback_that_fails_is_not_rolled_back():
    """K6: the stable version waits for a person."""
    cluster = a_stable_job()
    cluster.refusing_images |= {"orders:1", "orders:2"}
    cluster.edit(image="orders:2")
    cluster.settle(rounds=40)
    attempt = cluster.status.driver.attempt
    cluster.settle(rounds=40)

    assert cluster.status.state is LifecycleState.FAILED
    assert cluster.status.driver.attempt == attempt == 3


def test_a_version_that_restarts_for_ever_is_rolled_back():
    """K6: it never runs, it never fails for good, and it is late all the same."""
    cluster = a_stable_job(startDeadlines={"restore": "5 min"})
    cluster.edit(image="orders:2")
    for turn in range(120):
        cluster.turn()
        cluster.drivers_go_on()
        cluster.pass_time(10)
        for driver in cluster.drivers:
            if driver.image == "orders:2" and driver.phase is not None:
                phases = (JobPhase.RESTARTING, JobPhase.WAITING_FOR_SLOTS)
                driver.phase = phases[turn % 2]

    assert cluster.status.state is LifecycleState.ROLLED_BACK
