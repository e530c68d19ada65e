"""The security context of the operator's pods: least privilege (spec K9).

Containers do not run as root and cannot become root, have no capabilities, and write only below
``/tmp``, which is also their home. This meets the level ``restricted`` of the Pod Security
Standards. A pod template may relax it for an image that needs more; whether a namespace allows that
is up to its administrator.
"""

from weir_operator.manifests.owner_reference import Manifest

SCRATCH = "/tmp"  # noqa: S108 - a volume of the pod's own
SCRATCH_VOLUME = "weir-scratch"

GRACE_SECONDS = 30
"""Enough for a last checkpoint before an eviction."""


def restricted_pod(container: str) -> Manifest:
    """The common part of all pod specs, with the main container."""
    return {
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_hardened_container(container)],
        "volumes": [{"name": SCRATCH_VOLUME, "emptyDir": {}}],
    }


def _hardened_container(name: str) -> Manifest:
    return {
        "name": name,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "env": [{"name": "HOME", "value": SCRATCH}],
        "volumeMounts": [{"name": SCRATCH_VOLUME, "mountPath": SCRATCH}],
    }
