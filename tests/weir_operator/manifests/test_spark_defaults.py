"""Spark's settings: the number and size of executors, and only validated values."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_driver import a_config, a_spec
from weir_operator.manifests.resource_sizes import executors, read_mib
from weir_operator.manifests.spark_defaults import QUICK_STARTS
from weir_operator.resource.spark_conf import rejected_settings

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def read(text):
    """As Java reads a file of properties, of the forms that we write."""
    lines = text.removesuffix("\n").split("\n")
    pairs = (re.fullmatch(r"((?:\\.|[^\\ ])*) = (.*)", line, re.DOTALL) for line in lines)
    return {unescaped(pair[1]): unescaped(pair[2]) for pair in pairs}


def unescaped(text):
    return re.sub(r"\\(.)", lambda sign: ESCAPES.get(sign[1], sign[1]), text)


def settings(**above):
    return read(a_config(**above)["spark-defaults.conf"])


@pytest.mark.parametrize(
    ("parallelism", "standby", "slots", "number"),
    [(1, 0, 1, 1), (4, 0, 2, 2), (5, 0, 2, 3), (4, 1, 2, 3), (3, 0, 64, 1)],
)
def test_there_are_as_many_executors_as_the_slots_need(parallelism, standby, slots, number):
    """K6 R3: the spare ones too."""
    spec = a_spec(parallelism=parallelism, standbySlots=standby, slotsPerExecutor=slots)

    assert executors(spec) == number


def test_an_executor_has_a_core_for_each_slot():
    """R3: whatever of a processor the pod asks for."""
    conf = settings(slotsPerExecutor=4, executor={"resources": {"requests": {"cpu": "500m"}}})

    assert conf["spark.executor.cores"] == "9"
    assert conf["spark.weir.slotCores"] == "2"
    assert conf["spark.kubernetes.executor.request.cores"] == "500m"
    assert "spark.kubernetes.executor.limit.cores" not in conf


@pytest.mark.parametrize("memory", ["1Gi", "1500Mi", "2Gi", "64Gi"])
def test_an_executors_pod_is_as_large_as_the_user_wrote(memory):
    """K2: Java and Python share what there is."""
    conf = settings(executor={"resources": {"limits": {"memory": memory}}})

    parts = [conf[f"spark.executor.{part}"] for part in ("memory", "memoryOverhead")]
    assert sum(map(read_mib, parts)) == read_mib(memory.removesuffix("i"))


def test_most_of_an_executors_memory_is_pythons():
    """S1: state lives there."""
    conf = settings(executor={"resources": {"limits": {"memory": "10Gi"}}})

    assert (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"]) == (
        "2048m",
        "8192m",
    )


def test_a_pod_too_small_for_spark_grows():
    """K2: Spark would refuse to start with less."""
    conf = settings(executor={"resources": {"limits": {"memory": "256Mi"}}})

    assert (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"]) == (
        "512m",
        "384m",
    )


def test_a_heap_that_the_user_chose_leaves_the_rest_to_python():
    """K1: settings of Spark are the user's where nothing rests on them."""
    conf = settings(
        sparkConf={"spark.executor.memory": "3g"},
        executor={"resources": {"limits": {"memory": "4Gi"}}},
    )

    assert conf["spark.executor.memory"] == "3g"
    assert conf["spark.executor.memoryOverhead"] == "1024m"


@pytest.mark.parametrize(
    ("size", "mib"),
    [("512", 512), ("1g", 1024), ("1GB", 1024), ("2048k", 2), ("1t", 1 << 20), ("lots", None)],
)
def test_sizes_are_read_as_spark_reads_them(size, mib):
    """K1."""
    assert read_mib(size) == mib


def test_executors_find_this_driver_and_no_other():
    """C17 K2: by its address, its pod and a name of the attempt's own."""
    conf = settings()

    assert conf["spark.driver.host"] == "${env:WEIR_HOST}"
    assert conf["spark.kubernetes.driver.pod.name"] == "orders-driver-7"
    assert conf["spark.kubernetes.executor.podNamePrefix"] == "orders-7"


def test_spark_leaves_services_alone():
    """K2 K9: the one of the driver is the operator's, so a driver's account has no right to any."""
    assert settings()["spark.kubernetes.driver.service.deleteOnTermination"] == "false"


def test_traffic_between_driver_and_executors_is_authenticated_and_encrypted():
    """X1: the slots' secret reaches executors by Spark."""
    conf = settings()

    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"


def test_executors_carry_the_labels_by_which_they_are_found():
    """K2 K6: by a budget, a NetworkPolicy, an autoscaler."""
    conf = settings()

    assert conf["spark.kubernetes.executor.label.weir.dev/job"] == "orders"
    assert conf["spark.kubernetes.executor.label.weir.dev/role"] == "executor"
    assert conf["spark.kubernetes.executor.label.weir.dev/attempt"] == "7"


def test_a_label_of_ours_is_not_the_users_to_set():
    """K2: pods of a job must not pass for those of another."""
    theirs = {"spark.kubernetes.executor.label.weir.dev/job": "other"}

    assert settings(sparkConf=theirs)["spark.kubernetes.executor.label.weir.dev/job"] == "orders"


def test_what_the_operator_decides_is_refused_to_users():
    """K1: a setting that was accepted and then ignored would be a riddle."""
    ours = {
        key: value
        for key, value in settings().items()
        if "emory" not in key and ".label." not in key and key not in QUICK_STARTS
    }

    assert {
        problem.field.removeprefix("sparkConf.") for problem in rejected_settings(ours)
    } == ours.keys()


@pytest.mark.parametrize("key", QUICK_STARTS)
def test_java_loads_the_class_archive_unless_the_user_overrides_it(key):
    """K2: in the driver's config, below what the user wrote."""
    assert settings()[key] == QUICK_STARTS[key]
    assert settings(sparkConf={key: "theirs"})[key] == "theirs"


PREFIX = "spark.theirs."


@given(st.dictionaries(st.text().map(PREFIX.__add__), st.text(), max_size=3))
def test_a_setting_says_no_more_than_it_says(theirs):
    """K1: a line break in a value would begin a setting that was never validated."""
    conf = settings(sparkConf=theirs)

    assert {key: value for key, value in conf.items() if key.startswith(PREFIX)} == theirs
    assert conf.keys() - theirs.keys() == settings().keys()
