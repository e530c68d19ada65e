"""The specification of a ``CheckpointedJob``.

It inherits the job's configuration (``weir.api.JobConfig``) and adds what only a cluster needs:
image, pods, upgrades. So a setting of the runtime is described once, and a new one appears here
automatically. Contradictions are rejected by the API server where CEL can express it
(``weir_operator.crd.cel_rules``) and here in any case, because a resource can be older than a rule.
``spec_changes`` validates edits.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StrictBool, StrictInt

from weir.api.bounds import Bounds
from weir.api.config import JobConfig
from weir.api.config_problem import Problem
from weir.api.duration import Duration, format_duration
from weir.api.recovery_config import RecoveryConfig
from weir.api.storage_url import is_memory
from weir_operator.resource.deadlines import StartDeadlines
from weir_operator.resource.job_program import JobProgram
from weir_operator.resource.pod_settings import PodSettings
from weir_operator.resource.pull_policy import PullPolicy
from weir_operator.resource.savepoint_policy import SavepointPolicy
from weir_operator.resource.spark_conf import rejected_settings
from weir_operator.resource.string_types import DnsLabel, ObjectName, StringPattern
from weir_operator.resource.upgrade_policy import RollbackPolicy, UpgradeMode, UpgradePolicy

Nonce = Annotated[
    StrictInt,
    Bounds(least=0, because="a nonce counts upwards", remedy="use the last nonce plus one"),
]
"""A number that requests something once, whenever it changes."""


class CheckpointedJobSpec(JobConfig):
    """What the job is and how it is to be run."""

    image: Annotated[
        str,
        StringPattern(
            pattern=r"^\S+$",
            longest=1_024,
            because="this is no name of an image",
            remedy="write the image as in registry/name:tag",
        ),
    ]
    """Image of the driver and of every executor."""

    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When nodes pull the image: Always, IfNotPresent or Never."""

    job: JobProgram
    """The program: its main file and its arguments."""

    suspend: StrictBool = False
    """Stop the job and keep its state, as upgrade.mode defines; false resumes it from there."""

    slots_per_executor: Annotated[
        StrictInt,
        Bounds(
            least=1,
            most=64,
            because="an executor without slots does nothing, and one with too many dies at once",
            remedy="use a number from 1 to 64",
        ),
    ] = 1
    """How many slots an executor has. There are as many executors as parallelism and standbySlots
    need."""

    spark_conf: Annotated[
        dict[str, Annotated[str, Field(max_length=4_096)]], Field(max_length=256)
    ] = Field(default_factory=dict)
    """Settings of Spark, all as text. Refused are those that the operator or the runtime sets
    (master, deploy mode, images, service accounts, pod names, numbers of executors, cores and
    failures, dynamic allocation, speculation), those that begin with weir., and secrets."""

    driver: PodSettings = Field(default_factory=PodSettings)
    """The driver's pod."""

    executor: PodSettings = Field(default_factory=PodSettings)
    """The pods of executors."""

    recovery: RecoveryConfig = Field(default_factory=RecoveryConfig)
    """What the job starts from the first time, and again whenever redeployNonce changes. In between
    it continues from its own state, and path and claimMode are ignored. allowNonRestoredState
    applies to every start."""

    upgrade: UpgradePolicy = Field(default_factory=UpgradePolicy)
    """How a new version of the job takes over from the old one."""

    rollback: RollbackPolicy = Field(default_factory=RollbackPolicy)
    """When a new version counts as stable, and what happens if it does not become so."""

    savepoints: SavepointPolicy = Field(default_factory=SavepointPolicy)
    """When periodic savepoints are taken, and how long they are kept."""

    start_deadlines: StartDeadlines = Field(default_factory=StartDeadlines)
    """How long each phase of a start may take before the start has failed."""

    restart_nonce: Nonce | None = None
    """Every new value stops the job and starts it again, as an upgrade would."""

    savepoint_nonce: Nonce | None = None
    """Every new value takes one savepoint while the job continues."""

    redeploy_nonce: Nonce | None = None
    """Every new value stops the job and starts it from recovery.path, whatever state it has. Output
    that was written after that state is written again."""

    ttl_after_end: Duration | None = None
    """How long the resource and its pods are kept after the job finished or failed for good; then
    they are deleted. Files in storage stay. Forever if not given."""

    service_account: DnsLabel = "weir-driver"
    """Service account of the driver, which starts the executors, and of the Job that deletes the
    files of savepoints."""

    storage_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=16)] = ()
    """Secrets of this namespace whose keys become environment variables of the driver, of executors
    and of the Job that deletes the files of savepoints, such as AWS_ACCESS_KEY_ID. The operator
    itself never reads them."""

    tls_secret: ObjectName | None = None
    """Secret with tls.crt, tls.key and ca.crt. It is mounted in all pods of the job, and their
    communication is then encrypted."""

    local_recovery_volume: DnsLabel | None = None
    """Name of the executors' volume on which local copies of state are kept, with
    state.localRecovery. They are kept only if it is a hostPath or a claim on a local
    PersistentVolume; otherwise the status shows the reason."""

    def config(self) -> JobConfig:
        """The part that the driver is given."""
        return JobConfig.model_validate(
            {name: getattr(self, name) for name in JobConfig.model_fields}
        )

    def hash(self) -> str:
        """A short hash of exactly this specification, including defaults."""
        text = json.dumps(self.model_dump(mode="json", exclude_none=True), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def contradictions(self) -> Iterator[Problem]:
        """Yield contradictions between several parts."""
        yield from super().contradictions()
        yield from rejected_settings(self.spark_conf)
        yield from self._against_upgrade()
        yield from self._against_savepoints()
        yield from self._against_rollback()
        yield from self._against_redeploy()
        yield from self._against_volumes()

    def _against_upgrade(self) -> Iterator[Problem]:
        storage = self.checkpointing.storage
        has_durable = storage is not None and not is_memory(storage)
        if self.upgrade.mode is UpgradeMode.LAST_STATE:
            if not (has_durable and self.checkpointing.is_periodic):
                yield self.upgrade.problem(
                    "mode",
                    "there are no checkpoints that outlive the driver",
                    "set checkpointing.storage to a directory and checkpointing.interval to 10 ms"
                    " or more, or mode to stateless if the job may lose its state",
                ).under("upgrade")
        elif self.upgrade.mode is UpgradeMode.SAVEPOINT and not self.checkpointing.savepoint_dir:
            yield self.upgrade.problem(
                "mode",
                "there is no directory for savepoints",
                "set checkpointing.savepointDir, as in s3://bucket/savepoints",
            ).under("upgrade")

    def _against_savepoints(self) -> Iterator[Problem]:
        if self.checkpointing.savepoint_dir is not None:
            return
        nowhere = (
            "there is no directory for savepoints",
            "set checkpointing.savepointDir, as in s3://bucket/savepoints",
        )
        if self.savepoints.interval is not None:
            yield self.savepoints.problem("interval", *nowhere).under("savepoints")
        if self.savepoints.cron is not None:
            yield self.savepoints.problem("cron", *nowhere).under("savepoints")
        if self.savepoints.on_deletion:
            yield self.savepoints.problem("on_deletion", *nowhere).under("savepoints")
        if self.savepoint_nonce is not None:
            yield self.problem("savepoint_nonce", *nowhere)

    def _against_rollback(self) -> Iterator[Problem]:
        if not (self.rollback.enabled and self.checkpointing.is_periodic):
            return
        rhythm = max(self.checkpointing.interval, self.checkpointing.min_pause)
        needed = rhythm * self.rollback.checkpoints
        if self.rollback.within <= needed:
            yield self.rollback.problem(
                "within",
                f"{self.rollback.checkpoints} checkpoints are {format_duration(needed)} apart,"
                " so a healthy version would be rolled back",
                f"set within above {format_duration(needed)}, checkpoints lower"
                " or enabled to false",
            ).under("rollback")

    def _against_redeploy(self) -> Iterator[Problem]:
        if self.redeploy_nonce is not None and self.recovery.path is None:
            yield self.problem(
                "redeploy_nonce",
                "there is nothing to start from",
                "set recovery.path to a savepoint or checkpoint, or remove redeployNonce",
            )

    def _against_volumes(self) -> Iterator[Problem]:
        volume = self.local_recovery_volume
        if volume is not None and volume not in self.executor.volume_names():
            yield self.problem(
                "local_recovery_volume",
                "the executors have no such volume",
                "add it to executor.volumes, or remove localRecoveryVolume",
            )
        if self.tls_secret is not None and self.tls_dir is not None:
            yield self.problem(
                "tls_dir",
                f"the certificates come from tlsSecret = {self.tls_secret}",
                "remove tlsDir or tlsSecret",
            )
