"""Every job has its NetworkPolicy before its pods, wherever it is, and keeps it."""

from dataclasses import replace

import pytest

from reconciled_job import NAMESPACE, ReconciledJob
from weir_operator.cluster.api_paths import NETWORK_POLICIES, NamespacedName
from weir_operator.cluster.api_requests import ApiRejected
from weir_operator.cluster.cluster_writer import ClusterWriter
from weir_operator.controller.job_reconciler import FULL_READ_PERIOD, JobReconciler

POLICY = NETWORK_POLICIES.object_path(NamespacedName(NAMESPACE, "orders-network"))
OTHERS = ({"ipBlock": {"cidr": "10.0.0.0/8"}},)


def with_peers(job, peers):
    """The operator was started with other settings."""
    job.reader.driver_peers = peers
    job.executor = replace(job.executor, writer=ClusterWriter(job.api, peers))
    job.jobs = JobReconciler(job.executor, job.metrics, job.now)
    return job


def looked_thoroughly(job):
    job.reconcile()
    job.time += FULL_READ_PERIOD
    job.reconcile()


def test_a_policy_stands_before_the_pods_that_it_protects():
    """K2 K9: and belongs to the job."""
    job = ReconciledJob()
    job.reconcile()

    made = [path.rpartition("/")[2] for method, path in job.api.made() if method == "POST"]
    (owner,) = job.api.objects[POLICY]["metadata"]["ownerReferences"]
    assert made.index("networkpolicies") < made.index("pods")
    assert owner["uid"] == "uid-1"


def test_a_job_that_an_older_operator_started_gets_its_policy():
    """K9: while it runs, and without a new driver."""
    job = ReconciledJob().is_running()
    del job.api.objects[POLICY]

    looked_thoroughly(job)

    assert POLICY in job.api.objects
    assert job.status.driver.attempt == 1


def test_a_policy_follows_those_who_may_reach_the_drivers():
    """K9: an operator in another namespace would not be let in by the old one."""
    job = with_peers(ReconciledJob().is_running(), OTHERS)

    looked_thoroughly(job)

    _, rule = job.api.objects[POLICY]["spec"]["ingress"]
    assert rule["from"] == list(OTHERS)


def test_a_policy_that_is_as_it_should_be_is_left_alone():
    """K9."""
    job = ReconciledJob().is_running()
    job.api.calls.clear()

    looked_thoroughly(job)

    assert [path for _, path in job.api.made() if "networkpolicies" in path] == []


def test_an_operator_without_peers_makes_no_policy():
    """K9: outside of the cluster it has no address that a policy could name."""
    job = with_peers(ReconciledJob(), None).is_running()

    looked_thoroughly(job)

    assert job.api.names("networkpolicies") == []
    assert [call for call in job.api.calls if call.api_resource is NETWORK_POLICIES] == []


def test_a_policy_of_somebody_else_is_not_taken_for_the_jobs():
    """K2: the job does not start unprotected, and an Event reports it."""
    job = ReconciledJob()
    job.api.put(POLICY, {"metadata": {"name": "orders-network"}, "spec": {}})

    with pytest.raises(ApiRejected, match="delete it, or give the job another name"):
        job.reconcile()

    assert job.api.names("pods") == []
