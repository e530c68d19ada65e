"""Turns what user code hands over into immutable values of a declared type, and back.

State must not change behind a snapshot's back, and a snapshot's columns must not meet a value that
they cannot hold an hour after it was stored. So a value is checked when it is put into a state:
scalars of the declared type are kept as they are, close relatives (NumPy's scalars, an int for a
double) are converted, arrays, maps and structs become tuples all the way down, and anything else
is refused while the guilty line of user code is still on the stack.

Naive datetimes stand for UTC where the declared type is an instant. Instants come back with their
zone, or naive if the caller wants them as in PySpark.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from weir.dataflow.types import written
from weir.errors import JobRejected

Row: TypeAlias = tuple[object, ...]
Conversion: TypeAlias = Callable[[Any], object]
Structs: TypeAlias = Callable[[Sequence[str]], Callable[[Iterable[object]], object]]
"""Makes, of a struct's field names, what turns its values into the user's kind of row."""

_REFUSALS = (TypeError, ValueError, ArithmeticError, NotImplementedError)
_SHOWN = 80


def plain_tuples(names: Sequence[str]) -> Callable[[Iterable[object]], object]:
    """For callers that need no names in a struct."""
    del names
    return tuple


class RowType:
    """The declared fields of a state's value, or of a map's user key."""

    __slots__ = ("_freezers", "_what", "freeze", "schema", "thaw")

    def __init__(
        self,
        what: str,
        schema: pa.Schema,
        structs: Structs = plain_tuples,
        *,
        naive_instants: bool = False,
    ) -> None:
        self.schema = schema
        self._what = what
        self._freezers = tuple(_freezer(what, field) for field in schema)
        self.freeze: Callable[[Any], Row] = (
            self._freeze_one() if len(schema) == 1 else self._freeze_any
        )
        self.thaw = _thaw_row(schema, ConversionSettings(structs, naive_instants))
        """Makes the user's own copy of a row; None where rows are immutable as they are."""

    def _freeze_one(self) -> Callable[[Any], Row]:
        """The common case, without a loop."""
        (freezer,) = self._freezers
        freeze_any = self._freeze_any

        def freeze(row: Any) -> Row:  # noqa: ANN401 - any value of the user
            if type(row) is tuple and len(row) == 1:
                return (freezer(row[0]),)
            return (freezer(row),) if isinstance(row, str) else freeze_any(row)

        return freeze

    def _freeze_any(self, row: Any) -> Row:  # noqa: ANN401 - any value of the user
        if not isinstance(row, tuple | list) or len(row) != len(self._freezers):
            names = ", ".join(self.schema.names)
            raise TypeError(f"{self._what} takes a tuple of ({names}), not {_shown(row)}")
        return tuple([freeze(value) for freeze, value in zip(self._freezers, row, strict=True)])


def _freezer(what: str, field: pa.Field) -> Conversion:
    exact = _EXACT.get(field.type)
    convert = _conversion(what, field)
    name = f"{what}: field {field.name!r} is {written(field.type)}"
    if pa.types.is_integer(field.type):
        bits = field.type.bit_width
        return _integer_freezer(name, field, range(-(1 << bits - 1), 1 << bits - 1))

    def freeze(value: object) -> object:
        if type(value) is exact:
            return value
        if value is None and field.nullable:
            return None
        try:
            return convert(value)
        except _REFUSALS as error:
            raise TypeError(f"{name} and cannot hold {_shown(value)}") from error

    return freeze


def _integer_freezer(name: str, field: pa.Field, bounds: range) -> Conversion:
    low, high, nullable = bounds[0], bounds[-1], field.nullable

    def freeze(value: Any) -> object:  # noqa: ANN401 - any value of the user
        if type(value) is int and low <= value <= high:
            return value
        if value is None and nullable:
            return None
        if hasattr(value, "__index__") and not isinstance(value, bool):
            number = operator.index(value)
            if low <= number <= high:
                return number
        raise TypeError(f"{name} and cannot hold {_shown(value)}")

    return freeze


def _conversion(what: str, field: pa.Field) -> Conversion:
    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_conversion(_freezer(what, kind.value_field))
    if pa.types.is_map(kind):
        return _map_conversion(_freezer(what, kind.key_field), _freezer(what, kind.item_field))
    if pa.types.is_struct(kind):
        return _struct_conversion({part.name: _freezer(what, part) for part in kind})
    for is_kind, convert in _CONVERSIONS:
        if is_kind(kind):
            return convert
    if pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz == "UTC":
        return _instant
    if any(is_kind(kind) for is_kind in _LEFT_TO_ARROW):
        return lambda value: pa.scalar(value, kind).as_py()
    raise JobRejected(
        f"{what}, field {field.name!r}",
        f"type {kind} cannot be kept in state",
        "use numbers, booleans, strings, binaries, dates, timestamps, decimals, or arrays, maps "
        "and structs of these",
    )


def _list_conversion(freeze: Conversion) -> Conversion:
    def convert(values: Any) -> object:  # noqa: ANN401 - any value of the user
        if not isinstance(values, list | tuple | np.ndarray):
            raise TypeError(values)
        return tuple(map(freeze, values))

    return convert


def _map_conversion(freeze_key: Conversion, freeze_item: Conversion) -> Conversion:
    def convert(entries: Any) -> object:  # noqa: ANN401 - any value of the user
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        return tuple([(freeze_key(key), freeze_item(item)) for key, item in pairs])

    return convert


def _struct_conversion(freezers: Mapping[str, Conversion]) -> Conversion:
    def convert(struct: Any) -> object:  # noqa: ANN401 - any value of the user
        if isinstance(struct, Mapping):
            return tuple([freeze(struct.get(name)) for name, freeze in freezers.items()])
        if not isinstance(struct, tuple | list):
            raise TypeError(struct)
        pairs = zip(freezers.values(), struct, strict=True)
        return tuple([freeze(value) for freeze, value in pairs])

    return convert


def _number(value: Any) -> float:  # noqa: ANN401 - any value of the user
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return float(value)
    raise TypeError(value)


def _single(value: Any) -> float:  # noqa: ANN401 - any value of the user
    return float(np.float32(_number(value)))


def _text(value: Any) -> str:  # noqa: ANN401 - any value of the user
    if not isinstance(value, str):
        raise TypeError(value)
    text = str(value)
    text.encode()
    return text


def _binary(value: Any) -> bytes:  # noqa: ANN401 - any value of the user
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(value)


def _truth(value: Any) -> bool:  # noqa: ANN401 - any value of the user
    if isinstance(value, np.bool_):
        return bool(value)
    raise TypeError(value)


def _instant(value: Any) -> datetime:  # noqa: ANN401 - any value of the user
    if type(value) is datetime:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    found: datetime = pa.scalar(value, pa.timestamp("us", tz="UTC")).as_py()
    return found


class ConversionSettings(NamedTuple):
    """How the user wants values back."""

    structs: Structs
    naive_instants: bool


def _thaw_row(schema: pa.Schema, how: ConversionSettings) -> Callable[[Row], Row] | None:
    thaws = [_thaw(field.type, how) for field in schema]
    if not any(thaws):
        return None
    pairs = list(enumerate(thaws))
    return lambda row: tuple([thaw(row[at]) if thaw else row[at] for at, thaw in pairs])


def _thaw(kind: pa.DataType, how: ConversionSettings) -> Conversion | None:
    """How the user's copy of a nested value is made; None where values are immutable."""
    if how.naive_instants and pa.types.is_timestamp(kind) and kind.tz is not None:
        return _naive
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        part = _thaw(kind.value_type, how) or _as_it_is
        return lambda values: None if values is None else [part(value) for value in values]
    if pa.types.is_map(kind):
        key = _thaw(kind.key_type, how) or _as_it_is
        item = _thaw(kind.item_type, how) or _as_it_is
        return lambda pairs: None if pairs is None else {key(k): item(v) for k, v in pairs}
    if pa.types.is_struct(kind):
        parts = [_thaw(field.type, how) or _as_it_is for field in kind]
        make = how.structs([field.name for field in kind])
        return lambda values: (
            None if values is None else make([p(v) for p, v in zip(parts, values, strict=True)])
        )
    return None


def _naive(instant: Any) -> object:  # noqa: ANN401 - a datetime or nothing
    return None if instant is None else instant.replace(tzinfo=None)


def _as_it_is(value: object) -> object:
    return value


def _shown(value: object) -> str:
    text = repr(value)
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{cut} ({type(value).__name__})"


_EXACT: dict[pa.DataType, type] = {
    pa.float64(): float,
    pa.bool_(): bool,
    pa.binary(): bytes,
    pa.large_binary(): bytes,
    pa.date32(): date,
}
"""What is kept as it is, if it is exactly of this type and not of a subclass."""

_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Conversion], ...] = (
    (pa.types.is_signed_integer, operator.index),
    (pa.types.is_float64, _number),
    (pa.types.is_float32, _single),
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_binary, _binary),
    (pa.types.is_large_binary, _binary),
    (pa.types.is_boolean, _truth),
)

_LEFT_TO_ARROW = (
    pa.types.is_date32,
    pa.types.is_timestamp,
    pa.types.is_decimal128,
    pa.types.is_duration,
    pa.types.is_time,
)
