"""Our settings in Spark's flat form, and Spark's own settings that slots depend on."""

import os
from pathlib import Path

import pytest

from weir.api.config import load_config
from weir.api.environment_variables import WEIR_CONFIG, WEIR_MASTER
from weir.driver.driver_environment import DriverEnvironment
from weir.errors import JobRejected
from weir.spark.session_settings import (
    FOR_SLOTS,
    ONE_THREAD,
    OWN_CORES,
    job_settings,
    nested,
    spark_settings,
    with_start_settings,
    without_start_settings,
)

SOURCE = Path("runtime")


def test_dots_make_groups():
    """D5."""
    flat = {"parallelism": "2", "checkpointing.interval": "1 s", "checkpointing.retained": "3"}
    assert nested(flat) == {
        "parallelism": 2,
        "checkpointing": {"interval": "1 s", "retained": 3},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("7", 7),
        ("-7", -7),
        ("0.25", 0.25),
        ("10 min", "10 min"),
        ("s3://bucket/7", "s3://bucket/7"),
        ("", ""),
    ],
)
def test_text_is_read_as_yaml_would_read_it(text, value):
    """D5: Spark's settings are text, ours are typed."""
    (read,) = nested({"setting": text}).values()
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "flat",
    [
        {"checkpointing": "on", "checkpointing.interval": "1 s"},
        {"checkpointing.interval": "1 s", "checkpointing": "on"},
    ],
    ids=["the setting first", "the group first"],
)
def test_a_name_cannot_be_a_setting_and_a_group(flat):
    """U3: neither is dropped in silence."""
    with pytest.raises(JobRejected, match="checkpointing is given as a setting and as a group"):
        nested(flat)


def test_what_is_read_is_a_configuration():
    """D5: the same words as in YAML."""
    flat = {
        "checkpointing.storage": "file:///checkpoints",
        "checkpointing.interval": "10 s",
        "restart.type": "fixed-delay",
        "restart.attempts": "3",
    }
    config = load_config(nested(flat))
    assert (config.checkpointing.interval, config.restart.attempts) == (10_000, 3)


def a_file(folder, text):
    place = folder / "job.json"
    place.write_text(text)
    return {WEIR_CONFIG: str(place)}


def test_without_a_file_the_script_says_how_the_job_runs():
    """D5: and the command line overrides it."""
    script = {"parallelism": "2", "checkpointing.interval": "1 s"}
    assert job_settings(script, {"WEIR_PARALLELISM": "3"}) == {
        "parallelism": 3,
        "checkpointing": {"interval": "1 s"},
    }


def test_a_file_stands_for_all_that_the_script_sets(tmp_path, caplog):
    """K1: the resource takes precedence, and unused settings are reported."""
    variables = a_file(tmp_path, '{"parallelism": 4, "checkpointing": {"interval": "5 s"}}')
    script = {"parallelism": "2", "checkpointing.storage": "file:///here"}

    assert job_settings(script, variables) == {
        "parallelism": 4,
        "checkpointing": {"interval": "5 s"},
    }
    assert "weir.checkpointing.storage, weir.parallelism" in caplog.text


def test_a_restore_point_is_set_beside_what_the_file_says(tmp_path):
    """K4: it belongs to this start of the driver, and the file to the job."""
    variables = a_file(tmp_path, '{"recovery": {"withoutInFlightOf": 3}}')
    wished = {"WEIR_FROM": "s3://b/savepoint-1", "WEIR_CLAIM": "true"}

    assert job_settings({}, {**variables, **wished}) == {
        "recovery": {"withoutInFlightOf": 3, "path": "s3://b/savepoint-1", "claimMode": "CLAIM"}
    }


@pytest.mark.parametrize("text", ["{", "[]", None], ids=["no JSON", "no object", "no file"])
def test_a_file_that_holds_no_settings_is_refused_by_name(tmp_path, text):
    """U3: never run with the script's instead."""
    variables = {WEIR_CONFIG: str(tmp_path / "none")} if text is None else a_file(tmp_path, text)

    with pytest.raises(JobRejected, match=r"WEIR_CONFIG: .*Remedy"):
        job_settings({}, variables)


def test_locally_there_are_cores_for_the_slots_and_for_spark():
    """D5, R3: slots hold their cores for good, and a lost task is tried again."""
    settings = spark_settings(3, SOURCE, {})
    assert settings["spark.master"] == f"local[{3 + OWN_CORES},1000]"


def test_a_slot_that_dies_comes_back_for_ever():
    """R3."""
    settings = spark_settings(1, SOURCE, {})
    assert settings.items() >= FOR_SLOTS.items()
    assert settings["spark.task.maxFailures"] == str(2**31 - 1)
    assert settings["spark.python.worker.reuse"] == "false"


def test_parallelism_comes_from_slots_alone():
    """R7: a library's own threads would only fight with theirs."""
    settings = spark_settings(1, SOURCE, {})
    assert all(settings[f"spark.executorEnv.{variable}"] == "1" for variable in ONE_THREAD)


def test_what_the_user_sets_wins():
    """D5: the same file runs on Kubernetes."""
    given = {"spark.master": "k8s://https://cluster", "spark.task.maxFailures": "4"}
    settings = spark_settings(1, SOURCE, given)
    assert settings.items() >= given.items()


def test_the_environment_says_where_machines_are(monkeypatch):
    """D5: the same file runs on Kubernetes, where its pod knows the master."""
    monkeypatch.setenv(WEIR_MASTER, "k8s://https://cluster")
    assert spark_settings(1, SOURCE, {})["spark.master"] == "k8s://https://cluster"
    given = {"spark.master": "local[1]"}
    assert spark_settings(1, SOURCE, given)["spark.master"] == "local[1]"


def test_slots_find_our_package_and_the_users(monkeypatch):
    """D5."""
    monkeypatch.setenv("PYTHONPATH", "of-the-user")
    paths = spark_settings(1, SOURCE, {})["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert paths == ["runtime", "of-the-user"]
    monkeypatch.delenv("PYTHONPATH")
    assert spark_settings(1, SOURCE, {})["spark.executorEnv.PYTHONPATH"] == "runtime"


def test_a_path_of_this_machine_may_stand_where_a_url_does():
    """D2, S7: Spark takes a plain path, and the same file by a URL of one slash."""
    script = {
        "checkpointing.storage": "/data/checkpoints",
        "checkpointing.savepointDir": "file:/data/savepoints",
        "recovery.path": "savepoint-1f0c",
    }
    config = load_config(job_settings(script, {}))

    assert config.checkpointing.storage == "file:///data/checkpoints"
    assert config.checkpointing.savepoint_dir == "file:///data/savepoints"
    assert config.recovery.path == f"file://{Path.cwd()}/savepoint-1f0c"


def test_a_script_says_that_it_takes_over_or_runs_again():
    """C17, R6: and neither is a part of the job's configuration."""
    script = {"takeOver": "true", "rerun": "True", "parallelism": "2"}
    assignment = with_start_settings(DriverEnvironment(""), script)

    assert (assignment.takes_over, assignment.reruns) == (True, True)
    assert without_start_settings(script) == {"parallelism": "2"}


def test_a_script_that_says_nothing_changes_nothing():
    """C17: what the environment says holds."""
    assignment = DriverEnvironment("orders-2", takes_over=True)

    assert with_start_settings(assignment, {}) == assignment


def test_a_setting_that_is_neither_true_nor_false_is_refused():
    """U3."""
    with pytest.raises(
        JobRejected, match=r"weir\.takeOver = maybe is not allowed: .* use true or false"
    ):
        with_start_settings(DriverEnvironment(""), {"takeOver": "maybe"})


def test_a_jvm_that_starts_shows_errors_only():
    """U3: a start says nothing that every start says."""
    option = spark_settings(1, SOURCE, {})["spark.driver.defaultJavaOptions"]
    place = option.removeprefix("-Dlog4j2.configurationFile=file://")

    assert "rootLogger.level = error" in Path(place).read_text()


def test_the_java_options_of_an_operator_stay(monkeypatch):
    """R1: they start a driver from an archive of classes, which a restart must not lose."""
    monkeypatch.setenv("WEIR_MASTER", "k8s://https://kubernetes.default.svc")

    assert "spark.driver.defaultJavaOptions" not in spark_settings(1, SOURCE, {})


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_logging_that_the_user_has_configured_for_spark_stays(tmp_path, monkeypatch, variable):
    """D5: it is the user's Spark."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "log4j2.xml").touch()
    for each in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(variable, str(conf if variable == "SPARK_CONF_DIR" else tmp_path))

    assert "spark.driver.defaultJavaOptions" not in spark_settings(1, SOURCE, {})
