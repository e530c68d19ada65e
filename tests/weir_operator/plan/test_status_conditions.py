"""Where a job stands is said in one word and in conditions, for people and for ``kubectl wait``."""

from dataclasses import replace

import pytest

from fake_cluster import FakeCluster, a_spec
from weir.api.report import JobPhase
from weir_operator.plan.observed_state import Terminated
from weir_operator.resource.status import LONGEST_HISTORY


def a_job(rounds, **changes):
    cluster = FakeCluster(a_spec(**changes))
    cluster.settle(rounds=rounds)
    return cluster


def refused():
    return a_job(2, parallelism=-1)


def starting():
    return a_job(0)


def running():
    return a_job(5)


def stable():
    return a_job(12)


def silent():
    cluster = stable()
    cluster.drivers[0].is_silent = True
    cluster.turn()
    return cluster


def restarts(cluster, times, why, phase=JobPhase.RESTARTING):
    """The driver lives, and its job was restarted so many times."""
    driver = cluster.drivers[0]
    driver.phase, driver.restarts, driver.why = phase, times, why
    cluster.turn()
    return cluster


def restarting():
    return restarts(stable(), 1, "the bucket is away")


def waiting_for_slots_again():
    return restarts(stable(), 1, "a slot is lost", JobPhase.WAITING_FOR_SLOTS)


def restarting_before_it_ran():
    return restarts(a_job(2), 1, "the bucket is away")


def silent_long_after_a_failure():
    cluster = stable()
    cluster.driver_dies()
    cluster.settle(rounds=20)
    cluster.drivers[0].is_silent = True
    cluster.turn()
    return cluster


def recovering():
    cluster = stable()
    cluster.driver_dies()
    cluster.turn()
    return cluster


def edited_for_the_worse():
    cluster = stable()
    cluster.edit(parallelism=-1)
    cluster.turn()
    return cluster


def upgrading():
    cluster = stable()
    cluster.edit(image="orders:2")
    cluster.turn()
    return cluster


def given_up():
    cluster = a_job(12, upgrade={"mode": "savepoint", "fallback": "none"})
    cluster.fails_savepoints = True
    cluster.edit(image="orders:2")
    cluster.settle(rounds=20)
    return cluster


def rolled_back():
    cluster = stable()
    cluster.refusing_images.add("orders:2")
    cluster.edit(image="orders:2")
    cluster.settle(rounds=20)
    return cluster


def suspended():
    cluster = stable()
    cluster.edit(suspend=True)
    cluster.settle(rounds=5)
    return cluster


def ended_as(phase):
    cluster = stable()
    driver = cluster.drivers[0]
    driver.phase, driver.why = phase, "division by zero"
    driver.pod = replace(driver.pod, stage=Terminated(0))
    cluster.settle(rounds=3)
    return cluster


def finished():
    return ended_as(JobPhase.FINISHED)


def failed():
    return ended_as(JobPhase.FAILED)


def deleting():
    cluster = stable()
    cluster.deleted_at = cluster.now
    cluster.turn()
    return cluster


def messages(cluster):
    found = {str(one.type): one.message for one in cluster.status.conditions}
    return {kind: found[kind] for kind in ("Ready", "Degraded")}


TABLE = [
    # state, Ready, Progressing, why Degraded, SpecAccepted, Stable
    (refused, "Created", "False", "True", "SpecRejected", "False", "False"),
    (starting, "Starting", "False", "True", None, "True", "False"),
    (running, "Running", "True", "False", None, "True", "False"),
    (stable, "Stable", "True", "False", None, "True", "True"),
    (silent, "Recovering", "Unknown", "True", None, "True", "True"),
    (restarting, "Recovering", "Unknown", "True", "Restarting", "True", "True"),
    (waiting_for_slots_again, "Recovering", "Unknown", "True", "Restarting", "True", "True"),
    (restarting_before_it_ran, "Starting", "False", "True", "Restarting", "True", "False"),
    (silent_long_after_a_failure, "Recovering", "Unknown", "True", None, "True", "True"),
    (recovering, "Recovering", "False", "True", "OOMKilled", "True", "True"),
    (edited_for_the_worse, "Stable", "True", "False", "SpecRejected", "False", "True"),
    (upgrading, "Upgrading", "True", "True", None, "True", "True"),
    (given_up, "Stable", "True", "False", "UpgradeAborted", "True", "True"),
    (rolled_back, "RolledBack", "True", "False", "RolledBack", "True", "True"),
    (suspended, "Suspended", "False", "False", None, "True", "True"),
    (finished, "Finished", "False", "False", None, "True", "True"),
    (failed, "Failed", "False", "False", "JobFailed", "True", "True"),
    (deleting, "Deleting", "True", "True", None, "True", "True"),
]


@pytest.mark.parametrize("row", TABLE, ids=[row[0].__name__ for row in TABLE])
def test_every_situation_has_its_words(row):
    """K7: the state, each condition, and the generation that they speak of."""
    situation, state, ready, progressing, degraded, accepted, proved = row
    cluster = situation()
    status = cluster.status
    found = {str(one.type): one for one in status.conditions}

    assert status.state == state
    assert {kind: str(one.status) for kind, one in found.items()} == {
        "Ready": ready,
        "Progressing": progressing,
        "Degraded": "False" if degraded is None else "True",
        "SpecAccepted": accepted,
        "Stable": proved,
    }
    assert found["Degraded"].reason == (degraded or "Healthy")
    assert {one.observed_generation for one in status.conditions} == {cluster.generation}
    assert status.observed_generation == cluster.generation


def test_a_condition_keeps_the_time_of_its_last_change():
    """K7: it shows since when it holds."""
    cluster = running()
    before = {one.type: one.last_transition_time for one in cluster.status.conditions}
    cluster.settle(rounds=7)
    after = {one.type: one.last_transition_time for one in cluster.status.conditions}

    assert [kind for kind in after if after[kind] != before[kind]] == ["Stable"]


@pytest.mark.parametrize("situation", [restarting, restarting_before_it_ran])
def test_a_restart_is_explained_in_the_drivers_own_words_while_it_lasts(situation):
    """K7: in Ready and in Degraded; once the job runs, neither says a word."""
    cluster = situation()
    words = "orders-driver-1 restarts the job: the bucket is away"
    assert messages(cluster) == {"Ready": words, "Degraded": words}

    cluster.settle(rounds=4)

    assert messages(cluster) == {"Ready": "", "Degraded": ""}


def test_a_driver_that_does_not_say_why_is_degraded_all_the_same():
    """K7 X3: and it is said that it did not."""
    cluster = restarts(stable(), 1, "")

    assert messages(cluster)["Degraded"].endswith("it gave no reason")


def test_an_outage_is_not_explained_by_the_failure_of_a_driver_before():
    """K7: what healed yesterday is no cause of today's."""
    cluster = stable()
    cluster.driver_dies()
    cluster.settle(rounds=20)
    assert cluster.status.last_failure.reason == "OOMKilled"

    restarts(cluster, 1, "the bucket is away")

    words = "orders-driver-2 restarts the job: the bucket is away"
    assert messages(cluster)["Degraded"] == words


def test_a_failure_explains_the_recovery_until_the_next_driver_runs():
    """K7: though that one is on its way already."""
    cluster = stable()
    cluster.driver_dies()
    cluster.settle(rounds=3)
    assert cluster.status.driver.attempt == 2
    assert cluster.status.state == "Recovering"

    assert "orders-driver-1 ended with code 137" in messages(cluster)["Degraded"]


def test_every_restart_is_reported_and_consecutive_ones_share_a_history_entry():
    """K7: by Events of the same words, which Kubernetes counts; those between two looks are one."""
    cluster = stable()
    before = cluster.status.history
    for times in (1, 1, 4, 5):
        restarts(cluster, times, "the bucket is away")

    reported = [event for event in cluster.events if event.reason == "JobRestarted"]
    assert {(event.message, event.is_warning) for event in reported} == {
        ("orders-driver-1 restarts the job: the bucket is away", True)
    }
    assert len(reported) == 3
    (*rest, newest) = cluster.status.history
    assert (tuple(rest), newest.reason) == (before, "JobRestarted")
    assert cluster.status.restarts == 5


def test_a_job_that_fails_for_good_is_not_said_to_be_restarted():
    """K7: its last words are those of its end."""
    cluster = restarts(stable(), 3, "division by zero", JobPhase.FAILED)

    assert [event.reason for event in cluster.events if event.is_warning] == ["JobFailed"]


def test_the_history_holds_the_newest_things_and_not_more_of_them():
    """K7: a job that is lost again and again for years."""
    cluster = stable()
    for _ in range(12):
        cluster.driver_dies()
        cluster.settle(rounds=30)
    history = cluster.status.history

    assert len(history) == LONGEST_HISTORY
    assert history[-1].attempt == cluster.status.driver.attempt == 13
    assert [entry.at for entry in history] == sorted(entry.at for entry in history)
