"""The names by which Kubernetes and people know our resources.

The version is v1alpha1. A v1 would promise that no field ever changes its meaning, and nobody but
us has written such a resource yet; v1 can be served beside it once others have. Each name stands
here once, so that a definition, a manifest and a watch cannot disagree.
"""

from dataclasses import dataclass

GROUP = "weir.dev"
VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource, in the forms that an API server asks for."""

    kind: str
    plural: str
    short: str

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def definition(self) -> str:
        """The name of its CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


JOB = Kind("CheckpointedJob", "checkpointedjobs", "cpj")
SNAPSHOT = Kind("CheckpointedJobSnapshot", "checkpointedjobsnapshots", "cpjs")

SAVEPOINT_ANNOTATION = f"{GROUP}/savepoint"
CHECKPOINT_ANNOTATION = f"{GROUP}/checkpoint"
"""On a job: every new value asks for one savepoint, or for one checkpoint. Kopf must keep its own
notes under another prefix, because it hides what lies under its own from whoever watches."""

LONGEST_JOB_NAME = 40
JOB_NAME = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A job's Service is called after it, so the name is a DNS label that begins with a letter; Spark
adds a number to it for each executor, which must fit into 63 characters with it."""
