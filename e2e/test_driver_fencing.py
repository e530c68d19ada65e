"""A driver that was replaced and still runs does not affect its successor.

The driver's node is unreachable, so another driver starts elsewhere. The first one still exists: it
resumes, or its network returns, or it never stopped. It is fenced by the job's log, and the bucket
shows no trace of it.
"""

import pytest

from fault_injection import kubelet_stopped, node_cut_off, node_frozen
from recovery_check import survived


def is_one_driver(scenario):
    (left,) = scenario.job.until("one driver is left", lambda: alone(scenario.job))
    assert left["metadata"]["name"] == scenario.job.driver()


def alone(job):
    drivers = job.pods("driver")
    return drivers if len(drivers) == 1 else []


def test_one_that_hung_and_wakes_up_is_fenced(scenario):
    """C17 K3."""
    survived(scenario, node_frozen)

    is_one_driver(scenario)


def test_a_driver_that_ran_on_behind_a_stopped_kubelet_is_fenced(scenario):
    """C17 K3: its kubelet was stopped, nothing else."""
    survived(scenario, kubelet_stopped)

    is_one_driver(scenario)


@pytest.mark.thorough
def test_one_that_was_cut_off_and_comes_back_is_fenced(scenario):
    """C17 K3."""
    survived(scenario, node_cut_off)

    is_one_driver(scenario)
