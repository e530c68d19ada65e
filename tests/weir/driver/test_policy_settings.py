"""Every setting of the configuration that decisions depend on reaches the decisions."""

import pytest

from weir.api.checkpointing_config import CheckpointingConfig
from weir.api.config import load_config
from weir.api.recovery_config import RecoveryConfig
from weir.api.restart_config import RestartConfig
from weir.core.changelog import ChangelogPolicy
from weir.core.file_pool import FileMergingPolicy
from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.core.policy import Mode, Policy, Retention
from weir.core.restarts import UNLIMITED, ExponentialDelay, FailureRate, FixedDelay, NoRestart
from weir.core.restore_decision import RestoreRequest
from weir.driver.driver_environment import DriverEnvironment
from weir.driver.driver_process import Submission
from weir.driver.policy_settings import (
    LONGEST_WAIT_MS,
    changelog_of,
    merging_of,
    policy_of,
    restore_request_of,
    strategy_of,
)

STORAGE = "file:///checkpoints"
MINE = DriverEnvironment("d")

POLICY = [
    ({"interval": "5 s"}, {"interval_ms": 5_000}),
    ({"min_pause": "2 s"}, {"min_pause_ms": 2_000}),
    ({"timeout": "3 min"}, {"timeout_ms": 180_000}),
    ({"max_concurrent": 3}, {"max_concurrent": 3}),
    ({"tolerable_failures": 4}, {"tolerable_failures": 4}),
    ({"mode": "AT_LEAST_ONCE"}, {"mode": Mode.AT_LEAST_ONCE}),
    ({"unaligned": True}, {"unaligned": True}),
    (
        {"unaligned": True, "aligned_timeout": "7 s"},
        {"unaligned": True, "aligned_timeout_ms": 7_000},
    ),
    ({"after_tasks_finish": False}, {"after_tasks_finish": False}),
    ({"incremental": True}, {"incremental": True}),
    ({"retained": 9}, {"retained": 9}),
    *[({"retention": kept.name}, {"retention": kept}) for kept in Retention],
]

ELSEWHERE = {
    "storage",  # where the driver keeps its log and the slots their files
    "memory_limit",  # of the slots' files
    "inline_threshold",  # of the slots' files
    "file_merging",  # of the slots' files, see below
    "savepoint_dir",  # where a request that names no place goes
}


def configured(**groups):
    return load_config({"checkpointing": {"storage": STORAGE}, **groups})


def checkpointing(**settings):
    return configured(checkpointing={"storage": STORAGE, **settings})


def test_the_defaults_are_the_same_on_both_sides():
    """C2, C6."""
    assert policy_of(checkpointing()) == Policy()


@pytest.mark.parametrize(("given", "expected"), POLICY, ids=",".join)
def test_a_setting_of_checkpointing_becomes_a_policy(given, expected):
    """C6, C12, A3, A4, A5, C14, S4."""
    assert policy_of(checkpointing(**given)) == Policy(**expected)


def test_no_setting_of_checkpointing_is_forgotten():
    """U3: a setting that no code reads would be misleading."""
    here = {name for given, _ in POLICY for name in given}
    assert here | ELSEWHERE == set(CheckpointingConfig.model_fields)


def test_the_settings_of_the_changelog_reach_the_slots():
    """S5, U3: and its checkpoints build on each other, whatever ``incremental`` says."""
    given = {
        "enabled": True,
        "materializationInterval": "2 min",
        "preemptivePersistThreshold": "1 MiB",
    }
    config = configured(state={"changelog": given})

    assert changelog_of(config) == ChangelogPolicy(120_000, 1 << 20)
    assert policy_of(config).incremental
    assert changelog_of(configured()) is None
    assert not policy_of(configured()).incremental


@pytest.mark.parametrize(("blocks", "wait"), [(True, None), (False, LONGEST_WAIT_MS)])
def test_the_settings_of_file_merging_reach_the_slots(blocks, wait):
    """S6, U3: a pool that blocks waits for all subtasks, another one does not for long."""
    given = {
        "enabled": True,
        "maxFileSize": "2 MiB",
        "maxSpaceAmplification": 1.5,
        "poolBlocking": blocks,
    }

    assert merging_of(checkpointing(fileMerging=given)) == FileMergingPolicy(2 << 20, 1.5, wait)
    assert merging_of(checkpointing()) is None


def test_under_the_operator_the_job_is_managed():
    """C12: nothing is deleted on cancellation or suspension."""
    assert policy_of(checkpointing(), managed=True) == Policy(managed=True)


@pytest.mark.parametrize(("attempt", "managed"), [(None, False), (0, True), (3, True)])
def test_a_driver_whose_attempts_are_counted_is_the_operators(attempt, managed):
    """C12 K2: the number that the operator gives it shows that."""
    config = checkpointing()
    submitted = Submission("orders", "d", None, config, "file:///j", b"", attempt=attempt)

    assert submitted.policy == Policy(managed=managed)


STRATEGIES = [
    ({}, ExponentialDelay()),
    ({"type": "none"}, NoRestart()),
    ({"type": "fixed-delay"}, FixedDelay(1, 1_000)),
    ({"type": "fixed-delay", "attempts": 7, "delay": "2 s"}, FixedDelay(7, 2_000)),
    ({"type": "failure-rate"}, FailureRate()),
    (
        {
            "type": "failure-rate",
            "max_failures_per_interval": 5,
            "failure_rate_interval": "2 min",
            "delay": "3 s",
        },
        FailureRate(5, 120_000, 3_000),
    ),
    (
        {
            "type": "exponential-delay",
            "initial_backoff": "2 s",
            "max_backoff": "8 s",
            "backoff_multiplier": 2.5,
            "reset_backoff_threshold": "2 h",
            "jitter_factor": 0.25,
            "max_same_failures": 4,
        },
        ExponentialDelay(2_000, 2.5, 8_000, 7_200_000, 0.25, 4),
    ),
    ({"max_same_failures": 0}, ExponentialDelay(max_same_failures=UNLIMITED)),
]


@pytest.mark.parametrize(("given", "expected"), STRATEGIES, ids=lambda v: type(v).__name__)
def test_a_restart_strategy_is_what_the_user_chose(given, expected):
    """R2."""
    assert strategy_of(configured(restart=given).restart) == expected


def test_no_setting_of_restarts_is_forgotten():
    """U3."""
    assert {name for given, _ in STRATEGIES for name in given} == set(RestartConfig.model_fields)


WISHES = [
    ({}, RestoreRequest("d")),
    ({"path": "file:///sp/a"}, RestoreRequest("d", path="file:///sp/a/_metadata")),
    (
        {"path": "file:///sp/a", "claim_mode": "NO_CLAIM"},
        RestoreRequest("d", path="file:///sp/a/_metadata"),
    ),
    (
        {"path": "file:///sp/a", "claim_mode": "CLAIM"},
        RestoreRequest("d", path="file:///sp/a/_metadata", claims=True),
    ),
    ({"allow_non_restored_state": True}, RestoreRequest("d", allow_non_restored=True)),
    ({"without_in_flight_of": 4}, RestoreRequest("d", without_in_flight_of=4)),
]


@pytest.mark.parametrize(("given", "expected"), WISHES, ids=str)
def test_what_a_job_starts_from_is_what_the_user_named(given, expected):
    """C13, C15, C16."""
    assert restore_request_of(configured(recovery=given), MINE) == expected


def test_no_setting_of_recovery_is_forgotten():
    """U3."""
    assert {name for given, _ in WISHES for name in given} == set(RecoveryConfig.model_fields)


@pytest.mark.parametrize("path", ["file:///sp/a", "file:///sp/a/", "file:///sp/a/_metadata"])
def test_a_savepoint_is_named_by_its_directory_or_by_its_manifest(path):
    """C13."""
    assert (
        restore_request_of(configured(recovery={"path": path}), MINE).path
        == "file:///sp/a/_metadata"
    )


def test_without_a_number_nothing_in_flight_is_dropped():
    """C15."""
    assert restore_request_of(configured(), MINE).without_in_flight_of == NO_CHECKPOINT


def test_the_restore_point_of_the_environment_is_part_of_the_restore_request():
    """K4: the lowest acceptable checkpoint, or no state at all."""
    lowest = DriverEnvironment("d", lowest_checkpoint=CheckpointId(7))

    assert restore_request_of(configured(), lowest) == RestoreRequest("d", at_least=7)
    assert restore_request_of(
        configured(), DriverEnvironment("d", is_fresh=True)
    ) == RestoreRequest("d", fresh=True)
