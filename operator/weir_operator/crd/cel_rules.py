"""The CEL rules by which the API server rejects what the models reject.

Each corresponds to ``contradictions`` of the models or to a rejected change, and is looser where
CEL cannot be exact: it cannot compare two durations, so the operator checks those. It is never
stricter. A duration is zero exactly when it has no digit but 0. Defaults are applied before rules
are evaluated, so ``has`` is used only for fields without a default.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel

from weir.api.bounds import Bounds
from weir.api.quantity import Quantity
from weir.api.restart_config import RestartConfig, RestartType
from weir_operator.crd.structural_schema import Schema
from weir_operator.resource.api_group import JOB_NAME, LONGEST_JOB_NAME
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import OWN_VARIABLES
from weir_operator.resource.spark_conf import SECRET_ENDINGS, owned_keys, owned_prefixes
from weir_operator.resource.validation import LARGEST_SPEC_BYTES

NOT_ZERO = "matches('[1-9]')"
SURELY_PERIODIC = r"matches('[1-9][0-9]|[1-9]\\s*([sShHdD]|[mM][iI][nN]|[mM]([^sSiI]|$))')"
"""Ten or more of any unit, or one or more of any unit but milliseconds."""

SOUND_URL = (
    "!self.contains('?') && !self.matches('://[^@]*:[^@]*@')"
    " && (self.matches('^file:///|^memory://') || self.matches('^[a-eg-z][a-z0-9]*://[^/]'))"
)
"""No password, no parameters, and a path or a bucket. The only scheme that begins with f is file.
"""

DURABLE = "has(self.checkpointing.storage) && !self.checkpointing.storage.startsWith('memory:')"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for the value at a path of the schema, in which ``[]`` stands for every element."""

    at: str
    cel: str
    message: str
    field: str = ""
    """The invalid field of that value, as in ``.interval``."""


def with_rules(schema: Schema, rules: Iterable[Rule]) -> Schema:
    """The same schema, with each rule at its path."""
    for rule in rules:
        node = _node_at(schema, rule.at)
        validation = {"rule": rule.cel, "message": rule.message}
        if rule.field:
            validation["fieldPath"] = rule.field
        node.setdefault("x-kubernetes-validations", []).append(validation)
    return schema


def _node_at(schema: Schema, path: str) -> Schema:
    node = schema
    for part in path.split(".") if path else ():
        node = node["properties"][part.removesuffix("[]")]
        if part.endswith("[]"):
            node = node["items"]
    return node


def job_rules() -> Iterator[Rule]:
    """All rules of a CheckpointedJob."""
    yield Rule(
        "",
        f"self.metadata.name.size() <= {LONGEST_JOB_NAME}"
        f" && self.metadata.name.matches('{JOB_NAME}')",
        "metadata.name: Services and pods are called after the job; use at most"
        f" {LONGEST_JOB_NAME} lower-case letters, digits and '-', a letter first",
    )
    yield from _across_the_spec()
    yield from _about_size()
    yield from _about_savepoints()
    yield from _about_changes()
    yield from _about_checkpointing()
    yield from _about_restarts()
    yield from _about_spark_conf()
    for role in ("driver", "executor"):
        yield from _about_pods(f"spec.{role}")
    yield from _about_amounts(CheckpointedJobSpec, "spec")
    for url in ("checkpointing.storage", "checkpointing.savepointDir", "recovery.path"):
        yield _about_url(f"spec.{url}")
    yield Rule(
        "spec.job",
        "[has(self.file), has(self.url), has(self.configMap)].exists_one(given, given)",
        "a job has one main file; give exactly one of file, url and configMap",
    )
    yield Rule(
        "spec.recovery",
        "self.claimMode != 'CLAIM' || has(self.path)",
        "there is no path to claim; set path, or claimMode to NO_CLAIM",
        ".claimMode",
    )
    yield Rule(
        "spec.upgrade",
        "self.mode != 'stateless' || !has(self.maxCheckpointAge)",
        "with mode stateless no checkpoint is used; remove maxCheckpointAge or choose another mode",
        ".maxCheckpointAge",
    )


def _across_the_spec() -> Iterator[Rule]:
    yield Rule(
        "spec",
        "!has(self.maxParallelism) || self.parallelism <= self.maxParallelism",
        "every subtask needs a key group, of which there are maxParallelism; lower parallelism",
        ".parallelism",
    )
    yield Rule(
        "spec",
        f"self.upgrade.mode != 'last-state' || ({DURABLE}"
        f" && self.checkpointing.interval.{NOT_ZERO})",
        "mode last-state needs checkpoints that outlive the driver; set checkpointing.storage to a"
        " directory and checkpointing.interval, or mode to stateless if the job may lose its state",
        ".upgrade.mode",
    )
    yield Rule(
        "spec",
        f"!has(self.healthWindow) || self.checkpointing.interval.{NOT_ZERO}",
        "without checkpoints it would always restart; set checkpointing.interval or remove"
        " healthWindow",
        ".healthWindow",
    )
    yield Rule(
        "spec",
        f"has(self.recovery.path) || ({DURABLE}) || !(self.recovery.allowNonRestoredState"
        " || has(self.recovery.withoutInFlightOf))",
        "there is nothing to restore; set recovery.path or checkpointing.storage, or remove"
        " allowNonRestoredState and withoutInFlightOf",
        ".recovery",
    )
    yield Rule(
        "spec",
        "!has(self.redeployNonce) || has(self.recovery.path)",
        "there is nothing to start from; set recovery.path or remove redeployNonce",
        ".redeployNonce",
    )
    yield Rule(
        "spec",
        "!has(self.localRecoveryVolume) || has(self.executor.podTemplate)"
        " || self.executor.volumes.exists(volume, volume.name == self.localRecoveryVolume)",
        "the executors have no such volume; add it to executor.volumes",
        ".localRecoveryVolume",
    )
    yield Rule(
        "spec",
        "!(has(self.tlsSecret) && has(self.tlsDir))",
        "the certificates come from tlsSecret; remove tlsDir or tlsSecret",
        ".tlsDir",
    )


def _about_size() -> Iterator[Rule]:
    """CEL sees no field of a pod template, nor a volume's source; the operator counts those too."""
    conf = "self.sparkConf.map(key, key.size() + self.sparkConf[key].size()).sum()"
    arguments = "self.job.arguments.map(argument, argument.size()).sum()"
    variables = " + ".join(
        f"self.{role}.env.map(variable, has(variable.value) ? variable.value.size() : 0).sum()"
        for role in ("driver", "executor")
    )
    yield Rule(
        "spec",
        f"{conf} + {arguments} + {variables} <= {LARGEST_SPEC_BYTES}",
        f"a specification has at most {LARGEST_SPEC_BYTES} bytes; move what is large into the"
        " image, a ConfigMap or a Secret",
    )


def _about_savepoints() -> Iterator[Rule]:
    yield Rule(
        "spec",
        "self.upgrade.mode != 'savepoint' || has(self.checkpointing.savepointDir)",
        "there is no directory for savepoints; set checkpointing.savepointDir",
        ".upgrade.mode",
    )
    yield Rule(
        "spec",
        "has(self.checkpointing.savepointDir) || !(has(self.savepoints.interval)"
        " || has(self.savepoints.cron) || self.savepoints.onDeletion || has(self.savepointNonce))",
        "there is no directory for savepoints; set checkpointing.savepointDir",
        ".savepoints",
    )
    yield Rule(
        "spec.savepoints",
        "!(has(self.interval) && has(self.cron))",
        "there are two schedules; remove interval or cron",
        ".interval",
    )


def _about_changes() -> Iterator[Rule]:
    yield Rule(
        "spec",
        "self.upgrade.mode == 'stateless' || !has(oldSelf.maxParallelism)"
        " || !has(self.maxParallelism) || self.maxParallelism == oldSelf.maxParallelism",
        "the number of key groups is fixed for the life of the state; set it back, or upgrade.mode"
        " to stateless if the state may be lost",
        ".maxParallelism",
    )
    yield Rule(
        "spec",
        "self.upgrade.mode != 'last-state' || (has(oldSelf.checkpointing.storage)"
        " && has(self.checkpointing.storage)"
        " && self.checkpointing.storage == oldSelf.checkpointing.storage)",
        "the last state stays in the old storage; set upgrade.mode to savepoint for this change, or"
        " to stateless if the state may be lost",
        ".checkpointing.storage",
    )


def _about_checkpointing() -> Iterator[Rule]:
    at = "spec.checkpointing"
    yield Rule(
        at,
        f"self.maxConcurrent == 1 || !self.minPause.{NOT_ZERO}",
        "with several checkpoints at once there is no pause; set maxConcurrent to 1 or minPause to"
        " 0 ms",
        ".minPause",
    )
    yield Rule(
        at,
        "!self.unaligned || (self.mode == 'EXACTLY_ONCE' && self.maxConcurrent == 1)",
        "unaligned checkpoints need mode EXACTLY_ONCE and maxConcurrent 1",
        ".unaligned",
    )
    yield Rule(
        at,
        f"self.unaligned || !self.alignedTimeout.{NOT_ZERO}",
        "it is when a checkpoint turns unaligned, and unaligned is off; set unaligned to true or"
        " alignedTimeout to 0 ms",
        ".alignedTimeout",
    )
    yield Rule(
        at,
        f"has(self.storage) || !self.interval.{SURELY_PERIODIC}",
        "there is no storage for the checkpoints; set storage, as in s3://bucket/checkpoints",
        ".interval",
    )
    yield Rule(
        at,
        "!(has(self.storage) && self.storage.startsWith('memory:'))"
        " || self.retention == 'NEVER_RETAIN_AFTER_TERMINATION'",
        "memory:// ends with the driver, so nothing is retained; set retention to"
        " NEVER_RETAIN_AFTER_TERMINATION or storage to a directory",
        ".retention",
    )


def _about_restarts() -> Iterator[Rule]:
    """Which fields belong to which type follows from the model's defaults."""
    by_type = {kind: RestartConfig(type=kind) for kind in RestartType}
    for name, field in RestartConfig.model_fields.items():
        kinds = [kind for kind, config in by_type.items() if getattr(config, name) is not None]
        if name != "type":
            yield Rule(
                "spec.restart",
                f"!has(self.{field.alias}) || self.type in {_listed(kinds)}",
                f"another type does not use it; remove it or set type to {' or '.join(kinds)}",
                f".{field.alias}",
            )


def _about_spark_conf() -> Iterator[Rule]:
    starts = " || ".join(f"key.startsWith('{prefix}')" for prefix in owned_prefixes())
    ends = " || ".join(f"key.endsWith('{ending}')" for ending in SECRET_ENDINGS)
    yield Rule(
        "spec.sparkConf",
        f"self.all(key, !(key in {_listed(owned_keys())} || {starts}))",
        "the operator or the runtime sets some of these itself, or they are fields of this"
        " resource; the description of sparkConf says which",
    )
    yield Rule(
        "spec.sparkConf",
        f"self.all(key, !({ends}))",
        "a resource is shown to all who may read it; put secrets into a Secret and name it in"
        " storageSecrets or in env",
    )


def _about_pods(role: str) -> Iterator[Rule]:
    yield Rule(
        role,
        "has(self.podTemplate) || self.volumeMounts.all(mount,"
        " self.volumes.exists(volume, volume.name == mount.name))",
        "the pod has no such volume; add it to volumes, or remove the mount",
        ".volumeMounts",
    )
    yield Rule(
        f"{role}.resources",
        "self.requests.all(name, !(name in self.limits)"
        " || quantity(string(self.requests[name]))"
        ".compareTo(quantity(string(self.limits[name]))) <= 0)",
        "a container never gets more than its limit; set the request to the limit or less",
        ".requests",
    )
    yield Rule(
        f"{role}.env[]",
        "!(has(self.value) && has(self.valueFrom))",
        "a variable has one value; remove value or valueFrom",
    )
    yield Rule(
        f"{role}.env[]",
        f"!(self.name in {_listed(OWN_VARIABLES)})",
        "the operator sets this variable itself; remove it",
    )


def _about_amounts(model: type[BaseModel], path: str) -> Iterator[Rule]:
    """Durations and sizes are text, whose schema has no minimum; but zero can be detected."""
    for field in model.model_fields.values():
        where = f"{path}.{field.alias}"
        parts = [*field.metadata, *_parts(field.annotation)]
        is_text = any(isinstance(part, Quantity) for part in parts)
        for part in parts:
            if isinstance(part, Bounds) and part.least > 0 and is_text:
                yield Rule(where, f"self.{NOT_ZERO}", f"{part.because}; {part.remedy}")
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _about_amounts(part, where)


def _parts(annotation: object) -> Iterator[object]:
    """The parts of a type, but not those inside a list or mapping."""
    yield annotation
    if get_origin(annotation) in (Annotated, UnionType, Union):
        for part in get_args(annotation):
            yield from _parts(part)


def _about_url(at: str) -> Rule:
    return Rule(
        at,
        SOUND_URL,
        "this is no URL of a directory, or it holds keys, and URLs are logged and stored; write"
        " scheme://bucket/directory or file:///directory and give keys by storageSecrets",
    )


def snapshot_rules() -> Iterator[Rule]:
    """All rules of a CheckpointedJobSnapshot."""
    at = "spec"
    same = "self.{0} == oldSelf.{0}"
    kept = " && ".join(same.format(name) for name in ("jobName", "type", "trigger"))
    yield Rule(at, kept, "a snapshot is taken once; make another one")
    for name in ("directory", "adoptPath"):
        yield Rule(
            at,
            f"has(self.{name}) == has(oldSelf.{name})"
            f" && (!has(self.{name}) || {same.format(name)})",
            "a snapshot is taken once; make another one",
            f".{name}",
        )
        yield _about_url(f"spec.{name}")
    yield Rule(
        at,
        "!(has(self.directory) && has(self.adoptPath))",
        "what is adopted is already somewhere; remove directory or adoptPath",
        ".directory",
    )
    yield Rule(
        at,
        "self.type != 'checkpoint' || !has(self.directory)",
        "a checkpoint is stored in the job's own storage; remove directory or set type to"
        " savepoint",
        ".directory",
    )
    yield Rule(
        at,
        "self.type != 'checkpoint' || !self.disposeOnDelete",
        "a checkpoint belongs to its job, which deletes it; set disposeOnDelete to false",
        ".disposeOnDelete",
    )
    for name in ("directory", "adoptPath"):
        yield Rule(
            at,
            f"!self.disposeOnDelete || !has(self.{name}) || !self.{name}.startsWith('file:')",
            "files under file:// are on a volume that only pods of the job have; set"
            " disposeOnDelete to false, and delete them yourself",
            ".disposeOnDelete",
        )


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(repr(str(name)) for name in names)}]"
