"""A resource of ours as it was last read, and the few things of it that a look needs.

Between two looks a resource is kept as text: a thousand of them as trees of Python objects would
fill the operator's memory. Versions are compared as numbers only to prefer the newer of two copies;
if that were ever wrong, the next write would fail at its lock and the object be read again.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime

from weir_operator.cluster.api_paths import Key
from weir_operator.cluster.api_requests import Json
from weir_operator.resource.api_group import CHECKPOINT_ANNOTATION, SAVEPOINT_ANNOTATION
from weir_operator.resource.validation import LARGEST_SPEC_BYTES, size_of

FINALIZER = "state.weir.dev/finalizer"
"""It keeps a resource until what belongs to it is gone. Kopf must call its own differently, because
it removes what bears its name from objects for which it has nothing to do."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A CheckpointedJob or a CheckpointedJobSnapshot."""

    uid: str
    version: str
    wishes: str
    """A digest of what people can change; when only the rest changed, it was our own doing."""
    text: str | None
    """The rest; none if it was dropped to make room for others."""

    @classmethod
    def of(cls, resource: "Opened") -> "Resource":
        """Whatever is not needed is forgotten at once, and so is a specification too large."""
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
        return cls(resource.uid, resource.version, resource.wishes, text)

    def opened(self) -> "Opened | None":
        return None if self.text is None else Opened(json.loads(self.text))

    def without_text(self) -> "Resource":
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

    @property
    def spec_bytes(self) -> int:
        """How large the specification is, even where it was too large to be kept."""
        known = self.body.get(_SPEC_BYTES)
        return size_of(self.spec) if known is None else int(known)

    @property
    def annotations(self) -> dict[str, str]:
        """Those that ask for something; a long value stands for itself by its digest."""
        given = self.body["metadata"].get("annotations") or {}
        return {name: _shortened(str(given[name])) for name in _ANNOTATIONS if name in given}

    @property
    def wishes(self) -> str:
        metadata = self.body["metadata"]
        wishes = (
            metadata["uid"],
            self.generation,
            metadata.get("deletionTimestamp"),
            self.is_held,
            self.annotations,
        )
        return _digest(json.dumps(wishes))


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_ANNOTATION else _digest(value)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_newer(version: str, than: str) -> bool:
    """Whether one copy of an object is newer than another; in doubt it is."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than
