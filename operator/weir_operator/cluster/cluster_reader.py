"""Sees a job: its pods and their nodes, its snapshots, its local volume, what stands beside it.

Most looks cost no call, because the watches have shown it all. A look that a verdict hangs on asks
the API server for the pods itself, and now and then one asks for everything. What the driver says
is not heard here. What may not be read counts as not seen, never as absent. Whether the Secrets of
a job's owner exist is asked without asking for what is in them (spec X4).
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
    Key,
    Place,
)
from weir_operator.cluster.api_requests import METADATA_ONLY, Api, Json, Request, good, read
from weir_operator.cluster.informer_cache import Watched
from weir_operator.cluster.object_cache import opened
from weir_operator.cluster.observation import (
    SeenPod,
    kind_of_volume,
    see_disposal,
    see_node,
    see_pod,
    see_volume,
)
from weir_operator.cluster.resource_object import Opened
from weir_operator.manifests import object_names
from weir_operator.manifests.network_policy import Peers, network_policy_spec
from weir_operator.plan.local_recovery import (
    Binding,
    BoundTo,
    BoundUnseen,
    Claim,
    ClaimLost,
    ClaimMissing,
    ClaimPending,
    LocalVolume,
    NoVolume,
)
from weir_operator.plan.observed_state import (
    Disposal,
    DriverPod,
    LostPod,
    Missing,
    Observed,
    Part,
    PodTrouble,
    SeenSnapshot,
    Waiting,
)
from weir_operator.resource.api_group import CHECKPOINT_ANNOTATION, SAVEPOINT_ANNOTATION
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus
from weir_operator.resource.validation import Refused, judge_snapshot

_NEEDED = {"Secret": SECRETS, "ConfigMap": CONFIG_MAPS}


class Depth(IntEnum):
    """How much of a job is asked of the API server itself."""

    WATCHED = 0
    """Nothing: what the watches have shown."""
    LIVE = 1
    """Its pods."""
    THOROUGH = 2
    """Its pods, and whether all that stands beside them is there."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of which driver and which specification a look is."""

    attempt: int | None = None
    spec: CheckpointedJobSpec | None = None


@dataclass(slots=True)
class Eyes:
    """Looks at jobs and at their snapshots."""

    api: Api
    watched: Watched
    lost_after: timedelta
    driver_peers: Peers | None = None
    """Who else reaches the API of drivers; if nobody was named, no job gets a NetworkPolicy."""
    may_see_nodes: bool = True
    """Until the API server says otherwise."""
    _parts: dict[Key, frozenset[Part]] = field(default_factory=dict)
    _there: dict[Key, tuple[str, frozenset[tuple[str, str]]]] = field(default_factory=dict)
    """What was found of all that the start of a job's driver needs, by the uid of its pod."""

    async def see(self, job: Opened, now: datetime, depth: Depth, wanted: Wanted) -> Observed:
        """Everything but the driver's own words."""
        if depth >= Depth.LIVE:
            await self._read_pods(job.key)
        if depth >= Depth.THOROUGH and wanted.attempt is not None:
            self._parts[job.key] = await self._read_parts(job.key, wanted.attempt)
        pods = self.watched.pods_of(job.key)
        lost = await self._lost_nodes(pods, now)
        executors = [pod for pod in pods if pod.role == object_names.Role.EXECUTOR]
        return Observed(
            now=now,
            name=job.key.name,
            uid=job.uid,
            generation=job.generation,
            is_live=depth >= Depth.LIVE,
            drivers=tuple([await self._driver(pod, lost) for pod in drivers_of(job, pods)]),
            lost_executors=tuple(
                LostPod(pod.name, pod.uid)
                for pod in executors
                if pod.node in lost and _is_executor_of(job, pod)
            ),
            executor_troubles=tuple(
                PodTrouble(pod.name, pod.trouble.reason, pod.trouble.message)
                for pod in executors
                if pod.trouble is not None and _is_executor_of(job, pod)
            ),
            parts=self._parts.get(job.key, frozenset(Part)),
            snapshots=await self._snapshots(job.key),
            savepoint_annotation=job.annotations.get(SAVEPOINT_ANNOTATION),
            checkpoint_annotation=job.annotations.get(CHECKPOINT_ANNOTATION),
            deleted_at=job.deleted_at,
            local_volume=await self._local_volume(job.key.namespace, wanted.spec),
        )

    def driver(self, job: Opened, attempt: int) -> SeenPod | None:
        """The pod of an attempt, with its address and its last words."""
        pods = drivers_of(job, self.watched.pods_of(job.key))
        return next((pod for pod in pods if pod.attempt == attempt), None)

    def next_loss(self, job: Key, now: datetime) -> datetime | None:
        """When the first node that carries a pod of the job will count as lost, if silent on."""
        nodes = (self.watched.nodes.get(pod.node) for pod in self.watched.pods_of(job))
        silences = (node.silent_since for node in nodes if node is not None)
        losses = (since + self.lost_after for since in silences if since is not None)
        return min((loss for loss in losses if loss > now), default=None)

    def made(self, job: Key) -> None:
        """What stood beside a driver was just made anew."""
        self._parts.pop(job, None)
        self._there.pop(job, None)

    async def disposal(self, snapshot: Key) -> Disposal:
        """How far the deletion of a snapshot's files is."""
        key = Key(snapshot.namespace, object_names.disposal_name(snapshot.name))
        found = await self._found(BATCH_JOBS, key)
        return Disposal.ABSENT if found is None else see_disposal(found)

    async def _read_pods(self, job: Key) -> None:
        query = {"labelSelector": f"{object_names.JOB_LABEL}={job.name}"}
        request = Request("GET", PODS, PODS.within(job.namespace), query)
        found = good(request, await self.api.call(request)).get("items") or ()
        pods = [see_pod(body) for body in found]
        self.watched.replace_pods(job, [pod for pod in pods if pod is not None])

    async def _read_parts(self, job: Key, attempt: int) -> frozenset[Part]:
        places: dict[Part, tuple[Place, str]] = {
            Part.KEYS: (SECRETS, object_names.keys_name(job.name)),
            Part.SERVICE: (SERVICES, object_names.service_name(job.name)),
            Part.CONFIG: (CONFIG_MAPS, object_names.config_name(job.name, attempt)),
            Part.BUDGET: (BUDGETS, object_names.budget_name(job.name)),
        }
        found = [
            part
            for part, (place, name) in places.items()
            if await self._found(place, Key(job.namespace, name)) is not None
        ]
        policy = [Part.NETWORK_POLICY] if await self._has_network_policy(job) else []
        return frozenset(found + policy)

    async def _has_network_policy(self, job: Key) -> bool:
        """Whether it has the one that it is to have; one of other peers counts as none."""
        if self.driver_peers is None:
            return True
        key = Key(job.namespace, object_names.network_policy_name(job.name))
        found = await self._found(NETWORK_POLICIES, key)
        wanted = network_policy_spec(job.name, self.driver_peers)
        return found is not None and found.get("spec") == wanted

    async def _found(self, place: Place, key: Key) -> Json | None:
        request = read(place, key)
        answer = await self.api.call(request)
        return None if answer.is_missing else good(request, answer)

    async def _lost_nodes(self, pods: Iterable[SeenPod], now: datetime) -> frozenset[str]:
        used = sorted({pod.node for pod in pods if pod.node})
        return frozenset([name for name in used if await self._is_lost(name, now)])

    async def _is_lost(self, name: str, now: datetime) -> bool:
        """Whether nobody on a node will ever end its pods; a doubt says no."""
        if name not in self.watched.nodes and self.may_see_nodes:
            request = Request("GET", NODES, NODES.of_cluster(name))
            answer = await self.api.call(request)
            if answer.is_missing:
                return True
            if answer.is_forbidden:
                self.may_see_nodes = False
                return False
            self.watched.nodes[name] = see_node(good(request, answer))
        seen = self.watched.nodes.get(name)
        return seen is not None and seen.is_lost(now, self.lost_after)

    async def _driver(self, pod: SeenPod, lost: frozenset[str]) -> DriverPod:
        is_starting = isinstance(pod.stage, Waiting) and pod.leaving is None
        return DriverPod(
            attempt=pod.attempt,
            name=pod.name,
            uid=pod.uid,
            stage=pod.stage,
            leaving=pod.leaving,
            node_is_lost=pod.node in lost,
            missing=await self._missing(pod) if is_starting else (),
        )

    async def _missing(self, pod: SeenPod) -> tuple[Missing, ...]:
        """What a pod needs and waits for in vain; what was there once is not asked for again."""
        uid, there = self._there.get(pod.job, ("", frozenset()))
        if uid != pod.uid:
            there = frozenset(_own_needs(pod))
        asked = sorted(pod.needs - there)
        missing = [one for one in asked if not await self._exists(pod.job.namespace, *one)]
        self._there[pod.job] = (pod.uid, there | (pod.needs - set(missing)))
        return tuple(Missing(kind, name) for kind, name in missing)

    async def _exists(self, namespace: str, kind: str, name: str) -> bool:
        """Whether it does, as far as anybody knows who may not ask."""
        request = read(_NEEDED[kind], Key(namespace, name))
        answer = await self.api.call(replace(request, accept=METADATA_ONLY))
        return not answer.is_missing

    async def _snapshots(self, job: Key) -> tuple[SeenSnapshot, ...]:
        kept = self.watched.snapshots
        copies = [
            await opened(self.api, SNAPSHOTS, kept, key)
            for key in sorted(self.watched.of_job.get(job, ()))
        ]
        seen = [see_snapshot(copy) for copy in copies if copy is not None]
        return tuple(one for one in seen if one is not None)

    async def _local_volume(self, namespace: str, spec: CheckpointedJobSpec | None) -> LocalVolume:
        if spec is None or not spec.state.local_recovery or spec.local_recovery_volume is None:
            return NoVolume()
        volume = _volume(spec, spec.local_recovery_volume)
        seen = see_volume(volume)
        if not isinstance(seen, str):
            return seen
        binding = await self._binding(Key(namespace, seen))
        return Claim(spec.local_recovery_volume, seen, binding)

    async def _binding(self, claim: Key) -> Binding:
        found = await self._found(CLAIMS, claim)
        if found is None:
            return ClaimMissing()
        phase = (found.get("status") or {}).get("phase")
        if phase == "Lost":
            return ClaimLost()
        name = str((found.get("spec") or {}).get("volumeName") or "")
        if phase != "Bound" or not name:
            return ClaimPending()
        request = Request("GET", VOLUMES, VOLUMES.of_cluster(name))
        answer = await self.api.call(request)
        if answer.is_missing or answer.is_forbidden:
            return BoundUnseen(name)
        return BoundTo(name, kind_of_volume(good(request, answer)))


def see_snapshot(body: Opened, disposal: Disposal = Disposal.ABSENT) -> SeenSnapshot | None:
    """A snapshot as a plan sees it; none if it cannot be read."""
    spec = judge_snapshot(body.spec)
    if isinstance(spec, Refused):
        return None
    return SeenSnapshot(
        name=body.key.name,
        spec=spec,
        status=CheckpointedJobSnapshotStatus.model_validate(body.status),
        created_at=body.created_at,
        is_deleted=body.deleted_at is not None,
        disposal=disposal,
    )


def drivers_of(job: Opened, pods: Iterable[SeenPod]) -> tuple[SeenPod, ...]:
    """The pods that belong to this very resource, oldest attempt first."""
    own = (pod for pod in pods if pod.role == object_names.Role.DRIVER and pod.owner_uid == job.uid)
    return tuple(sorted(own, key=lambda pod: pod.attempt))


def _is_executor_of(job: Opened, pod: SeenPod) -> bool:
    """An executor belongs to a driver, which may be gone already and is known by its name."""
    return pod.owner_name == object_names.driver_name(job.key.name, pod.attempt)


def _own_needs(pod: SeenPod) -> Iterable[tuple[str, str]]:
    """What the operator makes for a pod itself, and makes again."""
    yield "Secret", object_names.keys_name(pod.job.name)
    yield "ConfigMap", object_names.config_name(pod.job.name, pod.attempt)


def _volume(spec: CheckpointedJobSpec, name: str) -> Json:
    """A volume of the executors, whether it was given by itself or in the template."""
    template = (spec.executor.pod_template or {}).get("spec") or {}
    assert isinstance(template, dict), "a template that is none was refused"
    own = [volume.model_dump(mode="json", exclude_none=True) for volume in spec.executor.volumes]
    given: list[Json] = [*own, *template.get("volumes", ())]
    return next(volume for volume in given if volume.get("name") == name)
