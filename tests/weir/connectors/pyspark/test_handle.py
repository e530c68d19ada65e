"""The handle and the states are PySpark's, whole: nothing of them is left to talk to a JVM."""

import inspect

import pytest
from pyspark.sql.streaming import stateful_processor as spark

from weir.connectors.pyspark.handle import ExpiringValue, Handle, List, Map, Value

PAIRS = [
    (Handle, spark.StatefulProcessorHandle),
    (Value, spark.ValueState),
    (ExpiringValue, spark.ValueState),
    (List, spark.ListState),
    (Map, spark.MapState),
]


def public(of):
    methods = inspect.getmembers(of, inspect.isfunction)
    return {name: method for name, method in methods if not name.startswith("_")}


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda of: of.__name__)
def test_every_method_of_pyspark_is_there_with_its_parameters(ours, theirs):
    """D1: a processor written for PySpark runs unchanged, whatever it calls by whatever name."""
    for name, method in public(theirs).items():
        own = public(ours)[name]
        assert own is not method, f"{name} would ask the JVM"
        assert list(inspect.signature(own).parameters) == list(inspect.signature(method).parameters)


def test_every_method_of_a_processor_is_called_or_its_own():
    """D1: PySpark 4.3 has these; another one would be news."""
    assert set(public(spark.StatefulProcessor)) == {
        "init",
        "handleInputRows",
        "handleExpiredTimer",
        "handleInitialState",
        "close",
    }
