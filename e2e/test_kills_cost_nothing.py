"""Whatever dies while rows flow, nothing is lost and nothing is doubled.

Executor, driver, operator, the pods of a node: each is killed as roughly as can be, the job goes
on by itself, and the bucket is the judge. How long the next committed result took is shown.
"""

import pytest

from chance import show


@pytest.fixture(scope="module")
def running(job):
    job.apply()
    job.until_stable()
    return job


def went_on(job, what):
    """The job commits again, and all that it has ever committed is right."""
    took = job.until_committed()
    verdict = job.verdict()
    show(f"{what}: next committed result after {took:.1f} s; {verdict}")
    assert verdict.is_exactly_once, verdict


def test_an_executor(running):
    """R1 K3: Spark starts another, under the same driver."""
    driver = running.driver()
    running.kill(running.pods("executor")[0]["metadata"]["name"])

    went_on(running, "an executor was killed")

    assert running.driver() == driver


def test_the_driver(running):
    """R1 C17 K3: the operator starts the next attempt."""
    killed = running.driver()
    running.kill(killed)

    went_on(running, "the driver was killed")

    assert running.driver() != killed
    assert running.told("DriverExited")


def test_the_operator(running, operator):
    """K3: the job does not notice, and the next operator finds everything as it should be."""
    driver = running.driver()
    operator.kill()
    went_on(running, "the operator was killed")
    running.annotate("weir.dev/checkpoint=after-the-kill")

    running.until("an answer of the next operator", lambda: running.told("CheckpointCompleted"))

    assert running.driver() == driver


def test_the_operator_in_the_middle_of_an_upgrade(running, operator):
    """K3 K4: the next one ends it; there is one savepoint, and one new driver."""
    attempt = running.status()["driver"]["attempt"]
    running.edit(restartNonce=1)
    running.until("the upgrade begins", lambda: running.step("TakeSavepoint"))
    operator.kill()

    running.until_stable()
    went_on(running, "the operator was killed in the middle of an upgrade")

    assert running.status()["driver"]["attempt"] == attempt + 1
    assert len([s for s in running.snapshots() if s["spec"]["trigger"] == "upgrade"]) == 1


def test_a_node_that_is_drained(running, cluster):
    """R1 K3: the driver is evicted like any other pod, and comes up elsewhere."""
    drained, evicted = running.node_of(running.driver()), running.driver()
    ours = ("--pod-selector=weir.dev/job", "--ignore-daemonsets", "--delete-emptydir-data")
    try:
        cluster.kubectl("drain", drained, *ours, "--force", "--timeout=50s")
        went_on(running, "the driver's node was drained")
        assert running.driver() != evicted
        assert running.node_of(running.driver()) != drained
    finally:
        cluster.kubectl("uncordon", drained)
