"""What lies just beside a refusal is accepted: a rule that refuses too much is as wrong."""

import pytest

from weir.api import load_config
from weir.api.checkpointing_config import CheckpointingConfig


@pytest.mark.parametrize(
    "checkpointing",
    [
        pytest.param({"minPause": "5 s", "maxConcurrent": 1}, id="C6 a pause, one at a time"),
        pytest.param({"minPause": "0 s", "maxConcurrent": 4}, id="C6 no pause, several at a time"),
        pytest.param({"unaligned": True, "alignedTimeout": "599 s"}, id="A5 aligned at first"),
        pytest.param({"mode": "AT_LEAST_ONCE", "maxConcurrent": 3}, id="A8 several in flight"),
        pytest.param({"inlineThreshold": "1 MiB"}, id="S7 the largest inline state"),
        pytest.param({"inlineThreshold": 0}, id="S7 nothing inline"),
        pytest.param({"memoryLimit": "256 MiB"}, id="S7 the largest checkpoint in memory"),
        pytest.param({"retained": 1}, id="C12 the newest checkpoint alone"),
        pytest.param({"timeout": 1}, id="C6 the shortest timeout"),
        pytest.param({"storage": "file:///checkpoints"}, id="S7 files"),
        pytest.param({"storage": "s3://bucket"}, id="S7 a whole bucket"),
        pytest.param({"storage": "hdfs://host:8020/checkpoints"}, id="S7 a port is no password"),
        pytest.param({"storage": "abfss://container@account/x"}, id="S7 nor is a container"),
        pytest.param(
            {"storage": "memory://", "retention": "NEVER_RETAIN_AFTER_TERMINATION"},
            id="S7 memory, for as long as it lasts",
        ),
    ],
)
def test_settings_that_stand_together_are_accepted(checkpointing):
    load_config({"checkpointing": checkpointing})


def test_what_a_job_left_in_its_own_storage_can_be_restored_leniently():
    """C15: a changed job continues from its own checkpoint, and no path is needed for that."""
    config = load_config(
        {
            "checkpointing": {"storage": "s3://bucket/checkpoints"},
            "recovery": {"allowNonRestoredState": True, "withoutInFlightOf": 42},
        }
    )

    assert config.recovery.allow_non_restored_state
    assert config.recovery.without_in_flight_of == 42


def test_a_savepoint_can_be_restored_leniently_without_a_storage():
    """C13, C15: the path is what there is to restore."""
    given = {"path": "s3://bucket/savepoint-1", "allowNonRestoredState": True}

    assert load_config({"recovery": given}).recovery.allow_non_restored_state


def test_a_path_can_be_claimed():
    """C16: with CLAIM the job owns what it was restored from."""
    config = load_config({"recovery": {"path": "s3://bucket/savepoint-1", "claimMode": "CLAIM"}})

    assert config.recovery.claim_mode == "CLAIM"


def test_as_many_subtasks_as_key_groups_are_the_most():
    """S11: every subtask has its own key group."""
    assert load_config({"parallelism": 128, "maxParallelism": 128}).parallelism == 128
    assert load_config({"parallelism": 32_768}).parallelism == 32_768


def test_a_pause_may_be_longer_than_the_interval():
    """C2: checkpoints then come at the rate of the pause, as they do in Flink."""
    given = {"interval": "10 s", "minPause": "30 s", "storage": "file:///checkpoints"}

    assert load_config({"checkpointing": given}).checkpointing.min_pause == 30_000


def test_a_health_window_may_be_a_little_longer_than_the_interval():
    """R8: how many late checkpoints are too many is for the user to say."""
    given = {"interval": "10 s", "storage": "file:///checkpoints"}

    assert load_config({"healthWindow": 10_001, "checkpointing": given}).health_window == 10_001


@pytest.mark.parametrize("jitter", [0, 0.0, 1])
def test_the_delay_may_be_left_to_chance_wholly_or_not_at_all(jitter):
    """R2: jitter is a part of the delay, from none to all of it."""
    assert load_config({"restart": {"jitterFactor": jitter}}).restart.jitter_factor == jitter


@pytest.mark.parametrize(("interval", "is_periodic"), [(0, False), (9, False), (10, True)])
def test_an_interval_under_ten_milliseconds_means_disabled(interval, is_periodic):
    """C2: a shorter interval is a way to say never."""
    config = CheckpointingConfig(interval=interval, storage="file:///checkpoints")

    assert config.is_periodic is is_periodic


def test_python_writes_snake_case_and_yaml_writes_camel_case():
    """K1: the resource and the program set the same fields."""
    in_yaml = load_config({"checkpointing": {"minPause": "5 s"}})
    in_python = load_config({"checkpointing": {"min_pause": 5_000}})

    assert in_yaml == in_python


@pytest.mark.parametrize("name", ["forcedUnaligned", "forceCheckpointsInCycles"])
def test_a_setting_that_was_removed_may_have_its_default(name):
    """K1: the operator of an earlier release writes every default out for a driver."""
    assert load_config({"checkpointing": {name: False}}) == load_config({})
