"""Compiles an expression of Spark SQL into a Polars expression with Spark's result type.

Strings in ``filter`` and ``selectExpr`` and everything that ``functions`` builds come through here,
so there is one meaning of each. Whatever cannot be compiled is refused when the job is built, with
the expression, the piece of it and the columns that exist; no row is ever looked at here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from weir.dataflow.coercion import Typed, is_known, polars_type
from weir.dataflow.name_suggestions import did_you_mean
from weir.dataflow.rules import OPERAND, Compile, Misfit, Rule, Rules, refuse_unread
from weir.dataflow.sql_functions import FUNCTIONS, NAMED, NAMES
from weir.dataflow.sql_operators import OPERATORS, one_row, whole_number
from weir.dataflow.types import LONGEST_DECIMAL, TIMESTAMP, type_of, written
from weir.errors import JobRejected

_COLUMN_PARTS = ("this", "table", "db", "catalog")


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression that is ready to run."""

    text: str
    name: str
    """The alias, or the column's name, or the text itself."""
    expr: pl.Expr
    type: pa.DataType
    reads: tuple[str, ...]
    """The columns that it needs."""
    passes_on: str = ""
    """The column that it is, if it is nothing but a column."""


@lru_cache(maxsize=1024)
def compiled(text: str, schema: pa.Schema) -> Compiled:
    """Compile, or refuse with the expression, the piece and the columns there are."""
    return _Compiler(text, schema).run()


def predicate(text: str, schema: pa.Schema) -> Compiled:
    """A condition: an expression that is true, false or null."""
    found = compiled(text, schema)
    if not kinds.is_boolean(found.type) and not kinds.is_null(found.type):
        raise JobRejected(
            f"condition {text!r} is not a boolean",
            f"it is a {written(found.type)}",
            "compare it with a value",
        )
    return found


def evaluate(expressions: Sequence[Compiled], batch: pa.RecordBatch) -> list[pa.Array]:
    """Compute all of them over one batch; Polars is given only the columns that they read."""
    frame = _frame(batch, dict.fromkeys(name for e in expressions for name in e.reads))
    names = [str(position) for position in range(len(expressions))]
    done = frame.with_columns(
        expression.expr.alias(name)
        for expression, name in zip(expressions, names, strict=True)
        if expression.reads
    )
    return [
        _as_declared(
            done[name] if expression.reads else _constant(expression.expr, batch.num_rows),
            expression.type,
        )
        for expression, name in zip(expressions, names, strict=True)
    ]


def _constant(expr: pl.Expr, size: int) -> pl.Series:
    """The value of an expression that reads no column, so many times."""
    return one_row().select(expr).to_series().new_from_index(0, size)


def _frame(batch: pa.RecordBatch, columns: Iterable[str]) -> pl.DataFrame:
    needed = list(columns)
    if not needed:
        return one_row()
    frame = pl.from_arrow(batch.select(needed))
    assert isinstance(frame, pl.DataFrame), "a batch becomes a frame"
    return frame


def _as_declared(series: pl.Series, kind: pa.DataType) -> pa.Array:
    found = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return found if found.type.equals(kind) else found.cast(kind)


class _Compiler:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self.text = text
        self.schema = schema
        self.reads: dict[str, None] = {}

    def run(self) -> Compiled:
        tree = self._parse()
        alias = tree.alias if isinstance(tree, exp.Alias) else ""
        body = tree.this if isinstance(tree, exp.Alias) else tree
        try:
            value = self._compile(body)
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit
        name = alias or (body.name if isinstance(body, exp.Column) else self.text.strip())
        if isinstance(body, exp.Column) and not body.table:
            column = self._column_named(body)
            return Compiled(
                self.text, alias or column, pl.col(column), self._type(column), (column,), column
            )
        return Compiled(self.text, name, value.expr, value.type, tuple(self.reads))

    def _parse(self) -> exp.Expr:
        spark = Dialect.get_or_raise("spark")
        try:
            tokens = _with_doubled_quotes(spark.tokenize(self.text), self.text)
            trees = spark.parser().parse_into(exp.Expr, tokens, self.text)
        except SqlglotError as error:
            raise self._unreadable() from error
        tree = trees[0] if len(trees) == 1 else None
        if tree is None or isinstance(tree, exp.Block):
            raise self._unreadable()
        return tree

    def _compile(self, node: exp.Expr) -> Typed:
        if isinstance(node, exp.Column):
            refuse_unread(node, _COLUMN_PARTS)
            return self._column(node)
        rule = RULES.get(type(node))
        if isinstance(node, exp.Anonymous):
            rule = NAMED.get(node.name.lower())
        if rule is None:
            raise _unknown(node)
        refuse_unread(node, rule.reads)
        return rule.compile(node, self._compile)

    def _column(self, node: exp.Column) -> Typed:
        parts = [part.name for part in node.parts]
        column = self._column_named(node)
        self.reads[column] = None
        value, kind = pl.col(column), self._type(column)
        for part in parts[1:]:
            if not kinds.is_struct(kind):
                raise Misfit(
                    node,
                    f"a {written(kind)} has no field {part!r}",
                    "name a field of a struct, or the column alone",
                )
            names = [field.name for field in kind]
            if part not in names:
                raise Misfit(
                    node,
                    f"there is no field {part!r}",
                    f"{did_you_mean(part, names)}choose one of the fields: {', '.join(names)}",
                )
            value, kind = value.struct.field(part), kind.field(part).type
        return _normal(value, kind)

    def _column_named(self, node: exp.Column) -> str:
        """Names are found whatever their case, as in Spark; the exact one goes first."""
        wanted = node.parts[0].name
        if wanted in self.schema.names:
            return str(wanted)
        alike = [name for name in self.schema.names if name.lower() == wanted.lower()]
        if len(alike) == 1:
            return str(alike[0])
        cause = f"it could be any of {alike}" if alike else f"there is no column {wanted!r}"
        known = ", ".join(self.schema.names)
        hint = did_you_mean(wanted, self.schema.names)
        raise Misfit(node, cause, f"{hint}choose one of the columns: {known}")

    def _type(self, column: str) -> pa.DataType:
        return self.schema.field(column).type

    def _unreadable(self) -> JobRejected:
        return JobRejected(
            f"expression {self.text!r} is not readable as Spark SQL",
            "it is empty, several expressions, or has an error of syntax",
            "write one expression, such as \"value > 3 AND name = 'a'\"",
        )

    def _refusal(self, misfit: Misfit) -> JobRejected:
        is_whole = misfit.piece.lower() == self.text.strip().lower()
        piece = "" if is_whole else f", at {misfit.piece!r}"
        problem = f"expression {self.text!r} cannot be used{piece}"
        return JobRejected(problem, misfit.cause, misfit.remedy)


def _with_doubled_quotes(tokens: list[Token], text: str) -> list[Token]:
    """Strings that touch are one string with a quote in it, as in Spark: 'O''Brien'."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else None
        if before is not None and _are_one_string(before, token, text):
            whole = f"{before.text}{text[token.start]}{token.text}"
            joined[-1] = Token(
                TokenType.STRING, whole, before.line, before.col, before.start, token.end
            )
        else:
            joined.append(token)
    return joined


def _are_one_string(one: Token, other: Token, text: str) -> bool:
    are_strings = one.token_type is other.token_type is TokenType.STRING
    touch = one.end + 1 == other.start
    return are_strings and touch and text[one.end] == text[other.start]


def _normal(value: pl.Expr, kind: pa.DataType) -> Typed:
    """A column's type as Spark has it: one kind of text, one resolution of time."""
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return Typed(value, pa.string())
    if kinds.is_dictionary(kind) and kinds.is_string(kind.value_type):
        return Typed(value.cast(pl.String()), pa.string())
    if kinds.is_timestamp(kind):
        normal = TIMESTAMP if kind.tz else pa.timestamp("us")
        return Typed(value if kind.equals(normal) else value.cast(polars_type(normal)), normal)
    return Typed(value, kind)


def _boolean(node: exp.Expr, below: Compile) -> Typed:
    del below
    return Typed(pl.lit(bool(node.this)), pa.bool_())


def _null(node: exp.Expr, below: Compile) -> Typed:
    del node, below
    return Typed(pl.lit(None), pa.null())


def _parentheses(node: exp.Expr, below: Compile) -> Typed:
    return below(node.this)


def _literal(node: exp.Expr, below: Compile) -> Typed:
    del below
    if node.is_string:
        return Typed(pl.lit(node.name, dtype=pl.String()), pa.string(), literal=node.name)
    if node.name.isdecimal():
        return whole_number(node, int(node.name))
    if "e" in node.name.lower():
        if math.isinf(float(node.name)):
            raise Misfit(
                node,
                "this number is too large for a double",
                "write a smaller one",
            )
        return Typed(pl.lit(float(node.name), dtype=pl.Float64()), pa.float64())
    before, _, behind = node.name.partition(".")
    digits = max(len(before.lstrip("0")) + len(behind), 1)
    if digits > LONGEST_DECIMAL:
        raise Misfit(
            node,
            "this number has more than 38 digits",
            "write fewer digits",
        )
    kind = pa.decimal128(digits, len(behind))
    return Typed(pl.lit(node.name).cast(polars_type(kind)), kind)


def _type(node: exp.Expr, below: Compile) -> Typed:
    """The type behind CAST, as a null of it."""
    del below
    text = node.sql("spark")
    try:
        kind = type_of(text)
    except JobRejected as refusal:
        raise Misfit(
            node,
            f"{text.lower()!r} is no type to cast to",
            "use a type of Spark SQL, such as bigint or string",
        ) from refusal
    if not is_known(kind):
        raise Misfit(
            node,
            f"nothing can be cast to {text.lower()}",
            "cast to a number, string, boolean, date, timestamp or binary",
        )
    return Typed(pl.lit(None), kind)


def _unknown(node: exp.Expr) -> Misfit:
    if not isinstance(node, exp.Func):
        return Misfit(
            node,
            "expressions cannot do this",
            "use mapInArrow",
        )
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
    if isinstance(node, exp.AggFunc):
        return Misfit(
            node,
            f"{name} is an aggregation",
            "use groupBy(…).agg(…)",
        )
    return Misfit(
        node,
        f"there is no function {name!r}",
        f"{did_you_mean(name, NAMES)}use mapInArrow",
    )


RULES: Rules = {
    exp.Literal: Rule(_literal, ("this", "is_string")),
    exp.Boolean: Rule(_boolean, OPERAND),
    exp.Null: Rule(_null, ()),
    exp.Paren: Rule(_parentheses, OPERAND),
    exp.DataType: Rule(_type, tuple(exp.DataType.arg_types)),
    **OPERATORS,
    **FUNCTIONS,
}
