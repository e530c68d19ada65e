"""Turns a finished stream and a configuration into a running job.

Everything that can be refused is refused here, before a slot starts: a graph that cannot be
checkpointed, a function that cannot be pickled, a port that is in use.
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
from weir.api.state_config import StateBackend, StateConfig
from weir.core.restore_decision import RestoreRequest
from weir.dataflow.graph import GraphDefaults, build
from weir.dataflow.logical import WrittenStream
from weir.dataflow.physical import JobGraph
from weir.dataflow.pickle_check import check_picklable
from weir.driver.driver_environment import DriverEnvironment
from weir.driver.driver_process import Driver, Submission
from weir.driver.job_startup import inherited_max_parallelism, is_new, refuse_running_duplicate
from weir.driver.liveness_probe import LivenessProbe
from weir.driver.policy_settings import changelog_of, merging_of, restore_request_of
from weir.driver.started_jobs import STARTED
from weir.driver.view import DriverView
from weir.errors import JobRejected
from weir.rest.server import ListenAddress
from weir.slot.slot_process import SlotSetting
from weir.slot.snapshot_storage import SnapshotStorageSettings
from weir.slot.subtask_deployment import AlignmentSettings
from weir.spark.checkpoint_interval import with_interval
from weir.spark.eviction import save_before_eviction
from weir.spark.initial_state import savepoint_of, without_initial_state
from weir.spark.job_api import JobApi
from weir.spark.slot_tasks import SparkSlots
from weir.spark.streaming_job import SlotRequest, StreamingJob
from weir.storage.retries import AVAILABILITY_TIMEOUT_SECONDS, AvailabilityCheck
from weir.storage.store_by_scheme import StoreByScheme
from weir.storage.stores import ObjectStore
from weir.wire.authenticated_sockets import Address, Tls

HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class RequestedJob:
    """The job that the user asked to run."""

    name: str
    storage: str
    written: WrittenStream

    @property
    def directory(self) -> str:
        return f"{self.storage}/{self.name}"


def submit(
    spark: SparkContext, config: JobConfig, requested: RequestedJob, assignment: DriverEnvironment
) -> StreamingJob:
    if assignment.job:
        STARTED.refuse_another(assignment.job)
    assignment = replace(assignment, deployment=assignment.deployment or uuid4().hex)
    restore_request = restore_request_of(config, assignment)
    store = StoreByScheme()
    AvailabilityCheck(store, requested.directory).wait(
        None if assignment.is_managed else AVAILABILITY_TIMEOUT_SECONDS
    )
    tls = _tls(config)
    refuse_running_duplicate(
        store, requested.directory, restore_request, LivenessProbe(requested.directory, tls)
    )
    config = with_interval(config, requested.written)
    graph, given = without_initial_state(_graph(config, requested, store, restore_request))
    if given and not restore_request.path and is_new(store, requested.directory, restore_request):
        place = savepoint_of(given, requested.directory, store)
        restore_request = replace(restore_request, path=place, claims=True, fresh=False)
    submission = Submission(
        name=requested.name,
        deployment=restore_request.deployment,
        graph=graph,
        config=config,
        directory=requested.directory,
        secret=secrets.token_bytes(32),
        tls=tls,
        bind_host=os.environ.get(WEIR_HOST, "127.0.0.1"),
        attempt=assignment.attempt,
        trace_directory=Path(os.environ[WEIR_TRACE]) if WEIR_TRACE in os.environ else None,
    )
    slots = SparkSlots(spark, f"weir-{requested.name}-{uuid4().hex[:8]}")
    driver = Driver(submission, store, slots)
    api = JobApi(requested.name, DriverView(submission, driver), _place(submission))
    job = StreamingJob(requested.name, driver, slots, api)
    setting = _setting(submission, driver.address, requested.storage)
    save_before_eviction(job)
    job.start(
        restore_request, SlotRequest(setting, graph.topology.slots_needed + config.standby_slots)
    )
    STARTED.add(job)
    return job


def _place(submission: Submission) -> ListenAddress:
    """Where the job's API listens."""
    port = os.environ.get(WEIR_PORT) or "0"
    if not (port.isascii() and port.isdecimal() and int(port) <= HIGHEST_PORT):
        raise JobRejected(
            f"{WEIR_PORT} = {port[:40]} is not allowed",
            "it is no port",
            "use a number up to 65535",
        )
    return ListenAddress(submission.bind_host, int(port), submission.tls)


def _graph(
    config: JobConfig, requested: RequestedJob, store: ObjectStore, restore_request: RestoreRequest
) -> JobGraph:
    inherited = inherited_max_parallelism(store, requested.directory, restore_request)
    defaults = GraphDefaults(config.parallelism, config.max_parallelism, inherited)
    graph = build((requested.written,), defaults)
    check_picklable(graph, cloudpickle.dumps)
    return graph


def _setting(submission: Submission, driver: Address, storage: str) -> SlotSetting:
    policy = submission.policy
    checkpointing = submission.config.checkpointing
    return SlotSetting(
        driver=driver,
        secret=submission.secret,
        tls=submission.tls,
        graph=submission.graph,
        alignment=AlignmentSettings(policy.mode, declines_after_end=not policy.after_tasks_finish),
        storage=SnapshotStorageSettings(
            storage,
            checkpointing.inline_threshold,
            checkpointing.memory_limit,
            checkpointing.incremental,
            _local_directory(submission),
            merging_of(submission.config),
            changelog_of(submission.config),
            _restore_directory(submission.config.state),
        ),
        state=submission.config.state,
    )


def _restore_directory(state: StateConfig) -> str | None:
    """Only state that is on disk while the job runs may be larger than memory."""
    if state.backend is not StateBackend.ROCKSDB:
        return None
    return state.rocksdb_local_dir or ""


def _local_directory(submission: Submission) -> str:
    """A local directory of the job; a variable sets its parent, such as a mounted volume."""
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
