"""The two CustomResourceDefinitions: names, columns, subresources and schemas.

The columns show what users need first: the state, the age of the newest checkpoint, the number of
restarts. The ``scale`` subresource maps to the parallelism, so that a HorizontalPodAutoscaler can
rescale a job.
"""

from collections.abc import Iterable

import yaml

from weir.api.model import Model
from weir_operator.crd.cel_rules import Rule, job_rules, snapshot_rules, with_rules
from weir_operator.crd.structural_schema import Schema, structural_schema
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION, Kind
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    CheckpointedJobSnapshotStatus,
)
from weir_operator.resource.status import CheckpointedJobStatus

HEADER = (
    "# Made from operator/weir_operator/resource by `python -m weir_operator.crd crds`."
    " Do not edit.\n"
)

JOB_COLUMNS = (
    ("State", "string", ".status.state", 0),
    ("Checkpoint", "integer", ".status.lastCheckpoint.id", 0),
    ("Checkpoint Age", "date", ".status.lastCheckpoint.completedAt", 0),
    ("Savepoint Age", "date", ".status.lastSavepoint.completedAt", 0),
    ("Restarts", "integer", ".status.restarts", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Parallelism", "integer", ".status.parallelism", 1),
    ("Savepoint", "string", ".status.lastSavepoint.path", 1),
    ("Next", "string", ".status.upgrade.next", 1),
)

SNAPSHOT_COLUMNS = (
    ("Job", "string", ".spec.jobName", 0),
    ("Type", "string", ".spec.type", 0),
    ("Trigger", "string", ".spec.trigger", 0),
    ("State", "string", ".status.state", 0),
    ("Checkpoint", "integer", ".status.checkpointId", 0),
    ("Duration", "string", ".status.duration", 0),
    ("Path", "string", ".status.path", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Size", "integer", ".status.sizeBytes", 1),
    ("Message", "string", ".status.message", 1),
)


def job_definition() -> Schema:
    schema = _resource(
        "A PySpark dataflow that is kept running with its state: checkpointed, upgraded, restored.",
        CheckpointedJobSpec,
        CheckpointedJobStatus,
        job_rules(),
    )
    scale = {
        "specReplicasPath": ".spec.parallelism",
        "statusReplicasPath": ".status.parallelism",
        "labelSelectorPath": ".status.selector",
    }
    return _definition(JOB, schema, JOB_COLUMNS, {"status": {}, "scale": scale})


def snapshot_definition() -> Schema:
    schema = _resource(
        "A savepoint or checkpoint of a CheckpointedJob, to be taken or taken already.",
        CheckpointedJobSnapshotSpec,
        CheckpointedJobSnapshotStatus,
        snapshot_rules(),
    )
    return _definition(SNAPSHOT, schema, SNAPSHOT_COLUMNS, {"status": {}})


def files() -> dict[str, str]:
    """The text of every CRD, by file name."""
    return {
        f"{definition['metadata']['name']}.yaml": HEADER + _yaml(definition)
        for definition in (job_definition(), snapshot_definition())
    }


def _resource(
    description: str, spec: type[Model], status: type[Model], rules: Iterable[Rule]
) -> Schema:
    schema = {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {"spec": structural_schema(spec), "status": structural_schema(status)},
    }
    return with_rules(schema, rules)


def _definition(
    kind: Kind,
    schema: Schema,
    columns: Iterable[tuple[str, str, str, int]],
    subresources: Schema,
) -> Schema:
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        "additionalPrinterColumns": [_column(*column) for column in columns],
    }
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
        "shortNames": [kind.short],
        "categories": ["weir"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.definition},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _column(name: str, kind: str, path: str, priority: int) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path}
    return column | {"priority": priority} if priority else column


class _Dumper(yaml.SafeDumper):
    """Expands anchors, because some YAML readers do not support them."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _yaml(tree: Schema) -> str:
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)
