"""Local copies of state are kept where they outlive an executor, and only there.

A directory of the node does; one of the pod does not, and the status says so before anything runs.
"""

import pytest

from applied_job import SMALL, AppliedJob
from cluster import door

pytestmark = pytest.mark.thorough

COPIES = "/var/lib/weir/local-recovery"
OURS = {  # a node makes the directory as root, and executors are not root
    "name": "own-state",
    "image": "localhost/weir:dev",
    "command": ["chown", "10001", "/state"],
    "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
    "volumeMounts": [{"name": "state", "mountPath": "/state"}],
}


def executors(volume):
    return {
        "resources": SMALL,
        "volumes": [{"name": "state", **volume}],
        "volumeMounts": [{"name": "state", "mountPath": "/state"}],
        "podTemplate": {"spec": {"initContainers": [OURS]}},
    }


def with_copies_on(volume):
    return {
        "executor": executors(volume),
        "localRecoveryVolume": "state",
        "state": {"localRecovery": True},
    }


def copies(path):
    """Files of local copies on the disk of either node."""
    found = [door("node", "exec", str(n), "find", path, "-type", "f") for n in (1, 2)]
    return [line for said in found for line in said.splitlines()]


def test_on_a_directory_of_the_node_they_are_kept_and_a_killed_executor_costs_nothing(job):
    """K8 S13."""
    path = f"{COPIES}/{job.namespace}"
    for number in (1, 2):
        door("node", "exec", str(number), "mkdir", "-p", path)
    job.apply(**with_copies_on({"hostPath": {"path": path}}))
    job.until_stable()

    assert job.condition("LocalRecovery")["status"] == "True"
    assert copies(path)

    job.kill(job.pods("executor")[0]["metadata"]["name"])
    job.until_committed()
    assert job.verdict().is_exactly_once, job.verdict()


@pytest.mark.parametrize("volume", [{"emptyDir": {}}])
def test_on_a_directory_of_the_pod_they_are_not_kept_and_the_status_says_why(
    operator, bucket, volume
):
    """K8: known before a pod is made."""
    asleep = AppliedJob(operator.cluster, bucket, operator.jobs, "asleep")
    asleep.apply(suspend=True, **with_copies_on(volume))

    asleep.until("a verdict", lambda: asleep.condition("LocalRecovery"))

    verdict = asleep.condition("LocalRecovery")
    assert verdict["status"] == "False"
    assert "emptyDir" in verdict["message"]
    asleep.delete()
