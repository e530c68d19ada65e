"""What a job gets whose author said nothing, line by line of the specification."""

from weir.api import (
    CheckpointingMode,
    ClaimMode,
    JobConfig,
    RestartConfig,
    RestartType,
    Retention,
    StateBackend,
    load_config,
)
from weir.api.duration import HOUR, MINUTE, SECOND
from weir.api.size import KIB, MIB

CHECKPOINTING = JobConfig().checkpointing


def test_nothing_need_be_set():
    """D5: a job runs without any configuration."""
    assert load_config({}) == JobConfig()


def test_periodic_checkpoints_are_off():
    """C2: the default is disabled."""
    assert not CHECKPOINTING.is_periodic


def test_one_checkpoint_at_a_time_without_pause_for_ten_minutes_and_no_failure():
    """C6: max concurrent 1, min pause 0, timeout 10 min, tolerable failures 0."""
    assert CHECKPOINTING.max_concurrent == 1
    assert CHECKPOINTING.min_pause == 0
    assert CHECKPOINTING.timeout == 10 * MINUTE
    assert CHECKPOINTING.tolerable_failures == 0


def test_two_completed_checkpoints_are_kept():
    """C12: the two newest."""
    assert CHECKPOINTING.retained == 2


def test_no_end_of_the_job_deletes_its_checkpoints():
    """C12: of the three retentions the one that loses nothing."""
    assert CHECKPOINTING.retention is Retention.RETAIN_ON_CANCELLATION


def test_checkpoints_go_on_after_some_subtasks_have_finished():
    """C14: on by default."""
    assert CHECKPOINTING.after_tasks_finish


def test_what_a_job_is_restored_from_is_not_claimed_and_fits_exactly():
    """C15, C16: NO_CLAIM, and no state may be left behind."""
    recovery = JobConfig().recovery

    assert recovery.path is None
    assert recovery.claim_mode is ClaimMode.NO_CLAIM
    assert not recovery.allow_non_restored_state
    assert recovery.without_in_flight_of is None


def test_checkpoints_are_exactly_once_and_aligned():
    """A2, A4, A5: EXACTLY_ONCE; unaligned off, and at once when it is turned on."""
    assert CHECKPOINTING.mode is CheckpointingMode.EXACTLY_ONCE
    assert not CHECKPOINTING.unaligned
    assert CHECKPOINTING.aligned_timeout == 0


def test_state_is_in_memory_and_written_in_full():
    """S2, S13: hashmap, full checkpoints, no second copy on a local disk."""
    config = JobConfig()

    assert config.state.backend is StateBackend.HASHMAP
    assert not config.state.local_recovery
    assert not config.checkpointing.incremental


def test_small_state_is_inline_and_memory_storage_is_small():
    """S7: up to 20 KiB in the manifest; no storage is assumed, and memory holds 5 MiB."""
    assert CHECKPOINTING.inline_threshold == 20 * KIB
    assert CHECKPOINTING.storage is None
    assert CHECKPOINTING.savepoint_dir is None
    assert CHECKPOINTING.memory_limit == 5 * MIB


def test_files_are_merged_only_if_asked_for():
    """S6: off; then files of 32 MiB, twice the space of the state, and no waiting for others."""
    merging = CHECKPOINTING.file_merging

    assert not merging.enabled
    assert merging.max_file_size == 32 * MIB
    assert merging.max_space_amplification == 2.0
    assert not merging.pool_blocking


def test_max_parallelism_is_left_to_the_state_or_to_the_key_groups():
    """S11: a number made up here could differ from the one recorded with the state."""
    assert JobConfig().parallelism == 1
    assert JobConfig().max_parallelism is None


def test_there_are_no_standby_slots_and_no_health_window():
    """R3, R8: both cost something, so both are asked for."""
    assert JobConfig().standby_slots == 0
    assert JobConfig().health_window is None


def test_the_delay_between_restarts_grows():
    """R2: exponential delay, from 1 s by 1.5 to 1 min, anew after 1 h, a tenth left to chance."""
    assert JobConfig().restart == RestartConfig(
        type=RestartType.EXPONENTIAL_DELAY,
        initial_backoff=1 * SECOND,
        backoff_multiplier=1.5,
        max_backoff=1 * MINUTE,
        reset_backoff_threshold=1 * HOUR,
        jitter_factor=0.1,
    )


def test_a_fixed_delay_is_a_second_and_used_once():
    """R2: fixed delay."""
    assert RestartConfig(type=RestartType.FIXED_DELAY) == RestartConfig(
        type=RestartType.FIXED_DELAY, attempts=1, delay=1 * SECOND
    )


def test_a_failure_rate_is_one_a_minute():
    """R2: failure rate."""
    assert RestartConfig(type=RestartType.FAILURE_RATE) == RestartConfig(
        type=RestartType.FAILURE_RATE,
        max_failures_per_interval=1,
        failure_rate_interval=1 * MINUTE,
        delay=1 * SECOND,
    )


def test_a_strategy_has_no_settings_of_another():
    """R2: what a strategy does not use stays empty."""
    nothing = RestartConfig(type=RestartType.NONE).model_dump(exclude_none=True)

    assert nothing == {"type": RestartType.NONE}


def test_changes_are_not_logged_and_a_log_is_materialized_every_ten_minutes():
    """S5: off; with the interval and the threshold of Flink."""
    changelog = JobConfig().state.changelog

    assert not changelog.enabled
    assert changelog.materialization_interval == 10 * MINUTE
    assert changelog.preemptive_persist_threshold == 5 * MIB
