"""Refuses settings that look like the job's and would be handed to Spark, which ignores them.

A person who knows Flink writes ``execution.checkpointing.interval``, and one who forgets the prefix
writes ``checkpointing.interval``. Spark accepts any name, so a job would run for weeks without the
checkpoints that its script asks for. What Spark or Hadoop may know is left alone.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from weir.api.config import JobConfig
from weir.errors import JobRejected, reject_all

PREFIX = "weir."

_CHECKPOINTING = {
    "interval": "interval",
    "mode": "mode",
    "timeout": "timeout",
    "min-pause": "minPause",
    "max-concurrent-checkpoints": "maxConcurrent",
    "tolerable-failed-checkpoints": "tolerableFailures",
    "unaligned": "unaligned",
    "unaligned.enabled": "unaligned",
    "aligned-checkpoint-timeout": "alignedTimeout",
    "checkpoints-after-tasks-finish": "afterTasksFinish",
    "checkpoints-after-tasks-finish.enabled": "afterTasksFinish",
    "externalized-checkpoint-retention": "retention",
    "dir": "storage",
    "storage": "storage",
    "data-inline-threshold": "inlineThreshold",
    "incremental": "incremental",
    "file-merging.enabled": "fileMerging.enabled",
    "file-merging.max-file-size": "fileMerging.maxFileSize",
    "file-merging.max-space-amplification": "fileMerging.maxSpaceAmplification",
    "file-merging.pool-blocking": "fileMerging.poolBlocking",
    "num-retained": "retained",
    "savepoint-dir": "savepointDir",
}

OF_FLINK = {
    **{
        f"execution.checkpointing.{theirs}": f"checkpointing.{ours}"
        for theirs, ours in _CHECKPOINTING.items()
    },
    "state.checkpoints.dir": "checkpointing.storage",
    "state.checkpoint-storage": "checkpointing.storage",
    "state.checkpoints.num-retained": "checkpointing.retained",
    "state.savepoints.dir": "checkpointing.savepointDir",
    "state.storage.fs.memory-threshold": "checkpointing.inlineThreshold",
    "state.backend.incremental": "checkpointing.incremental",
    "state.backend": "state.backend",
    "state.backend.type": "state.backend",
    "state.backend.rocksdb.memory.fixed-per-slot": "state.rocksdbMemory",
    "state.backend.rocksdb.localdir": "state.rocksdbLocalDir",
    "state.changelog.enabled": "state.changelog.enabled",
    "state.backend.changelog.enabled": "state.changelog.enabled",
    "state.changelog.periodic-materialize.interval": "state.changelog.materializationInterval",
    "state.backend.changelog.periodic-materialize.interval": (
        "state.changelog.materializationInterval"
    ),
    "dstl.dfs.preemptive-persist-threshold": "state.changelog.preemptivePersistThreshold",
    "state.changelog.dstl.dfs.preemptive-persist-threshold": (
        "state.changelog.preemptivePersistThreshold"
    ),
    "state.backend.local-recovery": "state.localRecovery",
    "execution.state-recovery.from-local": "state.localRecovery",
    "execution.state-recovery.path": "recovery.path",
    "execution.state-recovery.claim-mode": "recovery.claimMode",
    "execution.state-recovery.ignore-unclaimed-state": "recovery.allowNonRestoredState",
    "execution.savepoint.path": "recovery.path",
    "execution.savepoint-restore-mode": "recovery.claimMode",
    "execution.savepoint.ignore-unclaimed-state": "recovery.allowNonRestoredState",
    "restart-strategy": "restart.type",
    "restart-strategy.type": "restart.type",
    "restart-strategy.fixed-delay.attempts": "restart.attempts",
    "restart-strategy.fixed-delay.delay": "restart.delay",
    "restart-strategy.exponential-delay.initial-backoff": "restart.initialBackoff",
    "restart-strategy.exponential-delay.max-backoff": "restart.maxBackoff",
    "restart-strategy.exponential-delay.backoff-multiplier": "restart.backoffMultiplier",
    "restart-strategy.exponential-delay.reset-backoff-threshold": "restart.resetBackoffThreshold",
    "restart-strategy.exponential-delay.jitter-factor": "restart.jitterFactor",
    "restart-strategy.failure-rate.delay": "restart.delay",
    "restart-strategy.failure-rate.failure-rate-interval": "restart.failureRateInterval",
    "restart-strategy.failure-rate.max-failures-per-interval": "restart.maxFailuresPerInterval",
    "parallelism.default": "parallelism",
    "pipeline.max-parallelism": "maxParallelism",
}
"""Flink's names, and ours for the same thing."""

_ONLY_FLINKS = (
    "execution.checkpointing.",
    "execution.savepoint",
    "execution.state-recovery.",
    "state.backend",
    "state.checkpoint",
    "dstl.",
    "state.savepoints.",
    "state.storage.",
    "restart-strategy",
    "pipeline.",
    "taskmanager.",
    "jobmanager.",
)
"""No setting of Spark, Hadoop or Hive begins like that."""

_OURS = {field.alias or name for name, field in JobConfig.model_fields.items()}
_NEAR = 0.75


def refuse_misnamed(names: Iterable[str]) -> None:
    """Refuse what Spark would ignore, each with the name that it should have."""
    problems = [problem for name in names if (problem := _problem(name))]
    if problems:
        raise reject_all("the session's configuration", problems)


def _problem(name: str) -> JobRejected | None:
    bare = name
    for prefix in (f"spark.{PREFIX}", "flink.", PREFIX):
        bare = bare.removeprefix(prefix)
    ours = OF_FLINK.get(bare)
    if ours is not None and name != f"{PREFIX}{ours}":
        return _refused(name, "it is Flink's name", f"use {PREFIX}{ours}")
    if name.startswith(PREFIX):
        return None
    first, _, rest = bare.partition(".")
    if first in _OURS:
        return _refused(name, "the prefix weir. is missing", f"use {PREFIX}{bare}")
    if bare.startswith(_ONLY_FLINKS):
        return _refused(name, "it is Flink's, and Weir has no such setting", "remove it")
    if rest and get_close_matches(first.lower(), [PREFIX.rstrip(".")], cutoff=_NEAR):
        return _refused(name, "the prefix is not weir.", f"use {PREFIX}{rest}")
    return None


def _refused(name: str, cause: str, remedy: str) -> JobRejected:
    return JobRejected(f"neither Weir nor Spark would read {name}", cause, remedy)
