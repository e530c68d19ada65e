"""User operations on a job, and their expected end, whatever happens to the operator.

A scenario defines the initial state, one operation, and how to detect that its effects are
complete. Nothing here knows operators or their crashes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fake_driver import Manner, image
from fake_kubelet import FakeKubelet
from fake_storage import PretendStorage
from raw_api_client import JOBS, SNAPSHOTS, Client, Object, ours

NAME = "job"
TIMEOUT_S = 180.0
POLL_S = 0.15


class Unsettled(Exception):
    """Patience has ended before the scene has."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A job and all that was made for it, at one moment."""

    job: Object | None
    snapshots: tuple[Object, ...]
    storage: PretendStorage

    @property
    def status(self) -> dict[str, Any]:
        return {} if self.job is None else dict(self.job.get("status", {}))

    @property
    def state(self) -> str:
        return str(self.status.get("state", "Gone" if self.job is None else "New"))

    @property
    def generation(self) -> int:
        """Of the version that is deployed."""
        return int((self.status.get("deployed") or {}).get("generation", 0))

    @property
    def restore_type(self) -> str | None:
        return (self.status.get("restorePoint") or {}).get("type")

    def is_stable(self, generation: int) -> bool:
        return self.state == "Stable" and self.generation == generation and self.has_snapshots()

    def has_snapshots(self, count: int | None = None) -> bool:
        """All are complete, and as many as that."""
        states = [each.get("status", {}).get("state") for each in self.snapshots]
        return all(state == "Completed" for state in states) and count in (None, len(states))

    def is_rolled_back(self) -> bool:
        """The stable version runs and has completed a checkpoint."""
        return self.state == "RolledBack" and self.restore_type == "LastState"

    def gave_up(self) -> bool:
        steps = (self.status.get("upgrade") or {}).get("steps", [])
        return any(step["state"] == "Failed" for step in steps)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What must be the same, whatever crashed on the way."""

    state: str
    generation: int
    restore_type: str | None
    rolled_back_from: int | None
    snapshots: tuple[tuple[str, str], ...]
    drivers: int

    @classmethod
    def of(cls, sight: Sight) -> "Outcome":
        found = ((s["spec"]["trigger"], s.get("status", {}).get("state")) for s in sight.snapshots)
        return cls(
            sight.state,
            sight.generation,
            sight.restore_type,
            (sight.status.get("rollback") or {}).get("fromGeneration"),
            tuple(sorted(found)),
            len(sight.storage.alive),
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A namespace with one job in it."""

    client: Client
    kubelet: FakeKubelet
    namespace: str

    @property
    def path(self) -> str:
        return ours(self.namespace, JOBS, NAME)

    async def open(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.client.create("/api/v1/namespaces", namespace)

    async def look(self) -> Sight:
        job = await self.client.find(self.path)
        snapshots = await self.client.items(ours(self.namespace, SNAPSHOTS))
        return Sight(job, tuple(snapshots), self.kubelet.storage(self.namespace, NAME))

    async def until(self, what: str, is_so: Callable[[Sight], bool]) -> Sight:
        deadline = time.monotonic() + TIMEOUT_S
        while not is_so(sight := await self.look()):
            if time.monotonic() > deadline:
                raise Unsettled(f"{TIMEOUT_S:.0f} s were not enough: {what}\n{_control(sight)}")
            await asyncio.sleep(POLL_S)
        return sight

    # -- what people do

    async def apply(self, spec: Object) -> None:
        await self.client.create(ours(self.namespace, JOBS), job_object(self.namespace, NAME, spec))

    async def edit(self, **changes: object) -> None:
        await self.client.merge(self.path, {"spec": changes})

    async def annotate(self, **annotations: str) -> None:
        named = {f"weir.dev/{name}": value for name, value in annotations.items()}
        await self.client.merge(self.path, {"metadata": {"annotations": named}})

    async def delete(self) -> None:
        await self.client.delete(self.path)


def job_object(namespace: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "weir.dev/v1alpha1",
        "kind": "CheckpointedJob",
        "metadata": metadata,
        "spec": spec,
    }


def job_spec(manner: Manner = Manner.WORKS, **changes: object) -> Object:
    """A job that keeps its state, and proves itself with its first checkpoint."""
    return {
        "image": image(manner),
        "job": {"file": "/opt/job/job.py"},
        "checkpointing": {
            "interval": "500 ms",
            "storage": "s3://pretended/checkpoints",
            "savepointDir": "s3://pretended/savepoints",
        },
        "upgrade": {"mode": "savepoint", "fallback": "none"},
        "rollback": {"checkpoints": 1, "within": "1 min"},
        **changes,
    }


Do = Callable[[Stage], Awaitable[None]]


async def _nothing(_: Stage) -> None:
    """The initial state is empty."""


def _running(manner: Manner = Manner.WORKS, **changes: object) -> Do:
    async def prepare(stage: Stage) -> None:
        await stage.apply(job_spec(manner, **changes))
        await stage.until("the job is stable", lambda sight: sight.is_stable(1))

    return prepare


async def _suspended(stage: Stage) -> None:
    await _running()(stage)
    await stage.edit(suspend=True)
    await stage.until("the job is suspended", lambda sight: sight.state == "Suspended")


@dataclass(frozen=True, slots=True)
class Scenario:
    """An operation of a user."""

    name: str
    act: Do
    is_over: Callable[[Sight], bool]
    prepare: Do = _running()


SCENARIOS = (
    Scenario(
        "first-deployment",
        lambda stage: stage.apply(job_spec()),
        lambda sight: sight.is_stable(1),
        _nothing,
    ),
    Scenario(
        "upgrade-by-savepoint",
        lambda stage: stage.edit(image=image(Manner.WORKS, 2)),
        lambda sight: sight.is_stable(2) and sight.has_snapshots(1),
    ),
    Scenario(
        "upgrade-by-last-state",
        lambda stage: stage.edit(image=image(Manner.WORKS, 2)),
        lambda sight: sight.is_stable(2),
        _running(upgrade={"mode": "last-state"}),
    ),
    Scenario(
        "failed-upgrade",
        lambda stage: stage.edit(image=image(Manner.WORKS, 2)),
        lambda sight: sight.gave_up() and sight.is_stable(1),
        _running(Manner.FAILS_SAVEPOINTS),
    ),
    Scenario(
        "rollback-of-what-is-refused",
        lambda stage: stage.edit(image=image(Manner.IS_REFUSED, 2)),
        lambda sight: sight.is_rolled_back() and sight.has_snapshots(1),
    ),
    Scenario(
        "rollback-of-what-is-never-stable",
        lambda stage: stage.edit(image=image(Manner.NEVER_CHECKPOINTS, 2)),
        lambda sight: sight.is_rolled_back() and sight.has_snapshots(1),
        _running(rollback={"checkpoints": 1, "within": "2 s"}),
    ),
    Scenario(
        "savepoint-by-annotation",
        lambda stage: stage.annotate(savepoint="before the holidays"),
        lambda sight: (
            sight.is_stable(1)
            and sight.has_snapshots(1)
            and bool(sight.status["answered"].get("savepointAnnotation"))
        ),
    ),
    Scenario(
        "suspension",
        lambda stage: stage.edit(suspend=True),
        lambda sight: sight.state == "Suspended" and sight.has_snapshots(1),
    ),
    Scenario(
        "resumption",
        lambda stage: stage.edit(suspend=False),
        lambda sight: sight.is_stable(3) and sight.has_snapshots(1),
        _suspended,
    ),
    Scenario(
        "deletion-with-savepoint",
        lambda stage: stage.delete(),
        lambda sight: sight.job is None and sight.has_snapshots(1) and not sight.storage.alive,
        _running(savepoints={"onDeletion": True}),
    ),
)


def _control(sight: Sight) -> str:
    """What a person would look at."""
    status = sight.status
    shown = ("state", "driver", "intent", "restorePoint", "upgrade", "rollback", "lastFailure")
    lines = [f"{name}: {status.get(name)}" for name in shown]
    lines += [
        f"snapshot: {each['metadata']['name']} {each.get('status')}" for each in sight.snapshots
    ]
    lines.append(f"drivers alive: {sorted(sight.storage.alive)}, broken: {sight.storage.broken}")
    lines += [str(entry) for entry in status.get("history", [])]
    return "\n".join(lines)
