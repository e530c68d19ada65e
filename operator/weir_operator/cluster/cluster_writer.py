"""Makes and deletes what belongs to a job, so that doing it twice changes nothing.

What is there already is adopted if it belongs to this very resource; a stranger of the same name is
left alone and a person is told. Deleting names the uid, so that a namesake which was made in the
meantime is never hit. Random keys are made here and go nowhere but into their Secret (spec X4).
"""

import secrets
from dataclasses import dataclass
from typing import assert_never

from weir_operator.cluster.api_paths import (
    BATCH_JOBS,
    BUDGETS,
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICES,
    SNAPSHOTS,
    Key,
    Place,
)
from weir_operator.cluster.api_requests import Api, ApiRefused, Json, Request, create, good, read
from weir_operator.cluster.resource_object import Opened
from weir_operator.cluster.status_writer import MERGE
from weir_operator.manifests import (
    DriverOrder,
    Owner,
    budget,
    config,
    disposal_job,
    driver_pod,
    keys,
    network_policy,
    service,
)
from weir_operator.manifests.network_policy import Peers
from weir_operator.manifests.object_names import config_name, driver_name, labels
from weir_operator.plan.cluster_actions import (
    CreateDriver,
    CreateSnapshot,
    DeleteDriver,
    DeleteJob,
    DeleteSnapshot,
    Dispose,
    Ensure,
    ForceDelete,
)
from weir_operator.plan.observed_state import Part
from weir_operator.plan.spec_versions import read as read_version
from weir_operator.resource.api_group import GROUP, SNAPSHOT, VERSION
from weir_operator.resource.status import CheckpointedJobStatus

KEY_BYTES = 32

Made = Ensure | CreateDriver | CreateSnapshot
Deleted = DeleteDriver | ForceDelete | DeleteSnapshot | DeleteJob


@dataclass(frozen=True, slots=True)
class Hands:
    """Carries out what a plan decided about objects of the cluster."""

    api: Api
    driver_peers: Peers | None = None
    """Who else reaches the API of drivers; if nobody was named, no job gets a NetworkPolicy."""

    async def make(self, job: Opened, action: Made, status: CheckpointedJobStatus) -> Json:
        """Make an object of a job, or adopt it; the status says what it is made of."""
        match action:
            case Ensure(part=Part.NETWORK_POLICY):
                return await self._make_network_policy(job)
            case Ensure():
                place, manifest = _part(job, action, status)
            case CreateDriver():
                place, manifest = PODS, driver_pod(owner_of(job), _order_of(action))
            case CreateSnapshot():
                place, manifest = SNAPSHOTS, _snapshot(job, action)
            case _:
                assert_never(action)
        return await self._make(place, job, manifest)

    async def forget_configuration(self, job: Opened, attempt: int) -> None:
        """Delete what an attempt that is over was told; where we may not, it goes with its job."""
        if attempt > 0:
            key = Key(job.key.namespace, config_name(job.key.name, attempt))
            await self.api.call(Request("DELETE", CONFIG_MAPS, CONFIG_MAPS.of(key)))

    async def dispose(self, snapshot: Opened, action: Dispose) -> None:
        """Start the Job that deletes a snapshot's files."""
        status = action.status
        assert status.path is not None, "files that lie nowhere are not deleted"
        assert status.disposal is not None, "how to delete them was written down"
        manifest = disposal_job(owner_of(snapshot), status.path, status.disposal)
        await self._make(BATCH_JOBS, snapshot, manifest)

    async def delete(self, job: Opened, action: Deleted) -> bool:
        """Delete this very object; what is gone is done. Whether it was gone already."""
        match action:
            case DeleteDriver(name, uid, _, force):
                place, options = PODS, _options(uid, force=force)
            case ForceDelete(name, uid):
                place, options = PODS, _options(uid, force=True)
            case DeleteSnapshot(name):
                place, options = SNAPSHOTS, {}
            case DeleteJob(name):
                place, options = JOBS, _options(job.uid, force=False)
            case _:
                assert_never(action)
        path = place.of(Key(job.key.namespace, name))
        request = Request("DELETE", place, path, body=options)
        answer = await self.api.call(request)
        if answer.is_missing or answer.is_conflict:
            return True
        good(request, answer)
        return False

    async def _make_network_policy(self, job: Opened) -> Json:
        if self.driver_peers is None:
            return {}
        manifest = network_policy(owner_of(job), self.driver_peers)
        return await self._make(NETWORK_POLICIES, job, manifest)

    async def _make(self, place: Place, owner: Opened, manifest: Json) -> Json:
        request = create(place, owner.key.namespace, manifest)
        answer = await self.api.call(request)
        if not answer.is_conflict:
            return good(request, answer)
        key = Key(owner.key.namespace, str(manifest["metadata"]["name"]))
        again = read(place, key)
        there = good(again, await self.api.call(again))
        if _is_of(owner, place, there):
            return await self._brought_up(place, key, there, manifest)
        raise ApiRefused(
            "NameTaken",
            f"the object {key.name} cannot be made among the {place.plural} of this namespace",
            f"one of that name is there already, and it does not belong to {owner.key.name}",
            "delete it, or give the job another name",
        )

    async def _brought_up(self, place: Place, key: Key, there: Json, manifest: Json) -> Json:
        """What outlives an attempt follows the job's size and the operator's settings."""
        if place not in (BUDGETS, NETWORK_POLICIES):
            return there
        wanted = manifest["spec"]
        if all(there["spec"].get(name) == value for name, value in wanted.items()):
            return there
        request = Request("PATCH", place, place.of(key), {}, {"spec": wanted}, MERGE)
        return good(request, await self.api.call(request))


def owner_of(resource: Opened) -> Owner:
    return Owner(resource.key.name, resource.key.namespace, resource.uid)


def _is_of(owner: Opened, place: Place, there: Json) -> bool:
    """Whether what is there was made for this very resource; a snapshot outlives its job."""
    if place is SNAPSHOTS:
        return bool(there["spec"].get("jobName") == owner.key.name)
    owners = there["metadata"].get("ownerReferences") or ()
    return any(one.get("uid") == owner.uid for one in owners)


def _part(job: Opened, action: Ensure, status: CheckpointedJobStatus) -> tuple[Place, Json]:
    owner = owner_of(job)
    match action.part:
        case Part.KEYS:
            token, secret = secrets.token_urlsafe(KEY_BYTES), secrets.token_urlsafe(KEY_BYTES)
            return SECRETS, keys(owner, token, secret)
        case Part.SERVICE:
            return SERVICES, service(owner)
        case Part.CONFIG:
            return CONFIG_MAPS, config(owner, _order(job, action, status))
        case Part.BUDGET:
            return BUDGETS, budget(owner, read_version(action.version))
        case Part.NETWORK_POLICY:
            raise AssertionError("it is made of the operator's settings, not of the specification")
        case _:
            assert_never(action.part)


def _order(job: Opened, action: Ensure, status: CheckpointedJobStatus) -> DriverOrder:
    assert status.restore_point is not None, "what a driver starts from is written first"
    assert status.job_id is not None, "and so is where its state lies"
    return DriverOrder(
        driver_name(job.key.name, action.attempt),
        action.attempt,
        read_version(action.version),
        status.restore_point,
        status.job_id,
        local_recovery=action.local_recovery,
    )


def _order_of(action: CreateDriver) -> DriverOrder:
    return DriverOrder(
        action.name,
        action.attempt,
        read_version(action.version),
        action.restore,
        action.job_id,
        local_recovery=action.local_recovery,
    )


def _snapshot(job: Opened, action: CreateSnapshot) -> Json:
    """It has no owner: a savepoint outlives its job."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": SNAPSHOT.kind,
        "metadata": {
            "name": action.name,
            "namespace": job.key.namespace,
            "labels": labels(job.key.name),
        },
        "spec": action.spec.model_dump(mode="json", exclude_none=True),
    }


def _options(uid: str, *, force: bool) -> Json:
    """Of a deletion: this very object, and by force without waiting for its node."""
    options = {"preconditions": {"uid": uid}}
    return {**options, "gracePeriodSeconds": 0} if force else options
