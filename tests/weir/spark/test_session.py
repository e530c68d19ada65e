"""Jobs of a session as a person of PySpark starts them: names, paths, and errors in the driver."""

import pytest
from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from wait_until import until
from weir.api.config import load_config
from weir.driver.driver_environment import DriverEnvironment
from weir.errors import JobRejected
from weir.spark import WeirSession


class MuteReader(DataSourceStreamReader):
    """Knows where it begins and never how far the data goes."""

    def initialOffset(self):  # noqa: N802
        return {"at": 0}

    def latestOffset(self):  # noqa: N802
        raise KeyError("no such topic")

    def read(self, partition):
        del partition
        return iter(())


class MuteSource(DataSource):
    """A data source whose reader always raises in the driver."""

    @classmethod
    def name(cls):
        return "mute"

    def schema(self):
        return "n long"

    def streamReader(self, schema):  # noqa: N802
        del schema
        return MuteReader()


def another(session, name, **settings):
    """A session of the same Spark with other settings."""
    return WeirSession(name, load_config(settings), session.spark, DriverEnvironment(""))


@pytest.fixture
def running():
    """Jobs that are ended with the test."""
    jobs = []
    yield jobs
    for job in jobs:
        job.driver.cancel()
        job.wait()


def endless(session):
    return session.readStream.format("generator").option("rowsPerSecond", 20).load()


def test_an_enumerator_that_always_raises_fails_a_job_that_wants_no_restart(session):
    """R2, C4: at once, and the reason is what the user's code said."""
    mute = another(session, "mute", restart={"type": "none"})
    mute.dataSource.register(MuteSource)
    job = mute.readStream.format("mute").load().writeStream.format("noop").start()
    job.wait()
    assert "no such topic" in str(job.exception())
    assert "latestOffset()" in str(job.exception())


def test_an_enumerator_that_always_raises_ends_the_job_in_the_end(session):
    """R2: though checkpoints are completed in between."""
    backoff = {"initialBackoff": "1 ms", "maxBackoff": "2 ms", "maxSameFailures": 2}
    mute = another(session, "mute", restart=backoff)
    mute.dataSource.register(MuteSource)
    job = mute.readStream.format("mute").load().writeStream.format("noop").start()
    job.wait()
    assert "2 times in this way" in str(job.exception())


def test_queries_of_one_session_need_names_to_share_a_storage(session, running, tmp_path):
    """C17, D2, S7: a plain path is a storage, and the refusal of a second query has the remedy."""
    mine = another(session, "mine")
    place = str(tmp_path / "checkpoints")
    first = endless(mine).writeStream.format("parquet").option("checkpointLocation", place)
    running.append(first.start(str(tmp_path / "first")))

    second = endless(mine).writeStream.format("parquet").option("checkpointLocation", place)
    with pytest.raises(JobRejected, match=r"query mine: .* Remedy: .* queryName"):
        second.start(str(tmp_path / "second"))

    running.append(second.queryName("second").start(str(tmp_path / "second")))
    logs = [tmp_path / "checkpoints" / name / "log" for name in ("mine", "second")]
    until("both have a log", lambda: all(log.is_dir() for log in logs), lambda: str(logs))
    assert [job.is_active for job in running] == [True, True]


def test_an_unbounded_stream_is_checkpointed_by_default(session, running, caplog):
    """C2: its results would never be committed."""
    mine = another(session, "shown")
    running.append(endless(mine).writeStream.format("console").start())
    assert "every 10 s" in caplog.text
