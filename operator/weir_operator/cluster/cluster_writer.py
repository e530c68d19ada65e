"""Creates and deletes the objects of a job. Every operation is idempotent.

An existing object is adopted if this resource owns it; a foreign object of the same name is left
alone and reported. Deletions have a uid precondition, so that a new object of the same name is
never deleted. Random keys are generated here and stored only in their Secret (spec X4).
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
    ApiResource,
    NamespacedName,
)
from weir_operator.cluster.api_requests import (
    ApiRejected,
    ApiRequest,
    ApiServer,
    Json,
    create_request,
    get_request,
    successful_body,
)
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.cluster.status_writer import MERGE
from weir_operator.manifests import (
    DriverAttempt,
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
    EnsureDependent,
    ForceDeletePod,
)
from weir_operator.plan.observed_state import Dependent
from weir_operator.plan.spec_versions import read as read_version
from weir_operator.resource.api_group import GROUP, SNAPSHOT, VERSION
from weir_operator.resource.status import CheckpointedJobStatus

KEY_BYTES = 32

CreateAction = EnsureDependent | CreateDriver | CreateSnapshot
DeleteAction = DeleteDriver | ForceDeletePod | DeleteSnapshot | DeleteJob


@dataclass(frozen=True, slots=True)
class ClusterWriter:
    """Executes the actions of a plan that concern objects of the cluster."""

    api: ApiServer
    driver_peers: Peers | None = None
    """Who else may reach the API of drivers; without it, no job gets a NetworkPolicy."""

    async def create(
        self, job: ResourceObject, action: CreateAction, status: CheckpointedJobStatus
    ) -> Json:
        """Create an object of a job, or adopt it; the status determines its contents."""
        match action:
            case EnsureDependent(part=Dependent.NETWORK_POLICY):
                return await self._create_network_policy(job)
            case EnsureDependent():
                api_resource, manifest = _dependent(job, action, status)
            case CreateDriver():
                api_resource, manifest = PODS, driver_pod(owner_of(job), _driver_attempt(action))
            case CreateSnapshot():
                api_resource, manifest = SNAPSHOTS, _snapshot(job, action)
            case _:
                assert_never(action)
        return await self._create(api_resource, job, manifest)

    async def delete_config_map(self, job: ResourceObject, attempt: int) -> None:
        """Delete the ConfigMap of an ended attempt; if forbidden, it is deleted with its job."""
        if attempt > 0:
            key = NamespacedName(job.key.namespace, config_name(job.key.name, attempt))
            await self.api.call(ApiRequest("DELETE", CONFIG_MAPS, CONFIG_MAPS.object_path(key)))

    async def dispose(self, snapshot: ResourceObject, action: Dispose) -> None:
        """Create the Job that deletes a snapshot's files."""
        status = action.status
        assert status.path is not None, "only files with a path are deleted"
        assert status.disposal is not None, "the status holds what the disposal needs"
        manifest = disposal_job(owner_of(snapshot), status.path, status.disposal)
        await self._create(BATCH_JOBS, snapshot, manifest)

    async def delete(self, job: ResourceObject, action: DeleteAction) -> bool:
        """Delete exactly this object. Returns whether it was already gone."""
        match action:
            case DeleteDriver(name, uid, _, force):
                api_resource, options = PODS, _options(uid, force=force)
            case ForceDeletePod(name, uid):
                api_resource, options = PODS, _options(uid, force=True)
            case DeleteSnapshot(name):
                api_resource, options = SNAPSHOTS, {}
            case DeleteJob(name):
                api_resource, options = JOBS, _options(job.uid, force=False)
            case _:
                assert_never(action)
        path = api_resource.object_path(NamespacedName(job.key.namespace, name))
        request = ApiRequest("DELETE", api_resource, path, body=options)
        answer = await self.api.call(request)
        if answer.is_not_found or answer.is_conflict:
            return True
        successful_body(request, answer)
        return False

    async def _create_network_policy(self, job: ResourceObject) -> Json:
        if self.driver_peers is None:
            return {}
        manifest = network_policy(owner_of(job), self.driver_peers)
        return await self._create(NETWORK_POLICIES, job, manifest)

    async def _create(
        self, api_resource: ApiResource, owner: ResourceObject, manifest: Json
    ) -> Json:
        request = create_request(api_resource, owner.key.namespace, manifest)
        answer = await self.api.call(request)
        if not answer.is_conflict:
            return successful_body(request, answer)
        key = NamespacedName(owner.key.namespace, str(manifest["metadata"]["name"]))
        again = get_request(api_resource, key)
        there = successful_body(again, await self.api.call(again))
        if _is_of(owner, api_resource, there):
            return await self._updated(api_resource, key, there, manifest)
        raise ApiRejected(
            "NameTaken",
            f"the object {key.name} ({api_resource.plural}) cannot be created in this namespace",
            f"an object of that name exists and does not belong to {owner.key.name}",
            "delete it, or give the job another name",
        )

    async def _updated(
        self, api_resource: ApiResource, key: NamespacedName, there: Json, manifest: Json
    ) -> Json:
        """Update objects that outlive an attempt to the job's size and the operator's settings."""
        if api_resource not in (BUDGETS, NETWORK_POLICIES):
            return there
        wanted = manifest["spec"]
        if all(there["spec"].get(name) == value for name, value in wanted.items()):
            return there
        request = ApiRequest(
            "PATCH", api_resource, api_resource.object_path(key), {}, {"spec": wanted}, MERGE
        )
        return successful_body(request, await self.api.call(request))


def owner_of(resource: ResourceObject) -> Owner:
    return Owner(resource.key.name, resource.key.namespace, resource.uid)


def _is_of(owner: ResourceObject, api_resource: ApiResource, there: Json) -> bool:
    """Whether this resource owns the object; a snapshot outlives its job and has no owner."""
    if api_resource is SNAPSHOTS:
        return bool(there["spec"].get("jobName") == owner.key.name)
    owners = there["metadata"].get("ownerReferences") or ()
    return any(one.get("uid") == owner.uid for one in owners)


def _dependent(
    job: ResourceObject, action: EnsureDependent, status: CheckpointedJobStatus
) -> tuple[ApiResource, Json]:
    owner = owner_of(job)
    match action.part:
        case Dependent.KEYS:
            token, secret = secrets.token_urlsafe(KEY_BYTES), secrets.token_urlsafe(KEY_BYTES)
            return SECRETS, keys(owner, token, secret)
        case Dependent.SERVICE:
            return SERVICES, service(owner)
        case Dependent.CONFIG:
            return CONFIG_MAPS, config(owner, _config_attempt(job, action, status))
        case Dependent.BUDGET:
            return BUDGETS, budget(owner, read_version(action.version))
        case Dependent.NETWORK_POLICY:
            raise AssertionError("it depends on the operator's settings, not on the specification")
        case _:
            assert_never(action.part)


def _config_attempt(
    job: ResourceObject, action: EnsureDependent, status: CheckpointedJobStatus
) -> DriverAttempt:
    assert status.restore_point is not None, "what a driver starts from is written first"
    assert status.job_id is not None, "and so is the location of its state"
    return DriverAttempt(
        driver_name(job.key.name, action.attempt),
        action.attempt,
        read_version(action.version),
        status.restore_point,
        status.job_id,
        local_recovery=action.local_recovery,
    )


def _driver_attempt(action: CreateDriver) -> DriverAttempt:
    return DriverAttempt(
        action.name,
        action.attempt,
        read_version(action.version),
        action.restore,
        action.job_id,
        local_recovery=action.local_recovery,
    )


def _snapshot(job: ResourceObject, action: CreateSnapshot) -> Json:
    """It has no owner reference: a savepoint outlives its job."""
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
    """Options of a deletion: the uid, and with force no wait for the node."""
    options = {"preconditions": {"uid": uid}}
    return {**options, "gracePeriodSeconds": 0} if force else options
