"""Owner references, set on creation, so that no object is ever left behind (spec K2).

Kubernetes deletes the dependents of a resource together with it, even when no operator runs. The
owner is identified by its uid, because a resource that was deleted and created again under the same
name is another one.
"""

from dataclasses import dataclass

from weir_operator.resource.api_group import GROUP, VERSION, Kind

Manifest = dict[str, object]
"""An object as it is sent to the API server."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The resource that owns an object."""

    name: str
    namespace: str
    uid: str

    def metadata(self, kind: Kind, name: str, labels: dict[str, str]) -> Manifest:
        """The metadata of an object of that name that this resource, of that kind, owns."""
        reference = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": labels,
            "ownerReferences": [reference],
        }
