"""A resource of ours as it was last read, and the few things of it that a look needs.

Between two looks a resource is kept as text: a thousand of them as trees of Python objects would
fill the operator's memory. Versions are compared as numbers only to prefer the newer of two copies;
if that were ever wrong, the next write would fail at its lock and the object be read again.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from weir_operator.cluster.answers import Json
from weir_operator.cluster.places import Key

FINALIZER = "state.weir.dev/finalizer"
"""It keeps a resource until what belongs to it is gone. Kopf must call its own differently, because
it removes what bears its name from objects for which it has nothing to do."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A CheckpointedJob or a CheckpointedJobSnapshot."""

    text: str

    @classmethod
    def of(cls, body: Json) -> "Resource":
        """Whatever is not needed is forgotten at once."""
        metadata = body["metadata"]
        kept = {
            "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
            "spec": body.get("spec") or {},
            "status": body.get("status") or {},
        }
        return cls(json.dumps(kept, separators=(",", ":")))

    def opened(self) -> "Opened":
        return Opened(json.loads(self.text))


_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "annotations",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Opened:
    """A resource that is being looked at."""

    body: Json

    @property
    def key(self) -> Key:
        return Key(self.body["metadata"]["namespace"], self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def generation(self) -> int:
        return int(self.body["metadata"].get("generation", 1))

    @property
    def spec(self) -> Json:
        spec: Json = self.body.get("spec") or {}
        return spec

    @property
    def status(self) -> Json:
        status: Json = self.body.get("status") or {}
        return status

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.body["metadata"]["creationTimestamp"])

    @property
    def deleted_at(self) -> datetime | None:
        given = self.body["metadata"].get("deletionTimestamp")
        return None if given is None else datetime.fromisoformat(given)

    @property
    def is_held(self) -> bool:
        """Whether it stays until we let it go."""
        return FINALIZER in self.finalizers

    @property
    def finalizers(self) -> tuple[str, ...]:
        return tuple(self.body["metadata"].get("finalizers") or ())

    def annotation(self, name: str) -> str | None:
        found = (self.body["metadata"].get("annotations") or {}).get(name)
        return None if found is None else str(found)

    @property
    def wishes(self) -> object:
        """What people can change; when only the rest changed, it was our own doing."""
        metadata = self.body["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(_LAST_APPLIED, None)
        return (
            metadata["uid"],
            self.generation,
            metadata.get("deletionTimestamp"),
            self.is_held,
            annotations,
        )


def is_newer(version: str, than: str) -> bool:
    """Whether one copy of an object is newer than another; in doubt it is."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than
