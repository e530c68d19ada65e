"""The informers: receive watch events from Kopf, update the cache and enqueue resources.

Kopf is used for events only. It is configured with a finalizer that no object has; it posts no
Events and stores no annotations. The API server filters pods by label, so that it does not send
pods of other applications. The operator's own writes arrive as events too; these do not enqueue
anything.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import kopf
from kubernetes_asyncio.client import Configuration

from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.informer_cache import InformerCache, job_of
from weir_operator.cluster.observation import parse_node, parse_pod
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.cluster.resync import PAGE_OF_RESOURCES
from weir_operator.controller.watch_probe import PROBE_CONFIG_MAP, WatchProbe
from weir_operator.controller.work_queue import WorkQueue
from weir_operator.manifests.object_names import JOB_LABEL
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION

KOPF_PREFIX = "state.weir.dev"
"""Kopf's annotation prefix. Users write below weir.dev, which Kopf must not hide."""

Event = Mapping[str, Any]


@dataclass(slots=True)
class Informers:
    """Handles watch events and enqueues the resources that they concern."""

    cache: InformerCache
    jobs: WorkQueue
    snapshots: WorkQueue
    probe: WatchProbe
    _used_fields: dict[NamespacedName, object] = field(default_factory=dict)
    """The fields of each job that its snapshots depend on, as last seen."""

    def job(self, event: Event) -> None:
        body = ResourceObject(event["object"])
        if event["type"] == "DELETED":
            self._deleted(body)
        elif self.cache.put_job(body):
            self.jobs.enqueue(body.key)
        used_fields = None if event["type"] == "DELETED" else _fields_used_by_snapshots(body)
        if self._used_fields.pop(body.key, None) != used_fields:
            for key in sorted(self.cache.of_job.get(body.key, ())):
                self.snapshots.enqueue(key)
        if used_fields is not None:
            self._used_fields[body.key] = used_fields
        if len(self._used_fields) > len(self.cache.jobs):
            self._forget_jobs_that_no_watch_saw_go()

    def _forget_jobs_that_no_watch_saw_go(self) -> None:
        for key in self._used_fields.keys() - self.cache.jobs.keys():
            del self._used_fields[key]

    def _deleted(self, body: ResourceObject) -> None:
        known = self.cache.jobs.get(body.key)
        if known is not None and known.uid == body.uid:
            self.cache.drop_job(body.key)
        self.jobs.enqueue(body.key)

    def snapshot(self, event: Event) -> None:
        body = ResourceObject(event["object"])
        if event["type"] == "DELETED":
            self.cache.drop_snapshot(body.key)
            self.snapshots.enqueue(body.key)
        elif self.cache.put_snapshot(body):
            self.snapshots.enqueue(body.key)
        self._enqueue_job(job_of(body))

    def pod(self, event: Event) -> None:
        pod = parse_pod(event["object"])
        if pod is None:
            return
        if event["type"] == "DELETED":
            self.cache.drop_pod(pod)
        else:
            self.cache.put_pod(pod)
        self._enqueue_job(pod.job)

    def node(self, event: Event) -> None:
        """Most events of a node are heartbeats; only a change enqueues its jobs."""
        node = parse_node(event["object"])
        before = self.cache.nodes.pop(node.name, None)
        if event["type"] != "DELETED":
            self.cache.nodes[node.name] = node
        if self.cache.nodes.get(node.name) != before:
            for key in sorted(self.cache.jobs_on(node.name)):
                self._enqueue_job(key)

    async def close(self, **_: object) -> None:
        """Kopf would wait for running reconciles; the next leader repeats them."""
        await self.jobs.close()
        await self.snapshots.close()

    def _enqueue_job(self, key: NamespacedName) -> None:
        if key in self.cache.jobs:
            self.jobs.enqueue(key)


def kopf_registry(
    watches: Informers, configuration: Configuration, *, watches_nodes: bool
) -> kopf.OperatorRegistry:
    """What Kopf watches, and how it authenticates to the API server."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, id="login")(_login_with(configuration))
    kopf.on.cleanup(registry=registry, id="close")(watches.close)
    _on_event(registry, watches.job, GROUP, VERSION, JOB.plural)
    _on_event(registry, watches.snapshot, GROUP, VERSION, SNAPSHOT.plural)
    _on_event(registry, watches.pod, "v1", "pods")
    _on_event(registry, watches.probe.observed_in_watch, "v1", "configmaps")
    if watches_nodes:
        _on_event(registry, watches.node, "v1", "nodes")
    return registry


def kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{KOPF_PREFIX}/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=KOPF_PREFIX)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=KOPF_PREFIX)
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 10.0
    settings.queueing.idle_timeout = 0.5  # how long Kopf keeps an object after its last event
    settings.watching.chunk_size = PAGE_OF_RESOURCES
    settings.watching.label_selectors["v1", "pods"] = JOB_LABEL
    settings.watching.field_selectors["v1", "configmaps"] = f"metadata.name={PROBE_CONFIG_MAP}"
    settings.process.ultimate_exiting_timeout = 30.0
    return settings


def quiet_kopf_logging() -> None:
    """Kopf logs every event; the operator logs only what it does about it."""
    logging.getLogger("kopf").setLevel(logging.WARNING)


def _on_event(registry: kopf.OperatorRegistry, handler: Any, *selector: str) -> None:  # noqa: ANN401
    async def handle(event: Event, **_: object) -> None:
        handler(event)

    kopf.on.event(*selector, registry=registry, id=handler.__name__)(handle)


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


def _fields_used_by_snapshots(job: ResourceObject) -> object:
    """What a snapshot depends on: whether its job exists, and what it starts from."""
    status = job.status
    points = (status.get("restorePoint"), (status.get("stable") or {}).get("leftAt"))
    paths = tuple((point or {}).get("path") for point in points)
    return (job.uid, status.get("state"), (status.get("driver") or {}).get("attempt"), paths)
