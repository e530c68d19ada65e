"""Columns as values: ``from weir import functions as F``, with PySpark's names.

An expression is text of Spark SQL and nothing more. Every function and operator here only writes a
longer text, quoting names and values on the way, so what it means is decided in one place, by
``expressions``.
"""

import datetime as dt
import decimal
import re
from collections.abc import Sequence
from dataclasses import dataclass

from weir.dataflow.aggregations import AGGREGATIONS
from weir.errors import JobRejected

Value = bool | int | float | str | decimal.Decimal | dt.date | dt.datetime | None

_BARE_NAME = re.compile(r"`([A-Za-z_][A-Za-z0-9_]*)`")


@dataclass(frozen=True, eq=False)
class Expression:
    """What PySpark calls a ``Column``: a computation that has not met its rows yet."""

    sql: str
    label: str = ""
    """The alias."""
    is_written: bool = False
    """The user wrote it, so its operators may bind loosely and it needs parentheses."""

    @property
    def operand(self) -> str:
        """The text as a piece of a longer one."""
        return f"({self.sql})" if self.is_written else self.sql

    @property
    def shown(self) -> str:
        """The text as a person would write it, without quotes that it does not need."""
        return _BARE_NAME.sub(r"\1", self.sql)

    def alias(self, name: str) -> "Expression":
        return Expression(self.sql, name, self.is_written)

    def cast(self, kind: str) -> "Expression":
        """Cast to a type in Spark's words, such as ``bigint`` or ``decimal(10,2)``."""
        return Expression(f"CAST({self.sql} AS {kind})")

    def isNull(self) -> "Expression":  # noqa: N802
        return Expression(f"({self.operand} IS NULL)")

    def isNotNull(self) -> "Expression":  # noqa: N802
        return Expression(f"({self.operand} IS NOT NULL)")

    def isin(self, *values: "Value | Expression | list[Value]") -> "Expression":
        """One of these; a single list is taken for its items."""
        items: Sequence[object] = values
        if len(values) == 1 and isinstance(values[0], list):
            items = values[0]
        if not items:
            return Expression("false")
        return Expression(f"({self.operand} IN ({', '.join(_sql(item) for item in items)}))")

    def between(self, low: "Value | Expression", high: "Value | Expression") -> "Expression":
        return Expression(f"({self.operand} BETWEEN {_sql(low)} AND {_sql(high)})")

    def like(self, pattern: str) -> "Expression":
        return self._with("LIKE", pattern)

    def startswith(self, prefix: "str | Expression") -> "Expression":
        return Expression(f"startswith({self.operand}, {_sql(prefix)})")

    def endswith(self, suffix: "str | Expression") -> "Expression":
        return Expression(f"endswith({self.operand}, {_sql(suffix)})")

    def contains(self, piece: "str | Expression") -> "Expression":
        return Expression(f"contains({self.operand}, {_sql(piece)})")

    def substr(self, start: "int | Expression", length: "int | Expression") -> "Expression":
        return Expression(f"substring({self.operand}, {_sql(start)}, {_sql(length)})")

    def eqNullSafe(self, other: "Value | Expression") -> "Expression":  # noqa: N802
        """Equal, where two nulls are equal."""
        return self._with("<=>", other)

    def __add__(self, other: "Value | Expression") -> "Expression":
        return self._with("+", other)

    def __radd__(self, other: Value) -> "Expression":
        return lit(other) + self

    def __sub__(self, other: "Value | Expression") -> "Expression":
        return self._with("-", other)

    def __rsub__(self, other: Value) -> "Expression":
        return lit(other) - self

    def __mul__(self, other: "Value | Expression") -> "Expression":
        return self._with("*", other)

    def __rmul__(self, other: Value) -> "Expression":
        return lit(other) * self

    def __truediv__(self, other: "Value | Expression") -> "Expression":
        return self._with("/", other)

    def __rtruediv__(self, other: Value) -> "Expression":
        return lit(other) / self

    def __mod__(self, other: "Value | Expression") -> "Expression":
        return self._with("%", other)

    def __neg__(self) -> "Expression":
        return Expression(f"(- {self.operand})")

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]  # as in PySpark
        return self._with("=", other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]  # as in PySpark
        return Expression(f"(NOT ({self.operand} = {_sql(other)}))")

    def __lt__(self, other: "Value | Expression") -> "Expression":
        return self._with("<", other)

    def __le__(self, other: "Value | Expression") -> "Expression":
        return self._with("<=", other)

    def __gt__(self, other: "Value | Expression") -> "Expression":
        return self._with(">", other)

    def __ge__(self, other: "Value | Expression") -> "Expression":
        return self._with(">=", other)

    def __and__(self, other: "bool | Expression") -> "Expression":
        return self._with("AND", other)

    def __or__(self, other: "bool | Expression") -> "Expression":
        return self._with("OR", other)

    def __invert__(self) -> "Expression":
        return Expression(f"(NOT {self.operand})")

    def __hash__(self) -> int:
        return hash((self.sql, self.label))

    def __bool__(self) -> bool:
        raise JobRejected(
            f"expression {self.sql!r} has no truth before it meets a row",
            "Python's and, or and not need the truth at once",
            "use & for and, | for or, ~ for not, each side in parentheses",
        )

    def _with(self, operator: str, other: object) -> "Expression":
        return Expression(f"({self.operand} {operator} {_sql(other)})")


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """One aggregation of ``groupBy(…).agg(…)``. An argument of ``None`` counts rows."""

    function: str
    argument: Expression | None
    label: str

    def alias(self, name: str) -> "AggregateColumn":
        return AggregateColumn(self.function, self.argument, name)


def col(name: str) -> Expression:
    """A column; dots lead into structs, and backticks protect a name that has dots itself."""
    if name.startswith("`"):
        return Expression(name)
    return Expression(".".join(_quoted(part) for part in name.split(".")))


def lit(value: Value) -> Expression:
    return Expression(_literal(value))


def expr(sql: str) -> Expression:
    """An expression of Spark SQL, with its alias if it has one."""
    return Expression(sql, is_written=True)


def sum(column: str | Expression) -> AggregateColumn:  # noqa: A001
    return _aggregate("sum", column)


def count(column: str | Expression) -> AggregateColumn:
    """Rows for ``"*"`` or a literal, else the rows in which the column is not null."""
    if column == "*" if isinstance(column, str) else column.sql == "1":
        return AggregateColumn("count", None, "count(1)")
    return _aggregate("count", column)


def min(column: str | Expression) -> AggregateColumn:  # noqa: A001
    return _aggregate("min", column)


def max(column: str | Expression) -> AggregateColumn:  # noqa: A001
    return _aggregate("max", column)


def avg(column: str | Expression) -> AggregateColumn:
    return _aggregate("avg", column)


def _aggregate(function: str, column: str | Expression) -> AggregateColumn:
    assert function in AGGREGATIONS, f"no aggregation is called {function}"
    argument = col(column) if isinstance(column, str) else column
    name = column if isinstance(column, str) else column.shown
    return AggregateColumn(function, argument, f"{function}({name})")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _sql(value: object) -> str:
    return value.operand if isinstance(value, Expression) else _literal(value)


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value >= 0 else f"({value})"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case decimal.Decimal() if value.is_finite():
            return _decimal(value)
        case _:
            return _time(value)


def _time(value: object) -> str:
    match value:
        case dt.datetime():
            return f"CAST('{_in_utc(value).isoformat()}' AS TIMESTAMP)"
        case dt.date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case _:
            raise JobRejected(
                f"a {type(value).__name__} cannot be a literal",
                "Spark SQL has no way to write it",
                "use a boolean, number, string, date, datetime, Decimal or None",
            )


def _decimal(value: decimal.Decimal) -> str:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "a finite decimal has a whole exponent"
    scale = 0 if exponent > 0 else -exponent
    before_point = len(f"{abs(value):f}".partition(".")[0].lstrip("0"))
    return f"CAST('{value:f}' AS DECIMAL({before_point + scale or 1},{scale}))"


def _in_utc(value: dt.datetime) -> dt.datetime:
    """A time without zone is taken for UTC, the zone of every expression."""
    return value if value.tzinfo is None else value.astimezone(dt.UTC)
