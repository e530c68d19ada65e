"""An upgrade that cannot work costs no state: the job continues with the old version.

The job's savepoint directory has no bucket. Its checkpoints work, so it can always continue from
the newest of them, also when no driver runs that could take a savepoint.
"""

import pytest

NO_BUCKET = "s3://there-is-no-such-bucket/savepoints"


@pytest.fixture(scope="module")
def stable(job):
    storage = {"interval": "1 s", "storage": f"{job.directory}/checkpoints"}
    job.apply(
        checkpointing={**storage, "savepointDir": NO_BUCKET},
        upgrade={"mode": "last-state", "fallback": "none"},
    )
    job.until_stable()
    return job


def is_exact(job):
    job.until_committed()
    assert job.verdict().is_exactly_once, job.verdict()


def test_an_upgrade_of_a_job_whose_driver_is_dead_starts_from_the_newest_checkpoint(stable):
    """K4."""
    stable.kill(stable.driver())
    stable.edit(parallelism=3)
    stable.until_stable()

    assert stable.status()["restorePoint"]["type"] == "LastState"
    is_exact(stable)


def test_an_upgrade_to_an_image_that_is_not_there_is_rolled_back_with_its_state(stable):
    """K6: within the deadline for a start, which is short here."""
    stable.edit(image="localhost/weir:no-such", startDeadlines={"pod": "15 s"})
    stable.until_state("RolledBack")

    assert stable.pods("driver")[0]["spec"]["containers"][0]["image"] == "localhost/weir:dev"
    assert stable.event_messages("RolledBack")
    is_exact(stable)


def test_a_savepoint_that_cannot_be_taken_leaves_the_old_version_running(stable):
    """K4."""
    stable.edit(image="localhost/weir:dev", startDeadlines=None)
    stable.until_stable()
    driver = stable.driver()
    stable.edit(parallelism=2, upgrade={"mode": "savepoint"})

    stable.until("the upgrade is given up", lambda: stable.event_messages("UpgradeAborted"))

    assert stable.driver() == driver
    assert len(stable.pods("executor")) == 3
    is_exact(stable)
