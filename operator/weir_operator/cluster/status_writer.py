"""Writes to resources of ours: their status under a lock, and the finalizer that holds them.

The lock is the version that was read. Somebody whose copy is old, or who is no longer the leader,
fails at the write and so does nothing else: the status stands before every effect (spec K3). A lost
race is an outcome, not an error. A resource that has become too large to be written at all is one
whose owner must act; it says so as ``Unwritable``.
"""

from dataclasses import dataclass

from weir_operator.cluster.api_paths import JOBS, SNAPSHOTS, Place
from weir_operator.cluster.api_requests import Api, ApiRefused, Json, Request, TooLarge, good
from weir_operator.cluster.resource_object import FINALIZER, Opened
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION, Kind
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus
from weir_operator.resource.status import CheckpointedJobStatus

MERGE = "application/merge-patch+json"
KINDS: dict[Place, Kind] = {JOBS: JOB, SNAPSHOTS: SNAPSHOT}


@dataclass(frozen=True, slots=True)
class Conflict:
    """The object is no longer as it was read; read it again and decide again."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """The object is gone."""


class Unwritable(ApiRefused):
    """The API server does not store the resource any more until somebody makes it smaller."""


Written = Opened | Conflict | Vanished


async def write_status(
    api: Api,
    place: Place,
    read: Opened,
    status: CheckpointedJobStatus | CheckpointedJobSnapshotStatus,
) -> Written:
    """Put the whole status, so that nothing of the old one stays.

    The API server takes nothing else from a write to ``/status``, so the specification, which may
    not even have been kept, is not sent back.
    """
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KINDS[place].kind,
        "metadata": _locked(read),
        "status": status.model_dump(mode="json", exclude_none=True),
    }
    return await _write(api, Request("PUT", place, f"{place.of(read.key)}/status", body=body))


async def hold(api: Api, place: Place, read: Opened) -> Written:
    """Let nothing delete it before we are done with it."""
    return await _with_finalizers(api, place, read, [*read.finalizers, FINALIZER])


async def let_go(api: Api, place: Place, read: Opened) -> Written:
    others = [name for name in read.finalizers if name != FINALIZER]
    return await _with_finalizers(api, place, read, others)


async def _with_finalizers(api: Api, place: Place, read: Opened, names: list[str]) -> Written:
    body = {"metadata": {**_locked(read), "finalizers": names}}
    return await _write(api, Request("PATCH", place, place.of(read.key), {}, body, MERGE))


def _locked(read: Opened) -> Json:
    return {
        "name": read.key.name,
        "namespace": read.key.namespace,
        "uid": read.uid,
        "resourceVersion": read.version,
    }


async def _write(api: Api, request: Request) -> Written:
    answer = await api.call(request)
    if answer.is_conflict:
        return Conflict()
    if answer.is_missing:
        return Vanished()
    try:
        return Opened(good(request, answer))
    except TooLarge as problem:
        raise Unwritable(problem.reason, *problem.parts) from problem
