"""Whatever dies while rows flow, nothing is lost and nothing is doubled.

Executor, driver, operator, the pods of a node: each is killed as roughly as can be, the job goes
on by itself, and the bucket is the judge. How long the next committed result took is shown.
"""

from fault_injection import (
    all_killed,
    driver_evicted,
    driver_killed,
    executor_killed,
    node_drained,
    node_lost,
    operator_killed,
    operator_killed_in_an_upgrade,
)
from recovery_check import survived


def test_an_executor(scene):
    """R1 K3: Spark starts another, under the same driver."""
    driver = scene.job.driver()

    survived(scene, executor_killed)

    assert scene.job.driver() == driver


def test_the_driver(scene):
    """R1 C17 K3: the operator starts the next attempt."""
    killed = scene.job.driver()

    survived(scene, driver_killed)

    assert scene.job.driver() != killed
    assert scene.job.told("DriverExited")


def test_the_driver_and_every_executor_at_once(scene):
    """R1 C17 K3."""
    killed = scene.job.driver()

    survived(scene, all_killed)

    assert scene.job.driver() != killed


def test_the_operator(scene):
    """K3: the job does not notice, and the next operator finds everything as it should be."""
    job, driver = scene.job, scene.job.driver()

    survived(scene, operator_killed)

    job.annotate("weir.dev/checkpoint=after-the-kill")
    job.until("an answer of the next operator", lambda: job.told("CheckpointCompleted"))
    assert job.driver() == driver


def test_the_operator_in_the_middle_of_an_upgrade(scene):
    """K3 K4: the next one ends it; there is one savepoint, and one new driver."""
    job, attempt = scene.job, scene.job.status()["driver"]["attempt"]

    survived(scene, operator_killed_in_an_upgrade)

    assert job.status()["driver"]["attempt"] == attempt + 1
    assert len([s for s in job.snapshots() if s["spec"]["trigger"] == "upgrade"]) == 1


def test_a_driver_that_is_evicted(scene):
    """R1 K3."""
    evicted = scene.job.driver()

    survived(scene, driver_evicted)

    assert scene.job.driver() != evicted


def test_a_node_that_is_drained(scene):
    """R1 K3: the driver is evicted like any other pod, and comes up elsewhere."""
    drained = scene.job.node_of(scene.job.driver())

    survived(scene, node_drained)

    assert scene.job.node_of(scene.job.driver()) != drained


def test_a_node_that_is_lost(scene):
    """R1 C17 K3: nobody there can be asked; its pods are struck off, and an Event says so."""
    survived(scene, node_lost)

    assert scene.job.told("NodeLost")
