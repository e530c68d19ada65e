"""After a failure local copies of state are read first, if their disk outlives the executor.

Otherwise none are kept, and the status reports it before anything runs. A slot does not report that
it has read a copy. So the test deletes the state of a checkpoint from the bucket before it kills an
executor: a job that continues has read its copies and nothing else. The job takes checkpoints only
on request, so that there is no other one to continue from.
"""

import re

import pytest

from applied_job import SMALL, AppliedJob, names
from local_volumes import local_claim, node_directory
from weir.storage.stores import store_for

pytestmark = pytest.mark.thorough

DISK = "/var/lib/weir/local-recovery"
NODE = 2
"""Where the local volume is."""
DAMAGED = re.compile(r"The local copy of (\S+) is damaged; reading the file itself\.")
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


@pytest.fixture(scope="module")
def disk(operator):
    with node_directory(f"{DISK}/{operator.jobs}") as directory:
        yield directory


@pytest.fixture(scope="module")
def claim(operator, disk):
    """On the same directory, of one node."""
    node = operator.cluster.node_name(NODE)
    with local_claim(operator.cluster, operator.jobs, node, disk.path) as name:
        yield name


@pytest.fixture(scope="module")
def keeping(disk, job):
    """A job that keeps a copy of all its state on a directory of the node."""
    when_asked = {
        "storage": f"{job.directory}/checkpoints",
        "savepointDir": f"{job.directory}/savepoints",
        "inlineThreshold": "0 B",
    }
    volume = {"hostPath": {"path": disk.path}}
    job.apply(checkpointing=when_asked, rollback={"within": "5 s"}, **with_copies_on(volume))
    job.until_stable()
    return job


def checkpointed(job):
    """Have a checkpoint taken, and copied; its state in the bucket, file by file."""
    before = names(job.snapshots())
    job.annotate(f"weir.dev/checkpoint=after-{len(before)}-others")

    def taken():
        new = [s for s in job.snapshots() if s["metadata"]["name"] not in before]
        return [s["status"] for s in new if s.get("status", {}).get("state") == "Completed"]

    (status,) = job.until("a completed checkpoint", taken)
    files = job.bucket.files(status["path"])
    return status["checkpointId"], [f for f in files if not f.endswith("/_metadata")]


def lose_an_executor(job):
    """Kill one; the job goes on with another."""
    before, killed = job.status()["restarts"], names(job.pods("executor"))[0]
    job.kill(killed)

    def is_back():
        status = job.status()
        return status["restarts"] > before and status["state"] == "Stable"

    job.until("the job goes on", is_back)
    assert killed not in names(job.pods("executor"))


def found_damaged(job):
    """Files of whose copies an executor has said so."""
    pods = names(job.pods("executor"))
    said = [job.cluster.kubectl("logs", p, "-c=executor", namespace=job.namespace) for p in pods]
    return {file for log in said for file in DAMAGED.findall(log)}


def is_exact(job):
    before = job.bucket.commits(job.output)
    checkpointed(job)
    job.until("another commit", lambda: job.bucket.commits(job.output) > before)
    assert job.verdict().is_exactly_once, job.verdict()


def goes_on_without_the_bucket(job, disk):
    """All state has a copy; it is taken out of the bucket, and the job does not miss it."""
    checkpoint, state = checkpointed(job)
    assert state
    assert len(disk.copies(checkpoint)) == len(state)
    store_for(job.directory, job.bucket.storage()).delete(state)

    lose_an_executor(job)

    assert not found_damaged(job)
    is_exact(job)


def test_copies_on_a_directory_of_the_node_are_read_by_the_next_executor(keeping, disk):
    """K8 S13: and where the executor lives on, by the same."""
    assert keeping.condition("LocalRecovery")["status"] == "True"
    goes_on_without_the_bucket(keeping, disk)


def test_damaged_copies_are_not_believed_and_the_bucket_is_read_instead(keeping, disk):
    """S13 C18: each is detected, and reported in the executor's log."""
    _, state = checkpointed(keeping)
    disk.damage()

    lose_an_executor(keeping)

    keeping.until("all are noticed", lambda: found_damaged(keeping) == set(state))
    is_exact(keeping)


def test_copies_on_a_local_volume_are_read_by_the_next_executor(keeping, disk, claim):
    """K8 S13: a claim will do, if a disk of the node is behind it."""
    keeping.edit(executor=executors({"persistentVolumeClaim": {"claimName": claim}}))
    keeping.until_stable()

    assert keeping.condition("LocalRecovery")["status"] == "True"
    goes_on_without_the_bucket(keeping, disk)


def test_on_a_directory_of_the_pod_they_are_not_kept_and_the_status_says_why(operator, bucket):
    """K8: known before a pod is made."""
    asleep = AppliedJob(operator.cluster, bucket, operator.jobs, "asleep")
    try:
        asleep.apply(suspend=True, **with_copies_on({"emptyDir": {}}))
        verdict = asleep.until("a verdict", lambda: asleep.condition("LocalRecovery"))
    finally:
        asleep.delete()

    assert verdict["status"] == "False"
    assert "emptyDir" in verdict["message"]
