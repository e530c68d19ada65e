"""Writes the core's values as JSON, and reads them back as the same values.

One form serves the control link, the job's log and the manifests, so that a person can read each of
them and nothing from a network is unpickled. The declared type of a field determines its form; the
name of a class is written only where the declaration leaves it open: in a union of
classes, in ``object``, and at the top. Only classes of the catalogue can be named, and only frozen
values are in it: reading runs no code but their constructors.

A field that has a default may be missing, so what an older release wrote stays readable (spec S8).
An unknown field is refused: ignoring it could lose state.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from math import isfinite
from types import GenericAlias, ModuleType, NoneType, UnionType
from typing import (
    NamedTuple,
    NewType,
    NoReturn,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from weir.core import (
    attempt,
    barriers,
    enumerator,
    ids,
    job_master,
    lifecycle,
    log_entries,
    reasons,
    rescale,
    restarts,
    snapshots,
)
from weir.core.coordinator import actions, events

TAG = "$"
"""The key that names a class. No field can have this name."""

VALUE = "value"
"""The key next to the tag of a value that has no fields."""

T = TypeVar("T")


class Undecodable(ValueError):
    """The JSON does not describe a value that is expected there."""


class Unencodable(TypeError):
    """The value has no JSON form: its class is not in the catalogue."""


Encode = Callable[[object], object]
Decode = Callable[[object], object]


class _Form(NamedTuple):
    """How the values of one declared type are written and read."""

    encode: Encode
    decode: Decode


def to_json(value: object) -> object:
    """What ``json`` can write. The value's class is named at the top."""
    return _encode_open(value)


@overload
def from_json(data: object, expected: type[T]) -> T: ...
@overload
def from_json(data: object, expected: UnionType | GenericAlias) -> object: ...
def from_json(data: object, expected: object) -> object:
    """The value, which is of the expected class or of one of a union's classes."""
    try:
        return _form(expected).decode(data)
    except RecursionError:
        raise Undecodable("the value is nested too deeply") from None


def dumps(value: object) -> bytes:
    return json.dumps(to_json(value), separators=(",", ":"), allow_nan=False).encode()


def loads(data: bytes) -> object:
    """The value of the catalogue that these bytes encode."""
    try:
        parsed = _PARSER.decode(data.decode())
    except RecursionError:
        raise Undecodable("the JSON is nested too deeply") from None
    except ValueError as problem:
        raise Undecodable(f"this is not JSON: {problem}") from problem
    return from_json(parsed, object)


def register(*classes: type) -> None:
    """Let these frozen dataclasses, named tuples and StrEnums be named in messages."""
    for cls in classes:
        name = _written_name(cls)
        assert _is_value_class(cls), f"{name} is neither frozen dataclass, named tuple nor StrEnum"
        assert _CATALOGUE.get(name, cls) is cls, f"two classes of the catalogue are called {name}"
        _CATALOGUE[name] = cls
        form = _boxed(name, _form(cls)) if issubclass(cls, StrEnum) else _tagged(cls)
        _ENCODERS[cls], _DECODERS[name] = form


def register_as(name: str, cls: type, **fields: str) -> None:
    """Register a class that is written under another name, and fields by their written names.

    The JSON form keeps the names it was first written with when a class or a field is renamed.
    """
    _WRITTEN_NAMES[cls] = name
    _WRITTEN_FIELDS[cls] = fields
    register(cls)


def omit_default(cls: type, *names: str) -> None:
    """Leave these fields out where they have their default, as a release without them wrote it."""
    if is_dataclass(cls):
        defaults = {field.name: field.default for field in fields(cls)}
    else:
        defaults = cls._field_defaults  # type: ignore[attr-defined]  # a named tuple
    _OMITTED[cls] = {name: defaults[name] for name in names}


def _written_name(cls: type) -> str:
    return _WRITTEN_NAMES.get(cls, cls.__name__)


# One form for each declared type


@cache
def _form(declared: object) -> _Form:
    if isinstance(declared, NewType):
        return _form(declared.__supertype__)
    if declared in _PLAIN:
        return _PLAIN[declared]
    origin, args = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return _union_form(args)
    if origin is tuple:
        return _tuple_form(args)
    if origin in (Mapping, dict):
        return _mapping_form(*args)
    assert isinstance(declared, type), f"{declared} has no JSON form"
    assert _is_value_class(declared), f"{declared.__name__} has no JSON form"
    return _enum_form(declared) if issubclass(declared, StrEnum) else _class_form(declared)


def _plain_form(cls: type) -> _Form:
    def decode(data: object) -> object:
        return data if type(data) is cls else _refuse(cls.__name__, data)

    return _Form(_itself, decode)


def _itself(value: object) -> object:
    return value


def _encode_float(value: object) -> object:
    """JSON has no infinity."""
    assert isinstance(value, float | int), f"{value!r} is not a number"
    return value if isfinite(value) else repr(value)


def _decode_float(data: object) -> object:
    if type(data) is float or type(data) is int:
        return data
    return float(data) if data in ("inf", "-inf", "nan") else _refuse("float", data)


def _encode_bytes(value: object) -> object:
    assert isinstance(value, bytes), f"{value!r} is not bytes"
    return b64encode(value).decode()


def _decode_bytes(data: object) -> object:
    if not isinstance(data, str):
        return _refuse("base64", data)
    try:
        return b64decode(data, validate=True)
    except ValueError:
        return _refuse("base64", data)


def _union_form(members: tuple[object, ...]) -> _Form:
    """Only a choice between classes needs a tag; between one class and None, null is enough."""
    classes = [member for member in members if member is not NoneType]
    if len(classes) == 1:
        return _optional_form(_form(classes[0]))
    expected = tuple(_runtime_class(member) for member in members)
    names = " | ".join(cls.__name__ for cls in expected)

    def decode(data: object) -> object:
        value = _decode_open(data)
        return value if isinstance(value, expected) else _refuse(names, data)

    return _Form(_encode_open, decode)


def _optional_form(form: _Form) -> _Form:
    return _Form(
        lambda value: None if value is None else form.encode(value),
        lambda data: None if data is None else form.decode(data),
    )


def _runtime_class(declared: object) -> type:
    if isinstance(declared, NewType):
        return _runtime_class(declared.__supertype__)
    return cast("type", get_origin(declared) or declared)


def _tuple_form(args: tuple[object, ...]) -> _Form:
    if len(args) == 2 and args[1] is Ellipsis:  # noqa: PLR2004  # tuple[item, ...]
        return _series_form(_form(args[0]))
    forms = tuple(_form(arg) for arg in args)

    def encode(value: object) -> object:
        items = cast("tuple[object, ...]", value)
        return [form.encode(item) for form, item in zip(forms, items, strict=True)]

    def decode(data: object) -> object:
        if not isinstance(data, list) or len(data) != len(forms):
            return _refuse(f"a list of {len(forms)}", data)
        return tuple(form.decode(item) for form, item in zip(forms, data, strict=True))

    return _Form(encode, decode)


def _series_form(item: _Form) -> _Form:
    def encode(value: object) -> object:
        return [item.encode(each) for each in cast("Iterable[object]", value)]

    def decode(data: object) -> object:
        if not isinstance(data, list):
            return _refuse("a list", data)
        return tuple(item.decode(each) for each in data)

    return _Form(encode, decode)


def _mapping_form(key: object, value: object) -> _Form:
    """A list of pairs, because only strings can be keys in JSON."""
    pairs = _series_form(_tuple_form((key, value)))

    def encode(mapping: object) -> object:
        return pairs.encode(cast("Mapping[object, object]", mapping).items())

    def decode(data: object) -> object:
        try:
            return dict(cast("Iterable[tuple[object, object]]", pairs.decode(data)))
        except TypeError:
            return _refuse("a list of pairs with plain keys", data)

    return _Form(encode, decode)


def _enum_form(cls: type[StrEnum]) -> _Form:
    def decode(data: object) -> object:
        try:
            return cls(cast("str", data))
        except ValueError:
            return _refuse(cls.__name__, data)

    return _Form(lambda member: cast("StrEnum", member).value, decode)


# Classes with fields


class _Shape(NamedTuple):
    """The fields of a class, looked up once; the keys of ``decoders`` are the written names."""

    encoders: tuple[tuple[str, str, Encode], ...]
    decoders: dict[str, tuple[str, Decode]]
    required: frozenset[str]


@cache
def _shape(cls: type) -> _Shape:
    hints = get_type_hints(cls)
    forms = {name: _form(hints[name]) for name in _field_names(cls)}
    renamed = _WRITTEN_FIELDS.get(cls, {})
    written = {name: renamed.get(name, name) for name in forms}
    return _Shape(
        tuple((name, written[name], form.encode) for name, form in forms.items()),
        {written[name]: (name, form.decode) for name, form in forms.items()},
        frozenset(written[name] for name in _required(cls)),
    )


def _field_names(cls: type) -> tuple[str, ...]:
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls))
    return cast("tuple[str, ...]", cls._fields)  # type: ignore[attr-defined]  # a named tuple


def _required(cls: type) -> tuple[str, ...]:
    if is_dataclass(cls):
        return tuple(
            field.name
            for field in fields(cls)
            if field.default is MISSING and field.default_factory is MISSING
        )
    defaults = cls._field_defaults  # type: ignore[attr-defined]  # a named tuple
    return tuple(name for name in _field_names(cls) if name not in defaults)


def _class_form(cls: type) -> _Form:
    """The shape is looked up when it is needed: a class may refer to itself."""

    def encode(value: object) -> object:
        encoders = _shape(cls).encoders
        given = {written: encode(getattr(value, name)) for name, written, encode in encoders}
        for name, default in _OMITTED.get(cls, {}).items():
            if getattr(value, name) == default:
                del given[name]
        return given

    return _Form(encode, lambda data: _decode_fields(cls, data))


def _decode_fields(cls: type, data: object) -> object:
    if not isinstance(data, dict):
        return _refuse(cls.__name__, data)
    _, decoders, required = _shape(cls)
    given: dict[str, object] = {}
    for key, item in data.items():
        if key in decoders:
            name, decode = decoders[key]
            given[name] = _decode_field(cls, key, decode, item)
        elif key != TAG:
            raise Undecodable(f"{cls.__name__} has no field {key!r}")
        elif item != _written_name(cls):
            return _refuse(cls.__name__, data)
    if len(given) < len(decoders) and (missing := required - data.keys()):
        raise Undecodable(f"{cls.__name__} needs a field {min(missing)!r}")
    return cls(**given)


def _decode_field(cls: type, name: str, decode: Decode, item: object) -> object:
    try:
        return decode(item)
    except Undecodable as problem:
        raise Undecodable(f"{cls.__name__}.{name}: {problem}") from None


# Where the declaration leaves open what comes


def _encode_open(value: object) -> object:
    encode = _ENCODERS.get(type(value))
    if encode is None:
        raise Unencodable(
            f"{type(value).__name__} has no JSON form: use plain values and tuples, "
            "or register the class"
        )
    return encode(value)


def _decode_open(data: object) -> object:
    if isinstance(data, list):
        return tuple(_decode_open(item) for item in data)
    if not isinstance(data, dict):
        return data
    name = data.get(TAG)
    decode = _DECODERS.get(name) if isinstance(name, str) else None
    if decode is None:
        raise Undecodable(f"no class of the catalogue is called {name!r}")
    return decode(data)


def _encode_open_float(value: object) -> object:
    encoded = _encode_float(value)
    return encoded if isinstance(encoded, float) else {TAG: "float", VALUE: encoded}


def _tagged(cls: type) -> _Form:
    form, name = _form(cls), _written_name(cls)
    _shape(cls)  # so that a field without a JSON form is noticed now
    return _Form(
        lambda value: {TAG: name, **cast("dict[str, object]", form.encode(value))}, form.decode
    )


def _boxed(name: str, form: _Form) -> _Form:
    """For what has no fields."""

    def decode(data: object) -> object:
        box = cast("dict[str, object]", data)
        if box.keys() != {TAG, VALUE}:
            raise Undecodable(f"{name} needs a field {VALUE!r} and no other")
        return form.decode(box[VALUE])

    return _Form(lambda value: {TAG: name, VALUE: form.encode(value)}, decode)


def _refuse(expected: str, found: object) -> NoReturn:
    shown: object = type(found).__name__
    if isinstance(found, dict):
        shown = found.get(TAG, "an object")
    elif isinstance(found, str | int | float | None):
        shown = json.dumps(found)[:_SHOWN]
    raise Undecodable(f"expected {expected}, found {shown}")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")


_SHOWN = 60
_PARSER = json.JSONDecoder(parse_constant=_refuse_constant)

_FLOAT = _Form(_encode_float, _decode_float)
_BYTES = _Form(_encode_bytes, _decode_bytes)
_PLAIN: dict[type, _Form] = {
    **{cls: _plain_form(cls) for cls in (str, int, bool, NoneType)},
    float: _FLOAT,
    bytes: _BYTES,
    object: _Form(_encode_open, _decode_open),
}
_DICT = _boxed("dict", _mapping_form(object, object))

_WRITTEN_NAMES: dict[type, str] = {}
_WRITTEN_FIELDS: dict[type, Mapping[str, str]] = {}
_OMITTED: dict[type, Mapping[str, object]] = {}
_CATALOGUE: dict[str, type] = {"float": float, "bytes": bytes, "dict": dict}
_ENCODERS: dict[type, Encode] = {
    **dict.fromkeys((str, int, bool, NoneType), _itself),
    float: _encode_open_float,
    bytes: _boxed("bytes", _BYTES).encode,
    dict: _DICT.encode,
    tuple: _series_form(_PLAIN[object]).encode,
}
_DECODERS: dict[str, Decode] = {
    "float": _boxed("float", _FLOAT).decode,
    "bytes": _boxed("bytes", _BYTES).decode,
    "dict": _DICT.decode,
}


def _is_value_class(cls: type) -> bool:
    if is_dataclass(cls):
        return bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    return issubclass(cls, StrEnum) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))


def _values_of(module: ModuleType) -> list[type]:
    """The value classes that a module itself defines."""
    return [
        item
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == module.__name__ and _is_value_class(item)
    ]


_VOCABULARIES = (
    ids,
    snapshots,
    reasons,
    lifecycle,
    barriers,
    enumerator,
    log_entries,
    events,
    actions,
)

for _module in _VOCABULARIES:
    register(*_values_of(_module))
register(attempt.FailureCause, *get_args(attempt.AttemptEvent), *get_args(attempt.AttemptAction))
register(job_master.SplitWanted, *get_args(job_master.FromDriver), job_master.Launch, restarts.Kind)
register(rescale.ListShare, rescale.InFlightShare, rescale.NativeShare)
omit_default(snapshots.StateFile, "offset")
omit_default(snapshots.SubtaskSnapshot, "native")
omit_default(rescale.StateAssignment, "native")
register_as("Inheritance", rescale.StateAssignment)
