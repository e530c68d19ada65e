"""Where things lie in the API server: the paths of every kind that the operator touches.

Each kind stands here once, so that the list of permissions that the operator needs can be read off
this page. Nothing is asked here.
"""

from dataclasses import dataclass
from typing import NamedTuple

from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION


class Key(NamedTuple):
    """An object of one kind, as people name it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of object in the API server."""

    root: str
    plural: str

    def within(self, namespace: str | None) -> str:
        """All objects of a namespace, or of the whole cluster."""
        if namespace is None:
            return f"{self.root}/{self.plural}"
        return f"{self.root}/namespaces/{namespace}/{self.plural}"

    def of(self, key: Key) -> str:
        return f"{self.within(key.namespace)}/{key.name}"

    def of_cluster(self, name: str) -> str:
        return f"{self.within(None)}/{name}"


_CORE = "/api/v1"
_OURS = f"/apis/{GROUP}/{VERSION}"

JOBS = Place(_OURS, JOB.plural)
SNAPSHOTS = Place(_OURS, SNAPSHOT.plural)
PODS = Place(_CORE, "pods")
SERVICES = Place(_CORE, "services")
CONFIG_MAPS = Place(_CORE, "configmaps")
SECRETS = Place(_CORE, "secrets")
EVENTS = Place(_CORE, "events")
NODES = Place(_CORE, "nodes")
CLAIMS = Place(_CORE, "persistentvolumeclaims")
VOLUMES = Place(_CORE, "persistentvolumes")
BUDGETS = Place("/apis/policy/v1", "poddisruptionbudgets")
NETWORK_POLICIES = Place("/apis/networking.k8s.io/v1", "networkpolicies")
BATCH_JOBS = Place("/apis/batch/v1", "jobs")
LEASES = Place("/apis/coordination.k8s.io/v1", "leases")
