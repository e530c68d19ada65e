"""What the API server refuses degrades the job for as long as it does, and changes no decision."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.cluster_actions import DeleteDriver, DeleteJob, EmitEvent, RemoveFinalizer
from weir_operator.plan.job_deletion import POD_TERMINATION_TIMEOUT_MS
from weir_operator.plan.observed_state import Terminated
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import Failure


def a_running_job(**changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=8)
    return cluster


def refused(cluster):
    """What is seen while the API server refuses something, since just now."""
    refusal = Failure(at=cluster.now, reason="Forbidden", message="the quota is used up; raise it")
    return replace(cluster.observed(), refusal=refusal)


def degraded(status):
    found = next(one for one in status.conditions if one.type == "Degraded")
    return found.status, found.reason, found.message


def upgraded(cluster):
    cluster.edit(image="orders:2")


def broken(cluster):
    cluster.edit(parallelism=-1)


def deleted(cluster):
    cluster.deleted_at = cluster.now


@pytest.mark.parametrize("befalls", [lambda _: None, upgraded, broken, deleted])
def test_a_refusal_is_the_degradation_and_the_last_failure_whatever_else_happens(befalls):
    """K7: it is what holds everything else up."""
    cluster = a_running_job()
    befalls(cluster)

    made = cluster.planned(refused(cluster))

    assert degraded(made.status) == ("True", "Forbidden", "the quota is used up; raise it")
    assert made.status.last_failure.reason == "Forbidden"


@pytest.mark.parametrize("befalls", [lambda _: None, upgraded, broken])
def test_a_refusal_changes_nothing_that_is_done(befalls):
    """K3: the same is tried again, under the same names."""
    cluster = a_running_job()
    befalls(cluster)

    assert cluster.planned(refused(cluster)).actions == cluster.planned().actions


def test_what_is_accepted_again_degrades_no_more():
    """K7."""
    cluster = a_running_job()
    cluster.turn(refused(cluster))

    assert degraded(cluster.planned().status)[:2] == ("False", "Healthy")


def test_a_finished_job_whose_deletion_is_refused_has_still_finished():
    """K7: it is degraded, and not failed."""
    cluster = a_running_job(ttlAfterEnd="1 h")
    driver = cluster.drivers[0]
    driver.phase = JobPhase.FINISHED
    driver.pod = replace(driver.pod, stage=Terminated(0))
    cluster.settle(rounds=2)
    cluster.pass_time(3600)

    made = cluster.planned(refused(cluster))

    assert made.actions == (DeleteJob("orders"),)
    assert made.status.state is LifecycleState.FINISHED
    assert degraded(made.status)[0] == "True"


def test_the_end_of_a_driver_is_reported_once_while_its_pod_cannot_be_deleted():
    """K7: the pod stays there, ended, and it has ended once."""
    cluster = a_running_job()
    cluster.driver_dies()
    seen = refused(cluster)
    cluster.events.clear()
    for _ in range(6):
        made = cluster.planned(replace(seen, now=cluster.now))
        cluster.status = made.status
        cluster.events += [action for action in made.actions if isinstance(action, EmitEvent)]
        assert any(isinstance(action, DeleteDriver) for action in made.actions)
        cluster.pass_time(30)

    assert len(cluster.events) == 1


def test_a_deletion_goes_without_what_is_refused_once_its_time_is_up():
    """K10: and not before."""
    cluster = a_running_job()
    cluster.deleted_at = cluster.now
    early = cluster.planned(refused(cluster))
    cluster.pass_time(timedelta(milliseconds=POD_TERMINATION_TIMEOUT_MS).total_seconds())

    late = cluster.planned(refused(cluster))

    assert not any(isinstance(action, RemoveFinalizer) for action in early.actions)
    assert late.actions == (RemoveFinalizer(),)
