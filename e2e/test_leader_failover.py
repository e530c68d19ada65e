"""Of two operators one is the leader; when it is killed, the other takes over.

The killed one does not return under its name, so its Lease must expire first. The job keeps running
meanwhile, and the next leader handles requests that were made without a leader.
"""

import time

import pytest

from random_seed import show

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def running(job):
    job.apply()
    job.until_stable()
    return job


def leader_and_other(operator):
    leader = operator.pod()
    (other,) = set(operator.pods()) - {leader}
    return leader, other


def traces(job):
    """What is not as it was when a job was touched: its pods, and how often it has recovered."""
    pods = [*job.pods("driver"), *job.pods("executor")]
    return sorted(pod["metadata"]["uid"] for pod in pods), job.status()["restarts"]


def test_the_leader_is_killed_and_the_other_answers(running, operator):
    """K3 K9: and the job does not notice."""
    with operator.changed("replicas=2"):
        leader, other = leader_and_other(operator)
        before, began = traces(running), time.monotonic()
        operator.remove()
        operator.answer(running, "no-leader")
        show(f"a savepoint was complete {time.monotonic() - began:.1f} s after the leader's death")

        assert operator.pod() == other
        assert leader not in operator.pods()

    running.until_committed()
    assert traces(running) == before
    assert running.verdict().is_exactly_once, running.verdict()
