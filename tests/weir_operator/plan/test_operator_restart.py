"""K3: an operator that dies before any one of its writes repeats, and never doubles."""

from copy import deepcopy
from functools import cache

import pytest

from fake_cluster import FakeCluster, a_spec
from weir_operator.plan.cluster_actions import DeleteDriver
from weir_operator.plan.observed_state import Dependent

MOST_WRITES = 20
"""What happens in a story happens within these."""


def deploy(cluster):
    del cluster


def upgrade(cluster):
    cluster.edit(image="orders:2")


def suspend(cluster):
    cluster.edit(suspend=True)


def lose_the_driver(cluster):
    cluster.driver_dies()


def lose_the_node(cluster):
    cluster.lose_node()


def ask_for_a_savepoint(cluster):
    cluster.annotation = "now"


def redeploy(cluster):
    cluster.may_drop = True
    path = min(cluster.storage.places)
    cluster.edit(redeployNonce=1, recovery={"path": path})


def delete(cluster):
    cluster.deleted_at = cluster.now


def stop_a_bad_version(cluster):
    cluster.refusing_images.add("orders:2")
    cluster.edit(image="orders:2")


def ask_for_a_checkpoint(cluster):
    cluster.checkpoint_annotation = "now"


def lose_the_keys(cluster):
    cluster.dependents.remove(Dependent.KEYS)


def lose_a_driver_whose_pod_stays(cluster):
    cluster.held_by = ("example.com/hold",)
    pod = cluster.drivers[0].pod
    cluster.perform(DeleteDriver(pod.name, pod.uid, pod.attempt))


def go_back_to_what_was_left(cluster):
    """Neither version can read what the newer one left, and the user has agreed."""
    cluster.may_drop = True
    cluster.refusing_images |= {"orders:1", "orders:2"}
    cluster.edit(image="orders:2", rollback={"allowRepeatedOutput": True})
    while cluster.status.rollback is None or not cluster.drivers or not cluster.drivers[0].why:
        cluster.turn()
        cluster.drivers_go_on()
    cluster.refusing_images.clear()


STORIES = [
    upgrade,
    suspend,
    lose_the_driver,
    lose_the_node,
    ask_for_a_savepoint,
    redeploy,
    delete,
    stop_a_bad_version,
    ask_for_a_checkpoint,
    lose_the_keys,
    lose_a_driver_whose_pod_stays,
    go_back_to_what_was_left,
]


@cache
def settled(mode):
    cluster = FakeCluster(a_spec(upgrade={"mode": mode}, savepoints={"onDeletion": True}))
    cluster.settle(rounds=10)
    return cluster


def a_stable_job(mode):
    return deepcopy(settled(mode))


def after(story, mode, dies_in):
    """What a story comes to."""
    cluster = FakeCluster() if story is deploy else a_stable_job(mode)
    story(cluster)
    cluster.dies_in = dies_in
    cluster.settle(rounds=9)
    return (
        cluster.is_gone,
        cluster.status.state,
        cluster.status.deployed.spec["image"],
        cluster.status.driver.attempt,
        cluster.status.restore_point.deployment,
        cluster.status.restarts,
        cluster.savepoints_taken,
        cluster.checkpoints_taken,
        sorted(seen.spec.trigger for seen in cluster.snapshots.values()),
    )


@pytest.mark.parametrize("mode", ["savepoint", "last-state"])
@pytest.mark.parametrize("story", [deploy, *STORIES])
def test_dying_before_any_write_changes_nothing_in_the_end(story, mode):
    """K3."""
    expected = after(story, mode, None)

    for dies_in in range(MOST_WRITES):
        assert after(story, mode, dies_in) == expected, f"died before write {dies_in}"
