"""A node without containers: it accepts every driver's pod, and runs a fake driver for it.

To the API server it is scheduler and kubelet at once. It waits for the ConfigMaps and Secrets that
a pod refers to, as a real one does, reports the state of the container, and removes a deleted pod
when its driver has ended.
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from fake_driver import PretendDriver, manner_of, start_of
from fake_driver_api import FakeDriverApi, Listener, fake_driver_api
from fake_storage import Completion, PretendStorage
from raw_api_client import Client, Object, Rejected, core

NODE = "pretended"
DRIVERS = {"weir.dev/role": "driver"}
POLL_S = 0.05
ENDING_S = 0.05
"""How long a driver takes to terminate."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How quick drivers are."""

    start_s: float = 0.05
    checkpoint_s: float = 0.5


@dataclass(slots=True)
class RunningPod:
    """A pod that is here."""

    termination_requested: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class FakeKubelet:
    """All pods, and the storages of their jobs."""

    client: Client
    rest: FakeDriverApi
    pace: Pace
    heard_of_pod: Callable[[Object], None] = lambda _: None
    """Called when a pod is first observed."""
    completed: Callable[[PretendDriver, Completion], None] = lambda _, __: None
    """Called when a checkpoint completes."""
    storages: dict[tuple[str, str], PretendStorage] = field(default_factory=dict)
    """By namespace and name of the job."""
    failures: list[str] = field(default_factory=list)
    """What went wrong here; a test that trusts this must look."""
    _seats: dict[str, RunningPod] = field(default_factory=dict)

    async def run(self) -> None:
        """Watch for pods for as long as one lets it."""
        while True:
            with suppress(TimeoutError, ConnectionError):
                async for event, pod in self.client.watch("/api/v1/pods", DRIVERS):
                    self._noticed(event, pod)

    def storage(self, namespace: str, job: str) -> PretendStorage:
        place = f"s3://pretended/{namespace}/{job}"
        return self.storages.setdefault((namespace, job), PretendStorage(place))

    def close(self) -> None:
        for seat in self._seats.values():
            if seat.task is not None:
                seat.task.cancel()

    def _noticed(self, event: str, pod: Object) -> None:
        uid = pod.get("metadata", {}).get("uid")
        if event in ("ERROR", "BOOKMARK") or uid is None:
            return
        if uid not in self._seats and event != "DELETED":
            self.heard_of_pod(pod)
            seat = self._seats[uid] = RunningPod()
            seat.task = asyncio.create_task(self._guarded(pod, seat))
        is_to_end = event == "DELETED" or "deletionTimestamp" in pod["metadata"]
        if is_to_end and uid in self._seats:
            self._seats[uid].termination_requested.set()
        if event == "DELETED":
            self._seats.pop(uid, None)

    async def _guarded(self, pod: Object, seat: RunningPod) -> None:
        name = pod["metadata"]["name"]
        try:
            await Life(self, pod, seat).lived()
        except Rejected as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:  # the pod went before us
                self.failures.append(f"{name}: {refusal}")
        except Exception as problem:  # noqa: BLE001 - the edge of a task: it is reported, not lost
            self.failures.append(f"{name}: {problem!r}")


@dataclass(slots=True)
class Life:
    """One pod, from its binding to its end."""

    kubelet: FakeKubelet
    pod: Object
    seat: RunningPod

    @property
    def _namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def _path(self) -> str:
        return core(self._namespace, "pods", self.pod["metadata"]["name"])

    @property
    def _container(self) -> Object:
        found: Object = self.pod["spec"]["containers"][0]
        return found

    async def lived(self) -> None:
        if not self.pod["spec"].get("nodeName"):
            await self._bound()
        driver = await self._prepared()
        if driver is not None:
            await self._driven(driver)
        await self.seat.termination_requested.wait()
        await self.kubelet.client.delete(
            self._path,
            {"gracePeriodSeconds": 0, "preconditions": {"uid": self.pod["metadata"]["uid"]}},
        )

    async def _bound(self) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        metadata = {"name": self.pod["metadata"]["name"]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self.kubelet.client.create(f"{self._path}/binding", body)

    async def _prepared(self) -> PretendDriver | None:
        """The driver, once all that it needs exists; none if it is deleted before."""
        while not self.seat.termination_requested.is_set():
            found = await self._needed()
            if found is not None:
                return self._driver(found)
            await asyncio.sleep(POLL_S)
        return None

    async def _needed(self) -> dict[tuple[str, str], Object] | None:
        """All ConfigMaps and Secrets that the pod names and must have."""
        found = {}
        for kind, name in sorted(set(_named(self.pod["spec"]))):
            here = await self.kubelet.client.find(core(self._namespace, kind, name))
            if here is None:
                return None
            found[kind, name] = here
        return found

    def _driver(self, found: dict[tuple[str, str], Object]) -> PretendDriver:
        labels, environment = self.pod["metadata"]["labels"], self._environment(found)
        configs = [each["data"] for (kind, _), each in found.items() if kind == "configmaps"]
        texts = [data["job.json"] for data in configs if "job.json" in data]
        assert len(texts) == 1, f"a driver has one job.json, not {len(texts)}"
        storage = self.kubelet.storage(self._namespace, labels["weir.dev/job"])
        return PretendDriver(
            int(environment["WEIR_ATTEMPT"]),
            environment["WEIR_TOKEN"],
            manner_of(self._container["image"]),
            start_of(environment),
            storage,
            str(json.loads(texts[0])["checkpointing"].get("savepointDir", "")),
        )

    def _environment(self, found: dict[tuple[str, str], Object]) -> dict[str, str]:
        """As the container would see it; what the node would fill in is left out."""
        given = {}
        for variable in self._container["env"]:
            source = variable.get("valueFrom", {}).get("secretKeyRef")
            if source is not None:
                data = found["secrets", source["name"]]["data"]
                given[variable["name"]] = base64.b64decode(data[source["key"]]).decode()
            elif "value" in variable:
                given[variable["name"]] = variable["value"]
        return given

    async def _driven(self, driver: PretendDriver) -> None:
        """Start it, let it live, and say how it ended."""
        address = self.kubelet.rest.new_address()
        over = asyncio.Event()

        def look() -> None:
            if driver.is_over:
                over.set()

        def finish(key: str) -> None:
            driver.finish(key)
            look()

        await self._say("Running", {"running": {"startedAt": _now()}}, address)
        self.kubelet.rest.listeners[address] = Listener(driver, self._namespace, finish)
        try:
            driver.begin()
            look()
            await self._until_end(driver, over)
            await asyncio.sleep(ENDING_S)
        finally:
            driver.end()
            del self.kubelet.rest.listeners[address]
        if driver.is_over:
            message = driver.report().model_dump_json(by_alias=True)
            ended = {"exitCode": driver.exit_code, "finishedAt": _now(), "message": message}
            phase = "Failed" if driver.exit_code else "Succeeded"
            await self._say(phase, {"terminated": ended}, address)

    async def _until_end(self, driver: PretendDriver, over: asyncio.Event) -> None:
        ends = [
            asyncio.create_task(each.wait()) for each in (over, self.seat.termination_requested)
        ]
        beat = asyncio.create_task(self._checkpointed(driver))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ends, beat):
                task.cancel()

    async def _checkpointed(self, driver: PretendDriver) -> None:
        """A checkpoint at a steady pace."""
        pace = self.kubelet.pace
        due = time.monotonic() + pace.start_s
        while True:
            due += pace.checkpoint_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            done = driver.complete_checkpoint()
            if done is not None:
                self.kubelet.completed(driver, done)

    async def _say(self, phase: str, state: dict[str, Any], address: str) -> None:
        """The pod's status, as a kubelet tells it."""
        is_up = "running" in state
        container = {
            "name": self._container["name"],
            "image": self._container["image"],
            "imageID": "",
            "ready": is_up,
            "started": is_up,
            "restartCount": 0,
            "state": state,
        }
        ready = {"type": "Ready", "status": str(is_up), "lastTransitionTime": _now()}
        status = {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [ready],
            "containerStatuses": [container],
        }
        await self.kubelet.client.merge(f"{self._path}/status", {"status": status})


def _named(spec: Object) -> Iterator[tuple[str, str]]:
    """The ConfigMaps and Secrets without which a real kubelet does not start the pod."""
    for volume in spec.get("volumes", []):
        if "configMap" in volume and not volume["configMap"].get("optional"):
            yield "configmaps", volume["configMap"]["name"]
        if "secret" in volume and not volume["secret"].get("optional"):
            yield "secrets", volume["secret"]["secretName"]
    for container in spec["containers"]:
        for variable in container.get("env", []):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference is not None:
                yield "secrets", reference["name"]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def fake_kubelet(client: Client, port: int, pace: Pace) -> AsyncIterator[FakeKubelet]:
    """A node that is ready, until the block ends."""
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": _now()}
    ready["lastTransitionTime"] = _now()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    with suppress(Rejected):  # an earlier block has made it
        await client.create("/api/v1/nodes", node)
    await client.merge(f"/api/v1/nodes/{NODE}/status", {"status": {"conditions": [ready]}})
    async with fake_driver_api(port) as rest:
        kubelet = FakeKubelet(client, rest, pace)
        watching = asyncio.create_task(kubelet.run())
        try:
            yield kubelet
        finally:
            watching.cancel()
            kubelet.close()
