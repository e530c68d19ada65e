"""The Job that deletes a snapshot's files, with the storage's keys of the snapshot's own namespace.

The operator holds no tenant's keys, so it cannot delete files itself (spec K5). The Job needs no
running job and no driver, only what the snapshot has kept for it. It belongs to its snapshot and
goes with it; until then it can be looked at.
"""

from weir_operator.manifests.object_names import disposal_labels, disposal_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_template import from_secrets, literal
from weir_operator.manifests.security_context import hardened_pod
from weir_operator.manifests.strategic_merge import laid_over
from weir_operator.resource.api_group import SNAPSHOT
from weir_operator.resource.snapshot import DisposalMeans

CONTAINER = "dispose"
LONGEST_S = 3_600
"""What was deleted by then stays deleted; a Job that hangs for ever would tell nobody."""

RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}


def disposal_job(snapshot: Owner, path: str, means: DisposalMeans) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": snapshot.metadata(SNAPSHOT, disposal_name(snapshot.name), disposal_labels()),
        "spec": {
            "activeDeadlineSeconds": LONGEST_S,
            "template": {
                "metadata": {"labels": disposal_labels()},
                "spec": laid_over(hardened_pod(CONTAINER), _pod(path, means)),
            },
        },
    }


def _pod(path: str, means: DisposalMeans) -> Manifest:
    container = {
        "name": CONTAINER,
        "image": means.image,
        "args": ["python3", "-m", "weir.cli", "dispose", literal(path)],
        "envFrom": from_secrets(means.storage_secrets),
        "resources": RESOURCES,
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": means.service_account,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
