"""A job in plain pods continues after its pods are killed.

It is the demo's job: a running sum for every key, with executors on both nodes, its checkpoints and
its output in the cluster's S3. The verdict is computed from the bucket's content alone, against a
sequential recomputation. The operator's jobs are killed in the same ways and more, so these kills
run only with ``--all``.
"""

import pytest

from deployed_job import DRIVER

ROWS = 60_000
"""Twenty seconds of them: enough for something to happen in the middle."""


def test_a_job_runs_on_both_nodes_and_its_result_is_exact(deploy, cluster):
    """D5 S7: the file that ran on one machine runs in pods."""
    job = deploy(rows=ROWS)

    both = {cluster.node_name(1), cluster.node_name(2)}
    job.until("executors on both nodes", lambda: job.nodes() == both)
    job.until_ended()

    assert job.verdict().is_exactly_once, job.verdict()


@pytest.mark.thorough
def test_an_executor_that_is_killed_costs_nothing(deploy):
    """R1 R3: Spark starts another, and the job goes on from its newest checkpoint."""
    job = deploy(rows=ROWS)
    job.until_committed()

    job.kill(job.executors()[0]["metadata"]["name"])
    job.until_committed()
    job.until_ended()

    assert job.verdict().is_exactly_once, job.verdict()


@pytest.mark.thorough
def test_a_driver_that_is_killed_and_started_again_costs_nothing(deploy):
    """R1 C13 C17: by hand here; the operator does the same."""
    job = deploy(rows=ROWS)
    job.until_committed()

    job.kill(DRIVER)
    job.delete_by_force(DRIVER)
    job.start()
    job.until_committed()
    job.until_ended()

    assert job.verdict().is_exactly_once, job.verdict()


@pytest.mark.thorough
def test_a_node_that_is_lost_with_its_executor_costs_nothing(deploy, cluster):
    """R1: its pods are struck off by hand here, for until then Spark asks for no others."""
    job = deploy(rows=ROWS, driver_node=cluster.node_name(1))
    lost = cluster.node_name(2)
    job.until("an executor on the node", lambda: lost in job.nodes())
    job.until_committed()

    cluster.node("kill", 2)
    try:
        there = [p["metadata"]["name"] for p in job.executors() if p["spec"]["nodeName"] == lost]
        job.delete_by_force(*there)
        job.until_committed()
        job.until_ended()
        assert job.verdict().is_exactly_once, job.verdict()
    finally:
        cluster.node("start", 2)
