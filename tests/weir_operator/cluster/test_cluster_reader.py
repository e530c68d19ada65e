"""A look sees what belongs to this very job, and what may not be read counts as not seen."""

import asyncio

import pytest

from reconciled_job import KEY, NAMESPACE, NODE, ReconciledJob
from weir_operator.cluster.api_paths import CLAIMS, NODES, PODS, SECRETS, VOLUMES, NamespacedName
from weir_operator.cluster.api_requests import METADATA_ONLY
from weir_operator.cluster.cluster_reader import ReadDepth, ReadTarget
from weir_operator.plan.local_recovery import (
    BoundTo,
    BoundUnreadable,
    Claim,
    ClaimLost,
    ClaimMissing,
    ClaimPending,
    HostPath,
)
from weir_operator.plan.observed_state import LostPod, MissingObject, PodProblem
from weir_operator.resource.validation import validate_job

CLAIMED = {"name": "disk", "persistentVolumeClaim": {"claimName": "mine"}}


def parsed(job, spec=None, depth=ReadDepth.LIVE):
    return asyncio.run(_seen(job, spec, depth))


async def _seen(job, spec, depth):
    return await job.reader.observe(
        await job.executor.job(KEY), job.now(), depth, ReadTarget(1, spec)
    )


def with_local_recovery(volume, *, in_template=False):
    volumes = {"podTemplate": {"spec": {"volumes": [volume]}}}
    executor = volumes if in_template else {"volumes": [volume]}
    given = ReconciledJob().job["spec"] | {
        "state": {"localRecovery": True},
        "localRecoveryVolume": "disk",
        "executor": executor,
    }
    return validate_job("orders", given)


def an_executor(name, owner="orders-driver-1", **status):
    return PODS.object_path(NamespacedName(NAMESPACE, name)), {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {
                "weir.dev/job": "orders",
                "weir.dev/role": "executor",
                "weir.dev/attempt": "1",
            },
            "ownerReferences": [{"uid": "d", "name": owner, "kind": "Pod", "controller": True}],
        },
        "spec": {"nodeName": NODE},
        "status": status,
    }


def test_a_driver_of_a_job_that_had_the_same_name_is_not_ours():
    """K2: the owner's uid decides."""
    job = ReconciledJob()
    job.reconcile()
    job.pod()["metadata"]["ownerReferences"][0]["uid"] = "uid-of-an-older-one"
    assert parsed(job).drivers == ()


def test_executors_of_a_lost_node_are_seen_with_what_ails_them():
    """K10 K7: those of our own drivers, and no others."""
    job = ReconciledJob()
    job.reconcile()
    job.api.put(*an_executor("orders-1-exec-1", reason="Evicted", phase="Failed", message="disk"))
    job.api.put(*an_executor("stranger", owner="bills-driver-1"))
    taint = {"key": "node.kubernetes.io/out-of-service"}
    job.api.put(
        NODES.cluster_object_path(NODE), {"metadata": {"name": NODE}, "spec": {"taints": [taint]}}
    )
    job.cache.nodes.clear()

    found = parsed(job)

    assert found.lost_executors == (LostPod("orders-1-exec-1", "uid-of-orders-1-exec-1"),)
    assert found.executor_problems == (PodProblem("orders-1-exec-1", "Evicted", "disk"),)


@pytest.mark.parametrize("in_template", [False, True])
def test_a_local_volume_is_found_wherever_it_was_given(in_template):
    """K8: as a volume of the executors, or in their template."""
    job = ReconciledJob()
    job.resync_cache()
    spec = with_local_recovery(
        {"name": "disk", "hostPath": {"path": "/data"}}, in_template=in_template
    )
    assert parsed(job, spec).local_volume == HostPath("disk", "/data")


@pytest.mark.parametrize(
    ("claim", "volume", "binding"),
    [
        (None, None, ClaimMissing()),
        ({"status": {"phase": "Pending"}}, None, ClaimPending()),
        ({"status": {"phase": "Lost"}}, None, ClaimLost()),
        ({"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}, None, BoundUnreadable("pv")),
        (
            {"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}},
            {"local": {"path": "/d"}},
            BoundTo("pv", "local"),
        ),
    ],
)
def test_a_claim_is_followed_to_its_volume(claim, volume, binding):
    """K8: as far as the operator may look."""
    job = ReconciledJob()
    job.resync_cache()
    if claim is not None:
        job.api.put(
            CLAIMS.object_path(NamespacedName(NAMESPACE, "mine")),
            {"metadata": {"name": "mine"}, **claim},
        )
    if volume is not None:
        job.api.put(VOLUMES.cluster_object_path("pv"), {"metadata": {"name": "pv"}, "spec": volume})

    found = parsed(job, with_local_recovery(CLAIMED)).local_volume

    assert found == Claim("disk", "mine", binding)


def asked_for(job, name):
    return [call for call in job.api.calls if call.path.endswith(f"/{name}")]


def test_a_secret_that_a_starting_driver_lacks_is_seen_without_what_is_in_others():
    """K7 X4: only whether they exist is asked, once if they do, and never a list."""
    job = ReconciledJob(tlsSecret="our-tls", storageSecrets=["s3"])
    job.api.put(SECRETS.object_path(NamespacedName(NAMESPACE, "s3")), {"metadata": {"name": "s3"}})
    job.reconcile()

    assert parsed(job).drivers[0].missing == (MissingObject("Secret", "our-tls"),)
    assert {call.accept for call in asked_for(job, "our-tls")} == {METADATA_ONLY}
    assert [call.accept for call in asked_for(job, "s3")] == [METADATA_ONLY]

    job.api.put(
        SECRETS.object_path(NamespacedName(NAMESPACE, "our-tls")), {"metadata": {"name": "our-tls"}}
    )

    assert parsed(job).drivers[0].missing == ()


def test_what_the_operator_may_not_ask_for_is_not_said_to_be_missing():
    """K9."""
    job = ReconciledJob(tlsSecret="our-tls")
    job.reconcile()
    job.api.forbidden.add(("get", "secrets"))

    assert parsed(job).drivers[0].missing == ()


def test_a_driver_that_runs_lacks_nothing():
    """K9: nothing is cached for it any more."""
    job = ReconciledJob(tlsSecret="our-tls").is_running()
    job.api.calls.clear()

    assert parsed(job).drivers[0].missing == ()
    assert asked_for(job, "our-tls") == []


def test_with_tls_a_driver_is_judged_by_the_jobs_own_authority():
    """X1: from the Secret that the specification names."""
    job = ReconciledJob(tlsSecret="our-tls")
    job.reconcile()
    ours = {"metadata": {"name": "our-tls"}, "stringData": {"ca.crt": "authority"}}
    job.api.put(SECRETS.object_path(NamespacedName(NAMESPACE, "our-tls")), ours)

    job.driver_runs()
    job.reconcile()

    endpoint = job.driver.endpoints[-1]
    assert (endpoint.authority, endpoint.url) == ("authority", "https://10.0.0.7:8081/v1/job")
