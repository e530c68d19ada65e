"""The stateless steps of a stage, each a value that travels to the slots by pickle.

A step keeps the text of its expressions and compiles it where it runs. A step that calls the user's
function hands it an iterator over one batch and takes everything that comes back before it returns:
no row is ever left inside a generator (spec A12).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from polars.exceptions import PolarsError

from weir.dataflow.expressions import Compiled, compiled, evaluate, predicate
from weir.dataflow.results import ResultMismatch, first_row, fitted
from weir.ports.operators import Batch
from weir.ports.user_code_errors import UserCodeFailed

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
PandasFunction = Callable[[Iterator[Any]], Iterable[Any]]
"""From data frames to data frames; named so that pandas is imported only where it is used."""


@runtime_checkable
class Frame(Protocol):
    """A pandas ``DataFrame``, as far as it is asked anything here."""

    columns: Any
    index: Any


@dataclass(frozen=True)
class Filter:
    """Keeps the rows for which the condition is true; null is not true."""

    condition: str
    output: pa.Schema
    title: str = ""

    @property
    def label(self) -> str:
        return self.title or f"filter({self.condition})"

    def origin_of(self, column: str) -> str:
        return column

    def __call__(self, batch: Batch) -> Iterable[Batch]:
        kept = batch.filter(_computed(self.label, [self._predicate], batch)[0].cast(pa.bool_()))
        return (kept,) if kept.num_rows else ()

    def __getstate__(self) -> dict[str, object]:
        return _declared(self)

    @cached_property
    def _predicate(self) -> Compiled:
        return predicate(self.condition, self.output)


@dataclass(frozen=True)
class Project:
    """Computes columns; those that are merely passed on are not touched."""

    columns: tuple[tuple[str, str], ...]
    """Each with its name and its expression."""
    input: pa.Schema
    title: str = ""

    @property
    def label(self) -> str:
        changed = (name for name, _ in self.columns if not self.origin_of(name))
        return self.title or f"project({', '.join(changed) or 'columns'})"

    @cached_property
    def output(self) -> pa.Schema:
        return pa.schema(
            [
                self.input.field(made.passes_on).with_name(name)
                if made.passes_on
                else pa.field(name, made.type)
                for name, made in self._compiled.items()
            ]
        )

    def origin_of(self, column: str) -> str:
        """The column of the input that this one is, unchanged; empty if it is computed."""
        return self._compiled[column].passes_on

    def __call__(self, batch: Batch) -> Iterable[Batch]:
        made = [column for column in self._compiled.values() if not column.passes_on]
        values = iter(_computed(self.label, made, batch) if made else ())
        arrays = [
            batch.column(column.passes_on) if column.passes_on else next(values)
            for column in self._compiled.values()
        ]
        return (pa.RecordBatch.from_arrays(arrays, schema=self.output),)

    def __getstate__(self) -> dict[str, object]:
        return _declared(self)

    @cached_property
    def _compiled(self) -> dict[str, Compiled]:
        return {name: compiled(text, self.input) for name, text in self.columns}


@dataclass(frozen=True)
class MapInArrow:
    """Calls the user's function with an iterator over one batch."""

    function: ArrowFunction
    output: pa.Schema
    title: str = ""

    @property
    def label(self) -> str:
        return self.title or f"mapInArrow({name_of(self.function)})"

    def origin_of(self, column: str) -> str:
        """Empty: a function may change any column."""
        del column
        return ""

    def __call__(self, batch: Batch) -> Iterable[Batch]:
        made = _drained(self.label, batch, lambda rows: self.function(iter((rows,))))
        try:
            checked = [fitted(item, self.output) for item in made]
        except ResultMismatch as misfit:
            raise _mismatch(self.label, batch, str(misfit)) from misfit.__cause__
        return [item for item in checked if item.num_rows]


@dataclass(frozen=True)
class MapInPandas:
    """Calls the user's function with an iterator over one data frame."""

    function: PandasFunction
    output: pa.Schema
    title: str = ""

    @property
    def label(self) -> str:
        return self.title or f"mapInPandas({name_of(self.function)})"

    def origin_of(self, column: str) -> str:
        """Empty: a function may change any column."""
        del column
        return ""

    def __call__(self, batch: Batch) -> Iterable[Batch]:
        made = _drained(self.label, batch, lambda rows: self.function(iter((rows.to_pandas(),))))
        checked = (self._as_batch(item, batch) for item in made)
        return [item for item in checked if item.num_rows]

    def _as_batch(self, frame: object, batch: Batch) -> Batch:
        if not isinstance(frame, Frame):
            raise _mismatch(self.label, batch, f"it gave a {type(frame).__name__}, not a DataFrame")
        missing = [name for name in self.output.names if name not in frame.columns]
        if missing:
            raise _mismatch(self.label, batch, f"its result has no column {missing[0]!r}")
        try:
            return pa.RecordBatch.from_pandas(frame, schema=self.output, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise _mismatch(self.label, batch, f"its result is not as declared: {error}") from error


Transform = Filter | Project | MapInArrow | MapInPandas


def name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _declared(step: Filter | Project) -> dict[str, object]:
    """What travels: the text, and nothing that was compiled from it."""
    return {each.name: getattr(step, each.name) for each in fields(step)}


def _computed(label: str, expressions: list[Compiled], batch: Batch) -> list[pa.Array]:
    try:
        return evaluate(expressions, batch)
    except (PolarsError, pa.ArrowException) as error:
        raise UserCodeFailed(label, first_row(batch)) from error


Call = Callable[[Batch], Iterable[object]]


def _drained(label: str, batch: Batch, call: Call) -> list[object]:
    try:
        return list(call(batch))
    except Exception as error:  # user code may raise anything
        raise UserCodeFailed(label, first_row(_culprit(batch, call))) from error


def _culprit(batch: Batch, call: Call) -> Batch:
    """The first row that fails alone, found by halving: the process is lost anyway.

    If no half of a batch fails, its rows fail only together, and the first is shown for all.
    """
    while batch.num_rows > 1:
        middle = batch.num_rows // 2
        halves = (batch.slice(0, middle), batch.slice(middle))
        failing = next((half for half in halves if _fails(half, call)), None)
        if failing is None:
            return batch
        batch = failing
    return batch


def _fails(batch: Batch, call: Call) -> bool:
    try:
        list(call(batch))
    except Exception:  # noqa: BLE001 - user code may raise anything
        return True
    return False


def _mismatch(label: str, batch: Batch, reason: str) -> UserCodeFailed:
    return UserCodeFailed(f"{label} ({reason})", first_row(batch))
