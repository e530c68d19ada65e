"""The PodDisruptionBudget that allows evictions of a job's executors one at a time.

Each eviction causes a recovery; when a node pool is replaced, they should not all happen at once.
The budget sets ``minAvailable``, not ``maxUnavailable``: Kubernetes can compute the latter only for
controllers it knows, and executors belong to a pod. So it follows the number of executors and is
updated when that changes.
"""

from weir_operator.manifests.object_names import Role, budget_name, labels, selector
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.resource_sizes import executors
from weir_operator.resource.api_group import JOB
from weir_operator.resource.job_spec import CheckpointedJobSpec


def budget(owner: Owner, spec: CheckpointedJobSpec) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": owner.metadata(JOB, budget_name(owner.name), labels(owner.name)),
        "spec": {
            "minAvailable": executors(spec) - 1,
            "selector": {"matchLabels": selector(owner.name, Role.EXECUTOR)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
