"""Pods in trouble are told of by name and cause, once each, and nothing is done about it."""

from dataclasses import replace

import pytest

from little_cluster import LittleCluster
from weir.api.report import JobPhase
from weir_operator.plan.actions import EmitEvent
from weir_operator.plan.observing import PodTrouble, Terminated, Waiting
from weir_operator.resource.progress import MOST_TOLD

KILLED = PodTrouble("orders-exec-1", "OOMKilled", "its container used more than 2Gi")


def a_waiting_job(why):
    cluster = LittleCluster()
    cluster.turn()
    cluster.drivers[0].pod = replace(cluster.drivers[0].pod, stage=Waiting(why))
    return cluster


def a_running_job():
    cluster = LittleCluster()
    cluster.settle(rounds=8)
    cluster.events.clear()
    return cluster


def events_of(cluster, *rounds):
    """What is told over several looks, each with these troubles of executors."""
    for troubles in rounds:
        cluster.turn(replace(cluster.observed(), executor_troubles=troubles))
    return [(event.reason, event.message) for event in cluster.events if event.is_warning]


def test_a_driver_that_waits_for_its_image_names_it_before_the_deadline():
    """K7."""
    cluster = a_waiting_job("ErrImagePull")
    cluster.turn()
    cluster.drivers[0].pod = replace(cluster.drivers[0].pod, stage=Waiting("ImagePullBackOff"))

    assert events_of(cluster, (), ()) == [
        ("ErrImagePull", "orders-driver-1: it waits for its image orders:1")
    ]


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("Unschedulable", "orders-driver-1: it waits for a node that has room for it"),
        (
            "CreateContainerConfigError",
            "orders-driver-1: its container does not start: CreateContainerConfigError",
        ),
    ],
)
def test_whatever_keeps_a_driver_from_running_is_told_once(why, message):
    """K7."""
    assert events_of(a_waiting_job(why), (), (), ()) == [(why, message)]


@pytest.mark.parametrize("why", ["", "ContainerCreating", "PodInitializing"])
def test_a_driver_that_simply_starts_is_not_in_trouble(why):
    """K7."""
    assert events_of(a_waiting_job(why), (), ()) == []


def test_an_executor_in_trouble_is_told_once_for_each_reason():
    """K7."""
    other = replace(KILLED, reason="Evicted", message="")
    cluster = a_running_job()

    told = events_of(cluster, (KILLED,), (KILLED,), (), (KILLED, other))

    assert told == [
        ("OOMKilled", "orders-exec-1: its container used more than 2Gi"),
        ("Evicted", "orders-exec-1: Evicted"),
    ]


def test_nothing_else_is_done_about_an_executor():
    """K7: Spark replaces it."""
    cluster = a_running_job()
    calm = cluster.planned()

    made = cluster.planned(replace(cluster.observed(), executor_troubles=(KILLED,)))

    assert [type(action) for action in made.actions] == [EmitEvent]
    assert made.status.last_failure == calm.status.last_failure
    assert made.status.history == calm.status.history


def test_a_flood_of_troubles_is_cut_short_and_never_told_again():
    """K7, X3: the status stays small, and the Events end."""
    many = tuple(PodTrouble(f"orders-exec-{n}", "ImagePullBackOff") for n in range(3 * MOST_TOLD))
    cluster = a_running_job()

    assert len(events_of(cluster, many, many, many)) == MOST_TOLD
    assert len(cluster.status.answered.troubles) == MOST_TOLD


def test_a_word_that_is_no_reason_is_not_made_one():
    """X3: a reason is for programs."""
    odd = PodTrouble("orders-exec-1", "no such word", "it is odd")

    assert events_of(a_running_job(), (odd,)) == [("PodTrouble", "orders-exec-1: it is odd")]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("OOMKilled", "OOMKilled"),
        ("Evicted", "Evicted"),
        ("Preempted", "Preempted"),
        ("NodeShutdown", "NodeShutdown"),
        ("DeletionByTaintManager", "DeletionByTaintManager"),
        ("Error", "DriverExited"),
        ("", "DriverExited"),
        ("a sentence", "DriverExited"),
    ],
)
def test_the_end_of_a_driver_is_told_with_its_cause_and_its_last_words(why, reason):
    """K7."""
    cluster = a_running_job()
    driver = cluster.drivers[0]
    driver.phase, driver.why = JobPhase.RESTARTING, "the bucket is gone"
    driver.pod = replace(driver.pod, stage=Terminated(3, why))

    cluster.turn()

    failure = cluster.status.last_failure
    assert failure.reason == reason
    assert failure.message.startswith("orders-driver-1 ended with code 3")
    assert failure.message.endswith(": the bucket is gone")
