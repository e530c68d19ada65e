"""Whatever is killed while rows flow, no row is lost and none is duplicated.

Executor, driver, operator, the pods of a node: each is killed without warning, the job recovers,
and the bucket is verified. The time to the next committed result is shown. State is in RocksDB,
with incremental checkpoints and a changelog; at the end an edit moves it to memory.
"""

import pytest

from fault_injection import (
    Scenario,
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

ON_DISK = {"backend": "rocksdb", "changelog": {"enabled": True, "materializationInterval": "5 s"}}


@pytest.fixture(scope="module")
def scenario(job, operator):
    scenario = Scenario(job, operator)
    checkpointing = {
        "interval": "1 s",
        "storage": f"{job.directory}/checkpoints",
        "savepointDir": f"{job.directory}/savepoints",
        "incremental": True,
        "inlineThreshold": "0 B",
    }
    scenario.begin(checkpointing=checkpointing, state=ON_DISK)
    return scenario


def test_an_executor(scenario):
    """R1 S2 S5 K3: Spark starts another, under the same driver."""
    driver = scenario.job.driver()

    survived(scenario, executor_killed)

    assert scenario.job.driver() == driver


def test_the_driver(scenario):
    """R1 C17 K3: the operator starts the next attempt."""
    killed = scenario.job.driver()

    survived(scenario, driver_killed)

    assert scenario.job.driver() != killed
    assert scenario.job.event_messages("DriverExited")


def test_the_driver_and_every_executor_at_once(scenario):
    """R1 C17 K3."""
    killed = scenario.job.driver()

    survived(scenario, all_killed)

    assert scenario.job.driver() != killed


def test_the_operator(scenario):
    """K3: the job does not notice, and the next operator finds everything as it should be."""
    job, driver = scenario.job, scenario.job.driver()

    survived(scenario, operator_killed)

    job.annotate("weir.dev/checkpoint=after-the-kill")
    job.until("an answer of the next operator", lambda: job.event_messages("CheckpointCompleted"))
    assert job.driver() == driver


def test_the_operator_in_the_middle_of_an_upgrade(scenario):
    """K3 K4: the next one ends it; there is one savepoint, and one new driver."""
    job, attempt = scenario.job, scenario.job.status()["driver"]["attempt"]

    survived(scenario, operator_killed_in_an_upgrade)

    assert job.status()["driver"]["attempt"] == attempt + 1
    assert len([s for s in job.snapshots() if s["spec"]["trigger"] == "upgrade"]) == 1


def test_a_driver_that_is_evicted(scenario):
    """R1 K3."""
    evicted = scenario.job.driver()

    survived(scenario, driver_evicted)

    assert scenario.job.driver() != evicted


def test_a_node_that_is_drained(scenario):
    """R1 K3: the driver is evicted like any other pod, and comes up elsewhere."""
    drained = scenario.job.node_of(scenario.job.driver())

    survived(scenario, node_drained)

    assert scenario.job.node_of(scenario.job.driver()) != drained


def test_a_node_that_is_lost(scenario):
    """R1 C17 S2 K3: the node is unreachable; its pods are force-deleted, and an Event says so."""
    survived(scenario, node_lost)

    assert scenario.job.event_messages("NodeLost")


def test_an_edit_of_the_backend_keeps_the_state(scenario):
    """S2 S10 S14 K4: the old version stops with a savepoint, which the other backend restores."""
    job = scenario.job
    before = job.verdict().delivered

    job.edit(state={"backend": "hashmap", "changelog": {"enabled": False}})
    job.until_stable()
    job.until_committed()

    assert job.status()["upgrade"]["mode"] == "savepoint"
    assert job.verdict().delivered > before
    assert job.verdict().is_exactly_once, job.verdict()
