"""The image pull policy, as in Kubernetes."""

from enum import StrEnum


class PullPolicy(StrEnum):
    """When nodes pull an image."""

    ALWAYS = "Always"
    """For every pod."""
    IF_NOT_PRESENT = "IfNotPresent"
    """When the node does not have it."""
    NEVER = "Never"
    """Never: it must be there."""
