"""Lists whole kinds, page by page: to forget what a watch has missed the end of.

A page at a time, because a thousand jobs with all their pods in one piece would be the largest
thing in the operator's memory. Only what was known before the list began is forgotten, so that an
object which was made meanwhile is not.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from weir_operator.cluster.api_paths import JOBS, PODS, SNAPSHOTS, Key, Place
from weir_operator.cluster.api_requests import Api, Json, Request, good
from weir_operator.cluster.informer_cache import Watched
from weir_operator.cluster.observation import SeenPod, see_pod
from weir_operator.cluster.resource_object import Opened
from weir_operator.manifests.object_names import JOB_LABEL

PAGE = 100
PAGE_OF_RESOURCES = 20
"""Of jobs and snapshots: people write those, and one may have up to 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class Stirred:
    """What turned out to be otherwise than it was known."""

    jobs: frozenset[Key] = frozenset()
    snapshots: frozenset[Key] = frozenset()


async def everything(
    api: Api, place: Place, namespaces: Iterable[str | None]
) -> AsyncIterator[Json]:
    """All objects of a kind that are ours, in these namespaces; none stands for the cluster."""
    for namespace in namespaces:
        query = {"limit": str(PAGE_OF_RESOURCES if place in (JOBS, SNAPSHOTS) else PAGE)}
        if place is PODS:
            query["labelSelector"] = JOB_LABEL
        more = True
        while more:
            request = Request("GET", place, place.within(namespace), query)
            page = good(request, await api.call(request))
            for body in page.get("items") or ():
                yield body
            more = bool((page.get("metadata") or {}).get("continue"))
            query["continue"] = str((page.get("metadata") or {}).get("continue", ""))


async def sweep(api: Api, watched: Watched, namespaces: tuple[str | None, ...]) -> Stirred:
    """Bring what is known in line with what is there."""
    jobs = await _sweep_resources(
        everything(api, JOBS, namespaces), set(watched.jobs), watched.put_job, watched.drop_job
    )
    snapshots = await _sweep_resources(
        everything(api, SNAPSHOTS, namespaces),
        set(watched.snapshots),
        watched.put_snapshot,
        watched.drop_snapshot,
    )
    return Stirred(jobs | await _sweep_pods(api, watched, namespaces), snapshots)


async def _sweep_resources(
    found: AsyncIterator[Json],
    unseen: set[Key],
    put: Callable[[Opened], bool],
    drop: Callable[[Key], None],
) -> frozenset[Key]:
    """Keep what is found; what was known before and is not among it is dropped."""
    stirred: set[Key] = set()
    async for body in found:
        resource = Opened(body)
        unseen.discard(resource.key)
        if put(resource):
            stirred.add(resource.key)
    for key in unseen:
        drop(key)
    return frozenset(stirred | unseen)


async def _sweep_pods(
    api: Api, watched: Watched, namespaces: tuple[str | None, ...]
) -> frozenset[Key]:
    before = {pod.uid: pod for pods in watched.pods.values() for pod in pods.values()}
    seen: dict[str, SeenPod] = {}
    async for body in everything(api, PODS, namespaces):
        pod = see_pod(body)
        if pod is not None:
            seen[pod.uid] = pod
            watched.put_pod(pod)
    gone = [pod for uid, pod in before.items() if uid not in seen]
    for pod in gone:
        watched.drop_pod(pod)
    new = [pod for uid, pod in seen.items() if uid not in before]
    return frozenset(pod.job for pod in (*gone, *new))
