"""The API paths of every kind of object that the operator uses.

Each kind is listed here once, so that the permissions that the operator needs can be derived from
this module. Nothing here makes requests.
"""

from dataclasses import dataclass
from typing import NamedTuple

from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION


class NamespacedName(NamedTuple):
    """The namespace and name of an object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind of object in the API server."""

    root: str
    plural: str

    def collection_path(self, namespace: str | None) -> str:
        """All objects of a namespace, or of the whole cluster."""
        if namespace is None:
            return f"{self.root}/{self.plural}"
        return f"{self.root}/namespaces/{namespace}/{self.plural}"

    def object_path(self, key: NamespacedName) -> str:
        return f"{self.collection_path(key.namespace)}/{key.name}"

    def cluster_object_path(self, name: str) -> str:
        return f"{self.collection_path(None)}/{name}"


_CORE = "/api/v1"
_OURS = f"/apis/{GROUP}/{VERSION}"

JOBS = ApiResource(_OURS, JOB.plural)
SNAPSHOTS = ApiResource(_OURS, SNAPSHOT.plural)
PODS = ApiResource(_CORE, "pods")
SERVICES = ApiResource(_CORE, "services")
CONFIG_MAPS = ApiResource(_CORE, "configmaps")
SECRETS = ApiResource(_CORE, "secrets")
EVENTS = ApiResource(_CORE, "events")
NODES = ApiResource(_CORE, "nodes")
CLAIMS = ApiResource(_CORE, "persistentvolumeclaims")
VOLUMES = ApiResource(_CORE, "persistentvolumes")
BUDGETS = ApiResource("/apis/policy/v1", "poddisruptionbudgets")
NETWORK_POLICIES = ApiResource("/apis/networking.k8s.io/v1", "networkpolicies")
BATCH_JOBS = ApiResource("/apis/batch/v1", "jobs")
LEASES = ApiResource("/apis/coordination.k8s.io/v1", "leases")
