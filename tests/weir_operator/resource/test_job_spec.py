"""A job's specification holds the runtime's configuration and loses nothing of it."""

from invalid_specs import SOUND, overlaid
from weir.api import JobConfig
from weir.api.duration import HOUR
from weir.spark.session_settings import FOR_SLOTS
from weir_operator.resource import CheckpointedJobSpec
from weir_operator.resource.deadlines import StartDeadlines, StartPhase
from weir_operator.resource.spark_conf import rejected_settings
from weir_operator.resource.upgrade_policy import UpgradeMode

HARMLESS = {
    "spark.ui.enabled",
    "spark.ui.showConsoleProgress",
    "spark.log.level",
    "spark.sql.execution.arrow.pyspark.enabled",
}


def a_spec(**above):
    return CheckpointedJobSpec.model_validate(overlaid(SOUND, above))


def test_every_knob_of_the_runtime_is_a_field_of_the_resource():
    """K1: one model, so a knob is described once."""
    assert JobConfig.model_fields.keys() <= CheckpointedJobSpec.model_fields.keys()


def test_the_driver_is_given_what_the_user_wrote():
    """K1."""
    config = a_spec(parallelism=4, checkpointing={"timeout": "1 h"}).config()

    assert type(config) is JobConfig
    assert config.parallelism == 4
    assert config.checkpointing.timeout == HOUR
    assert config.checkpointing.storage == "s3://bucket/checkpoints"


def test_state_is_kept_unless_the_user_says_otherwise():
    """K4: the default mode is one that keeps it."""
    assert a_spec().upgrade.mode is UpgradeMode.LAST_STATE


def test_defaults_that_somebody_wrote_out_change_nothing():
    """K1: an API server fills them in before the operator reads the specification."""
    spec = a_spec(sparkConf={"spark.executor.memory": "1g"}, restart={"type": "none"})

    written_out = spec.model_dump(mode="json", exclude_none=True)

    assert CheckpointedJobSpec.model_validate(written_out) == spec


def test_a_hash_names_one_specification():
    """K5: a snapshot says which version of the job it was taken of."""
    assert a_spec().hash() == a_spec(parallelism=1).hash()
    assert a_spec().hash() != a_spec(parallelism=2).hash()


def test_a_number_of_cores_may_be_written_as_a_number():
    """K2: YAML reads it so, and Kubernetes allows it."""
    spec = a_spec(driver={"resources": {"requests": {"cpu": 2}}})

    assert spec.driver.resources.requests == {"cpu": "2"}


def test_a_volume_of_the_template_can_be_mounted():
    """K2: a template is merged, so what it brings is there."""
    shape = {
        "podTemplate": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }

    assert a_spec(executor=shape).executor.volume_names() == {"data"}


def test_a_volume_keeps_its_source_in_the_words_of_kubernetes():
    """K2."""
    volume = {"name": "data", "hostPath": {"path": "/mnt/disks/0"}}

    spec = a_spec(executor={"volumes": [volume]})

    assert spec.executor.volumes[0].model_dump() == volume


def test_what_slots_depend_on_cannot_be_set():
    """R3: a setting that the runtime adds for its slots is refused here too."""
    needed = {key: value for key, value in FOR_SLOTS.items() if key not in HARMLESS}

    refused = {problem.field.removeprefix("sparkConf.") for problem in rejected_settings(needed)}

    assert refused == set(needed)


def test_settings_of_spark_that_are_the_users_pass():
    """K1: a rule that refuses too much is as wrong."""
    theirs = {
        "spark.executor.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.hadoop.fs.s3a.endpoint": "http://s3:8333",
        "spark.kubernetes.executor.missingPodDetectDelta": "30s",
        "spark.ui.enabled": "true",
    }

    assert list(rejected_settings(theirs)) == []


def test_every_phase_of_a_start_has_its_deadline():
    """K7: the status can name the phase that hangs."""
    deadlines = StartDeadlines(pod=1, driver=2, slots=3, restore=4)

    assert [deadlines.of(phase) for phase in StartPhase] == [1, 2, 3, 4]
