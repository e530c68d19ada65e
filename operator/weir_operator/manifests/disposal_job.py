"""The Job that deletes a snapshot's files, with the credentials of the snapshot's namespace.

The operator holds no credentials of tenants, so it cannot delete files itself (spec K5). The Job
needs neither a running job nor a driver, only what the snapshot's status keeps for it. The snapshot
owns it, so it is deleted together with the snapshot; until then it can be inspected.
"""

from weir_operator.manifests.object_names import disposal_labels, disposal_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_template import env_from_secrets, escape_expansion
from weir_operator.manifests.security_context import restricted_pod
from weir_operator.manifests.strategic_merge import strategic_merge
from weir_operator.resource.api_group import SNAPSHOT
from weir_operator.resource.snapshot import DisposalMeans

CONTAINER = "dispose"
LONGEST_S = 3_600
"""Without a deadline a Job that hangs would never be reported. Deleted files stay deleted."""

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
                "spec": strategic_merge(restricted_pod(CONTAINER), _pod(path, means)),
            },
        },
    }


def _pod(path: str, means: DisposalMeans) -> Manifest:
    container = {
        "name": CONTAINER,
        "image": means.image,
        "args": ["python3", "-m", "weir.cli", "dispose", escape_expansion(path)],
        "envFrom": env_from_secrets(means.storage_secrets),
        "resources": RESOURCES,
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": means.service_account,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
