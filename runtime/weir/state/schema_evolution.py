"""Judges whether rows that were kept under one declaration can be read under another (spec S12).

A field may be added if it may be null (old rows have null there), dropped (what it held is gone for
good with the next checkpoint), and a number may be widened where every old value has its exact
equal among the new: tinyint, smallint, int and bigint in this order, float to double, integers that
a float or double holds exactly (so int becomes double, and bigint does not), and decimals with room
for all digits. The same holds inside structs, arrays and the values of maps. A map's user keys may
only be widened, because two of them must not become one. Anything else is refused, field by field
with a reason for each.
"""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyarrow import types as kinds

from weir.dataflow.types import written
from weir.state.state_columns import EXPIRES_AT
from weir.state.state_schema import StateSchema
from weir.wire.struct_keys import nullable_inside

VALUE, USER_KEY = "value.", "user_key."

_EXACT_BITS = {pa.float32(): 24, pa.float64(): 53}
"""Integers of so many bits are held exactly."""

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""The decimal digits of an integer of so many bits."""


def incompatibilities(stored: StateSchema, declared: StateSchema) -> list[str]:
    """Why the stored rows cannot be read as declared; empty if they can."""
    if stored.kind != declared.kind:
        return [f"it was a {stored.kind} state and is a {declared.kind} state now"]
    key_then, key_now = _listed(stored.keys), _listed(declared.keys)
    if key_then != key_now:
        return [f"its key was ({key_then}) and is ({key_now}) now"]
    old, new = _by_name(stored.fields), _by_name(declared.fields)
    found = [*_changed(old, new), *_added(old, new)]
    if not stored.is_layer:
        found += _tightened(old, new)
    dropped = [name for name in old if name not in new and name.startswith(USER_KEY)]
    return [*found, *(f"{_shown(name)} is gone, and keys could become one" for name in dropped)]


def is_unchanged(stored: StateSchema, declared: StateSchema) -> bool:
    """Whether new rows can be laid over the stored ones, file over file."""
    return _types(stored.fields) == _types(declared.fields)


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every number of the one type has its exact equal in the other."""
    if old == new:
        return True
    if kinds.is_signed_integer(old):
        return _holds_integers(new, old.bit_width)
    if kinds.is_float32(old):
        return bool(kinds.is_float64(new))
    if kinds.is_decimal(old) and kinds.is_decimal(new):
        whole_digits = new.precision - new.scale >= old.precision - old.scale
        return bool(new.scale >= old.scale and whole_digits)
    return False


def _holds_integers(kind: pa.DataType, bits: int) -> bool:
    if kinds.is_signed_integer(kind):
        return bool(kind.bit_width >= bits)
    if kinds.is_decimal(kind):
        return bool(kind.precision - kind.scale >= _DIGITS[bits])
    return _EXACT_BITS.get(kind, 0) >= bits


def _changed(old: Mapping[str, pa.Field], new: Mapping[str, pa.Field]) -> Iterator[str]:
    for name in old:
        if name in new:
            yield from _misfits(_shown(name), old[name], new[name])


def _tightened(old: Mapping[str, pa.Field], new: Mapping[str, pa.Field]) -> Iterator[str]:
    for name in old:
        if not name.startswith((VALUE, USER_KEY)):
            continue
        if name in new and old[name].nullable and not new[name].nullable:
            yield f"{_shown(name)} could be null and is NOT NULL now"


def _added(old: Mapping[str, pa.Field], new: Mapping[str, pa.Field]) -> Iterator[str]:
    for name, field in new.items():
        if name in old:
            continue
        if name.startswith(USER_KEY):
            yield f"{_shown(name)} is new, and keys that were stored have none"
        elif not field.nullable:
            yield f"{_shown(name)} is new and NOT NULL, and rows that were stored have no value"


def _misfits(where: str, then: pa.Field, now: pa.Field) -> Iterator[str]:
    """What does not fit in one field, with everything inside it."""
    old, new = then.type, now.type
    if old == new or widens(old, new):
        return
    if kinds.is_struct(old) and kinds.is_struct(new):
        yield from _struct_misfits(where, old, new)
    elif _is_list(old) and _is_list(new):
        yield from _misfits(f"an element of {where}", old.value_field, new.value_field)
    elif kinds.is_map(old) and kinds.is_map(new):
        yield from _misfits(f"a key in {where}", old.key_field, new.key_field)
        yield from _misfits(f"a value in {where}", old.item_field, new.item_field)
    elif not _is_same_text(old, new):
        yield f"{where} was {written(old)} and is {written(new)} now{_because(old, new)}"


def _struct_misfits(where: str, old: pa.StructType, new: pa.StructType) -> Iterator[str]:
    before = {field.name: field for field in old}
    for field in new:
        inside = f"{where}, part {field.name!r}"
        if field.name in before:
            yield from _misfits(inside, before[field.name], field)
        elif not field.nullable:
            yield f"{inside} is new and NOT NULL, and rows that were stored have no value"


def _because(old: pa.DataType, new: pa.DataType) -> str:
    are_numbers = all(
        kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)
        for kind in (old, new)
    )
    return ", which cannot hold every number of it" if are_numbers else ""


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind))


def _is_same_text(old: pa.DataType, new: pa.DataType) -> bool:
    """Arrow has two widths of texts and binaries, and Spark has one of each."""
    texts = (kinds.is_string, kinds.is_large_string)
    binaries = (kinds.is_binary, kinds.is_large_binary)
    return any(
        any(of(old) for of in several) and any(of(new) for of in several)
        for several in (texts, binaries)
    )


def _by_name(fields: Iterable[pa.Field]) -> dict[str, pa.Field]:
    """When rows expire is no part of what they are: an age limit may come and go."""
    return {field.name: field for field in fields if field.name != EXPIRES_AT.name}


def _types(fields: Iterable[pa.Field]) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in fields}


def _listed(fields: Iterable[pa.Field]) -> str:
    return ", ".join(f"{field.name} {written(nullable_inside(field.type))}" for field in fields)


def _shown(name: str) -> str:
    if name.startswith(USER_KEY):
        return f"user key field {name.removeprefix(USER_KEY)!r}"
    return f"field {name.removeprefix(VALUE)!r}"
