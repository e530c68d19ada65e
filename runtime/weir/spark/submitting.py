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
from weir.api.environment_variables import WEIR_HOST, WEIR_LOCAL_DIR, WEIR_PORT, WEIR_TRACE
from weir.core.restore_decision import RestoreRequest
from weir.dataflow.graph import GraphDefaults, build
from weir.dataflow.logical import WrittenStream
from weir.dataflow.physical import JobGraph
from weir.dataflow.travel import check_travels
from weir.driver.driver_environment import DriverEnvironment
from weir.driver.driver_process import Driver, Submission
from weir.driver.job_startup import inherited_max_parallelism, is_new, refuse_running_duplicate
from weir.driver.liveness_probe import LivenessProbe
from weir.driver.policy_settings import restore_request_of
from weir.driver.started_jobs import STARTED
from weir.driver.view import DriverView
from weir.errors import JobRejected
from weir.rest.server import Place
from weir.slot.keeping import Keeping
from weir.slot.launching import Manners
from weir.slot.process import SlotSetting
from weir.spark.eviction import save_before_eviction
from weir.spark.initial_state import savepoint_of, taken_off
from weir.spark.interval import with_interval
from weir.spark.job import Crew, StreamingJob
from weir.spark.reach import Reach
from weir.spark.slots import SparkSlots
from weir.storage.by_scheme import StoreByScheme
from weir.storage.objects import ObjectStore
from weir.storage.waiting import FIRST_ANSWER_SECONDS, FirstAnswer
from weir.wire.authenticated_sockets import Address, Tls

HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked to run."""

    name: str
    storage: str
    written: WrittenStream

    @property
    def directory(self) -> str:
        return f"{self.storage}/{self.name}"


def submit(
    spark: SparkContext, config: JobConfig, wanted: Wanted, assignment: DriverEnvironment
) -> StreamingJob:
    if assignment.job:
        STARTED.refuse_another(assignment.job)
    assignment = replace(assignment, deployment=assignment.deployment or uuid4().hex)
    restore_request = restore_request_of(config, assignment)
    store = StoreByScheme()
    FirstAnswer(store, wanted.directory).wait(
        None if assignment.is_managed else FIRST_ANSWER_SECONDS
    )
    tls = _tls(config)
    refuse_running_duplicate(
        store, wanted.directory, restore_request, LivenessProbe(wanted.directory, tls)
    )
    config = with_interval(config, wanted.written)
    graph, given = taken_off(_graph(config, wanted, store, restore_request))
    if given and not restore_request.path and is_new(store, wanted.directory, restore_request):
        place = savepoint_of(given, wanted.directory, store)
        restore_request = replace(restore_request, path=place, claims=True, fresh=False)
    submission = Submission(
        name=wanted.name,
        deployment=restore_request.deployment,
        graph=graph,
        config=config,
        directory=wanted.directory,
        secret=secrets.token_bytes(32),
        tls=tls,
        bind_host=os.environ.get(WEIR_HOST, "127.0.0.1"),
        attempt=assignment.attempt,
        trace_directory=Path(os.environ[WEIR_TRACE]) if WEIR_TRACE in os.environ else None,
    )
    slots = SparkSlots(spark, f"weir-{wanted.name}-{uuid4().hex[:8]}")
    driver = Driver(submission, store, slots)
    reach = Reach(wanted.name, DriverView(submission, driver), _place(submission))
    job = StreamingJob(wanted.name, driver, slots, reach)
    setting = _setting(submission, driver.address, wanted.storage)
    save_before_eviction(job)
    job.start(restore_request, Crew(setting, graph.topology.slots_needed + config.standby_slots))
    STARTED.add(job)
    return job


def _place(submission: Submission) -> Place:
    """Where the job's API listens."""
    port = os.environ.get(WEIR_PORT) or "0"
    if not (port.isascii() and port.isdecimal() and int(port) <= HIGHEST_PORT):
        raise JobRejected(
            f"{WEIR_PORT} = {port[:40]} is not allowed",
            "it is no port",
            "use a number up to 65535",
        )
    return Place(submission.bind_host, int(port), submission.tls)


def _graph(
    config: JobConfig, wanted: Wanted, store: ObjectStore, restore_request: RestoreRequest
) -> JobGraph:
    inherited = inherited_max_parallelism(store, wanted.directory, restore_request)
    defaults = GraphDefaults(config.parallelism, config.max_parallelism, inherited)
    graph = build((wanted.written,), defaults)
    check_travels(graph, cloudpickle.dumps)
    return graph


def _setting(submission: Submission, driver: Address, storage: str) -> SlotSetting:
    policy = submission.policy
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
    place = Path(os.environ.get(WEIR_LOCAL_DIR, Path(tempfile.gettempdir()) / "weir-local"))
    return str(place / quote(submission.directory, safe=""))


def _tls(config: JobConfig) -> Tls | None:
    """The files have the names of a Kubernetes TLS secret."""
    if config.tls_dir is None:
        return None
    files = Path(config.tls_dir)
    return Tls(files / "tls.crt", files / "tls.key", files / "ca.crt")
