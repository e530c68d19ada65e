"""Storage that is slow, rejects requests, or is gone for a minute: the job waits and recovers.

The job reaches its S3 through a proxy pod that injects faults; the bucket is verified without the
proxy. While storage is unavailable nothing is committed, and the status reports neither a failed
job nor a completed checkpoint that does not exist.
"""

import re
import time

import pytest

from faulty_storage import DELAY_S, TroubledStorage, troubled_storage
from random_seed import show
from weir.api.duration import parse_duration

pytestmark = pytest.mark.thorough

A_WHILE_S, A_MINUTE_S = 20, 60

MANIFEST = re.compile("/chk-([0-9]+)/_metadata$")
ALIVE = ("Running", "Stable", "Recovering")
"""The valid states of a job that was not stopped."""


@pytest.fixture(scope="module")
def troubled(operator):
    with troubled_storage(operator.cluster, operator.jobs) as storage:
        yield storage


@pytest.fixture(scope="module")
def applied(troubled, job):
    """In this order, so that the job goes while its storage is there."""
    job.apply(storageSecrets=[troubled.secret])
    return job


@pytest.fixture
def storage(troubled):
    """Well again after each test."""
    yield troubled
    troubled.heal()


@pytest.fixture
def running(applied, storage):
    assert storage
    applied.until_stable()
    return applied


def last_checkpoint(job):
    return job.status()["lastCheckpoint"]


def newest_manifest(job):
    """The number of the newest checkpoint in the bucket."""
    files = job.bucket.files(last_checkpoint(job)["path"].rpartition("/")[0])
    return max(int(number) for file in files for number in MANIFEST.findall(file))


def takes_long(job):
    return parse_duration(last_checkpoint(job)["duration"]) >= DELAY_S * 1_000


def without_storage(job, seconds):
    """For so long the job is alive and nothing of it moves."""
    began, before = time.monotonic(), job.bucket.commits(job.output)

    def is_over():
        assert job.status()["state"] in ALIVE
        return time.monotonic() - began > seconds

    job.until(f"{seconds} s without storage", is_over)
    assert job.bucket.commits(job.output) == before
    assert last_checkpoint(job)["id"] <= newest_manifest(job)


def recovery_time(job, what):
    """The job commits again, and all that it has ever committed is right."""
    took = job.until_committed()
    job.until_stable()
    verdict, restarts = job.verdict(), job.status()["restarts"]
    show(f"{what}: next committed result after {took:.1f} s, {restarts} restarts so far; {verdict}")
    assert verdict.is_exactly_once, verdict


def test_slow_storage_slows_checkpoints_down_and_restarts_nothing(running, storage):
    """C18 R7."""
    driver, restarts = running.driver(), running.status()["restarts"]
    storage.slow()

    running.until("a slow checkpoint", lambda: takes_long(running))
    recovery_time(running, f"{DELAY_S:.0f} s more for each request")

    assert (running.driver(), running.status()["restarts"]) == (driver, restarts)


def test_storage_that_refuses_for_a_while_costs_nothing(running, storage):
    """C9 C18 R1: checkpoints fail or wait; the driver stays."""
    driver, before = running.driver(), storage.turned_away()
    storage.refuse()

    without_storage(running, A_WHILE_S)
    storage.heal()
    recovery_time(running, f"storage refused for {A_WHILE_S} s")

    assert storage.turned_away() > before
    assert running.driver() == driver


def test_storage_that_is_gone_for_a_minute_costs_nothing(running, storage):
    """C9 C18 R1 K7: what was in doubt is found out, and the driver stays."""
    driver, before = running.driver(), storage.turned_away()
    storage.vanish()

    without_storage(running, A_MINUTE_S)
    storage.heal()
    recovery_time(running, f"storage was gone for {A_MINUTE_S} s")

    assert storage.turned_away() > before
    assert running.driver() == driver


@pytest.mark.parametrize("trouble", [TroubledStorage.vanish, TroubledStorage.refuse])
def test_a_driver_that_dies_meanwhile_has_a_successor_that_goes_on(running, storage, trouble):
    """C17 C18 R1 K3: it waits, or another one is tried, until what it starts from can be read."""
    killed, newest = running.driver(), last_checkpoint(running)["id"]
    trouble(storage)
    running.kill(killed)
    running.until_gone(killed)
    before = storage.turned_away()

    running.until("a successor asks in vain", lambda: storage.turned_away() > before)
    without_storage(running, A_WHILE_S)
    storage.heal()
    recovery_time(running, f"the driver was killed, and storage was set to {trouble.__name__}")

    assert running.driver() != killed
    assert last_checkpoint(running)["id"] > newest
