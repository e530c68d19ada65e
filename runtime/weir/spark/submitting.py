"""Turns a finished stream and a configuration into a running job.

Whatever can be refused is refused here, before a slot is started: a graph that could not be
checkpointed, a function that cannot travel, a port that is taken.
"""

import os
import secrets
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from pyspark import SparkContext, cloudpickle

from weir.api.config import JobConfig
from weir.core.recovery import Wish
from weir.dataflow.graph import GraphDefaults, build
from weir.dataflow.logical import WrittenStream
from weir.dataflow.physical import JobGraph
from weir.dataflow.travel import check_travels
from weir.driver.process import Driver, Submission
from weir.driver.settings import policy_of, wish_of
from weir.driver.starting import inherited_max_parallelism, is_new
from weir.driver.view import DriverView
from weir.slot.keeping import Keeping
from weir.slot.launching import Manners
from weir.slot.process import SlotSetting
from weir.spark.eviction import save_before_eviction
from weir.spark.initial_state import savepoint_of, taken_off
from weir.spark.job import Crew, StreamingJob
from weir.spark.reach import Reach
from weir.spark.slots import SparkSlots
from weir.storage.by_scheme import StoreByScheme
from weir.storage.objects import ObjectStore
from weir.wire.links import Address, Tls

TRACE = "WEIR_TRACE"
"""Names a directory in which drivers write down what they hear and decide."""

DEPLOYMENT = "WEIR_DEPLOYMENT"
"""Names the submission, for a driver that is started again on its behalf."""

LOCAL_DIRECTORY = "WEIR_LOCAL_DIR"
"""Where executors keep local copies of state; below the temporary directory if it is not set."""

HOST = "WEIR_HOST"
"""The address by which slots and clients on other machines reach this driver, such as its pod's;
if it is not set, all are on this machine."""

PORT = "WEIR_PORT"
"""Where the job's API listens; any free port if it is not set."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked to run."""

    name: str
    storage: str
    written: WrittenStream

    @property
    def directory(self) -> str:
        return f"{self.storage}/{self.name}"


def submit(spark: SparkContext, config: JobConfig, wanted: Wanted) -> StreamingJob:
    wish = wish_of(config, os.environ.get(DEPLOYMENT, uuid4().hex))
    store = StoreByScheme()
    host = os.environ.get(HOST, "127.0.0.1")
    graph, given = taken_off(_graph(config, wanted, store, wish))
    if given and not wish.path and is_new(store, wanted.directory):
        wish = replace(wish, path=savepoint_of(given, wanted.directory, store), claims=True)
    submission = Submission(
        name=wanted.name,
        deployment=wish.deployment,
        graph=graph,
        config=config,
        directory=wanted.directory,
        secret=secrets.token_bytes(32),
        tls=_tls(config),
        bind_host=host,
        trace_directory=Path(os.environ[TRACE]) if TRACE in os.environ else None,
    )
    slots = SparkSlots(spark, f"weir-{wanted.name}-{uuid4().hex[:8]}")
    driver = Driver(submission, store, slots)
    reach = Reach(wanted.name, DriverView(submission, driver), host, int(os.environ.get(PORT, "0")))
    job = StreamingJob(wanted.name, driver, slots, reach)
    setting = _setting(submission, driver.address, wanted.storage)
    save_before_eviction(driver)
    job.start(wish, Crew(setting, graph.topology.slots_needed + config.standby_slots))
    return job


def _graph(config: JobConfig, wanted: Wanted, store: ObjectStore, wish: Wish) -> JobGraph:
    inherited = inherited_max_parallelism(store, wanted.directory, wish.path)
    defaults = GraphDefaults(config.parallelism, config.max_parallelism, inherited)
    graph = build((wanted.written,), defaults)
    check_travels(graph, cloudpickle.dumps)
    return graph


def _setting(submission: Submission, driver: Address, storage: str) -> SlotSetting:
    policy = policy_of(submission.config)
    checkpointing = submission.config.checkpointing
    return SlotSetting(
        driver=driver,
        secret=submission.secret,
        tls=submission.tls,
        graph=submission.graph,
        manners=Manners(policy.mode, declines_after_end=not policy.after_tasks_finish),
        keeping=Keeping(
            storage,
            checkpointing.inline_threshold,
            checkpointing.memory_limit,
            checkpointing.incremental,
            _local_directory(submission),
        ),
    )


def _local_directory(submission: Submission) -> str:
    """One for each job, on every machine; who mounts a volume there says so by a variable."""
    if not submission.config.state.local_recovery:
        return ""
    place = Path(os.environ.get(LOCAL_DIRECTORY, Path(tempfile.gettempdir()) / "weir-local"))
    return str(place / quote(submission.directory, safe=""))


def _tls(config: JobConfig) -> Tls | None:
    """The files have the names of a Kubernetes TLS secret."""
    if config.tls_dir is None:
        return None
    files = Path(config.tls_dir)
    return Tls(files / "tls.crt", files / "tls.key", files / "ca.crt")
