"""``WeirSession``: the entry point of a job, with PySpark's names.

    session = WeirSession.builder.appName("orders").config("weir.parallelism", 2).getOrCreate()
    session.readStream.format("generator").load().writeStream.format("console").start()

Settings that begin with ``weir.`` are the job's (``weir.checkpointing.interval``), but for two that
are about this start of it: ``weir.takeOver`` replaces a live driver of another submission, and
``weir.rerun`` runs a job that has finished once more. All other settings go to Spark. Under an
operator the operator gives the job's name and settings, and those of the script apply elsewhere.
This module only connects the parts.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceRegistration

import weir
from weir.api.config import JobConfig, load_config
from weir.api.storage_url import is_memory
from weir.connectors.built_in_formats import built_in
from weir.connectors.pyspark.pickle_signatures import JobKey, job_key
from weir.connectors.pyspark.stream_writer import StreamSink
from weir.dataflow.formats import Formats
from weir.dataflow.logical import Read, WrittenStream
from weir.dataflow.reader import StreamReader
from weir.dataflow.stream import Stream
from weir.dataflow.writer import Session
from weir.driver.driver_environment import DriverEnvironment, driver_environment_of
from weir.errors import JobRejected
from weir.spark.data_sources import registered, with_data_sources
from weir.spark.dataframe_source import DataFrameSource
from weir.spark.excepthook import install_excepthook
from weir.spark.session_settings import (
    job_settings,
    spark_settings,
    with_start_settings,
    without_start_settings,
)
from weir.spark.setting_names import PREFIX, refuse_misnamed
from weir.spark.streaming_job import StreamingJob
from weir.spark.submission import RequestedJob, submit
from weir.storage.stores import as_url

log = logging.getLogger("weir.spark")

DEFAULT_NAME = "weir-job"
DRIVER_MEMORY = "memory://weir"


@dataclass(frozen=True, slots=True)
class Builder:
    """Collects settings; every call returns a new builder."""

    name: str = DEFAULT_NAME
    settings: Mapping[str, str] = field(default_factory=dict)

    def appName(self, name: str) -> "Builder":  # noqa: N802
        return replace(self, name=name)

    def master(self, url: str) -> "Builder":
        return self.config("spark.master", url)

    def config(self, key: str, value: object) -> "Builder":
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return replace(self, settings={**self.settings, key: text})

    def getOrCreate(self) -> "WeirSession":  # noqa: N802
        """Judge the job's settings, then start Spark or take the one that runs."""
        install_excepthook()
        refuse_misnamed(self.settings)
        ours = {k.removeprefix(PREFIX): v for k, v in self.settings.items() if k.startswith(PREFIX)}
        theirs = {k: v for k, v in self.settings.items() if not k.startswith(PREFIX)}
        assignment = with_start_settings(driver_environment_of(os.environ), ours)
        config = load_config(job_settings(without_start_settings(ours), os.environ))
        name = assignment.job or self.name
        return WeirSession(name, config, _spark(name, config, theirs), assignment)


def _spark(name: str, config: JobConfig, given: Mapping[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    slots = config.parallelism + config.standby_slots
    builder = SparkSession.builder.appName(name)
    for key, value in spark_settings(slots, Path(weir.__file__).parent.parent, given).items():
        builder = builder.config(key, value)
    with _own_interrupt():
        return builder.getOrCreate()


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Spark takes Ctrl-C for itself, to cancel its jobs; ours would be cancelled without a word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


class WeirSession:
    """A Spark session that runs checkpointed jobs."""

    builder = Builder()

    def __init__(
        self, name: str, config: JobConfig, spark: SparkSession, assignment: DriverEnvironment
    ) -> None:
        self.name = name
        self.config = config
        self.spark = spark
        self._assignment = assignment
        self._jobs: dict[str, StreamingJob] = {}
        """Those that this session has started, by their directories."""
        self._session = Session(self._formats(), self._submit)

    def _formats(self) -> Formats:
        return with_data_sources(built_in(), partial(registered, self.spark), self._key)

    def _key(self) -> JobKey:
        return job_key(self.name, os.environ, Path.home())

    @property
    def dataSource(self) -> DataSourceRegistration:  # noqa: N802
        """Spark's own registry: what is registered there can be read and written here."""
        return self.spark.dataSource

    @property
    def readStream(self) -> StreamReader:  # noqa: N802
        return StreamReader(self._session)

    def fromDataFrame(self, frame: DataFrame) -> Stream:  # noqa: N802
        """Whatever Spark can read, as a stream that ends."""
        source = DataFrameSource.of(frame, self._storage)
        return Stream(Read(source, source.schema), self._session)

    @property
    def _storage(self) -> str:
        return self.config.checkpointing.storage or DRIVER_MEMORY

    def stop(self) -> None:
        self.spark.stop()

    def _submit(self, written: WrittenStream) -> StreamingJob:
        name, storage = written.query_name or self.name, self._storage
        if self._assignment.job:
            name = self._assignment.job
            if written.query_name or written.checkpoint_location:
                log.warning("The script's queryName and checkpointLocation are not used: %s", name)
        elif written.checkpoint_location:
            storage = as_url(written.checkpoint_location)
        storage = storage.rstrip("/")
        wanted = RequestedJob(name, storage, _kept(written, f"{storage}/{name}"))
        self._refuse_second(wanted, is_named=bool(written.query_name))
        job = submit(self.spark.sparkContext, self.config, wanted, self._assignment)
        self._jobs[wanted.directory] = job
        return job

    def _refuse_second(self, wanted: RequestedJob, *, is_named: bool) -> None:
        """Two queries under one name would be one job; in memory, unnamed ones share nothing."""
        job = self._jobs.get(wanted.directory)
        if job is None or not job.is_active or (is_memory(wanted.storage) and not is_named):
            return
        cause = (
            "has that name" if is_named else "has no name either and is called after the session"
        )
        raise JobRejected(
            f"query {wanted.name}: it would share the checkpoints in {wanted.directory}",
            f"a query that runs in this session {cause}",
            "give each query another name with queryName",
        )


def _kept(written: WrittenStream, directory: str) -> WrittenStream:
    """What a sink keeps between a barrier and its commit is kept beside the checkpoints."""
    if not isinstance(written.sink, StreamSink) or is_memory(directory):
        return written
    sink = written.sink.kept_in(f"{directory}/sinks/{written.settings.uid or 'sink'}")
    return replace(written, sink=sink)
