"""A setting that would have no effect is refused with the right name."""

import pytest

from weir.api.config import JobConfig, load_config
from weir.errors import JobRejected
from weir.spark.session import WeirSession
from weir.spark.session_settings import nested
from weir.spark.setting_names import OF_FLINK, refuse_misnamed


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("execution.checkpointing.interval", "weir.checkpointing.interval"),
        ("weir.execution.checkpointing.interval", "weir.checkpointing.interval"),
        ("flink.execution.checkpointing.min-pause", "weir.checkpointing.minPause"),
        ("state.backend", "weir.state.backend"),
        ("state.backend.type", "weir.state.backend"),
        ("state.changelog.enabled", "weir.state.changelog.enabled"),
        (
            "dstl.dfs.preemptive-persist-threshold",
            "weir.state.changelog.preemptivePersistThreshold",
        ),
        ("restart-strategy", "weir.restart.type"),
        ("parallelism.default", "weir.parallelism"),
        ("checkpointing.interval", "weir.checkpointing.interval"),
        ("spark.weir.checkpointing.interval", "weir.checkpointing.interval"),
        ("Weir.parallelism", "weir.parallelism"),
        ("wier.parallelism", "weir.parallelism"),
        ("parallelism", "weir.parallelism"),
    ],
)
def test_a_misnamed_setting_is_refused_with_the_right_name(given, right):
    """U3: instead of a job without checkpoints."""
    with pytest.raises(JobRejected) as refused:
        refuse_misnamed([given])

    assert refused.value.problem.endswith(f" would read {given}")
    assert refused.value.remedy == f"use {right}"


def test_a_setting_of_flink_without_a_counterpart_is_refused():
    """U3."""
    with pytest.raises(JobRejected, match=r"taskmanager\.numberOfTaskSlots: .* no such setting"):
        refuse_misnamed(["taskmanager.numberOfTaskSlots"])


@pytest.mark.parametrize(
    "name",
    [
        "weir.state.backend",
        "weir.checkpointing.interval",
        "spark.checkpoint.compress",
        "spark.executor.memory",
        "spark.hadoop.fs.s3a.endpoint",
        "fs.s3a.access.key",
        "hive.metastore.uris",
        "javax.jdo.option.ConnectionURL",
    ],
)
def test_what_somebody_reads_is_left_alone(name):
    """D5: Spark's settings go to Spark."""
    refuse_misnamed([name])


@pytest.mark.parametrize("ours", sorted(set(OF_FLINK.values())))
def test_every_name_that_is_suggested_exists(ours):
    """U3: a remedy can be typed."""
    try:
        load_config(nested({ours: "nonsense"}))
    except JobRejected as problem:
        assert "there is no such field" not in str(problem)  # noqa: PT017 - some accept any text
    assert ours.partition(".")[0] in {f.alias for f in JobConfig.model_fields.values()}


def test_a_session_refuses_them_before_spark_is_started():
    """U3."""
    builder = WeirSession.builder.config("execution.checkpointing.interval", "1 s")
    with pytest.raises(JobRejected, match=r"use weir\.checkpointing\.interval"):
        builder.getOrCreate()


def test_all_of_them_are_named_at_once():
    """U3."""
    with pytest.raises(JobRejected) as refused:
        refuse_misnamed(["state.backend", "spark.master", "pipeline.max-parallelism"])

    assert "state.backend" in refused.value.cause
    assert "pipeline.max-parallelism" in refused.value.cause
    assert "spark.master" not in refused.value.cause
