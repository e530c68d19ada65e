"""Observes a job: its pods and their nodes, its snapshots, its local volume, its dependents.

Most reconciles need no request, because the informer cache holds everything. When a decision
depends on it, the pods are read from the API server, and periodically all dependents too. The
driver's report is not read here. What the operator may not read counts as unknown, never as absent.
Whether the Secrets of a user exist is checked by their metadata alone (spec X4).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import IntEnum

from weir_operator.cluster.api_paths import (
    BATCH_JOBS,
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    NETWORK_POLICIES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    SNAPSHOTS,
    VOLUMES,
    ApiResource,
    NamespacedName,
)
from weir_operator.cluster.api_requests import (
    METADATA_ONLY,
    ApiRequest,
    ApiServer,
    Json,
    get_request,
    successful_body,
)
from weir_operator.cluster.informer_cache import InformerCache
from weir_operator.cluster.object_cache import cached_object
from weir_operator.cluster.observation import (
    ObservedPod,
    parse_disposal,
    parse_node,
    parse_pod,
    parse_volume,
    volume_kind,
)
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.manifests import object_names
from weir_operator.manifests.network_policy import Peers, network_policy_spec
from weir_operator.plan.local_recovery import (
    Binding,
    BoundTo,
    BoundUnreadable,
    Claim,
    ClaimLost,
    ClaimMissing,
    ClaimPending,
    LocalVolume,
    NoVolume,
)
from weir_operator.plan.observed_state import (
    Dependent,
    Disposal,
    DriverPod,
    LostPod,
    MissingObject,
    Observed,
    ObservedSnapshot,
    PodProblem,
    Waiting,
)
from weir_operator.resource.api_group import CHECKPOINT_ANNOTATION, SAVEPOINT_ANNOTATION
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus
from weir_operator.resource.validation import Rejected, validate_snapshot

_NEEDED = {"Secret": SECRETS, "ConfigMap": CONFIG_MAPS}


class ReadDepth(IntEnum):
    """How much of a job is read from the API server itself."""

    CACHED = 0
    """Nothing: the informer cache."""
    LIVE = 1
    """Its pods."""
    FULL = 2
    """Its pods and its dependents."""


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """The attempt and the specification that an observation is for."""

    attempt: int | None = None
    spec: CheckpointedJobSpec | None = None


@dataclass(slots=True)
class ClusterReader:
    """Observes jobs and their snapshots."""

    api: ApiServer
    cache: InformerCache
    lost_after: timedelta
    driver_peers: Peers | None = None
    """Who else may reach the API of drivers; without it, no job has a NetworkPolicy."""
    can_read_nodes: bool = True
    """Until the API server forbids it."""
    _parts: dict[NamespacedName, frozenset[Dependent]] = field(default_factory=dict)
    _found_needs: dict[NamespacedName, tuple[str, frozenset[tuple[str, str]]]] = field(
        default_factory=dict
    )
    """Objects that the start of a driver needs and that were found, with the uid of its pod."""

    async def observe(
        self, job: ResourceObject, now: datetime, depth: ReadDepth, target: ReadTarget
    ) -> Observed:
        """Everything but the driver's report."""
        if depth >= ReadDepth.LIVE:
            await self._read_pods(job.key)
        if depth >= ReadDepth.FULL and target.attempt is not None:
            self._parts[job.key] = await self._read_parts(job.key, target.attempt)
        pods = self.cache.pods_of(job.key)
        lost = await self._lost_nodes(pods, now)
        executors = [pod for pod in pods if pod.role == object_names.Role.EXECUTOR]
        return Observed(
            now=now,
            name=job.key.name,
            uid=job.uid,
            generation=job.generation,
            is_live=depth >= ReadDepth.LIVE,
            drivers=tuple([await self._driver(pod, lost) for pod in driver_pods_of(job, pods)]),
            lost_executors=tuple(
                LostPod(pod.name, pod.uid)
                for pod in executors
                if pod.node in lost and _is_executor_of(job, pod)
            ),
            executor_problems=tuple(
                PodProblem(pod.name, pod.problem.reason, pod.problem.message)
                for pod in executors
                if pod.problem is not None and _is_executor_of(job, pod)
            ),
            dependents=self._parts.get(job.key, frozenset(Dependent)),
            snapshots=await self._snapshots(job.key),
            savepoint_annotation=job.annotations.get(SAVEPOINT_ANNOTATION),
            checkpoint_annotation=job.annotations.get(CHECKPOINT_ANNOTATION),
            deleted_at=job.deleted_at,
            local_volume=await self._local_volume(job.key.namespace, target.spec),
        )

    def driver(self, job: ResourceObject, attempt: int) -> ObservedPod | None:
        """The pod of an attempt, with its address and its termination message."""
        pods = driver_pods_of(job, self.cache.pods_of(job.key))
        return next((pod for pod in pods if pod.attempt == attempt), None)

    def next_node_loss(self, job: NamespacedName, now: datetime) -> datetime | None:
        """When the first NotReady node of the job's pods will count as lost."""
        nodes = (self.cache.nodes.get(pod.node) for pod in self.cache.pods_of(job))
        silences = (node.silent_since for node in nodes if node is not None)
        losses = (since + self.lost_after for since in silences if since is not None)
        return min((loss for loss in losses if loss > now), default=None)

    def forget_dependents(self, job: NamespacedName) -> None:
        """The dependents of a driver were just created."""
        self._parts.pop(job, None)
        self._found_needs.pop(job, None)

    async def disposal(self, snapshot: NamespacedName) -> Disposal:
        """The state of the Job that deletes a snapshot's files."""
        key = NamespacedName(snapshot.namespace, object_names.disposal_name(snapshot.name))
        found = await self._get(BATCH_JOBS, key)
        return Disposal.ABSENT if found is None else parse_disposal(found)

    async def _read_pods(self, job: NamespacedName) -> None:
        query = {"labelSelector": f"{object_names.JOB_LABEL}={job.name}"}
        request = ApiRequest("GET", PODS, PODS.collection_path(job.namespace), query)
        found = successful_body(request, await self.api.call(request)).get("items") or ()
        pods = [parse_pod(body) for body in found]
        self.cache.replace_pods(job, [pod for pod in pods if pod is not None])

    async def _read_parts(self, job: NamespacedName, attempt: int) -> frozenset[Dependent]:
        api_resources: dict[Dependent, tuple[ApiResource, str]] = {
            Dependent.KEYS: (SECRETS, object_names.keys_name(job.name)),
            Dependent.SERVICE: (SERVICES, object_names.service_name(job.name)),
            Dependent.CONFIG: (CONFIG_MAPS, object_names.config_name(job.name, attempt)),
            Dependent.BUDGET: (BUDGETS, object_names.budget_name(job.name)),
        }
        found = [
            part
            for part, (api_resource, name) in api_resources.items()
            if await self._get(api_resource, NamespacedName(job.namespace, name)) is not None
        ]
        policy = [Dependent.NETWORK_POLICY] if await self._has_network_policy(job) else []
        return frozenset(found + policy)

    async def _has_network_policy(self, job: NamespacedName) -> bool:
        """Whether the job has its NetworkPolicy; one with other peers counts as missing."""
        if self.driver_peers is None:
            return True
        key = NamespacedName(job.namespace, object_names.network_policy_name(job.name))
        found = await self._get(NETWORK_POLICIES, key)
        target = network_policy_spec(job.name, self.driver_peers)
        return found is not None and found.get("spec") == target

    async def _get(self, api_resource: ApiResource, key: NamespacedName) -> Json | None:
        request = get_request(api_resource, key)
        answer = await self.api.call(request)
        return None if answer.is_not_found else successful_body(request, answer)

    async def _lost_nodes(self, pods: Iterable[ObservedPod], now: datetime) -> frozenset[str]:
        used = sorted({pod.node for pod in pods if pod.node})
        return frozenset([name for name in used if await self._is_lost(name, now)])

    async def _is_lost(self, name: str, now: datetime) -> bool:
        """Whether a node is known to be lost; false in doubt."""
        if name not in self.cache.nodes and self.can_read_nodes:
            request = ApiRequest("GET", NODES, NODES.cluster_object_path(name))
            answer = await self.api.call(request)
            if answer.is_not_found:
                return True
            if answer.is_forbidden:
                self.can_read_nodes = False
                return False
            self.cache.nodes[name] = parse_node(successful_body(request, answer))
        parsed = self.cache.nodes.get(name)
        return parsed is not None and parsed.is_lost(now, self.lost_after)

    async def _driver(self, pod: ObservedPod, lost: frozenset[str]) -> DriverPod:
        is_starting = isinstance(pod.stage, Waiting) and pod.terminating is None
        return DriverPod(
            attempt=pod.attempt,
            name=pod.name,
            uid=pod.uid,
            stage=pod.stage,
            terminating=pod.terminating,
            is_node_lost=pod.node in lost,
            missing=await self._missing(pod) if is_starting else (),
        )

    async def _missing(self, pod: ObservedPod) -> tuple[MissingObject, ...]:
        """Objects that a pod needs and that do not exist; found ones are not read again."""
        uid, found = self._found_needs.get(pod.job, ("", frozenset()))
        if uid != pod.uid:
            found = frozenset(_operator_needs(pod))
        asked = sorted(pod.needs - found)
        missing = [one for one in asked if not await self._exists(pod.job.namespace, *one)]
        self._found_needs[pod.job] = (pod.uid, found | (pod.needs - set(missing)))
        return tuple(MissingObject(kind, name) for kind, name in missing)

    async def _exists(self, namespace: str, kind: str, name: str) -> bool:
        """Whether it exists; true if the operator may not read it."""
        request = get_request(_NEEDED[kind], NamespacedName(namespace, name))
        answer = await self.api.call(replace(request, accept=METADATA_ONLY))
        return not answer.is_not_found

    async def _snapshots(self, job: NamespacedName) -> tuple[ObservedSnapshot, ...]:
        kept = self.cache.snapshots
        copies = [
            await cached_object(self.api, SNAPSHOTS, kept, key)
            for key in sorted(self.cache.of_job.get(job, ()))
        ]
        parsed = [parse_snapshot(copy) for copy in copies if copy is not None]
        return tuple(one for one in parsed if one is not None)

    async def _local_volume(self, namespace: str, spec: CheckpointedJobSpec | None) -> LocalVolume:
        if spec is None or not spec.state.local_recovery or spec.local_recovery_volume is None:
            return NoVolume()
        volume = _volume(spec, spec.local_recovery_volume)
        parsed = parse_volume(volume)
        if not isinstance(parsed, str):
            return parsed
        binding = await self._binding(NamespacedName(namespace, parsed))
        return Claim(spec.local_recovery_volume, parsed, binding)

    async def _binding(self, claim: NamespacedName) -> Binding:
        found = await self._get(CLAIMS, claim)
        if found is None:
            return ClaimMissing()
        phase = (found.get("status") or {}).get("phase")
        if phase == "Lost":
            return ClaimLost()
        name = str((found.get("spec") or {}).get("volumeName") or "")
        if phase != "Bound" or not name:
            return ClaimPending()
        request = ApiRequest("GET", VOLUMES, VOLUMES.cluster_object_path(name))
        answer = await self.api.call(request)
        if answer.is_not_found or answer.is_forbidden:
            return BoundUnreadable(name)
        return BoundTo(name, volume_kind(successful_body(request, answer)))


def parse_snapshot(
    body: ResourceObject, disposal: Disposal = Disposal.ABSENT
) -> ObservedSnapshot | None:
    """A snapshot as the plan's value; none if its specification is invalid."""
    spec = validate_snapshot(body.spec)
    if isinstance(spec, Rejected):
        return None
    return ObservedSnapshot(
        name=body.key.name,
        spec=spec,
        status=CheckpointedJobSnapshotStatus.model_validate(body.status),
        created_at=body.created_at,
        is_deleted=body.deleted_at is not None,
        disposal=disposal,
    )


def driver_pods_of(job: ResourceObject, pods: Iterable[ObservedPod]) -> tuple[ObservedPod, ...]:
    """The driver pods that this resource owns, oldest attempt first."""
    own = (pod for pod in pods if pod.role == object_names.Role.DRIVER and pod.owner_uid == job.uid)
    return tuple(sorted(own, key=lambda pod: pod.attempt))


def _is_executor_of(job: ResourceObject, pod: ObservedPod) -> bool:
    """An executor's owner is its driver, which may be gone already and is identified by name."""
    return pod.owner_name == object_names.driver_name(job.key.name, pod.attempt)


def _operator_needs(pod: ObservedPod) -> Iterable[tuple[str, str]]:
    """What the operator creates for a pod itself, and creates again."""
    yield "Secret", object_names.keys_name(pod.job.name)
    yield "ConfigMap", object_names.config_name(pod.job.name, pod.attempt)


def _volume(spec: CheckpointedJobSpec, name: str) -> Json:
    """A volume of the executors, from volumes or from the pod template."""
    template = (spec.executor.pod_template or {}).get("spec") or {}
    assert isinstance(template, dict), "an invalid template was rejected"
    own = [volume.model_dump(mode="json", exclude_none=True) for volume in spec.executor.volumes]
    given: list[Json] = [*own, *template.get("volumes", ())]
    return next(volume for volume in given if volume.get("name") == name)
