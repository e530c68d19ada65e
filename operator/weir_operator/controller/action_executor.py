"""Executes the actions of a plan against the cluster and the drivers.

It also gives reconcilers their view of both. The result of an action, such as the pod that was just
created, goes into the informer cache, so that the next reconcile need not wait for its watch event.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from weir_operator.cluster.api_paths import JOBS, SNAPSHOTS, ApiResource, NamespacedName
from weir_operator.cluster.api_requests import ApiServer, Json, get_request, successful_body
from weir_operator.cluster.cluster_reader import ClusterReader, ReadDepth, ReadTarget
from weir_operator.cluster.cluster_writer import ClusterWriter, DeleteAction
from weir_operator.cluster.driver_credentials import CredentialsCache, MissingCredential
from weir_operator.cluster.event_recorder import record_event
from weir_operator.cluster.informer_cache import InformerCache
from weir_operator.cluster.object_cache import cached_object
from weir_operator.cluster.observation import ObservedPod, parse_pod
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.cluster.status_writer import (
    Conflict,
    NotFound,
    WriteResult,
    add_finalizer,
    remove_finalizer,
    write_status,
)
from weir_operator.controller.report_watcher import ReportWatcher
from weir_operator.driver_client import DriverEndpoint, DriverRequest, parse_report
from weir_operator.plan.cluster_actions import (
    CreateDriver,
    CreateSnapshot,
    DeleteDriver,
    DeleteJob,
    DeleteSnapshot,
    EmitEvent,
    EnsureDependent,
    ForceDeletePod,
    RequestCheckpoint,
    RequestSavepoint,
    RequestStop,
)
from weir_operator.plan.observed_state import (
    DriverReport,
    Observed,
    Running,
    Terminated,
    Unreachable,
)
from weir_operator.plan.spec_versions import deployed_spec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus
from weir_operator.resource.status import CheckpointedJobStatus


class DriverRequests(Protocol):
    """Sends requests to drivers. It does not raise: the next reconcile repeats a lost request."""

    async def send(self, endpoint: DriverEndpoint, request: DriverRequest) -> bool: ...


@dataclass(frozen=True, slots=True)
class ActionExecutor:
    """All access to the cluster and to drivers that a reconciler needs."""

    api: ApiServer
    cache: InformerCache
    reader: ClusterReader
    writer: ClusterWriter
    credentials: CredentialsCache
    drivers: DriverRequests
    reports: ReportWatcher
    driver_port: int
    now: Callable[[], datetime]

    async def job(self, key: NamespacedName) -> ResourceObject | None:
        return await cached_object(self.api, JOBS, self.cache.jobs, key)

    async def snapshot(self, key: NamespacedName) -> ResourceObject | None:
        return await cached_object(self.api, SNAPSHOTS, self.cache.snapshots, key)

    async def update_cache(
        self, api_resource: ApiResource, key: NamespacedName, written: WriteResult
    ) -> None:
        """Cache the result of a write, or after a conflict the current object."""
        found = await self._reread(api_resource, key) if isinstance(written, Conflict) else written
        known, is_job = self.cache, api_resource is JOBS
        put, drop = (
            (known.put_job, known.drop_job) if is_job else (known.put_snapshot, known.drop_snapshot)
        )
        if not isinstance(written, ResourceObject):
            drop(
                key
            )  # the object from the API server replaces the cached copy, even if it is older
        if isinstance(found, ResourceObject):
            put(found)

    async def observe(
        self, job: ResourceObject, now: datetime, depth: ReadDepth, wanted: ReadTarget
    ) -> Observed:
        return await self.reader.observe(job, now, depth, wanted)

    async def driver_report(
        self, job: ResourceObject, status: CheckpointedJobStatus
    ) -> DriverReport | Unreachable | None:
        """The report of the current driver, the last one, or why it is unreachable."""
        pod = self._current(job, status)
        if pod is None:
            self.reports.forget(job.key)
            return None
        endpoint = await self._endpoint(job, pod.attempt, status)
        if isinstance(endpoint, DriverEndpoint):
            report = await self.reports.latest(job.key, pod.uid, endpoint)
            if isinstance(report, Unreachable) and report.is_untrusted:
                self.credentials.expire_soon(job.key, self.now())
            return report
        self.reports.forget(job.key)
        if isinstance(pod.stage, Terminated):
            return parse_report(pod.termination_message, pod.attempt)
        return endpoint

    def forget(self, job: NamespacedName) -> None:
        """Drop everything that is cached for a job that no longer exists."""
        self.reports.forget(job)
        self.credentials.forget(job)
        self.reader.forget_dependents(job)

    async def send_request(
        self, job: ResourceObject, status: CheckpointedJobStatus, request: DriverRequest
    ) -> None:
        """Send a request to a driver; the next reconcile repeats one that does not arrive."""
        endpoint = await self._endpoint(job, request.attempt, status)
        if isinstance(endpoint, DriverEndpoint):
            await self.drivers.send(endpoint, request)

    async def write_status(
        self,
        api_resource: ApiResource,
        read: ResourceObject,
        status: CheckpointedJobStatus | CheckpointedJobSnapshotStatus,
    ) -> WriteResult:
        return await write_status(self.api, api_resource, read, status)

    async def add_finalizer(self, api_resource: ApiResource, read: ResourceObject) -> WriteResult:
        return await add_finalizer(self.api, api_resource, read)

    async def remove_finalizer(
        self, api_resource: ApiResource, read: ResourceObject
    ) -> WriteResult:
        return await remove_finalizer(self.api, api_resource, read)

    async def warn(
        self, api_resource: ApiResource, about: ResourceObject, reason: str, message: str
    ) -> None:
        """Record a Warning Event for the resource."""
        event = EmitEvent(reason, message, is_warning=True)
        await record_event(self.api, api_resource, about, event, self.now())

    async def execute(
        self, job: ResourceObject, action: object, status: CheckpointedJobStatus
    ) -> None:
        """Execute one action of a plan for a job."""
        match action:
            case EmitEvent():
                await record_event(self.api, JOBS, job, action, self.now())
            case EnsureDependent():
                await self.writer.create(job, action, status)
                self.reader.forget_dependents(job.key)
            case CreateDriver():
                self._cache_pod(await self.writer.create(job, action, status))
                await self.writer.delete_config_map(job, action.attempt - 1)
            case CreateSnapshot():
                await self.writer.create(job, action, status)
            case DeleteDriver() | ForceDeletePod() | DeleteSnapshot() | DeleteJob():
                await self._delete(job, action)
            case RequestSavepoint() | RequestCheckpoint() | RequestStop():
                await self.send_request(job, status, action)
            case _:
                raise AssertionError(f"no plan for a job contains {action}")

    async def _delete(self, job: ResourceObject, action: DeleteAction) -> None:
        """Drop a pod that was already gone from the cache, since no watch has reported its end."""
        was_gone = await self.writer.delete(job, action)
        if not was_gone or not isinstance(action, DeleteDriver | ForceDeletePod):
            return
        for pod in self.cache.pods_of(job.key):
            if pod.uid == action.uid:
                self.cache.drop_pod(pod)

    def _cache_pod(self, body: Json) -> None:
        pod = parse_pod(body)
        assert pod is not None, "the driver's pod has the labels of its job"
        self.cache.put_pod(pod)

    def _current(self, job: ResourceObject, status: CheckpointedJobStatus) -> ObservedPod | None:
        """The pod of the current driver."""
        driver = status.driver
        pod = None if driver is None else self.reader.driver(job, driver.attempt)
        is_it = driver is not None and pod is not None and driver.pod_uid in (None, pod.uid)
        return pod if is_it else None

    async def _endpoint(
        self, job: ResourceObject, attempt: int, status: CheckpointedJobStatus
    ) -> DriverEndpoint | Unreachable | None:
        """How to reach the driver of an attempt; none if it has no address now."""
        pod = self.reader.driver(job, attempt)
        if pod is None or not pod.ip or not isinstance(pod.stage, Running):
            return None
        deployed = deployed_spec(status)
        tls_secret = None if deployed is None else deployed.tls_secret
        credential = await self.credentials.of(job, tls_secret, self.now())
        if isinstance(credential, MissingCredential):
            return Unreachable(credential.why, is_untrusted=credential.is_authority)
        return DriverEndpoint(
            pod.ip, self.driver_port, attempt, credential.token, credential.authority
        )

    async def _reread(
        self, api_resource: ApiResource, key: NamespacedName
    ) -> ResourceObject | NotFound:
        """Read the object from the API server."""
        request = get_request(api_resource, key)
        answer = await self.api.call(request)
        return (
            NotFound() if answer.is_not_found else ResourceObject(successful_body(request, answer))
        )
