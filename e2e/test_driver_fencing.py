"""A driver that was given up and lives on does no harm to its successor.

The driver's node is out of reach, so another driver starts elsewhere. The first one is still there:
it wakes up, or its network comes back, or it never stopped. It is fenced by the job's log, and the
bucket shows no trace of it.
"""

import pytest

from fault_injection import kubelet_stopped, node_cut_off, node_frozen
from recovery_check import survived


def is_one_driver(scene):
    (left,) = scene.job.until("one driver is left", lambda: alone(scene.job))
    assert left["metadata"]["name"] == scene.job.driver()


def alone(job):
    drivers = job.pods("driver")
    return drivers if len(drivers) == 1 else []


def test_one_that_hung_and_wakes_up_is_fenced(scene):
    """C17 K3."""
    survived(scene, node_frozen)

    is_one_driver(scene)


def test_one_that_nobody_could_see_and_that_never_stopped_is_fenced(scene):
    """C17 K3: its kubelet was stopped, nothing else."""
    survived(scene, kubelet_stopped)

    is_one_driver(scene)


@pytest.mark.thorough
def test_one_that_was_cut_off_and_comes_back_is_fenced(scene):
    """C17 K3."""
    survived(scene, node_cut_off)

    is_one_driver(scene)
