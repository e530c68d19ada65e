"""Everything a user can set about a job, and the one place that refuses what cannot work.

The operator embeds ``JobConfig`` in its resource, so each setting is described once for Kubernetes,
the documentation and the driver. A configuration that passes here can be run: what remains to be
refused depends on the graph, on storage or on the cluster, which this package does not know. The
core never sees these models: the code that starts the driver converts them to the core's values.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, StrictInt, ValidationError

from weir.api.bounds import Bounds
from weir.api.checkpointing_config import CheckpointingConfig
from weir.api.config_problem import Problem
from weir.api.duration import Duration, format_duration
from weir.api.model import Model
from weir.api.recovery_config import RecoveryConfig
from weir.api.restart_config import RestartConfig
from weir.api.state_config import StateConfig
from weir.api.storage_url import is_memory
from weir.api.validation_errors import explain
from weir.errors import reject_all

MOST_KEY_GROUPS = 1 << 15


class JobConfig(Model):
    """Everything a user can set about a job."""

    parallelism: Annotated[
        StrictInt,
        Bounds(
            least=1,
            most=MOST_KEY_GROUPS,
            because="every subtask needs its own key group, and there are at most 32768",
            remedy="use a number from 1 to 32768",
        ),
    ] = 1
    """How many subtasks an operator has, unless it says otherwise."""

    max_parallelism: (
        Annotated[
            StrictInt,
            Bounds(
                least=1,
                most=MOST_KEY_GROUPS,
                because="it is the number of key groups, and there are at most 32768",
                remedy="use a number from 1 to 32768, or remove maxParallelism",
            ),
        ]
        | None
    ) = None
    """Number of key groups, fixed for the life of the state. If not given, that of the checkpoint
    restored from, and for a new job 1.5 times the parallelism, rounded up to a power of two between
    128 and 32768."""

    standby_slots: Annotated[
        StrictInt,
        Bounds(
            least=0,
            most=MOST_KEY_GROUPS,
            because="spare slots are counted from 0 to 32768",
            remedy="use 0 for none, or as many lost slots as shall be replaced at once",
        ),
    ] = 0
    """Spare slots that take over at once when others are lost."""

    health_window: (
        Annotated[
            Duration,
            Bounds(
                least=1,
                because="no checkpoint completes in no time",
                remedy="use a duration of several intervals, or remove healthWindow",
            ),
        ]
        | None
    ) = None
    """Restart a job that completes no checkpoint for this long; never if not given."""

    tls_dir: str | None = None
    """Directory with tls.crt, tls.key and ca.crt, on the driver and on every executor: all that
    driver and slots say to each other is then encrypted."""

    checkpointing: CheckpointingConfig = Field(default_factory=CheckpointingConfig)
    """When checkpoints are taken, how, where they go and how long they stay."""

    state: StateConfig = Field(default_factory=StateConfig)
    """Where keyed state lives while the job runs."""

    restart: RestartConfig = Field(default_factory=RestartConfig)
    """What happens after a failure."""

    recovery: RecoveryConfig = Field(default_factory=RecoveryConfig)
    """What the job starts from."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield what no part can see by itself."""
        yield from self._against_parallelism()
        yield from self._against_health_window()
        yield from self._against_recovery()
        yield from self._against_changelog()

    def _against_parallelism(self) -> Iterator[Problem]:
        if self.max_parallelism is not None and self.parallelism > self.max_parallelism:
            yield self.problem(
                "parallelism",
                f"maxParallelism = {self.max_parallelism} is the number of key groups,"
                " and every subtask needs one",
                f"set parallelism to {self.max_parallelism} or less,"
                " or maxParallelism higher if the job has no state yet",
            )

    def _against_health_window(self) -> Iterator[Problem]:
        if self.health_window is None:
            return
        rhythm = max(self.checkpointing.interval, self.checkpointing.min_pause)
        if not self.checkpointing.is_periodic:
            yield self.problem(
                "health_window",
                f"with checkpointing.interval = {format_duration(self.checkpointing.interval)}"
                " there are no checkpoints, so it would always restart",
                "set checkpointing.interval to 10 ms or more, or remove healthWindow",
            )
        elif self.health_window <= rhythm:
            yield self.problem(
                "health_window",
                f"checkpoints are {format_duration(rhythm)} apart,"
                " so a healthy job would be restarted",
                "set healthWindow to several times checkpointing.interval and minPause",
            )

    def _against_changelog(self) -> Iterator[Problem]:
        storage, changelog = self.checkpointing.storage, self.state.changelog
        if changelog.enabled and (storage is None or is_memory(storage)):
            yield (
                changelog.problem(
                    "enabled",
                    "there is no storage for a log that slots and driver both reach",
                    "set checkpointing.storage to a directory, or enabled to false",
                )
                .under("changelog")
                .under("state")
            )

    def _against_recovery(self) -> Iterator[Problem]:
        storage, recovery = self.checkpointing.storage, self.recovery
        if recovery.path is not None or (storage is not None and not is_memory(storage)):
            return
        nothing = "there is nothing to restore: no path, and no storage that outlives the driver"
        remedy = "set recovery.path or checkpointing.storage, or remove {}"
        if recovery.allow_non_restored_state:
            yield recovery.problem(
                "allow_non_restored_state", nothing, remedy.format("allowNonRestoredState")
            ).under("recovery")
        if recovery.without_in_flight_of is not None:
            yield recovery.problem(
                "without_in_flight_of", nothing, remedy.format("withoutInFlightOf")
            ).under("recovery")


def load_config(given: Mapping[str, object]) -> JobConfig:
    """Read a configuration as it stands in YAML; refuse it with one line for every problem.

    Fields are judged first and their combinations once each field is sound.
    """
    try:
        return JobConfig.model_validate(given)
    except ValidationError as error:
        problems = explain(error, JobConfig)
    raise reject_all("the configuration", [problem.refusal for problem in problems])
