"""Turns a user's configuration, already judged, into the values that decisions are made by."""

from typing import TypeVar, assert_never

from weir.api.checkpointing_config import CheckpointingMode
from weir.api.config import JobConfig
from weir.api.recovery_config import ClaimMode
from weir.api.restart_config import RestartConfig, RestartType
from weir.core.changelog import ChangelogPolicy
from weir.core.checkpoint_paths import manifest_path
from weir.core.file_pool import FileMergingPolicy
from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.core.policy import Mode, Policy, Retention
from weir.core.restarts import (
    UNLIMITED,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    Strategy,
)
from weir.core.restore_decision import RestoreRequest
from weir.driver.driver_environment import DriverEnvironment

T = TypeVar("T")


def policy_of(config: JobConfig, *, managed: bool = False) -> Policy:
    given = config.checkpointing
    exactly_once = given.mode is CheckpointingMode.EXACTLY_ONCE
    return Policy(
        interval_ms=given.interval,
        min_pause_ms=given.min_pause,
        timeout_ms=given.timeout,
        max_concurrent=given.max_concurrent,
        tolerable_failures=given.tolerable_failures,
        mode=Mode.EXACTLY_ONCE if exactly_once else Mode.AT_LEAST_ONCE,
        unaligned=given.unaligned,
        aligned_timeout_ms=given.aligned_timeout,
        after_tasks_finish=given.after_tasks_finish,
        retained=given.retained,
        retention=Retention[given.retention.name],
        incremental=given.incremental or config.state.changelog.enabled,
        managed=managed,
    )


def changelog_of(config: JobConfig) -> ChangelogPolicy | None:
    """How the changes of keyed state are logged; None if they are not."""
    given = config.state.changelog
    if not given.enabled:
        return None
    return ChangelogPolicy(
        materialization_interval_ms=given.materialization_interval,
        preemptive_bytes=given.preemptive_persist_threshold,
    )


LONGEST_WAIT_MS = 1000
"""How long a piece of a snapshot waits for others to share its file, unless the pool blocks."""


def merging_of(config: JobConfig) -> FileMergingPolicy | None:
    """How the subtasks of a slot share files; None if they do not."""
    given = config.checkpointing.file_merging
    if not given.enabled:
        return None
    return FileMergingPolicy(
        max_file_size=given.max_file_size,
        max_space_amplification=given.max_space_amplification,
        longest_wait_ms=None if given.pool_blocking else LONGEST_WAIT_MS,
    )


def strategy_of(given: RestartConfig) -> Strategy:
    match given.type:
        case RestartType.NONE:
            return NoRestart()
        case RestartType.FIXED_DELAY:
            attempts = UNLIMITED if given.attempts is None else given.attempts
            return FixedDelay(attempts, _set(given.delay))
        case RestartType.EXPONENTIAL_DELAY:
            return ExponentialDelay(
                initial_ms=_set(given.initial_backoff),
                multiplier=_set(given.backoff_multiplier),
                max_ms=_set(given.max_backoff),
                reset_after_ms=_set(given.reset_backoff_threshold),
                jitter=_set(given.jitter_factor),
                max_same_failures=given.max_same_failures or UNLIMITED,
            )
        case RestartType.FAILURE_RATE:
            return FailureRate(
                max_failures=_set(given.max_failures_per_interval),
                window_ms=_set(given.failure_rate_interval),
                delay_ms=_set(given.delay),
            )
        case _:
            assert_never(given.type)


def _set(value: T | None) -> T:
    assert value is not None, "the configuration has a default for each setting of its type"
    return value


def restore_request_of(config: JobConfig, assignment: DriverEnvironment) -> RestoreRequest:
    given = config.recovery
    without = given.without_in_flight_of
    return RestoreRequest(
        deployment=assignment.deployment,
        path=_manifest_at(given.path or ""),
        claims=given.claim_mode is ClaimMode.CLAIM,
        allow_non_restored=given.allow_non_restored_state,
        without_in_flight_of=NO_CHECKPOINT if without is None else CheckpointId(without),
        at_least=assignment.lowest_checkpoint,
        fresh=assignment.is_fresh,
        takes_over=assignment.takes_over,
        reruns=assignment.reruns,
    )


def _manifest_at(path: str) -> str:
    """A checkpoint or savepoint is named by its directory; its manifest is what is read."""
    if not path or path.endswith(manifest_path("")):
        return path
    return manifest_path(path.rstrip("/"))
