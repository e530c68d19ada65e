"""Rows of every type that expressions know: the edge cases of each, then random values."""

import datetime as dt
import decimal
import math
import random
import struct

import pyarrow as pa

D = decimal.Decimal
_ROOMY = decimal.Context(prec=60)

SCHEMA = pa.schema(
    {
        "t": pa.int8(),
        "h": pa.int16(),
        "i": pa.int32(),
        "j": pa.int32(),
        "l": pa.int64(),
        "m": pa.int64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "e": pa.float64(),
        "k": pa.float64(),
        "p": pa.decimal128(10, 2),
        "q": pa.decimal128(3, 2),
        "r": pa.decimal128(7, 4),
        "w": pa.decimal128(38, 18),
        "z": pa.decimal128(38, 0),
        "s": pa.string(),
        "u": pa.string(),
        "g": pa.string(),
        "a": pa.string(),
        "b": pa.bool_(),
        "c": pa.bool_(),
        "x": pa.binary(),
        "y": pa.binary(),
        "da": pa.date32(),
        "db": pa.date32(),
        "ts": pa.timestamp("us", tz="UTC"),
        "tt": pa.timestamp("us", tz="UTC"),
        "n": pa.timestamp("us"),
    }
)
"""``g`` holds numbers as text, ``a`` dates and times, ``k`` doubles that are near a rounding."""

_DOUBLES = (
    *(0.0, -0.0, 1.0, -1.5, 2.5, 0.5, 0.1, 0.3, 1e20, 1e7, 9999999.0, 1e-3, 9.99e-4, 123456789.125),
    *(math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, 9.223372036854775807e18),
    *(2.0**31, -(2.0**31) - 1, 2.0**63, -(2.0**63), 2e-3, 4.35, -0.5, 1.005),
)
_HALVES = (1.005, 0.285, 2.675, 1.115, -1.005, 0.125, -0.375, 1e15 + 0.5, 4.5, 5.5, 1e16, 0.045)
_TEXTS = (
    *("", "abc", "ABC", "a%c", "a_c", "a\\c", "x%", "O'Brien", "äöü", "a\nb", " pad ", "\t", "İ"),
    *("straße", "日本語", "𝄞x", "aXb", "true"),
)
_NUMBERS = (
    *(
        "12",
        " 12 ",
        "-7",
        "+5",
        "1.5",
        "1e3",
        "1E-2",
        "x",
        "",
        "NaN",
        "Infinity",
        "-Infinity",
        "inf",
    ),
    *(
        "99999999999",
        "0.125",
        "12.345",
        ".5",
        "5.",
        "1_000",
        "0x10",
        "1d",
        "2f",
        "true",
        "T",
        "yes",
    ),
    *("9223372036854775807", "9223372036854775808", "123456789012345678901234567890.12", "--1"),
    *("99999999999999999999999999999999999999", "999999999999999999999999999999999999999", "- 1"),
    *("1e40", "00012", "12345678.995", "-0.0", "3L", "1e400", "1.7976931348623157e309", "128"),
)
_TIMES = (
    *("2020-01-01", "2020-01-01 10:11:12", "2020-01-01T10:11:12", "2020-01-01T10:11:12Z"),
    *(
        "2020-01-01 10:11:12.123456",
        "2020-01-01 10:11:12.1",
        "2020-01-01T10:11",
        "2020-01-01 10:11",
    ),
    *("2020-01-01T00:00:00+02:00", "2020-01-01 10:11:12.123456789", "2020-01", "2020", "x", ""),
    *(
        "2020-1-2",
        "2020-13-01",
        "2020-02-30",
        "2020-01-01T",
        "2020-01-01 ",
        " 2020-01-01 01:02:03 ",
    ),
    *("2020-01-01 25:00:00", "2020-01-01 10:11:12 UTC", "2020-01-01T10:11:12-0330"),
    *("2020-01-01 1:2:3", "2020-01-01 10:11:12Europe/Berlin", "2020-01-01 10", "-0001-1-1"),
    *(
        "2020-01-01T10:11:12+5",
        "2020-01-01 10:11:12.",
        "1969-12-31 23:59:59.999999",
        "epoch",
        "now",
    ),
    *(
        "2020-01-01 10:11:60",
        "0001-01-01",
        "9999-12-31 23:59:59",
        "2020-1-1 1:1",
        "20200101",
        "today",
    ),
    *("2020-01-01 10:11:12+02:00", "2020-01-01 10:11:12 +2", "2020-01-01T10:11:12z", "2020-12-31x"),
)
_INSTANTS = (
    0,
    1,
    -1,
    1_577_836_800_000_000,
    123_456_000,
    -62_135_596_800_000_000,
    10**15 + 120_000,
)
_BYTES = (
    b"",
    b"abc",
    b"\xff\xfe",
    b"O'B",
    "ä".encode(),
    b"\xc3",
    b"\x00",
    b"a\xf0\x9d\x84\x9e",
    b"\xe2\x82",
)


def _whole(bits: int) -> tuple[int, ...]:
    return (0, 1, -1, 7, -7, 3, -3, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 100, 10)


def _decimals(precision: int, scale: int) -> tuple[D, ...]:
    most = D(10**precision - 1).scaleb(-scale, _ROOMY)
    texts = (
        *("0", "1", "-1", "0.5", "-0.5", "1.5", "2.25", "-7.35", "0.01", "-0.99", "3", "9.99"),
        *("0.05", "-0.05", "2.5", "-2.5", "1.005", "33", "100.1", "-12.34"),
    )
    inside = [D(text) for text in texts if abs(D(text)) <= most]
    step = D(1).scaleb(-scale)
    return (
        *(one.quantize(step, context=_ROOMY) for one in inside),
        most,
        most.copy_negate(),
    )


def _edges(kind: pa.DataType, name: str) -> tuple[object, ...]:
    named: dict[str, tuple[object, ...]] = {"g": _NUMBERS, "a": _TIMES, "k": _HALVES}
    if name in named:
        return named[name]
    if pa.types.is_integer(kind):
        return _whole(kind.bit_width)
    if pa.types.is_float32(kind):
        return tuple(struct.unpack("f", struct.pack("f", x))[0] for x in _DOUBLES if _fits(x))
    if pa.types.is_decimal(kind):
        return _decimals(kind.precision, kind.scale)
    return {
        pa.float64(): _DOUBLES,
        pa.string(): _TEXTS,
        pa.bool_(): (True, False),
        pa.binary(): _BYTES,
        pa.date32(): (
            dt.date(1970, 1, 1),
            dt.date(2020, 1, 1),
            dt.date(1, 1, 1),
            dt.date(1969, 12, 31),
        ),
    }.get(kind, _INSTANTS)


def _fits(number: float) -> bool:
    return math.isinf(number) or math.isnan(number) or abs(number) < 3.4e38


def rows(chance: random.Random, extra: int) -> pa.RecordBatch:
    """Every awkward value at least once, some nulls, then so many random rows."""
    columns = {}
    size = max(len(_edges(field.type, field.name)) for field in SCHEMA) + 1 + extra
    for field in SCHEMA:
        edges = _edges(field.type, field.name)
        # Each column is shuffled, so that the awkward values of two columns meet by chance.
        values = [*edges, None, *(_drawn(field, edges, chance) for _ in range(size))][:size]
        chance.shuffle(values)
        columns[field.name] = pa.array(values, field.type)
    return pa.record_batch(columns, schema=SCHEMA)


def _drawn(field: pa.Field, edges: tuple[object, ...], chance: random.Random) -> object:
    if chance.random() < 0.1:
        return None
    is_chosen = field.name in {"g", "a"} or chance.random() < 0.4
    drawn = None if is_chosen else _random_value(field, chance)
    return chance.choice(edges) if drawn is None else drawn


def _random_value(field: pa.Field, chance: random.Random) -> object:
    """Of this type; None for a type of which every value is an edge case."""
    kind = field.type
    if pa.types.is_integer(kind):
        return chance.randrange(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1))
    if field.name == "k":
        return round(chance.uniform(-100, 100), 3)
    if pa.types.is_floating(kind):
        small, wide = (
            chance.uniform(-1e3, 1e3),
            chance.uniform(-1, 1) * 10 ** chance.randrange(-20, 20),
        )
        return pa.scalar(chance.choice([small, wide]), kind).as_py()
    if pa.types.is_decimal(kind):
        digits = chance.randint(1, kind.precision)
        return D(chance.randrange(-(10**digits) + 1, 10**digits)).scaleb(-kind.scale, _ROOMY)
    if pa.types.is_timestamp(kind):
        return chance.randrange(-(10**15), 2 * 10**15)
    return _random_text(kind, chance)


def _random_text(kind: pa.DataType, chance: random.Random) -> object:
    if pa.types.is_string(kind):
        return "".join(chance.choice("abcABC%_\\'ä𝄞 ") for _ in range(chance.randint(0, 6)))
    if pa.types.is_binary(kind):
        return chance.randbytes(chance.randint(0, 4))
    return None
