"""Whose an object is: set when it is made, so that nothing of ours is ever left behind (spec K2).

Kubernetes deletes what belongs to a resource together with it, even when no operator runs. The
owner is named by its uid, because a resource that was deleted and made again under its old name is
another one.
"""

from dataclasses import dataclass

from weir_operator.resource.api_group import GROUP, VERSION, Kind

Manifest = dict[str, object]
"""An object as an API server is given it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The resource for which something is made."""

    name: str
    namespace: str
    uid: str

    def metadata(self, kind: Kind, name: str, labels: dict[str, str]) -> Manifest:
        """Of an object of that name that belongs to this resource, which is of that kind."""
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
