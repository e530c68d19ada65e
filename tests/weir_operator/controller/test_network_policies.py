"""Every job has its NetworkPolicy before its pods, wherever it is, and keeps it."""

from dataclasses import replace

import pytest

from reconciled_job import NAMESPACE, OperatedJob
from weir_operator.cluster.api_paths import NETWORK_POLICIES, Key
from weir_operator.cluster.api_requests import ApiRefused
from weir_operator.cluster.cluster_writer import Hands
from weir_operator.controller.job_reconciler import THOROUGH_EVERY, JobLooks

POLICY = NETWORK_POLICIES.of(Key(NAMESPACE, "orders-network"))
OTHERS = ({"ipBlock": {"cidr": "10.0.0.0/8"}},)


def with_peers(job, peers):
    """The operator was started with other settings."""
    job.eyes.driver_peers = peers
    job.actor = replace(job.actor, hands=Hands(job.api, peers))
    job.jobs = JobLooks(job.actor, job.metrics, job.now)
    return job


def looked_thoroughly(job):
    job.look()
    job.time += THOROUGH_EVERY
    job.look()


def test_a_policy_stands_before_the_pods_that_it_protects():
    """K2 K9: and belongs to the job."""
    job = OperatedJob()
    job.look()

    made = [path.rpartition("/")[2] for method, path in job.api.made() if method == "POST"]
    (owner,) = job.api.objects[POLICY]["metadata"]["ownerReferences"]
    assert made.index("networkpolicies") < made.index("pods")
    assert owner["uid"] == "uid-1"


def test_a_job_that_an_older_operator_started_gets_its_policy():
    """K9: while it runs, and without a new driver."""
    job = OperatedJob().is_running()
    del job.api.objects[POLICY]

    looked_thoroughly(job)

    assert POLICY in job.api.objects
    assert job.status.driver.attempt == 1


def test_a_policy_follows_those_who_may_reach_the_drivers():
    """K9: an operator in another namespace would not be let in by the old one."""
    job = with_peers(OperatedJob().is_running(), OTHERS)

    looked_thoroughly(job)

    _, rule = job.api.objects[POLICY]["spec"]["ingress"]
    assert rule["from"] == list(OTHERS)


def test_a_policy_that_is_as_it_should_be_is_left_alone():
    """K9."""
    job = OperatedJob().is_running()
    job.api.calls.clear()

    looked_thoroughly(job)

    assert [path for _, path in job.api.made() if "networkpolicies" in path] == []


def test_an_operator_without_peers_makes_no_policy():
    """K9: outside of the cluster it has no address that a policy could name."""
    job = with_peers(OperatedJob(), None).is_running()

    looked_thoroughly(job)

    assert job.api.names("networkpolicies") == []
    assert [call for call in job.api.calls if call.place is NETWORK_POLICIES] == []


def test_a_policy_of_somebody_else_is_not_taken_for_the_jobs():
    """K2: the job does not start unprotected, and its owner is told."""
    job = OperatedJob()
    job.api.put(POLICY, {"metadata": {"name": "orders-network"}, "spec": {}})

    with pytest.raises(ApiRefused, match="delete it, or give the job another name"):
        job.look()

    assert job.api.names("pods") == []
