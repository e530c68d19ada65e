"""Versions that another release of the operator deployed are read, or left alone."""

from fake_cluster import FakeCluster, a_spec
from weir_operator.plan.cluster_actions import CreateDriver
from weir_operator.plan.spec_versions import read, readable
from weir_operator.resource.compression import packed
from weir_operator.resource.status import LifecycleState


def a_stable_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=12)
    assert cluster.status.state is LifecycleState.STABLE
    return cluster


def with_spec(cluster, **changes):
    """The deployed version as another release would have written it."""
    deployed = cluster.status.deployed
    other = deployed.model_copy(update={"compressed_spec": packed(deployed.spec | changes)})
    cluster.status = cluster.status.model_copy(update={"deployed": other, "stable": other})
    return other


def test_fields_of_a_newer_release_are_left_out_wherever_they_are():
    """K3: an operator can be taken back to an older release."""
    cluster = a_stable_job()
    before = read(cluster.status.deployed)
    checkpointing = cluster.status.deployed.spec["checkpointing"] | {"mood": "sunny"}

    version = with_spec(cluster, mood={"of": "the job"}, checkpointing=checkpointing)

    assert read(version) == before


def test_a_field_of_a_newer_release_restarts_nothing():
    """K3."""
    cluster = a_stable_job()
    with_spec(cluster, mood="sunny")
    cluster.settle(rounds=4)

    assert cluster.status.driver.attempt == 1
    assert cluster.status.state is LifecycleState.STABLE


def test_a_driver_goes_on_though_its_version_cannot_be_read():
    """K3: as long as nothing else is requested."""
    cluster = a_stable_job()
    cluster.edit(parallelism="two")
    assert readable(with_spec(cluster, parallelism="two")) is None
    cluster.settle(rounds=4)

    assert cluster.status.driver.attempt == 1
    assert cluster.status.state is LifecycleState.STABLE


def test_an_edit_leads_away_from_a_version_that_cannot_be_read():
    """K4: with its state."""
    cluster = a_stable_job(upgrade={"mode": "savepoint"})
    with_spec(cluster, parallelism="two")
    cluster.edit(image="orders:2")
    cluster.settle(rounds=15)

    assert cluster.status.state is LifecycleState.STABLE
    assert cluster.status.deployed.spec["image"] == "orders:2"


def test_a_version_that_cannot_be_read_is_not_started_again():
    """K4: it waits for an edit, and says so."""
    cluster = a_stable_job(upgrade={"mode": "savepoint", "fallback": "none"})
    with_spec(cluster, parallelism="two")
    cluster.edit(image="orders:2")
    cluster.drivers.clear()
    made = cluster.turn()

    assert not [action for action in made.actions if isinstance(action, CreateDriver)]
    assert cluster.status.last_failure.reason == "VersionUnreadable"


def test_a_job_whose_version_cannot_be_read_can_be_deleted():
    """K10."""
    cluster = a_stable_job()
    cluster.edit(parallelism="two")
    with_spec(cluster, parallelism="two")
    cluster.deleted_at = cluster.now
    cluster.settle(rounds=5)

    assert cluster.is_gone
