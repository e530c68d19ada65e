"""A custom resource as it was last read, and the few fields of it that a reconcile needs.

Between two reconciles a resource is kept as text: a thousand of them as trees of Python objects
would fill the operator's memory. Versions are compared as numbers only to prefer the newer of two
copies; if that were ever wrong, the next write would fail with a conflict and the object would be
read again.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime

from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.api_requests import Json
from weir_operator.resource.api_group import CHECKPOINT_ANNOTATION, SAVEPOINT_ANNOTATION
from weir_operator.resource.validation import LARGEST_SPEC_BYTES, size_of

FINALIZER = "state.weir.dev/finalizer"
"""It keeps a resource until its objects are gone. Kopf's own finalizer must have another name,
because Kopf removes its finalizer from objects that it has no handlers for."""


@dataclass(frozen=True, slots=True)
class CachedResource:
    """A CheckpointedJob or a CheckpointedJobSnapshot in the cache."""

    uid: str
    version: str
    user_digest: str
    """A digest of what users can change; if only the rest changed, the operator itself wrote it."""
    text: str | None
    """The contents; none if they were evicted."""

    @classmethod
    def of(cls, resource: "ResourceObject") -> "CachedResource":
        """Keep only the needed fields, and no specification that is too large."""
        metadata, size = resource.body["metadata"], resource.spec_bytes
        kept = {
            "metadata": {
                **{name: metadata[name] for name in _METADATA if name in metadata},
                "annotations": resource.annotations,
            },
            "spec": {} if size > LARGEST_SPEC_BYTES else resource.spec,
            _SPEC_BYTES: size,
            "status": resource.status,
        }
        text = json.dumps(kept, separators=(",", ":"))
        return cls(resource.uid, resource.version, resource.user_digest, text)

    def to_object(self) -> "ResourceObject | None":
        return None if self.text is None else ResourceObject(json.loads(self.text))

    def without_text(self) -> "CachedResource":
        return replace(self, text=None)


_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
)
_ANNOTATIONS = (SAVEPOINT_ANNOTATION, CHECKPOINT_ANNOTATION)
"""All that the operator reads; others may be as large as a specification."""
_LONGEST_ANNOTATION = 128
_SPEC_BYTES = "specBytes"


@dataclass(frozen=True, slots=True)
class ResourceObject:
    """A resource during its reconcile."""

    body: Json

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.body["metadata"]["namespace"], self.body["metadata"]["name"])

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
    def has_finalizer(self) -> bool:
        """Whether the operator's finalizer is set."""
        return FINALIZER in self.finalizers

    @property
    def finalizers(self) -> tuple[str, ...]:
        return tuple(self.body["metadata"].get("finalizers") or ())

    @property
    def spec_bytes(self) -> int:
        """The size of the specification, even if it was too large to be kept."""
        known = self.body.get(_SPEC_BYTES)
        return size_of(self.spec) if known is None else int(known)

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations that request something; a long value is replaced by its digest."""
        given = self.body["metadata"].get("annotations") or {}
        return {name: _shortened(str(given[name])) for name in _ANNOTATIONS if name in given}

    @property
    def user_digest(self) -> str:
        metadata = self.body["metadata"]
        user_digest = (
            metadata["uid"],
            self.generation,
            metadata.get("deletionTimestamp"),
            self.has_finalizer,
            self.annotations,
        )
        return _digest(json.dumps(user_digest))


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_ANNOTATION else _digest(value)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_newer(version: str, than: str) -> bool:
    """Whether one copy of an object is newer than another; true in doubt."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than
