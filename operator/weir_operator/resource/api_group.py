"""The API group, version, kinds and annotations of the custom resources.

The version is v1alpha1. A v1 would promise that no field ever changes its meaning; it can be served
beside this version once the resources are in wide use. Each name is defined here once, so that a
CRD, a manifest and a watch cannot disagree.
"""

from dataclasses import dataclass

GROUP = "weir.dev"
VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource, in the forms that an API server needs."""

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
"""On a job: every new value requests one savepoint, or one checkpoint. Kopf must store its own
annotations under another prefix, because it hides those under its prefix from handlers."""

LONGEST_JOB_NAME = 40
JOB_NAME = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A job's Service has the same name, so the name is a DNS label that begins with a letter; Spark
appends a number for each executor, and the result must fit into 63 characters."""
