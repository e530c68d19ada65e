"""Schemas are read as PySpark writes them, and what is not clear is refused."""

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from weir.dataflow.types import schema_of, type_of
from weir.errors import JobRejected

INSTANT = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("tinyint", pa.int8()),
        ("short", pa.int16()),
        ("INT", pa.int32()),
        ("long", pa.int64()),
        ("bigint", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("varchar(3)", pa.string()),
        ("binary", pa.binary()),
        ("boolean", pa.bool_()),
        ("date", pa.date32()),
        ("timestamp", INSTANT),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal", pa.decimal128(10, 0)),
        ("decimal( 10 , 2 )", pa.decimal128(10, 2)),
        ("array<int>", pa.list_(pa.field("element", pa.int32()))),
        ("map<string,bigint>", pa.map_(pa.string(), pa.int64())),
        ("struct<a:int, b:string>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("struct<>", pa.struct([])),
    ],
)
def test_every_type_of_spark_has_its_arrow_type(written, meant):
    assert type_of(written).equals(meant)


@pytest.mark.parametrize(
    "ddl",
    [
        "a long, b string",
        "a: long, b: string",
        "struct<a:bigint,b:string>",
        " A long,\n b string comment 'it is, b' ".replace("A", "a"),
        "`a` bigint, `b` string",
    ],
)
def test_ddl_and_simple_strings_say_the_same(ddl):
    """D2."""
    assert schema_of(ddl).equals(pa.schema([("a", pa.int64()), ("b", pa.string())]))


def test_a_column_can_be_required():
    assert [field.nullable for field in schema_of("a long not null, b long")] == [False, True]


def test_names_in_backticks_may_hold_anything():
    assert schema_of("`a b, c` long, `it``s` int").names == ["a b, c", "it`s"]


def test_a_struct_type_of_pyspark_is_understood():
    """D1: read through its own words, since PySpark is not known here."""
    declared = spark.StructType(
        [
            spark.StructField("a", spark.LongType()),
            spark.StructField("two words", spark.DecimalType(10, 2)),
            spark.StructField("t", spark.TimestampType()),
            spark.StructField(
                "m", spark.MapType(spark.StringType(), spark.ArrayType(spark.IntegerType()))
            ),
        ]
    )

    schema = schema_of(declared)

    assert schema.names == ["a", "two words", "t", "m"]
    assert schema.types[:3] == [pa.int64(), pa.decimal128(10, 2), INSTANT]
    assert schema.field("m").type.item_type.value_type == pa.int32()


def test_an_arrow_schema_is_taken_as_it_is():
    schema = pa.schema([("a", pa.uint8())])

    assert schema_of(schema) is schema


@pytest.mark.parametrize(
    ("ddl", "complaint"),
    [
        ("", "a column name is missing"),
        ("a", "a type is missing"),
        ("a lnog", "'lnog' is no type of Spark's. Remedy: did you mean 'long'?"),
        ("a long b string", "'b string' was not expected"),
        ("a array<int", "'>' is missing"),
        ("a array", "'<' is missing"),
        ("a map<string>", "',' is missing"),
        ("a decimal(39,2)", "at most 38 digits"),
        ("a decimal(x)", "'x' is no size"),
        ("a long, A string", "column 'a' is there twice"),
        ("a long comment b", "a comment stands in quotes"),
    ],
)
def test_what_is_not_clear_is_refused(ddl, complaint):
    with pytest.raises(JobRejected) as rejected:
        schema_of(ddl)
    assert complaint in str(rejected.value)


def test_what_is_no_schema_is_refused():
    with pytest.raises(JobRejected, match="a int is no schema"):
        schema_of(3)
