"""Suspended, resumed, rescaled, deleted, begun again from what was left: always the same sums.

One job goes through all of it, one after the other, and its output is judged as one.
"""

import pytest

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def running(job):
    job.apply(savepoints={"onDeletion": True})
    job.until_committed()
    return job


def is_exact(job):
    job.until_committed()
    assert job.verdict().is_exactly_once, job.verdict()


def test_a_suspended_job_has_no_pods_and_goes_on_where_it_was(running):
    """K6."""
    running.edit(suspend=True)
    running.until_state("Suspended")
    assert not running.pods("driver")
    stopped = running.verdict().delivered

    running.edit(suspend=False)
    is_exact(running)

    assert running.verdict().delivered > stopped


def test_kubectl_scale_rescales_it(running, cluster):
    """K6 S11: as a HorizontalPodAutoscaler would."""
    which = f"checkpointedjob/{running.name}"
    cluster.kubectl("scale", which, "--replicas=3", namespace=running.namespace)
    running.until_stable()

    assert len(running.pods("executor")) == 3
    assert running.status()["upgrade"]["cause"] == "Rescaled"
    is_exact(running)


def test_a_deleted_job_leaves_a_savepoint_from_which_another_goes_on(running):
    """K5 K10: and its output is the first job's, continued."""
    running.delete()
    (last,) = [s for s in running.snapshots() if s["spec"]["trigger"] == "deletion"]
    assert not running.pods("driver")

    running.apply(recovery={"path": last["spec"]["adoptPath"]})
    is_exact(running)


def test_a_job_is_deleted_though_its_driver_is_dead_and_its_state_stays(running):
    """K10."""
    running.kill(running.driver())
    running.delete()

    assert running.bucket.files(f"{running.directory}/checkpoints")
    assert not running.pods("driver")
