"""Caches resources as the watches delivered them, up to a number of bytes.

Tenants choose how many resources there are and how large, so the cache has a total limit: beyond it
the least recently used contents are evicted. Of an evicted resource the uid, the version and a
digest of what users can change remain, which suffices to detect changes; a reconcile reads it from
the API server again.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from weir_operator.cluster.api_paths import ApiResource, NamespacedName
from weir_operator.cluster.api_requests import ApiServer, get_request, successful_body
from weir_operator.cluster.resource_object import CachedResource, ResourceObject, is_newer


class ObjectCache(Mapping[NamespacedName, CachedResource]):
    """The resources of one kind, by key."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._resources: dict[NamespacedName, CachedResource] = {}
        self._texts: OrderedDict[NamespacedName, int] = OrderedDict()
        """Lengths of the cached contents, least recently used first."""
        self.held_bytes = 0
        """Bytes of all cached contents."""

    def __getitem__(self, key: NamespacedName) -> CachedResource:
        return self._resources[key]

    def __iter__(self) -> Iterator[NamespacedName]:
        return iter(self._resources)

    def __len__(self) -> int:
        return len(self._resources)

    def put(self, body: ResourceObject) -> bool:
        """Cache a copy unless it is older; true if something changed that users can change."""
        before = self._resources.get(body.key)
        if before is not None and before.uid == body.uid and not _is_news(body, before):
            return False
        resource = CachedResource.of(body)
        self.drop(body.key)
        self._resources[body.key] = resource
        self._hold(body.key, resource)
        return before is None or before.user_digest != resource.user_digest

    def drop(self, key: NamespacedName) -> None:
        self._resources.pop(key, None)
        self.held_bytes -= self._texts.pop(key, 0)

    def used(self, key: NamespacedName) -> None:
        """Mark its contents as recently used."""
        if key in self._texts:
            self._texts.move_to_end(key)

    def _hold(self, key: NamespacedName, resource: CachedResource) -> None:
        assert resource.text is not None, "a copy is whole when it is made"
        self._texts[key] = len(resource.text)
        self.held_bytes += len(resource.text)
        while self.held_bytes > self._most:
            oldest, length = self._texts.popitem(last=False)
            self.held_bytes -= length
            self._resources[oldest] = self._resources[oldest].without_text()


async def cached_object(
    api: ApiServer, api_resource: ApiResource, cache: ObjectCache, key: NamespacedName
) -> ResourceObject | None:
    """A resource from the cache; one whose contents were evicted is read from the API server."""
    resource = cache.get(key)
    if resource is None:
        return None
    cache.used(key)
    copy = resource.to_object()
    if copy is not None:
        return copy
    request = get_request(api_resource, key)
    answer = await api.call(request)
    if answer.is_not_found:
        cache.drop(key)
        return None
    found = ResourceObject(successful_body(request, answer))
    cache.put(found)
    return CachedResource.of(found).to_object()


def _is_news(body: ResourceObject, before: CachedResource) -> bool:
    """Whether a copy is newer than the cached one, or restores its evicted contents."""
    if is_newer(body.version, before.version):
        return True
    return before.text is None and body.version == before.version
