"""Sees, hears and acts for whoever looks at a resource: the cluster and the drivers in one hand.

Each action of a plan has its one line here. What an action shows of the world at once, such as the
pod that was just made, is kept, so that the next look need not wait for its watch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from weir_operator.cluster.api_paths import JOBS, SNAPSHOTS, Key, Place
from weir_operator.cluster.api_requests import Api, Json, good, read
from weir_operator.cluster.cluster_reader import Depth, Eyes, Wanted
from weir_operator.cluster.cluster_writer import Deleted, Hands
from weir_operator.cluster.driver_credentials import Contacts, Lacking
from weir_operator.cluster.event_recorder import tell
from weir_operator.cluster.informer_cache import Watched
from weir_operator.cluster.object_cache import opened
from weir_operator.cluster.observation import SeenPod, see_pod
from weir_operator.cluster.resource_object import Opened
from weir_operator.cluster.status_writer import (
    Conflict,
    Vanished,
    Written,
    hold,
    let_go,
    write_status,
)
from weir_operator.controller.report_watcher import Listening
from weir_operator.driver_client import Line, Order, understood
from weir_operator.plan.cluster_actions import (
    CreateDriver,
    CreateSnapshot,
    DeleteDriver,
    DeleteJob,
    DeleteSnapshot,
    EmitEvent,
    Ensure,
    ForceDelete,
    RequestCheckpoint,
    RequestSavepoint,
    RequestStop,
)
from weir_operator.plan.observed_state import DriverReport, Observed, Silence, Terminated, Up
from weir_operator.plan.spec_versions import deployed_spec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus
from weir_operator.resource.status import CheckpointedJobStatus


class Drivers(Protocol):
    """Whoever gives orders to drivers. It does not raise: what does not arrive is given again."""

    async def order(self, line: Line, order: Order) -> bool: ...


@dataclass(frozen=True, slots=True)
class Actor:
    """Everything that a look needs of the world."""

    api: Api
    watched: Watched
    eyes: Eyes
    hands: Hands
    contacts: Contacts
    drivers: Drivers
    listening: Listening
    driver_port: int
    now: Callable[[], datetime]

    async def job(self, key: Key) -> Opened | None:
        return await opened(self.api, JOBS, self.watched.jobs, key)

    async def snapshot(self, key: Key) -> Opened | None:
        return await opened(self.api, SNAPSHOTS, self.watched.snapshots, key)

    async def note(self, place: Place, key: Key, written: Written) -> None:
        """Keep what a write has shown of a job or snapshot, or what became of it meanwhile."""
        found = await self._reread(place, key) if isinstance(written, Conflict) else written
        known, is_job = self.watched, place is JOBS
        put, drop = (
            (known.put_job, known.drop_job) if is_job else (known.put_snapshot, known.drop_snapshot)
        )
        if not isinstance(written, Opened):
            drop(key)  # whatever was known, the API server's own word replaces it
        if isinstance(found, Opened):
            put(found)

    async def see(self, job: Opened, now: datetime, depth: Depth, wanted: Wanted) -> Observed:
        return await self.eyes.see(job, now, depth, wanted)

    async def heard(
        self, job: Opened, status: CheckpointedJobStatus
    ) -> DriverReport | Silence | None:
        """What the current driver says, or said last, or why it is not heard; none without one."""
        pod = self._current(job, status)
        if pod is None:
            self.listening.forget(job.key)
            return None
        line = await self._line(job, pod.attempt, status)
        if isinstance(line, Line):
            said = await self.listening.heard(job.key, pod.uid, line)
            if isinstance(said, Silence) and said.is_mistrust:
                self.contacts.doubt(job.key, self.now())
            return said
        self.listening.forget(job.key)
        if isinstance(pod.stage, Terminated):
            return understood(pod.last_words, pod.attempt)
        return line

    def forget(self, job: Key) -> None:
        """The job is gone, whoever let it go."""
        self.listening.forget(job)
        self.contacts.forget(job)
        self.eyes.made(job)

    async def order(self, job: Opened, status: CheckpointedJobStatus, order: Order) -> None:
        """Give an order to a driver; one that does not arrive is given again by the next look."""
        line = await self._line(job, order.attempt, status)
        if isinstance(line, Line):
            await self.drivers.order(line, order)

    async def write_status(
        self,
        place: Place,
        read: Opened,
        status: CheckpointedJobStatus | CheckpointedJobSnapshotStatus,
    ) -> Written:
        return await write_status(self.api, place, read, status)

    async def hold(self, place: Place, read: Opened) -> Written:
        return await hold(self.api, place, read)

    async def let_go(self, place: Place, read: Opened) -> Written:
        return await let_go(self.api, place, read)

    async def tell(self, place: Place, about: Opened, reason: str, message: str) -> None:
        """Warn whoever watches the resource."""
        event = EmitEvent(reason, message, is_warning=True)
        await tell(self.api, place, about, event, self.now())

    async def carry_out(self, job: Opened, action: object, status: CheckpointedJobStatus) -> None:
        """Do one thing that a plan for a job decided."""
        match action:
            case EmitEvent():
                await tell(self.api, JOBS, job, action, self.now())
            case Ensure():
                await self.hands.make(job, action, status)
                self.eyes.made(job.key)
            case CreateDriver():
                self._keep_pod(await self.hands.make(job, action, status))
                await self.hands.forget_configuration(job, action.attempt - 1)
            case CreateSnapshot():
                await self.hands.make(job, action, status)
            case DeleteDriver() | ForceDelete() | DeleteSnapshot() | DeleteJob():
                await self._delete(job, action)
            case RequestSavepoint() | RequestCheckpoint() | RequestStop():
                await self.order(job, status, action)
            case _:
                raise AssertionError(f"no plan for a job asks for {action}")

    async def _delete(self, job: Opened, action: Deleted) -> None:
        """A pod that was gone already is forgotten, for no watch has told of its end."""
        was_gone = await self.hands.delete(job, action)
        if not was_gone or not isinstance(action, DeleteDriver | ForceDelete):
            return
        for pod in self.watched.pods_of(job.key):
            if pod.uid == action.uid:
                self.watched.drop_pod(pod)

    def _keep_pod(self, body: Json) -> None:
        pod = see_pod(body)
        assert pod is not None, "the driver's pod says whose it is"
        self.watched.put_pod(pod)

    def _current(self, job: Opened, status: CheckpointedJobStatus) -> SeenPod | None:
        """The pod of the current driver."""
        driver = status.driver
        pod = None if driver is None else self.eyes.driver(job, driver.attempt)
        is_it = driver is not None and pod is not None and driver.pod_uid in (None, pod.uid)
        return pod if is_it else None

    async def _line(
        self, job: Opened, attempt: int, status: CheckpointedJobStatus
    ) -> Line | Silence | None:
        """How to reach the driver of an attempt; none if it has no address now."""
        pod = self.eyes.driver(job, attempt)
        if pod is None or not pod.ip or not isinstance(pod.stage, Up):
            return None
        deployed = deployed_spec(status)
        tls_secret = None if deployed is None else deployed.tls_secret
        contact = await self.contacts.of(job, tls_secret, self.now())
        if isinstance(contact, Lacking):
            return Silence(contact.why, is_mistrust=contact.is_authority)
        return Line(pod.ip, self.driver_port, attempt, contact.token, contact.authority)

    async def _reread(self, place: Place, key: Key) -> Opened | Vanished:
        """The API server's own word."""
        request = read(place, key)
        answer = await self.api.call(request)
        return Vanished() if answer.is_missing else Opened(good(request, answer))
