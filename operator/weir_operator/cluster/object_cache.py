"""Keeps copies of resources as the watches have shown them, up to a number of bytes.

Other people choose how many resources there are and how large, so the copies have a limit in total:
beyond it the text that was used least recently is dropped. What is left of such a resource is its
uid, its version and a digest of what people can change in it, which is all that is needed to tell
news from repetition; whoever looks at it reads it again from the API server.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from weir_operator.cluster.api_paths import Key, Place
from weir_operator.cluster.api_requests import Api, good, read
from weir_operator.cluster.resource_object import Opened, Resource, is_newer


class Kept(Mapping[Key, Resource]):
    """The resources of one kind, by their keys."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._resources: dict[Key, Resource] = {}
        self._texts: OrderedDict[Key, int] = OrderedDict()
        """How long the texts are that are kept, the least recently used first."""
        self.held_bytes = 0
        """Bytes of all texts that are kept."""

    def __getitem__(self, key: Key) -> Resource:
        return self._resources[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._resources)

    def __len__(self) -> int:
        return len(self._resources)

    def put(self, body: Opened) -> bool:
        """Keep a copy unless it is older; true if something changed that people can change."""
        before = self._resources.get(body.key)
        if before is not None and before.uid == body.uid and not _is_news(body, before):
            return False
        resource = Resource.of(body)
        self.drop(body.key)
        self._resources[body.key] = resource
        self._hold(body.key, resource)
        return before is None or before.wishes != resource.wishes

    def drop(self, key: Key) -> None:
        self._resources.pop(key, None)
        self.held_bytes -= self._texts.pop(key, 0)

    def used(self, key: Key) -> None:
        """Keep its text longer than those of others."""
        if key in self._texts:
            self._texts.move_to_end(key)

    def _hold(self, key: Key, resource: Resource) -> None:
        assert resource.text is not None, "a copy is whole when it is made"
        self._texts[key] = len(resource.text)
        self.held_bytes += len(resource.text)
        while self.held_bytes > self._most:
            oldest, length = self._texts.popitem(last=False)
            self.held_bytes -= length
            self._resources[oldest] = self._resources[oldest].without_text()


async def opened(api: Api, place: Place, kept: Kept, key: Key) -> Opened | None:
    """A resource as it was last seen; one whose text was dropped is read again."""
    resource = kept.get(key)
    if resource is None:
        return None
    kept.used(key)
    copy = resource.opened()
    if copy is not None:
        return copy
    request = read(place, key)
    answer = await api.call(request)
    if answer.is_missing:
        kept.drop(key)
        return None
    found = Opened(good(request, answer))
    kept.put(found)
    return Resource.of(found).opened()


def _is_news(body: Opened, before: Resource) -> bool:
    """Whether a copy is newer than the one that is kept, or the same whose text was dropped."""
    if is_newer(body.version, before.version):
        return True
    return before.text is None and body.version == before.version
