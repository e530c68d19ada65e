"""Writes the status and the finalizer of custom resources under an optimistic lock.

The lock is the resource version that was read. An operator whose copy is stale, or that is no
longer the leader, fails at the write and does nothing else: the status is written before every
effect (spec K3). A conflict is a result, not an error. A resource that has become too large to be
stored raises ``ResourceTooLarge``, because its user must act.
"""

from dataclasses import dataclass

from weir_operator.cluster.api_paths import JOBS, SNAPSHOTS, ApiResource
from weir_operator.cluster.api_requests import (
    ApiRejected,
    ApiRequest,
    ApiServer,
    Json,
    ObjectTooLarge,
    successful_body,
)
from weir_operator.cluster.resource_object import FINALIZER, ResourceObject
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION, Kind
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus
from weir_operator.resource.status import CheckpointedJobStatus

MERGE = "application/merge-patch+json"
KINDS: dict[ApiResource, Kind] = {JOBS: JOB, SNAPSHOTS: SNAPSHOT}


@dataclass(frozen=True, slots=True)
class Conflict:
    """The object has changed since it was read; read it again and plan again."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """The object is gone."""


class ResourceTooLarge(ApiRejected):
    """The API server does not store the resource until a user makes it smaller."""


WriteResult = ResourceObject | Conflict | NotFound


async def write_status(
    api: ApiServer,
    api_resource: ApiResource,
    read: ResourceObject,
    status: CheckpointedJobStatus | CheckpointedJobSnapshotStatus,
) -> WriteResult:
    """Replace the whole status, so that no old field remains.

    The API server ignores everything but the status in a write to ``/status``, so the
    specification, which may not even be cached, is not sent.
    """
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KINDS[api_resource].kind,
        "metadata": _locked(read),
        "status": status.model_dump(mode="json", exclude_none=True),
    }
    return await _write(
        api,
        ApiRequest("PUT", api_resource, f"{api_resource.object_path(read.key)}/status", body=body),
    )


async def add_finalizer(
    api: ApiServer, api_resource: ApiResource, read: ResourceObject
) -> WriteResult:
    """Set the finalizer, so that the object stays until the operator has cleaned up."""
    return await _with_finalizers(api, api_resource, read, [*read.finalizers, FINALIZER])


async def remove_finalizer(
    api: ApiServer, api_resource: ApiResource, read: ResourceObject
) -> WriteResult:
    others = [name for name in read.finalizers if name != FINALIZER]
    return await _with_finalizers(api, api_resource, read, others)


async def _with_finalizers(
    api: ApiServer, api_resource: ApiResource, read: ResourceObject, names: list[str]
) -> WriteResult:
    body = {"metadata": {**_locked(read), "finalizers": names}}
    return await _write(
        api, ApiRequest("PATCH", api_resource, api_resource.object_path(read.key), {}, body, MERGE)
    )


def _locked(read: ResourceObject) -> Json:
    return {
        "name": read.key.name,
        "namespace": read.key.namespace,
        "uid": read.uid,
        "resourceVersion": read.version,
    }


async def _write(api: ApiServer, request: ApiRequest) -> WriteResult:
    answer = await api.call(request)
    if answer.is_conflict:
        return Conflict()
    if answer.is_not_found:
        return NotFound()
    try:
        return ResourceObject(successful_body(request, answer))
    except ObjectTooLarge as problem:
        raise ResourceTooLarge(problem.reason, *problem.parts) from problem
