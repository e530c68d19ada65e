"""Chart and CRDs are installed, upgraded and uninstalled without any effect on jobs.

An upgrade begins with the chart of an earlier commit, which is taken from the history. The image is
the same before and after, because the nodes have no other.
"""

import pytest

from applied_job import AppliedJob, names
from chart import OURS, earlier
from cluster import ROOT

REPLACED = "nodeLostAfterSeconds=60"
"""Stands for a new image: with it the operator's pod is another one."""

KEPT = """
apiVersion: weir.dev/v1alpha1
kind: CheckpointedJobSnapshot
metadata:
  name: kept-from-before
  labels: {weir.dev/job: at-rest}
spec:
  jobName: at-rest
  adoptPath: s3://weir/kept-from-before
"""


@pytest.fixture
def at_rest(operator, bucket):
    """A name for a job that is suspended from its beginning, and so costs nothing."""
    job = AppliedJob(operator.cluster, bucket, operator.jobs, "at-rest")
    yield job
    job.delete()


def traces(job):
    """What is not as it was when a job was touched: its pods, its recoveries, its generation."""
    pods = [*job.pods("driver"), *job.pods("executor")]
    uids, resource = sorted(pod["metadata"]["uid"] for pod in pods), job.resource()
    return uids, resource["status"]["restarts"], resource["metadata"]["generation"]


def is_exact(job):
    job.until_committed()
    assert job.verdict().is_exactly_once, job.verdict()


def is_observed(job):
    resource = job.resource()
    return resource["status"]["observedGeneration"] == resource["metadata"]["generation"]


def define(cluster, edition):
    """As users without Helm do it; here Helm is the other manager of the same fields."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", edition.definitions)


def expect_ours(cluster):
    """The definitions in the cluster are those of this commit, or ``kubectl diff`` fails."""
    assert not cluster.kubectl("diff", "--server-side", "-f", OURS.definitions)


def with_status(objects):
    return [found for found in objects if "status" in found]


def contents(job):
    """Of a job and of its snapshots, whatever a definition could do something to."""
    objects = [job.resource(), *job.snapshots()]
    return [
        (found["metadata"]["uid"], found["metadata"]["generation"], found["spec"], found["status"])
        for found in objects
    ]


def test_everything_that_is_to_be_applied_is_accepted(operator, cluster):
    """K1 K11: definitions, plain manifests, examples; Helm has some of the same fields already."""
    assert operator
    files = ("-f", OURS.definitions, "-f", str(ROOT / "manifests"))
    dry = ("--server-side", "--dry-run=server", "--force-conflicts")

    accepted = cluster.kubectl("apply", *dry, *files)

    for example in ("running-sums", "totals-by-key", "quick-recovery"):
        assert f"checkpointedjob.weir.dev/{example} serverside-applied (server dry run)" in accepted


@pytest.mark.thorough
def test_an_upgrade_of_the_chart_leaves_running_jobs_alone(job, operator, cluster, tmp_path):
    """K3 K11: it brings its definitions and another operator, which answers for them."""
    with operator.changed(edition=earlier(tmp_path)):
        job.apply()
        job.until_stable()
        before, leader = traces(job), operator.pod()

        operator.install(REPLACED)

        expect_ours(cluster)
        assert operator.pod() != leader
        operator.answer(job, "after-the-upgrade")
        is_exact(job)
        assert is_observed(job)
        assert traces(job) == before


@pytest.mark.thorough
def test_new_definitions_leave_objects_alone(at_rest, operator, cluster, tmp_path):
    """K11: also their status; and the operator goes on to hear of them."""
    try:
        define(cluster, earlier(tmp_path))
        at_rest.apply(suspend=True)
        cluster.kubectl("apply", "-f", "-", given=KEPT, namespace=operator.jobs)
        at_rest.until_state("Suspended")
        at_rest.until("a status of what was kept", lambda: with_status(at_rest.snapshots()))
        before = contents(at_rest)
    finally:
        define(cluster, OURS)

    expect_ours(cluster)
    assert contents(at_rest) == before
    at_rest.edit(parallelism=3)
    at_rest.until("a look of the operator", lambda: is_observed(at_rest))


@pytest.mark.thorough
def test_a_job_outlives_the_release_and_the_next_one_finds_it(job, operator):
    """K3 K11: nothing of it goes with the operator, and nothing is begun anew."""
    job.apply()
    job.until_stable()
    taken = operator.answer(job, "before-the-end")
    before, kept = traces(job), names(job.snapshots())

    with operator.uninstalled():
        is_exact(job)
        assert traces(job) == before
        assert job.status()["state"] == "Stable"
        assert names(job.snapshots()) == kept
        assert job.bucket.files(taken["status"]["path"])
        assert job.bucket.files(f"{job.directory}/checkpoints")

    operator.answer(job, "after-the-return")
    is_exact(job)
    assert traces(job) == before
