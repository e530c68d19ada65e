"""The watches: Kopf brings what happens in the cluster, and the desks are rung for it.

Only events are taken from Kopf. It has a name for a finalizer of its own, which nothing bears; it
posts no Events and keeps no notes on objects. The API server filters pods by label, so that pods of
others are never sent. Our own writes come back as events too; those ring for nobody.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import kopf
from kubernetes_asyncio.client import Configuration

from weir_operator.cluster.api_paths import Key
from weir_operator.cluster.informer_cache import Watched, job_of
from weir_operator.cluster.observation import see_node, see_pod
from weir_operator.cluster.resource_object import Opened
from weir_operator.cluster.resync import PAGE_OF_RESOURCES
from weir_operator.controller.watch_probe import CANARY, Canary
from weir_operator.controller.work_queue import Desk
from weir_operator.manifests.object_names import JOB_LABEL
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION

NOTES = "state.weir.dev"
"""Under this prefix Kopf would keep notes; users write below weir.dev, which it must not hide."""

Event = Mapping[str, Any]


@dataclass(slots=True)
class Watches:
    """Takes events in and rings for whom they concern."""

    watched: Watched
    jobs: Desk
    snapshots: Desk
    canary: Canary
    _used: dict[Key, object] = field(default_factory=dict)
    """What the snapshots of each job were last told of it."""

    def job(self, event: Event) -> None:
        body = Opened(event["object"])
        if event["type"] == "DELETED":
            self._gone(body)
        elif self.watched.put_job(body):
            self.jobs.ring(body.key)
        used = None if event["type"] == "DELETED" else _used_by(body)
        if self._used.pop(body.key, None) != used:
            for key in sorted(self.watched.of_job.get(body.key, ())):
                self.snapshots.ring(key)
        if used is not None:
            self._used[body.key] = used
        if len(self._used) > len(self.watched.jobs):
            self._forget_jobs_that_no_watch_saw_go()

    def _forget_jobs_that_no_watch_saw_go(self) -> None:
        for key in self._used.keys() - self.watched.jobs.keys():
            del self._used[key]

    def _gone(self, body: Opened) -> None:
        known = self.watched.jobs.get(body.key)
        if known is not None and known.uid == body.uid:
            self.watched.drop_job(body.key)
        self.jobs.ring(body.key)

    def snapshot(self, event: Event) -> None:
        body = Opened(event["object"])
        if event["type"] == "DELETED":
            self.watched.drop_snapshot(body.key)
            self.snapshots.ring(body.key)
        elif self.watched.put_snapshot(body):
            self.snapshots.ring(body.key)
        self._ring_job(job_of(body))

    def pod(self, event: Event) -> None:
        pod = see_pod(event["object"])
        if pod is None:
            return
        if event["type"] == "DELETED":
            self.watched.drop_pod(pod)
        else:
            self.watched.put_pod(pod)
        self._ring_job(pod.job)

    def node(self, event: Event) -> None:
        """Most news of a node is that it lives; only otherwise are its jobs rung for."""
        node = see_node(event["object"])
        before = self.watched.nodes.pop(node.name, None)
        if event["type"] != "DELETED":
            self.watched.nodes[node.name] = node
        if self.watched.nodes.get(node.name) != before:
            for key in sorted(self.watched.jobs_on(node.name)):
                self._ring_job(key)

    async def farewell(self, **_: object) -> None:
        """Kopf would wait for looks that run on; the next operator repeats them."""
        await self.jobs.close()
        await self.snapshots.close()

    def _ring_job(self, key: Key) -> None:
        if key in self.watched.jobs:
            self.jobs.ring(key)


def registry_of(
    watches: Watches, configuration: Configuration, *, sees_nodes: bool
) -> kopf.OperatorRegistry:
    """What Kopf is to watch, and how it gets to the API server."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, id="login")(_login_with(configuration))
    kopf.on.cleanup(registry=registry, id="farewell")(watches.farewell)
    _on_event(registry, watches.job, GROUP, VERSION, JOB.plural)
    _on_event(registry, watches.snapshot, GROUP, VERSION, SNAPSHOT.plural)
    _on_event(registry, watches.pod, "v1", "pods")
    _on_event(registry, watches.canary.came_back, "v1", "configmaps")
    if sees_nodes:
        _on_event(registry, watches.node, "v1", "nodes")
    return registry


def settings_of() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{NOTES}/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=NOTES)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=NOTES)
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 10.0
    settings.queueing.idle_timeout = 0.5  # so long Kopf keeps an object after its last event
    settings.watching.chunk_size = PAGE_OF_RESOURCES
    settings.watching.label_selectors["v1", "pods"] = JOB_LABEL
    settings.watching.field_selectors["v1", "configmaps"] = f"metadata.name={CANARY}"
    settings.process.ultimate_exiting_timeout = 30.0
    return settings


def quieten() -> None:
    """Kopf tells of every event that it was given; we tell of what comes of it."""
    logging.getLogger("kopf").setLevel(logging.WARNING)


def _on_event(registry: kopf.OperatorRegistry, take: Any, *selector: str) -> None:  # noqa: ANN401
    async def handle(event: Event, **_: object) -> None:
        take(event)

    kopf.on.event(*selector, registry=registry, id=take.__name__)(handle)


def _login_with(configuration: Configuration) -> Any:  # noqa: ANN401
    async def login(**_: object) -> kopf.ConnectionInfo:
        token = await configuration.get_api_key_with_prefix("BearerToken")
        return kopf.ConnectionInfo(
            server=str(configuration.host).rstrip("/"),
            ca_path=configuration.ssl_ca_cert or None,
            insecure=not configuration.verify_ssl,
            scheme="Bearer" if token else None,
            token=None if not token else token.removeprefix("Bearer ").strip(),
            certificate_path=configuration.cert_file or None,
            private_key_path=configuration.key_file or None,
        )

    return login


def _used_by(job: Opened) -> object:
    """What a snapshot asks of its job: whether it lives, and what it starts from."""
    status = job.status
    points = (status.get("restorePoint"), (status.get("stable") or {}).get("leftAt"))
    paths = tuple((point or {}).get("path") for point in points)
    return (job.uid, status.get("state"), (status.get("driver") or {}).get("attempt"), paths)
