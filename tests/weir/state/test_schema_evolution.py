"""Which changes of a declaration old rows survive, and with which reasons others are refused."""

import pyarrow as pa
import pytest

from weir.dataflow.types import schema_of, type_of
from weir.state.schema_evolution import incompatibilities, is_unchanged, widens
from weir.state.state_schema import StateSchema

KEY = tuple(schema_of("word string"))


def a_value(fields, kind="value", keys=KEY, prefix="value", **more):
    own = tuple(field.with_name(f"{prefix}.{field.name}") for field in schema_of(fields))
    return StateSchema("total", kind, keys, own, **more)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tinyint", "smallint"),
        ("int", "bigint"),
        ("float", "double"),
        ("smallint", "float"),
        ("int", "double"),
        ("int", "decimal(10,0)"),
        ("bigint", "decimal(21,2)"),
        ("decimal(10,2)", "decimal(12,4)"),
    ],
)
def test_a_number_may_become_wider_and_not_narrower(old, new):
    """S12: every old number has its exact equal."""
    assert widens(type_of(old), type_of(new))
    assert not widens(type_of(new), type_of(old))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", "double"),
        ("int", "float"),
        ("int", "decimal(9,0)"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("double", "bigint"),
        ("string", "bigint"),
        ("date", "timestamp"),
        ("boolean", "int"),
    ],
)
def test_what_could_lose_a_digit_is_no_widening(old, new):
    """S12: a bigint beyond 2**53 has no double that equals it."""
    assert not widens(type_of(old), type_of(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n long", "n long, note string"),
        ("n long, note string", "n long"),
        ("n int, x float", "n long, x double"),
        ("n long not null", "n long"),
        ("a struct<n:int,gone:string>", "a struct<n:bigint,new:string>"),
        ("a array<int>", "a array<bigint>"),
        ("a map<string,int>", "a map<string,bigint>"),
        ("a array<struct<n:int>>", "a array<struct<n:int,m:int>>"),
    ],
)
def test_old_rows_can_be_read(old, new):
    """S12: add a nullable field, drop a field, widen a number, also inside of others."""
    assert incompatibilities(a_value(old), a_value(new)) == []
    assert not is_unchanged(a_value(old), a_value(new)) or "not null" in old


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "n long",
            "n int",
            "field 'n' was bigint and is int now, which cannot hold every number of it",
        ),
        ("n long", "n string", "field 'n' was bigint and is string now"),
        (
            "n long",
            "n long, m int not null",
            "field 'm' is new and NOT NULL, and rows that were stored have no value",
        ),
        ("n long", "n long not null", "field 'n' could be null and is NOT NULL now"),
        (
            "a struct<n:bigint>",
            "a struct<n:string>",
            "field 'a', part 'n' was bigint and is string now",
        ),
        (
            "a array<bigint>",
            "a array<string>",
            "an element of field 'a' was bigint and is string now",
        ),
        (
            "a map<string,bigint>",
            "a map<int,bigint>",
            "a key in field 'a' was string and is int now",
        ),
    ],
)
def test_any_other_schema_change_is_reported_field_by_field(old, new, said):
    """S12, U3."""
    assert incompatibilities(a_value(old), a_value(new)) == [said]


def test_every_field_that_does_not_fit_is_named():
    """U3: all mismatches are reported together."""
    found = incompatibilities(a_value("n long, m string"), a_value("n int, m int"))
    assert [text.split(" was ")[0] for text in found] == ["field 'n'", "field 'm'"]


def test_another_kind_of_state_is_refused():
    """S12: a value state does not turn into a list."""
    (said,) = incompatibilities(a_value("n long"), a_value("n long", kind="list"))
    assert said == "it was a value state and is a list state now"


@pytest.mark.parametrize("now", ["word bigint", "word string, user string", "other string"])
def test_another_key_is_refused(now):
    """S12, S11: state is found by the hash of its key."""
    (said,) = incompatibilities(a_value("n long"), a_value("n long", keys=tuple(schema_of(now))))
    assert said == f"its key was (word string) and is ({now}) now"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("k int", "k long", None),
        ("k int", "k int, l int", "user key field 'l' is new, and keys that were stored have none"),
        ("k int, l int", "k int", "user key field 'l' is gone, and keys could become one"),
    ],
)
def test_user_keys_of_a_map_may_only_be_widened(old, new, said):
    """S12: two of them must not become one."""
    found = incompatibilities(
        a_value(old, "map", prefix="user_key"), a_value(new, "map", prefix="user_key")
    )
    assert found == ([] if said is None else [said])


def test_a_layer_says_nothing_about_nulls():
    """S4: a removed key has null in every column, whatever was declared."""
    assert not incompatibilities(a_value("n long", is_layer=True), a_value("n long not null"))


def test_an_age_limit_may_come_and_go():
    """S1: values that had none begin to age when they are restored."""
    aged = StateSchema(
        "total",
        "value",
        KEY,
        (pa.field("state.expires_at", pa.int64()), *a_value("n long").fields),
    )
    assert (
        incompatibilities(a_value("n long"), aged)
        == incompatibilities(aged, a_value("n long"))
        == []
    )
    assert not is_unchanged(a_value("n long"), aged)
