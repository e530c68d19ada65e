"""Parses pods, nodes, volumes and Jobs of the API server into values of the plan.

Only the fields that a plan needs are kept. A pod belongs to a job only by its owner reference, not
by its labels, which any user can write. Nothing here makes requests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.api_requests import Json
from weir_operator.manifests.object_names import ATTEMPT_LABEL, JOB_LABEL, ROLE_LABEL, Role
from weir_operator.plan.local_recovery import (
    EmptyDir,
    EphemeralClaim,
    HostPath,
    LocalVolume,
    OtherVolume,
)
from weir_operator.plan.observed_state import Disposal, Running, Terminated, Terminating, Waiting
from weir_operator.resource.pod_settings import DRIVER_CONTAINER, EXECUTOR_CONTAINER

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_PROBLEM_REASONS = ("OOMKilled", "Evicted", "ImagePullBackOff", "ErrImagePull", "InvalidImageName")
_LONGEST_MESSAGE = 1_024
_LONGEST_TERMINATION_MESSAGE = 16 * 1_024
"""A kubelet keeps 4 KiB of a termination message."""
MOST_NEEDS = 64
"""Each is looked up while a driver waits to start."""
MOST_FINALIZERS = 8


@dataclass(frozen=True, slots=True)
class ContainerProblem:
    """Why a container does not run, if a user should know it."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod of a job, with the fields that the plan needs."""

    job: NamespacedName
    name: str
    uid: str
    version: str
    role: str
    attempt: int
    owner_uid: str
    owner_name: str
    node: str
    ip: str
    stage: Waiting | Running | Terminated
    terminating: Terminating | None
    termination_message: str
    problem: ContainerProblem | None
    needs: frozenset[tuple[str, str]] = frozenset()
    """Kinds and names of objects that a driver's pod cannot start without."""


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node, with the fields that tell whether its kubelet still responds."""

    name: str
    is_out_of_service: bool
    silent_since: datetime | None

    def is_lost(self, now: datetime, after: timedelta) -> bool:
        if self.is_out_of_service:
            return True
        return self.silent_since is not None and now - self.silent_since >= after


def parse_pod(body: Json) -> ObservedPod | None:
    """A pod of some job; none if its labels do not name one."""
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    labels = metadata.get("labels") or {}
    role, attempt = labels.get(ROLE_LABEL, ""), str(labels.get(ATTEMPT_LABEL, ""))
    if JOB_LABEL not in labels or role not in (Role.DRIVER, Role.EXECUTOR):
        return None
    owner = _owner(metadata)
    stage = _stage(status, DRIVER_CONTAINER if role == Role.DRIVER else EXECUTOR_CONTAINER)
    return ObservedPod(
        job=NamespacedName(metadata["namespace"], labels[JOB_LABEL]),
        name=metadata["name"],
        uid=metadata["uid"],
        version=str(metadata.get("resourceVersion", "")),
        role=role,
        attempt=int(attempt) if attempt.isdecimal() else 0,
        owner_uid=str(owner.get("uid", "")),
        owner_name=str(owner.get("name", "")),
        node=spec.get("nodeName") or "",
        ip=status.get("podIP") or "",
        stage=stage,
        terminating=_leaving(metadata),
        termination_message=_termination_message(status) if role == Role.DRIVER else "",
        problem=_problem(status, stage),
        needs=frozenset(sorted(set(_needs(spec)))[:MOST_NEEDS] if role == Role.DRIVER else ()),
    )


def _owner(metadata: Json) -> Json:
    owners = metadata.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def _leaving(metadata: Json) -> Terminating | None:
    if not metadata.get("deletionTimestamp"):
        return None
    return Terminating(
        by=datetime.fromisoformat(metadata["deletionTimestamp"]),
        held_by=tuple(map(str, metadata.get("finalizers") or ()))[:MOST_FINALIZERS],
        is_forced=metadata.get("deletionGracePeriodSeconds") == 0,
    )


def _main(status: Json, name: str) -> Json:
    containers = status.get("containerStatuses") or ()
    return next((state for state in containers if state.get("name") == name), {})


def _stage(status: Json, container: str) -> Waiting | Running | Terminated:
    """The state of the main container; the pod's own fields where the container has none."""
    state = _main(status, container).get("state") or {}
    ended, why = state.get("terminated"), str(status.get("reason") or "")
    if ended is not None:
        return Terminated(int(ended.get("exitCode", 1)), why or str(ended.get("reason") or ""))
    if status.get("phase") in ("Failed", "Succeeded"):
        return Terminated(0 if status["phase"] == "Succeeded" else 1, why)
    if "running" in state:
        return Running()
    waiting = state.get("waiting") or _unscheduled(status)
    message = str(waiting.get("message") or "")[:_LONGEST_MESSAGE]
    return Waiting(str(waiting.get("reason") or ""), message)


def _unscheduled(status: Json) -> Json:
    conditions = status.get("conditions") or ()
    scheduled: Json = next((one for one in conditions if one.get("type") == "PodScheduled"), {})
    return scheduled if scheduled.get("status") == "False" else {}


def _needs(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield the Secrets and ConfigMaps that a pod mounts or reads variables from."""
    for volume in spec.get("volumes") or ():
        yield from _required("Secret", volume.get("secret"), "secretName")
        yield from _required("ConfigMap", volume.get("configMap"))
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        sources = [one.get("valueFrom") or {} for one in container.get("env") or ()]
        for source in (*sources, *(container.get("envFrom") or ())):
            for field in ("secretKeyRef", "secretRef"):
                yield from _required("Secret", source.get(field))
            for field in ("configMapKeyRef", "configMapRef"):
                yield from _required("ConfigMap", source.get(field))


def _required(kind: str, source: Json | None, field: str = "name") -> Iterator[tuple[str, str]]:
    if source and source.get(field) and not source.get("optional"):
        yield kind, str(source[field])


def _termination_message(status: Json) -> str:
    ended = (_main(status, DRIVER_CONTAINER).get("state") or {}).get("terminated") or {}
    message = str(ended.get("message") or "")
    return message if len(message) <= _LONGEST_TERMINATION_MESSAGE else ""


def _problem(status: Json, stage: Waiting | Running | Terminated) -> ContainerProblem | None:
    if isinstance(stage, Running) or stage.why not in _PROBLEM_REASONS:
        return None
    message = status.get("message")
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        message = message or waiting.get("message")
    return ContainerProblem(stage.why, str(message or "")[:_LONGEST_MESSAGE])


def parse_node(body: Json) -> ObservedNode:
    """A node's health: alive in doubt, because pods on a lost node are deleted by force."""
    taints = (body.get("spec") or {}).get("taints") or ()
    conditions = (body.get("status") or {}).get("conditions") or ()
    ready = next((one for one in conditions if one.get("type") == "Ready"), None)
    silent = None
    if ready is not None and ready.get("status") != "True" and ready.get("lastTransitionTime"):
        silent = datetime.fromisoformat(ready["lastTransitionTime"])
    return ObservedNode(
        name=body["metadata"]["name"],
        is_out_of_service=any(taint.get("key") == OUT_OF_SERVICE for taint in taints),
        silent_since=silent,
    )


def parse_disposal(body: Json) -> Disposal:
    """The state of the Job that deletes a snapshot's files."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    held = {one.get("type") for one in conditions if one.get("status") == "True"}
    if "Complete" in held:
        return Disposal.DONE
    return Disposal.FAILED if "Failed" in held else Disposal.ACTIVE


def parse_volume(volume: Json) -> LocalVolume | str:
    """What a volume of a pod is; the name of a claim if that must be looked up."""
    name = str(volume.get("name", ""))
    kind = next((field for field in volume if field != "name"), "emptyDir")
    source = volume.get(kind) or {}
    match kind:
        case "hostPath":
            return HostPath(name, str(source.get("path", "")))
        case "emptyDir":
            return EmptyDir(name)
        case "ephemeral":
            return EphemeralClaim(name)
        case "persistentVolumeClaim":
            return str(source.get("claimName", ""))
        case _:
            return OtherVolume(name, kind)


def volume_kind(body: Json) -> str:
    """The kind of a PersistentVolume, by the name of its field, such as ``local``."""
    spec = body.get("spec") or {}
    return next((field for field in _SOURCES if field in spec), "unknown")


_SOURCES = ("local", "hostPath", "csi", "nfs", "iscsi", "fc", "cephfs", "rbd", "azureDisk")
