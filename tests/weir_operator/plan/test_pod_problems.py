"""Problems of pods are reported by name and cause, once each, and nothing else is done."""

from dataclasses import replace

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.cluster_actions import EmitEvent
from weir_operator.plan.observed_state import (
    MissingObject,
    PodProblem,
    Terminated,
    Unreachable,
    Waiting,
)
from weir_operator.resource.status_fields import MOST_REPORTED

KILLED = PodProblem("orders-exec-1", "OOMKilled", "its container used more than 2Gi")


def a_waiting_job(why, said="", *missing):
    cluster = FakeCluster()
    cluster.turn()
    pod = cluster.drivers[0].pod
    cluster.drivers[0].pod = replace(pod, stage=Waiting(why, said), missing=missing)
    return cluster


def condition(status, kind):
    return next(one for one in status.conditions if one.type == kind)


def a_running_job():
    cluster = FakeCluster()
    cluster.settle(rounds=8)
    cluster.events.clear()
    return cluster


def events_of(cluster, *rounds):
    """The Events of several reconciles, each with these problems of executors."""
    for troubles in rounds:
        cluster.turn(replace(cluster.observed(), executor_problems=troubles))
    return [(event.reason, event.message) for event in cluster.events if event.is_warning]


def test_a_driver_that_waits_for_its_image_names_it_before_the_deadline():
    """K7."""
    cluster = a_waiting_job("ErrImagePull")
    cluster.turn()
    cluster.drivers[0].pod = replace(cluster.drivers[0].pod, stage=Waiting("ImagePullBackOff"))

    assert events_of(cluster, (), ()) == [
        ("ErrImagePull", "orders-driver-1: waiting for its image orders:1")
    ]


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("Unschedulable", "waiting for a node with enough resources: all are full"),
        (
            "CreateContainerConfigError",
            "its container does not start: CreateContainerConfigError: all are full",
        ),
    ],
)
def test_the_problem_that_keeps_a_driver_from_running_is_reported_once(why, message):
    """K7: in the words of Kubernetes, and what the start waits for is in Progressing."""
    cluster = a_waiting_job(why, "all are full")

    assert events_of(cluster, (), (), ()) == [(why, f"orders-driver-1: {message}")]
    assert condition(cluster.status, "Progressing").message == f"phase pod: {message}"


def test_a_driver_whose_secret_is_missing_says_so_at_once_with_the_remedy():
    """K7 U3: by an Event, in Progressing and in Degraded, while its start has time enough."""
    cluster = a_waiting_job("ContainerCreating", "", MissingObject("Secret", "our-tls"))
    message = (
        "waiting for the Secret our-tls, which does not exist in its namespace."
        " Remedy: create the missing object, or refer to another."
    )

    assert events_of(cluster, (), ()) == [("SecretMissing", f"orders-driver-1: {message}")]
    assert condition(cluster.status, "Progressing").message == f"phase pod: {message}"
    degraded = condition(cluster.status, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", "SecretMissing")
    assert degraded.message == f"orders-driver-1: {message}"

    cluster.drivers[0].pod = replace(cluster.drivers[0].pod, missing=())
    cluster.settle(rounds=5)

    assert condition(cluster.status, "Degraded").status == "False"


def test_a_start_that_is_given_up_says_what_it_waited_for():
    """K7: not only in which phase."""
    cluster = a_waiting_job("ContainerCreating", "", MissingObject("ConfigMap", "program"))
    cluster.bad_images.add("orders:1")
    cluster.turn()
    cluster.pass_time(3600)
    cluster.turn()

    failure = cluster.status.last_failure
    assert failure.reason == "StartTimedOut"
    assert "waiting for the ConfigMap program" in failure.message


@pytest.mark.parametrize(
    ("why", "degraded"),
    [
        ("Unschedulable", "Healthy"),
        ("ErrImagePull", "ImagePullBackOff"),
        ("ImagePullBackOff", "ImagePullBackOff"),
        ("CreateContainerConfigError", "CreateContainerConfigError"),
        ("no such word", "PodProblem"),
    ],
)
def test_what_a_person_must_mend_is_degraded_and_what_time_mends_is_not(why, degraded):
    """K7: a cluster that is full for a moment may grow."""
    cluster = a_waiting_job(why)
    cluster.turn()

    assert condition(cluster.status, "Degraded").reason == degraded


MISTRUST = Unreachable(
    "the operator does not trust its certificate: self-signed", is_untrusted=True
)
REMEDY = (
    "Remedy: put the certificate of the authority that signed the driver's into ca.crt of the"
    " Secret our-tls."
)


def test_a_driver_that_the_operator_does_not_trust_is_reported_once_with_the_remedy():
    """K7 X1 U3: the job itself may well run on."""
    cluster = FakeCluster(a_spec(tlsSecret="our-tls"))
    cluster.settle(rounds=8)
    cluster.events.clear()
    cluster.drivers[0].is_silent = True
    for _ in range(3):
        cluster.turn(replace(cluster.observed(), unreachable=MISTRUST))

    message = f"orders-driver-1: {MISTRUST.why}. {REMEDY}"
    reported = [(event.reason, event.message) for event in cluster.events]
    assert reported == [("DriverMistrusted", message)]
    ready, degraded = (condition(cluster.status, kind) for kind in ("Ready", "Degraded"))
    assert (ready.status, ready.reason) == ("Unknown", "DriverUnreachable")
    assert ready.message == f"orders-driver-1: {MISTRUST.why}"
    assert (degraded.reason, degraded.message) == ("DriverMistrusted", message)
    assert cluster.status.driver.attempt == 1


def test_a_driver_that_is_only_silent_is_a_condition_without_an_event():
    """K7: it may be busy, and respond later."""
    cluster = a_running_job()
    cluster.drivers[0].is_silent = True
    cluster.turn(replace(cluster.observed(), unreachable=Unreachable("its API does not respond")))

    ready = condition(cluster.status, "Ready")
    assert (ready.reason, ready.message) == (
        "DriverUnreachable",
        "orders-driver-1: its API does not respond",
    )
    assert condition(cluster.status, "Degraded").status == "False"
    assert cluster.events == []


@pytest.mark.parametrize("unreachable", [MISTRUST, Unreachable("its API does not respond")])
def test_a_start_of_which_nothing_was_heard_says_why_when_it_is_given_up(unreachable):
    """K7."""
    cluster = FakeCluster()
    cluster.turn()
    cluster.drivers_go_on()
    cluster.turn(replace(cluster.observed(), unreachable=unreachable))
    cluster.pass_time(3600)
    cluster.turn(replace(cluster.observed(), unreachable=unreachable))

    failure = cluster.status.last_failure
    assert failure.reason == "StartTimedOut"
    assert f"its start phase driver ({unreachable.why}" in failure.message


@pytest.mark.parametrize("why", ["", "ContainerCreating", "PodInitializing"])
def test_a_driver_that_simply_starts_is_not_in_trouble(why):
    """K7."""
    assert events_of(a_waiting_job(why), (), ()) == []


def test_a_failing_executor_is_reported_once_for_each_reason():
    """K7."""
    other = replace(KILLED, reason="Evicted", message="")
    cluster = a_running_job()

    reported = events_of(cluster, (KILLED,), (KILLED,), (), (KILLED, other))

    assert reported == [
        ("OOMKilled", "orders-exec-1: its container used more than 2Gi"),
        ("Evicted", "orders-exec-1: Evicted"),
    ]


def test_nothing_else_is_done_about_an_executor():
    """K7: Spark replaces it."""
    cluster = a_running_job()
    calm = cluster.planned()

    made = cluster.planned(replace(cluster.observed(), executor_problems=(KILLED,)))

    assert [type(action) for action in made.actions] == [EmitEvent]
    assert made.status.last_failure == calm.status.last_failure
    assert made.status.history == calm.status.history


def test_a_flood_of_pod_problems_is_cut_short_and_never_reported_again():
    """K7, X3: the status stays small, and the Events end."""
    many = tuple(
        PodProblem(f"orders-exec-{n}", "ImagePullBackOff") for n in range(3 * MOST_REPORTED)
    )
    cluster = a_running_job()

    assert len(events_of(cluster, many, many, many)) == MOST_REPORTED
    assert len(cluster.status.answered.troubles) == MOST_REPORTED


def test_a_word_that_is_no_reason_is_not_made_one():
    """X3: a reason is for programs."""
    odd = PodProblem("orders-exec-1", "no such word", "it is odd")

    assert events_of(a_running_job(), (odd,)) == [("PodProblem", "orders-exec-1: it is odd")]


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
def test_the_end_of_a_driver_is_reported_with_its_cause_and_its_last_report(why, reason):
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
