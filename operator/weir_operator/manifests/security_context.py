"""What a process of ours may do inside its pod: no more than it needs (spec K9).

It is not root and cannot become it, has no capabilities, and writes nowhere but below ``/tmp``,
which is also its home. That is what the level ``restricted`` of Kubernetes' Pod Security asks. A
pod template may say otherwise for an image that needs more; whether a namespace allows that is its
administrator's to say, not ours.
"""

from weir_operator.manifests.owner_reference import Manifest

SCRATCH = "/tmp"  # noqa: S108 - a volume of the pod's own
SCRATCH_VOLUME = "weir-scratch"

GRACE_SECONDS = 30
"""Enough for a last checkpoint before an eviction."""


def hardened_pod(container: str) -> Manifest:
    """The part of a pod's spec that holds for all of ours, with its main container."""
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
