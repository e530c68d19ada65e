"""Lists all objects page by page, to remove those from the cache whose deletion a watch missed.

It reads one page at a time, because a thousand jobs with all their pods in one response would
dominate the operator's memory. It removes only objects that were cached before the list began, so
that an object which was created in the meantime stays.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from weir_operator.cluster.api_paths import JOBS, PODS, SNAPSHOTS, ApiResource, NamespacedName
from weir_operator.cluster.api_requests import ApiRequest, ApiServer, Json, successful_body
from weir_operator.cluster.informer_cache import InformerCache
from weir_operator.cluster.observation import ObservedPod, parse_pod
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.manifests.object_names import JOB_LABEL

PAGE = 100
PAGE_OF_RESOURCES = 20
"""For jobs and snapshots: users write those, and one may have up to 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class ChangedObjects:
    """The resources that differ from the cache."""

    jobs: frozenset[NamespacedName] = frozenset()
    snapshots: frozenset[NamespacedName] = frozenset()


async def list_all(
    api: ApiServer, api_resource: ApiResource, namespaces: Iterable[str | None]
) -> AsyncIterator[Json]:
    """All objects of a kind in these namespaces; none means the whole cluster."""
    for namespace in namespaces:
        query = {"limit": str(PAGE_OF_RESOURCES if api_resource in (JOBS, SNAPSHOTS) else PAGE)}
        if api_resource is PODS:
            query["labelSelector"] = JOB_LABEL
        more = True
        while more:
            request = ApiRequest(
                "GET", api_resource, api_resource.collection_path(namespace), query
            )
            page = successful_body(request, await api.call(request))
            for body in page.get("items") or ():
                yield body
            more = bool((page.get("metadata") or {}).get("continue"))
            query["continue"] = str((page.get("metadata") or {}).get("continue", ""))


async def resync(
    api: ApiServer, cache: InformerCache, namespaces: tuple[str | None, ...]
) -> ChangedObjects:
    """Bring what is known in line with what is there."""
    jobs = await _resync_resources(
        list_all(api, JOBS, namespaces), set(cache.jobs), cache.put_job, cache.drop_job
    )
    snapshots = await _resync_resources(
        list_all(api, SNAPSHOTS, namespaces),
        set(cache.snapshots),
        cache.put_snapshot,
        cache.drop_snapshot,
    )
    return ChangedObjects(jobs | await _resync_pods(api, cache, namespaces), snapshots)


async def _resync_resources(
    found: AsyncIterator[Json],
    unseen: set[NamespacedName],
    put: Callable[[ResourceObject], bool],
    drop: Callable[[NamespacedName], None],
) -> frozenset[NamespacedName]:
    """Cache what the list shows; drop what was cached before and is not in it."""
    changed: set[NamespacedName] = set()
    async for body in found:
        resource = ResourceObject(body)
        unseen.discard(resource.key)
        if put(resource):
            changed.add(resource.key)
    for key in unseen:
        drop(key)
    return frozenset(changed | unseen)


async def _resync_pods(
    api: ApiServer, cache: InformerCache, namespaces: tuple[str | None, ...]
) -> frozenset[NamespacedName]:
    before = {pod.uid: pod for pods in cache.pods.values() for pod in pods.values()}
    seen: dict[str, ObservedPod] = {}
    async for body in list_all(api, PODS, namespaces):
        pod = parse_pod(body)
        if pod is not None:
            seen[pod.uid] = pod
            cache.put_pod(pod)
    gone = [pod for uid, pod in before.items() if uid not in seen]
    for pod in gone:
        cache.drop_pod(pod)
    new = [pod for uid, pod in seen.items() if uid not in before]
    return frozenset(pod.job for pod in (*gone, *new))
