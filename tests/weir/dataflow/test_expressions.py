"""Expressions mean what they mean in Spark: the values, the nulls and the types."""

import datetime as dt
import decimal
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from weir.dataflow.expressions import RULES, compiled, evaluate, predicate
from weir.dataflow.rules import Misfit, refuse_unread
from weir.errors import JobRejected

ROWS = pa.record_batch(
    {
        "a": pa.array([7, -7, None, 0], pa.int32()),
        "l": pa.array([3, -3, 2, 0], pa.int64()),
        "f": pa.array([1.5, math.nan, None, -2.5]),
        "s": ["abc", "x%", None, ""],
        "p": [True, None, False, True],
        "ts": pa.array([0, 10**12, None, 123_456_000], pa.timestamp("us", tz="UTC")),
        "ms": pa.array([0, 10**9, None, 123_456], pa.timestamp("ms")),
        "st": pa.array([{"x": 1}, None, {"x": 3}, {"x": 4}]),
        "of": pa.array([[1], [], None, [2]]),
        "large": pa.array(["abc", "x", None, ""], pa.large_string()),
    }
)
INSTANT = pa.timestamp("us", tz="UTC")
D = decimal.Decimal


def value_of(text, rows=ROWS):
    expression = compiled(text, rows.schema)
    (array,) = evaluate([expression], rows)
    assert array.type.equals(expression.type), "a result has the type that was promised"
    return array.to_pylist()


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("a + 1", pa.int32(), [8, -6, None, 1]),
        ("a + l", pa.int64(), [10, -10, None, 0]),
        ("l - f", pa.float64(), [1.5, "nan", None, 2.5]),
        ("-a", pa.int32(), [-7, 7, None, 0]),
        ("a / 2", pa.float64(), [3.5, -3.5, None, 0.0]),
        ("a / l", pa.float64(), [7 / 3, 7 / 3, None, None]),
        ("a div 2", pa.int64(), [3, -3, None, 0]),
        ("a % 3", pa.int32(), [1, -1, None, 0]),
        ("a % l", pa.int64(), [1, -1, None, None]),
        ("f % 2", pa.float64(), [1.5, "nan", None, -0.5]),
        ("pmod(a, 3)", pa.int32(), [1, 2, None, 0]),
        ("pmod(a, -3)", pa.int32(), [1, -1, None, 0]),
        ("a * 1.5", pa.decimal128(13, 1), [D("10.5"), D("-10.5"), None, D("0.0")]),
        ("l / 1.5", pa.decimal128(27, 6), [D(2), D(-2), D("1.333333"), D(0)]),
        ("f * 1.5", pa.float64(), [2.25, "nan", None, -3.75]),
        ("0.1 + 0.2", pa.decimal128(2, 1), [D("0.3")] * 4),
        ("1 + null", pa.int32(), [None] * 4),
        ("abs(a)", pa.int32(), [7, 7, None, 0]),
        ("round(f)", pa.float64(), [2.0, "nan", None, -3.0]),
        ("round(1.255, 2)", pa.decimal128(4, 2), [D("1.26")] * 4),
        ("floor(f)", pa.int64(), [1, 0, None, -3]),
        ("ceil(f)", pa.int64(), [2, 0, None, -2]),
        ("greatest(a, l, f)", pa.float64(), [7.0, "nan", 2.0, 0.0]),
        ("least(a, l)", pa.int64(), [3, -7, 2, 0]),
    ],
)
def test_arithmetic_has_sparks_values_and_types(text, kind, values):
    """D2: a division is a double, a remainder has the sign of its dividend, x / 0 is null."""
    assert compiled(text, ROWS.schema).type.equals(kind)
    assert ["nan" if v is not None and v != v else v for v in value_of(text)] == values  # noqa: PLR0124


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a > 0", [True, False, None, False]),
        ("a = l", [False, False, None, True]),
        ("a != 7", [False, True, None, True]),
        ("a <=> null", [False, False, True, False]),
        ("f = f", [True, True, None, True]),
        ("a > 0 AND p", [True, False, False, False]),
        ("p OR a IS NULL", [True, None, True, True]),
        ("NOT p", [False, None, True, False]),
        ("p IS TRUE", [True, False, False, True]),
        ("a IS NOT NULL", [True, True, False, True]),
        ("a IN (7, 0)", [True, False, None, True]),
        ("a IN (7, NULL)", [True, None, None, None]),
        ("a NOT IN (7, l)", [False, True, None, False]),
        ("a BETWEEN 0 AND 7", [True, False, None, True]),
        ("ts > '1970-01-02'", [False, True, None, False]),
        ("ms > timestamp_ntz '1970-01-02 00:00:00'", [False, True, None, False]),
        ("s LIKE 'x\\\\%'", [False, True, None, False]),
        ("s LIKE '_b%'", [True, False, None, False]),
        ("startswith(s, 'a')", [True, False, None, False]),
        ("endswith(s, 'c')", [True, False, None, False]),
        ("contains(s, '%')", [False, True, None, False]),
        ("isnull(a)", [False, False, True, False]),
        ("isnan(f)", [False, True, False, False]),
    ],
)
def test_conditions_know_true_false_and_null(text, values):
    """D2: three-valued logic."""
    assert value_of(text) == values


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("length(s)", pa.int32(), [3, 2, None, 0]),
        ("upper(large)", pa.string(), ["ABC", "X", None, ""]),
        ("lower('ÄB')", pa.string(), ["äb"] * 4),
        ("concat(s, '-', a)", pa.string(), ["abc-7", "x%--7", None, "-0"]),
        ("s || 'z'", pa.string(), ["abcz", "x%z", None, "z"]),
        ("substring(s, 2)", pa.string(), ["bc", "%", None, ""]),
        ("substring(s, -2, 1)", pa.string(), ["b", "x", None, ""]),
        ("substring(s, -4, 2)", pa.string(), ["a", "", None, ""]),
        ("substr(s, 0, 2)", pa.string(), ["ab", "x%", None, ""]),
        (
            "CASE WHEN a > 0 THEN 'pos' WHEN a < 0 THEN 'neg' END",
            pa.string(),
            ["pos", "neg", None, None],
        ),
        ("CASE a WHEN 7 THEN 1 ELSE 2L END", pa.int64(), [1, 2, 2, 2]),
        ("if(p, a, l)", pa.int64(), [7, -3, 2, 0]),
        ("coalesce(a, l, 0)", pa.int64(), [7, -7, 2, 0]),
        ("nvl(s, 'none')", pa.string(), ["abc", "x%", "none", ""]),
        ("nullif(a, 7)", pa.int32(), [None, -7, None, 0]),
        ("st.x + 1", pa.int64(), [2, None, 4, 5]),
        ("`a`", pa.int32(), [7, -7, None, 0]),
        ("A", pa.int32(), [7, -7, None, 0]),
        ("of", ROWS.schema.field("of").type, [[1], [], None, [2]]),
        ("'q'", pa.string(), ["q"] * 4),
        ("1e3", pa.float64(), [1000.0] * 4),
        ("3000000000", pa.int64(), [3_000_000_000] * 4),
    ],
)
def test_strings_choices_and_columns(text, kind, values):
    assert compiled(text, ROWS.schema).type.equals(kind)
    assert value_of(text) == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cast(' 12 ' AS int)", 12),
        ("cast('x' AS int)", None),
        ("cast(1.9D AS int)", 1),
        ("cast(300 AS tinyint)", None),
        ("cast('yes' AS boolean)", True),
        ("cast(0 AS boolean)", False),
        ("cast(true AS double)", 1.0),
        ("cast(12 AS string)", "12"),
        ("cast(true AS string)", "true"),
        ("cast('12.345' AS decimal(10,2))", D("12.35")),
        ("cast(2.345 AS decimal(10,2))", D("2.35")),
        ("cast('2020-02-03' AS date)", dt.date(2020, 2, 3)),
        ("cast(timestamp '2020-02-03 04:05:06.78' AS string)", "2020-02-03 04:05:06.78"),
        ("cast(timestamp '2020-02-03 00:00:00' AS string)", "2020-02-03 00:00:00"),
        ("cast(timestamp '1970-01-01 00:01:40.5' AS bigint)", 100),
        ("cast(timestamp '1970-01-01 00:01:40.5' AS double)", 100.5),
        ("cast(100 AS timestamp)", dt.datetime(1970, 1, 1, 0, 1, 40, tzinfo=dt.UTC)),
        ("cast(date '2020-02-03' AS timestamp)", dt.datetime(2020, 2, 3, tzinfo=dt.UTC)),
        ("cast(timestamp '2020-02-03 04:05:06' AS date)", dt.date(2020, 2, 3)),
    ],
)
def test_casts_read_what_can_be_read_and_give_null_for_the_rest(text, value):
    assert value_of(text)[0] == value


NUMBERS = pa.record_batch(
    {
        "d": pa.array([1e20, 1.005, -0.0, math.nan]),
        "p": pa.array([D("9.99"), D("-1.99"), None, D("0.01")], pa.decimal128(3, 2)),
        "z": pa.array([D(10**38 - 1), D(0), None, D(3)], pa.decimal128(38, 0)),
        "w": pa.array([D("4.4E-16"), D("1.5"), None, D("-2E-18")], pa.decimal128(38, 18)),
        "x": pa.array([b"\xff", "ä".encode(), None, b"\xc3"]),
        "ts": pa.array([1577836800_000_000, 0, None, 1577836800_000_001], INSTANT),
        "a": ["2020-01-01T10:11", "2020-01-01 10:11:12 +02:00", "2020", "10:11:12"],
        "s": ["abc", "O'Brien", None, "x"],
    }
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("s NOT LIKE 'a%'", [False, True, None, True]),
        ("s = 'O''Brien'", [False, True, None, False]),
        ("'a''b' 'c'", ["a'bc"] * 4),
        ('"say ""so"""', ['say "so"'] * 4),
        ("ts > '2020-01-01T00:00:00Z'", [False, False, None, True]),
        ("ts >= '2020-01-01T02:00:00+02:00'", [True, False, None, True]),
        ("ts < '2020'", [False, True, None, False]),
        ("cast(p AS int)", [9, -1, None, 0]),
        ("d % 0.3D", [math.fmod(1e20, 0.3), math.fmod(1.005, 0.3), -0.0, "nan"]),
        ("pmod(d, 0.3D)", [math.fmod(1e20, 0.3), math.fmod(1.005, 0.3), -0.0, "nan"]),
        ("7 / 3", [7 / 3] * 4),
        ("round(d, 2)", [1e20, 1.01, 0.0, "nan"]),
        ("round(0.285D, 2)", [0.29] * 4),
        ("round(9.99, 1)", [D("10.0")] * 4),
        ("ceil(9.99)", [D(10)] * 4),
        ("floor(-9.99)", [D(-10)] * 4),
        ("floor(d)", [2**63 - 1, 1, 0, 0]),
        ("w * 1.5", [D("7E-16"), D("2.2500000000000000"), None, D("0E-16")]),
        (
            "9.60 / cast('44254299683208720342926528' AS decimal(38,0))",
            [D("2.169280740791E-25")] * 4,
        ),
        ("w / w", [D("1.000000"), D("1.000000"), None, D("1.000000")]),
        ("z + 1", [None, D(1), None, D(4)]),
        ("z * z", [None, D(0), None, D(9)]),
        ("cast(x AS string)", ["\ufffd", "ä", None, "\ufffd"]),
        ("concat(x, x)", [b"\xff\xff", "ää".encode(), None, b"\xc3\xc3"]),
        ("cast(d AS string)", ["1.0E20", "1.005", "-0.0", "NaN"]),
        ("cast(d AS decimal(3,2))", [None, D("1.01"), D("0.00"), None]),
        ("d + 0.0D", [1e20, 1.005, 0.0, "nan"]),
        ("abs(null)", [None] * 4),
        ("- null", [None] * 4),
        ("null IN (1, 2)", [None] * 4),
        ("substring(s, 1, cast(null AS int))", [None] * 4),
    ],
)
def test_values_that_polars_alone_would_not_give(text, values):
    """D7."""
    assert [shown(value) for value in value_of(text, NUMBERS)] == [shown(v) for v in values]


def shown(value):
    """Tells 0.0 from -0.0, and finds NaN equal to itself."""
    return repr(value) if isinstance(value, float) and not math.isnan(value) else str(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (123456789.125, "1.23456789125E8"),
        (-12.5, "-12.5"),
        (100.0, "100.0"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value, text):
    """D7."""
    rows = pa.record_batch({"d": pa.array([value]), "f": pa.array([value], pa.float32())})

    assert value_of("cast(d AS string)", rows) == [text]
    if value == pa.scalar(value, pa.float32()).as_py():
        assert value_of("f || ''", rows) == [text]


INTS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(st.none() | INTS, st.none() | INTS), min_size=1, max_size=20))
def test_whole_numbers_divide_as_in_java(pairs):
    """D2: towards zero, and the remainder fits."""
    left, right = zip(*pairs, strict=True)
    rows = pa.record_batch({"x": pa.array(left, pa.int64()), "y": pa.array(right, pa.int64())})

    def defined(x, y):
        return x is not None and y not in {None, 0}

    assert value_of("x div y", rows) == [
        abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if defined(x, y) else None
        for x, y in pairs
    ]
    assert value_of("x % y", rows) == [
        int(math.copysign(abs(x) % abs(y), x)) if defined(x, y) else None for x, y in pairs
    ]


TRUTHS = st.sampled_from([True, False, None])


@given(TRUTHS, TRUTHS)
def test_logic_is_that_of_sql(p, q):
    rows = pa.record_batch({"p": pa.array([p], pa.bool_()), "q": pa.array([q], pa.bool_())})
    conjunction = False if False in (p, q) else None if None in (p, q) else True
    disjunction = True if True in (p, q) else None if None in (p, q) else False

    assert value_of("p AND q", rows) == [conjunction]
    assert value_of("p OR q", rows) == [disjunction]


@given(st.text(alphabet="abcä", max_size=6), st.integers(-8, 8), st.integers(-1, 8))
def test_substring_counts_characters_from_either_end(text, start, length):
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    rows = pa.record_batch({"s": [text]})

    expected = text[max(first, 0) : max(first + length, 0)]

    assert value_of(f"substring(s, {start}, {length})", rows) == [expected]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "aa + 1",
            (
                "expression 'aa + 1' cannot be used, at 'aa': there is no column 'aa'. "
                "Remedy: did you mean 'a'?"
            ),
        ),
        ("uper(s)", "there is no function 'uper'. Remedy: did you mean 'upper'?"),
        ("rand()", "there is no function 'rand'"),
        ("sum(a)", "sum is an aggregation. Remedy: use groupBy"),
        ("s + 1", "this is a string where a number is needed. Remedy: cast it"),
        ("a AND p", "this is a int where a boolean is needed. Remedy: cast it"),
        ("length(a)", "this is a int where a string is needed. Remedy: cast it"),
        ("s > 3", "string and int do not go together. Remedy: cast one of them"),
        ("coalesce(a, s)", "int and string do not go together"),
        ("a +", "is not readable as Spark SQL"),
        ("a; b", "is not readable as Spark SQL"),
        ("a FROM t", "is not readable as Spark SQL"),
        ("a IN (SELECT 1)", "a subquery cannot be streamed. Remedy: list the values"),
        ("st.y", "there is no field 'y'"),
        ("a.x", "a int has no field 'x'"),
        ("cast(st AS int)", "a struct<x: int64> cannot be cast to int"),
        ("cast(a AS array<int>)", "nothing can be cast to array<int>"),
        ("cast(a AS date)", "a int cannot be cast to date"),
        ("round(f, a)", "the number of places must be a literal"),
        ("floor(f, 1)", "use round"),
        ("s LIKE s", "the pattern of LIKE must be a literal"),
        ("f div 2", "div needs whole numbers, not double"),
        ("1.5 % 2", "there is no remainder of decimals"),
        ("pmod(a)", "pmod takes two numbers"),
        ("isnull(a, l)", "this function takes one value"),
        ("concat(s, of)", "cannot be written as a string"),
        ("99999999999999999999", "too large for a bigint"),
        ("of[0]", "expressions cannot do this. Remedy: use mapInArrow"),
        ("a BETWEEN SYMMETRIC 7 AND 0", "SYMMETRIC is not supported in BETWEEN"),
        ("cast(a AS string FORMAT 'x')", "FORMAT is not supported in"),
        ("round(f, 1, 2)", "TRUNCATE is not supported in ROUND"),
        ("length(s, s)", "BINARY is not supported in LENGTH"),
        ("s LIKE 'a!%' ESCAPE '!'", "expressions cannot do this"),
        ("s LIKE '\\\\a'", "a backslash in a pattern stands before %, _"),
        (
            "ts > 'yesterday'",
            "'yesterday' is no timestamp. Remedy: write it as '2020-12-31 23:59:59'",
        ),
        ("ts BETWEEN '2020' AND '10:11'", "'10:11' is no timestamp. Remedy: write it"),
        ("ms > '2020-01-01T00:00:00Z'", "timestamp_ntz and string do not go together"),
        ("concat(s, cast(s AS binary))", "binary and other values do not go together"),
        ("-cast(a AS decimal(38,0))", "Spark rounds a decimal(38,0) to 34 digits here"),
        ("cast(a AS timestamp_ntz)", "a int cannot be cast to timestamp_ntz"),
        ("substring(s, l)", "a position is an int, not a bigint. Remedy: cast it"),
        ("greatest(a)", "this function takes two values or more"),
        ("1e400", "too large for a double"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_piece_and_the_remedy(text, complaint):
    """U3: at the time of building, not of running."""
    with pytest.raises(JobRejected) as rejected:
        compiled(text, ROWS.schema)
    assert complaint in str(rejected.value)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_a_node_with_an_argument_that_its_rule_does_not_read_is_refused(kind):
    """U3, D7: an argument that has no effect would change what the expression means."""
    reads = RULES[kind].reads
    needed = {name: exp.Null() for name, is_needed in kind.arg_types.items() if is_needed}
    needed |= {"expressions": [exp.Null()]} if "expressions" in needed else {}
    needed |= {"to": exp.DataType.build("int")} if "to" in reads else {}
    for name in kind.arg_types:
        node = kind(**{name: exp.Null()} | needed)
        if name in reads:
            refuse_unread(node, reads)
        else:
            with pytest.raises(Misfit, match=f"{name.upper()} is not supported"):
                refuse_unread(node, reads)


def test_no_row_stops_an_expression():
    """U3: what has no value is null; an error would come back at every restart."""
    empty = NUMBERS.slice(0, 0)
    for text in ("z * z", "cast(x AS string)", "cast(a AS timestamp)", "d % 0", "1.5 + 2"):
        assert value_of(text, empty) == []
        assert len(value_of(text, NUMBERS)) == NUMBERS.num_rows


def test_a_refusal_lists_the_columns_that_there_are():
    with pytest.raises(JobRejected, match=r"columns: a, b"):
        compiled("c", pa.schema([("a", pa.int64()), ("b", pa.int64())]))


def test_a_name_that_fits_two_columns_but_for_its_case_is_refused():
    with pytest.raises(JobRejected, match=r"could be any of \['aB', 'AB'\]"):
        compiled("Ab", pa.schema([("aB", pa.int64()), ("AB", pa.int64())]))


def test_a_condition_must_be_one():
    with pytest.raises(JobRejected, match=r"not a boolean: it is a int. Remedy: compare it"):
        predicate("a + 1", ROWS.schema)


@pytest.mark.parametrize(
    ("text", "name"),
    [("a", "a"), ("a + 1 AS b", "b"), ("a + 1", "a + 1"), ("st.x", "x"), ("A", "a")],
)
def test_a_column_is_called_by_its_alias_its_name_or_its_text(text, name):
    assert compiled(text, ROWS.schema).name == name


def test_numbers_are_not_copied_on_their_way_into_polars_and_back():
    """D3."""
    rows = pa.record_batch({"x": pa.array(range(1000), pa.int64())})

    (array,) = evaluate([compiled("x", rows.schema)], rows)

    assert array.buffers()[1].address == rows.column("x").buffers()[1].address
