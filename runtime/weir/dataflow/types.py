"""Reads schemas as PySpark writes them: DDL text, ``simpleString()``, or an Arrow schema as it is.

A user declares columns in one of three ways, and the rest of Weir knows one: ``pa.Schema``. Nothing
here knows PySpark; a ``StructType`` is whatever can write itself as ``struct<a:bigint,…>``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

import pyarrow as pa

from weir.dataflow.name_suggestions import did_you_mean
from weir.errors import JobRejected

TIMESTAMP = pa.timestamp("us", tz="UTC")
"""Spark's ``timestamp``: an instant, kept in microseconds."""

LONGEST_DECIMAL = 38

T = TypeVar("T")

_ATOMS: dict[str, pa.DataType] = {
    **dict.fromkeys(("tinyint", "byte"), pa.int8()),
    **dict.fromkeys(("smallint", "short"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    **dict.fromkeys(("string", "varchar", "char"), pa.string()),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), TIMESTAMP),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    **dict.fromkeys(("decimal", "dec", "numeric"), pa.decimal128(10, 0)),
}
_NESTED = ("array", "map", "struct")
_WORD = re.compile(r"`(?:[^`]|``)+`|[^\s<>(),:`]+")
_NAME_BEFORE_COLON = re.compile(r"([^<>(),:`]+?)\s*(?=:)")


@runtime_checkable
class Struct(Protocol):
    """PySpark's ``StructType``, as far as we ask it anything."""

    def simpleString(self) -> str:  # noqa: N802
        """Write ``struct<a:bigint,b:string>``."""


SchemaLike: TypeAlias = str | pa.Schema | Struct


def schema_of(declared: SchemaLike) -> pa.Schema:
    """Read ``"a long, b string"``, ``struct<a:bigint,b:string>``, a StructType or an Arrow schema.

    >>> schema_of("a long, b array<int> not null")
    a: int64
    b: list<element: int32> not null
      child 0, element: int32
    """
    if isinstance(declared, pa.Schema):
        return declared
    text = declared if isinstance(declared, str) else _written_by(declared)
    fields = _Parser(text).columns()
    names = [field.name.lower() for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise JobRejected(
            f"schema {text!r}: column {twice[0]!r} is there twice",
            "columns are found by their names",
            "rename one of them",
        )
    return pa.schema(fields)


def type_of(text: str) -> pa.DataType:
    """Read one type, such as ``decimal(10,2)`` or ``map<string,bigint>``."""
    parser = _Parser(text)
    found = parser.type()
    parser.end()
    return found


def written(kind: pa.DataType) -> str:
    """A type in Spark's words; Arrow's own where Spark has none."""
    for word in ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"):
        if _ATOMS[word].equals(kind):
            return word
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    plain = {pa.bool_(): "boolean", pa.date32(): "date", pa.null(): "void"}
    return plain.get(kind, str(kind))


def _written_by(declared: object) -> str:
    if isinstance(declared, Struct):
        return declared.simpleString()
    raise JobRejected(
        f"a {type(declared).__name__} is no schema",
        "a schema is DDL text, a StructType or a pyarrow.Schema",
        'give one of these, as in "a long, b string"',
    )


@dataclass
class _Parser:
    """Recursive descent over the text; ``at`` is the first character that is not read yet."""

    text: str
    at: int = 0

    def columns(self) -> list[pa.Field]:
        whole = re.fullmatch(r"\s*struct\s*<.*>\s*", self.text, re.IGNORECASE | re.DOTALL)
        fields = list(self.type()) if whole else self._list_of(self._field)
        self.end()
        return fields

    def type(self) -> pa.DataType:
        word = self._word("a type").lower()
        if word in _NESTED:
            return self._nested(word)
        if word not in _ATOMS:
            hint = did_you_mean(word, (*_ATOMS, *_NESTED))
            self._refuse(f"{word!r} is no type of Spark's", hint)
        if self._accepts("("):
            return self._with_sizes(_ATOMS[word])
        return _ATOMS[word]

    def end(self) -> None:
        if self._peek():
            self._refuse(f"{self.text[self.at :].strip()!r} was not expected")

    def _nested(self, word: str) -> pa.DataType:
        self._expect("<")
        if word == "array":
            found: pa.DataType = pa.list_(pa.field("element", self.type()))
        elif word == "map":
            key = self.type()
            self._expect(",")
            found = pa.map_(key, self.type())
        else:
            found = pa.struct([] if self._peek() == ">" else self._list_of(self._field))
        self._expect(">")
        return found

    def _with_sizes(self, kind: pa.DataType) -> pa.DataType:
        sizes = self._list_of(self._size)
        self._expect(")")
        if not pa.types.is_decimal(kind):
            return kind
        precision, scale = (*sizes, 0)[:2]
        if not 0 <= scale <= precision <= LONGEST_DECIMAL or not precision:
            self._refuse(f"decimal({precision},{scale}) cannot be: at most 38 digits, scale within")
        return pa.decimal128(precision, scale)

    def _size(self) -> int:
        word = self._word("a size")
        if not word.isdecimal():
            self._refuse(f"{word!r} is no size")
        return int(word)

    def _field(self) -> pa.Field:
        name = self._name()
        self._accepts(":")
        kind = self.type()
        nullable = True
        if self._accepts_word("not"):
            nullable = not self._accepts_word("null")
        if self._accepts_word("comment"):
            self._comment()
        return pa.field(name, kind, nullable=nullable)

    def _name(self) -> str:
        """A name may hold blanks when a colon ends it, as ``simpleString()`` writes it."""
        self._peek()
        with_blanks = _NAME_BEFORE_COLON.match(self.text, self.at)
        if with_blanks:
            self.at = with_blanks.end()
            return with_blanks.group(1)
        word = self._word("a column name")
        return word[1:-1].replace("``", "`") if word.startswith("`") else word

    def _comment(self) -> None:
        self._peek()
        quoted = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"").match(self.text, self.at)
        if not quoted:
            self._refuse("a comment stands in quotes")
        self.at = quoted.end()

    def _list_of(self, one: Callable[[], T]) -> list[T]:
        found = [one()]
        while self._accepts(","):
            found.append(one())
        return found

    def _peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _word(self, wanted: str) -> str:
        self._peek()
        word = _WORD.match(self.text, self.at)
        if not word:
            self._refuse(f"{wanted} is missing")
        self.at = word.end()
        return word.group()

    def _accepts(self, mark: str) -> bool:
        if self._peek() != mark:
            return False
        self.at += 1
        return True

    def _accepts_word(self, wanted: str) -> bool:
        self._peek()
        word = _WORD.match(self.text, self.at)
        if not word or word.group().lower() != wanted:
            return False
        self.at = word.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._accepts(mark):
            self._refuse(f"{mark!r} is missing")

    def _refuse(self, cause: str, hint: str = "") -> NoReturn:
        raise JobRejected(
            f"schema {self.text!r}, at character {self.at}",
            cause,
            f'{hint}write columns as in "a long, b array<string>, c decimal(10,2)"',
        )
