"""From an empty cluster to results: install the operator, apply a job, read the bucket.

The jobs are the examples of the documentation, except for the path in the bucket, which each run of
these tests chooses.
"""

import pytest
import yaml

from applied_job import AppliedJob
from cluster import ROOT

EXAMPLES = ("totals-by-key", "quick-recovery")
ROWS = 20_000


def applied(operator, bucket, name):
    """An example, in an unused part of the bucket."""
    text = (ROOT / "manifests" / f"{name}.yaml").read_text()
    moved = text.replace("s3://weir/", f"s3://weir/{operator.jobs}/")
    operator.cluster.kubectl("apply", "-f", "-", given=moved, namespace=operator.jobs)
    return AppliedJob(operator.cluster, bucket, operator.jobs, name)


@pytest.fixture(scope="module")
def ended(job):
    """A job whose rows come to an end."""
    job.apply(rows=ROWS)
    job.until_state("Finished")
    return job


def test_a_job_that_comes_to_its_end_has_delivered_every_row_once(ended):
    """K1 K2 S7."""
    verdict = ended.verdict()

    assert verdict.is_exactly_once, verdict
    assert verdict.delivered == ROWS


def test_what_was_made_for_a_job_belongs_to_it(ended, cluster):
    """K2: and so goes with it; executors that are just leaving belong to their driver."""
    uid = ended.resource()["metadata"]["uid"]
    label = ("-l", f"app.kubernetes.io/instance={ended.name},weir.dev/role!=executor")
    made = cluster.items("pods,services,secrets,configmaps", *label, namespace=ended.namespace)

    assert {"Service", "Secret", "ConfigMap"} <= {found["kind"] for found in made}
    owners = [found["metadata"]["ownerReferences"] for found in made]
    assert all(owner["uid"] == uid for (owner,) in owners)


def test_kubectl_get_shows_what_matters(ended, cluster):
    """K7 U2."""
    title, line = cluster.kubectl("get", "cpj", ended.name, namespace=ended.namespace).splitlines()

    assert title.split()[:3] == ["NAME", "STATE", "CHECKPOINT"]
    assert line.split()[:2] == [ended.name, "Finished"]


def test_kubectl_describe_tells_what_happened(ended, cluster):
    """K7."""
    said = cluster.kubectl("describe", "cpj", ended.name, namespace=ended.namespace)

    assert "Finished" in said.partition("Events:")[2]


def test_kubectl_explain_knows_every_field(cluster, operator):
    """K1."""
    assert operator
    said = cluster.kubectl("explain", "checkpointedjob.spec.upgrade.mode")

    assert "savepoint" in said


def test_what_cannot_work_is_refused_by_kubectl_apply(operator, cluster):
    """K1 U3: at once, with the remedy."""
    (_, job) = yaml.safe_load_all((ROOT / "manifests" / "running-sums.yaml").read_text())
    del job["spec"]["checkpointing"]["savepointDir"]

    with pytest.raises(Exception, match="savepointDir"):
        cluster.kubectl("apply", "-f", "-", given=yaml.safe_dump(job), namespace=operator.jobs)


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_proves_itself(operator, bucket, name):
    """K1 K11."""
    job = applied(operator, bucket, name)

    job.until_stable()
    job.until_committed()
    job.delete()

    assert not job.pods("executor")
