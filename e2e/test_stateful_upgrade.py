"""An edit is an upgrade, and the new version continues from the state of the old one.

The edit changes the program and the parallelism at once, while rows flow. The old version stops
with a savepoint, and the new version must add to the sums of the old one.
"""

import pytest

from applied_job import names

STEPS = ("TakeSavepoint", "StopDriver", "RecordRestorePoint", "StartDriver", "BecomeStable")


@pytest.fixture(scope="module")
def upgraded(job):
    """One that ran as two subtasks, and runs as three of another program."""
    job.apply()
    job.until_committed()
    job.change_program("self.total.update((total,))", "self.total.update((int(total),))", "next")
    job.edit(parallelism=3, job={"configMap": {"name": "next"}})
    job.until_stable()
    return job


def test_state_is_carried_over_and_output_is_exact(upgraded):
    """K4 S11."""
    before = upgraded.verdict().delivered
    upgraded.until_committed()

    assert upgraded.verdict().delivered > before
    assert upgraded.verdict().is_exactly_once, upgraded.verdict()


def test_the_new_version_runs_with_its_own_program_and_parallelism(upgraded):
    """K4 K6."""
    mounted = upgraded.pods("driver")[0]["spec"]["volumes"]

    assert len(upgraded.pods("executor")) == 3
    assert any(volume.get("configMap", {}).get("name") == "next" for volume in mounted)


def test_every_step_of_the_upgrade_is_in_the_status(upgraded):
    """K4 K7."""
    assert [upgraded.step(name) for name in STEPS] == ["Done"] * len(STEPS)
    assert upgraded.status()["upgrade"]["mode"] == "savepoint"


def test_the_savepoint_of_the_upgrade_is_an_object_and_what_the_new_version_started_from(upgraded):
    """K4 K5."""
    taken = upgraded.status()["lastSavepoint"]

    assert taken["snapshot"] in names(upgraded.snapshots())
    assert upgraded.bucket.files(taken["path"])
    assert any(
        taken["path"] in message for message in upgraded.event_messages("SavepointCompleted")
    )
