"""Streams: a DataFrame that never ends, described with PySpark's names.

A stream is a value. Every method returns a new one and leaves this one as it was; nothing runs, no
file is opened. What is wrong with a description is refused by the method that would make it so.
What PySpark has no word for has Flink's: ``uid``, ``setParallelism``, ``rescale``,
``broadcast``, ``connect``, ``process``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import types as kinds

from weir.api.config_problem import InvalidValue
from weir.api.duration import parse_duration
from weir.core.topology import EdgeKind
from weir.dataflow import functions
from weir.dataflow.aggregations import aggregation
from weir.dataflow.expressions import compiled, predicate
from weir.dataflow.function_states import function_head
from weir.dataflow.functions import AggregateColumn, Expression
from weir.dataflow.keyed import (
    PROCESSOR_MODES,
    TIME_MODES,
    aggregate_head,
    check_event_time_column,
    check_initial_state,
    check_keys,
    processor_head,
    spelled,
)
from weir.dataflow.logical import (
    Apply,
    Exchange,
    Keyed,
    Node,
    OperatorSettings,
    Process,
    Union,
    event_time_column,
    has_event_time,
    with_event_time,
)
from weir.dataflow.name_suggestions import did_you_mean
from weir.dataflow.operator_settings import width, written_uid
from weir.dataflow.physical import Aggregate, ProcessorHead, RowsAs
from weir.dataflow.process_functions import BroadcastProcessFunction, ProcessFunction
from weir.dataflow.stateless_steps import (
    ArrowFunction,
    Filter,
    MapInArrow,
    MapInPandas,
    PandasFunction,
    Project,
    Transform,
)
from weir.dataflow.types import SchemaLike, schema_of, written
from weir.dataflow.writer import Session, StreamWriter
from weir.errors import JobRejected


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """PySpark's streaming ``DataFrame``."""

    node: Node
    session: Session

    @property
    def schema(self) -> pa.Schema:
        return self.node.schema

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def writeStream(self) -> StreamWriter:  # noqa: N802
        return StreamWriter(self.session, self.node)

    def filter(self, condition: str | Expression) -> "Stream":
        """Keep the rows for which the condition is true: ``"value > 3"`` or ``F.col("value") > 3``.

        A row for which it is null is dropped, as in SQL.
        """
        text = condition if isinstance(condition, str) else condition.sql
        predicate(text, self.schema)
        return self._apply(Filter(text, self.schema))

    def where(self, condition: str | Expression) -> "Stream":
        """The same as ``filter``."""
        return self.filter(condition)

    def select(self, *columns: str | Expression) -> "Stream":
        """These columns, by name or computed; ``"*"`` stands for all that are there."""
        made: list[tuple[str, str]] = []
        for column in columns:
            if column == "*" if isinstance(column, str) else column.sql == "*":
                made += [(name, _in_backticks(name)) for name in self.columns]
            else:
                expression = functions.col(column) if isinstance(column, str) else column
                made.append(_named(expression, self))
        return self._project(made)

    def selectExpr(self, *expressions: str) -> "Stream":  # noqa: N802
        """Columns as expressions of Spark SQL, such as ``"price * amount AS total"``."""
        return self.select(*map(functions.expr, expressions))

    def withColumn(self, name: str, column: Expression) -> "Stream":  # noqa: N802
        """Add a column, or replace the one of that name."""
        if not isinstance(column, Expression):
            raise JobRejected(
                f"withColumn({name!r}, {column!r}) has no column to add",
                f"a column is needed, not a {type(column).__name__}",
                "use F.expr(…), F.col(…) or F.lit(…)",
            )
        compiled(column.sql, self.schema)
        kept = {known: _in_backticks(known) for known in self.columns}
        return self._project(list({**kept, name: column.sql}.items()))

    def drop(self, *names: str) -> "Stream":
        """Without these columns; as in PySpark, a name that is not there is no mistake."""
        return self.select(*(_column(name) for name in self.columns if name not in names))

    def union(self, other: "Stream") -> "Stream":
        """The rows of both, column by column in order; the names are those of this stream."""
        if len(self.columns) != len(other.columns):
            raise JobRejected(
                f"union: {len(self.columns)} columns do not fit {len(other.columns)}",
                "a union takes the columns of both sides by their place",
                "select the same columns on both sides",
            )
        for mine, theirs in zip(self.schema, other.schema, strict=True):
            if not mine.type.equals(theirs.type):
                raise JobRejected(
                    f"union: the types of column {mine.name!r} differ",
                    f"it is a {written(mine.type)} here and a {written(theirs.type)} there",
                    "cast one of them",
                )
        if self.columns != other.columns:
            pairs = zip(self.columns, other.columns, strict=True)
            other = other.select(*(_column(theirs).alias(mine) for mine, theirs in pairs))
        return Stream(Union((self.node, other.node)), self.session)

    def mapInArrow(self, func: ArrowFunction, schema: SchemaLike) -> "Stream":  # noqa: N802
        """Rows through a function from an iterator of Arrow batches to an iterator of them.

        The function is called once for each batch, with an iterator over that batch alone, and is
        run to its end before anything else happens: do not wait for more rows inside it.
        """
        return self._apply(MapInArrow(func, schema_of(schema)))

    def mapInPandas(self, func: PandasFunction, schema: SchemaLike) -> "Stream":  # noqa: N802
        """Like ``mapInArrow``, with data frames."""
        return self._apply(MapInPandas(func, schema_of(schema)))

    def process(self, func: ProcessFunction, schema: SchemaLike) -> "Stream":
        """Batches through a function that keeps list or union list state in each subtask."""
        head = function_head(func, schema_of(schema), is_connected=False)
        return replace(self, node=Process(self.node, head))

    def connect(self, other: "Stream") -> "Connected":
        """Beside another stream that is broadcast: ``connect(rules.broadcast()).process(…)``."""
        if _is_broadcast(self.node):
            raise JobRejected(
                "connect: this stream is broadcast",
                "the stream that is broadcast is the argument",
                "write stream.connect(rules.broadcast())",
            )
        if not _is_broadcast(other.node):
            raise JobRejected(
                "connect: the other stream is not broadcast",
                "no subtask would see all of it",
                "write connect(rules.broadcast()), with broadcast() as its last step",
            )
        return Connected(self, other)

    def withWatermark(self, eventTime: str, delayThreshold: str) -> "Stream":  # noqa: N802, N803
        """Tell the time by this column, and wait so long for late rows: ``("ts", "10 seconds")``.

        Call it right after ``load()``, before the stream is used twice: the source assigns event
        time, so a stream with a watermark is another source than the same one without.
        """
        self._require(eventTime, "withWatermark")
        kind = self.schema.field(eventTime).type
        if not kinds.is_timestamp(kind):
            raise JobRejected(
                f"withWatermark({eventTime!r}): this column is not a time",
                f"it is a {written(kind)}",
                "let the source give a timestamp",
            )
        try:
            delay = parse_duration(delayThreshold)
        except InvalidValue as unfit:
            raise JobRejected(
                f"withWatermark({eventTime!r}, {delayThreshold!r})",
                unfit.reason,
                unfit.remedy,
            ) from unfit
        return replace(self, node=with_event_time(self.node, eventTime, delay))

    def groupBy(self, *columns: str | Expression) -> "Grouped":  # noqa: N802
        """Rows that agree in these columns meet in one subtask."""
        stream, keys = self._with_columns(columns)
        if not keys:
            raise JobRejected(
                "groupBy() has no columns",
                "it would keep one state for the whole stream",
                'add a column of one value, withColumn("all", F.lit(0)), and group by it',
            )
        check_keys("groupBy", keys, stream.schema)
        return Grouped(stream, keys)

    def repartition(self, numPartitions: int | str, *columns: str) -> "Stream":  # noqa: N803
        """Spread rows anew: evenly, or by the columns given, over so many subtasks.

        The number is the parallelism of the next operator, unless that sets another.
        """
        chosen = 0
        if isinstance(numPartitions, str):
            columns = (numPartitions, *columns)
        else:
            chosen = width(numPartitions, "repartition")
        for column in columns:
            self._require(column, "repartition")
        check_keys("repartition", columns, self.schema)
        kind = EdgeKind.HASH if columns else EdgeKind.REBALANCE
        return replace(self, node=Exchange(self.node, kind, tuple(columns), chosen))

    def rescale(self) -> "Stream":
        """Spread rows evenly over a few subtasks near by, where ``repartition`` uses all."""
        return replace(self, node=Exchange(self.node, EdgeKind.RESCALE))

    def broadcast(self) -> "Stream":
        """Every row to every subtask of what comes next."""
        return replace(self, node=Exchange(self.node, EdgeKind.BROADCAST))

    def global_(self) -> "Stream":
        """Every row to the first subtask of what comes next."""
        return replace(self, node=Exchange(self.node, EdgeKind.GLOBAL))

    def uid(self, name: str) -> "Stream":
        """Name the operator for good: its state is found by this name after an upgrade.

        A step without state needs none, unless it begins a new stage.
        """
        uid = written_uid(name)
        return self._wishing("uid", lambda settings: replace(settings, uid=uid))

    def name(self, label: str) -> "Stream":
        """What the dashboard and messages call the operator; means nothing to its state."""
        stream = self._wishing("name", lambda settings: replace(settings, name=label))
        if isinstance(stream.node, Apply):
            return replace(
                stream, node=replace(stream.node, step=replace(stream.node.step, title=label))
            )
        return stream

    def setParallelism(self, parallelism: int) -> "Stream":  # noqa: N802
        """How many subtasks the operator has."""
        chosen = width(parallelism, "setParallelism")
        return self._wishing(
            "setParallelism", lambda settings: replace(settings, parallelism=chosen)
        )

    def setMaxParallelism(self, maxParallelism: int) -> "Stream":  # noqa: N802, N803
        """How many subtasks the operator can ever have; its state is cut into so many groups."""
        chosen = width(maxParallelism, "setMaxParallelism")
        return self._wishing(
            "setMaxParallelism", lambda settings: replace(settings, max_parallelism=chosen)
        )

    def _apply(self, step: Transform) -> "Stream":
        return replace(self, node=Apply(self.node, step))

    def _project(self, columns: list[tuple[str, str]]) -> "Stream":
        names = [name for name, _ in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise JobRejected(
                f"two columns are called {twice!r}",
                "columns are found by their names",
                "give one of them an alias",
            )
        if not columns:
            raise JobRejected(
                "a stream has no columns",
                "it would carry nothing",
                "keep one at least",
            )
        return self._apply(Project(tuple(columns), self.schema))

    def _with_columns(
        self, columns: tuple[str | Expression, ...]
    ) -> tuple["Stream", tuple[str, ...]]:
        """This stream with all of them as columns, and the names that they have in it."""
        stream, names = self, list[str]()
        made: dict[str, str] = {}
        for column in columns:
            expression = functions.col(column) if isinstance(column, str) else column
            name, text = _named(expression, stream)
            is_there = compiled(text, stream.schema).passes_on == name or made.get(name) == text
            if not is_there and name in stream.columns:
                raise JobRejected(
                    f"{text!r} cannot be called {name!r}",
                    "another column has this name",
                    "rename it",
                )
            if not is_there:
                stream = stream.withColumn(name, Expression(text))
                made[name] = text
            names.append(name)
        return stream, tuple(names)

    def _require(self, column: str, asked_by: str) -> None:
        if column not in self.columns:
            raise JobRejected(
                f"{asked_by} names no column of the stream",
                f"there is no column {column!r} among {', '.join(self.columns)}",
                f"{did_you_mean(column, self.columns)}choose one of these",
            )

    def _wishing(
        self, asked_by: str, change: Callable[[OperatorSettings], OperatorSettings]
    ) -> "Stream":
        if isinstance(self.node, Exchange | Union):
            raise JobRejected(
                f"{asked_by} is called on a union or a redistribution",
                "neither is an operator",
                "call it on the next operation",
            )
        return replace(self, node=replace(self.node, settings=change(self.node.settings)))


@dataclass(frozen=True, slots=True, eq=False)
class Connected:
    """Flink's ``BroadcastConnectedStream``: a stream, and one that every subtask gets all of."""

    stream: Stream
    broadcast: Stream

    def process(self, func: BroadcastProcessFunction, schema: SchemaLike) -> Stream:
        """Batches of both through a function that keeps broadcast state in each subtask."""
        head = function_head(func, schema_of(schema), is_connected=True)
        return replace(self.stream, node=Process(self.stream.node, head, (self.broadcast.node,)))


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """PySpark's ``GroupedData``: rows by key, waiting to be made something of."""

    stream: Stream
    keys: tuple[str, ...]

    def agg(self, *columns: AggregateColumn | Mapping[str, str]) -> Stream:
        """Running aggregates: ``agg(F.sum("v").alias("total"))`` or ``agg({"v": "sum"})``.

        Each change of a key emits the key's new row: Spark's update mode.
        """
        asked: list[AggregateColumn] = []
        for column in columns:
            if isinstance(column, AggregateColumn):
                asked.append(column)
            else:
                asked += [_aggregate_named(function, of) for of, function in column.items()]
        if not asked:
            raise JobRejected(
                "agg() computes nothing",
                "it was given no aggregation",
                'add one, such as F.sum("value")',
            )
        arguments = tuple(one.argument for one in asked if one.argument is not None)
        stream, names = self.stream._with_columns(arguments)  # noqa: SLF001
        named = iter(names)
        aggregates = [
            Aggregate(one.function, "" if one.argument is None else next(named), one.label)
            for one in asked
        ]
        head = aggregate_head(self.keys, aggregates, stream.schema)
        return replace(stream, node=Keyed(stream.node, head))

    def count(self) -> Stream:
        """Rows of each key, as a column called ``count``."""
        return self.agg(functions.count("*").alias("count"))

    def sum(self, *columns: str) -> Stream:
        return self.agg(*map(functions.sum, columns))

    def min(self, *columns: str) -> Stream:
        return self.agg(*map(functions.min, columns))

    def max(self, *columns: str) -> Stream:
        return self.agg(*map(functions.max, columns))

    def avg(self, *columns: str) -> Stream:
        return self.agg(*map(functions.avg, columns))

    def transformWithState(  # noqa: N802, PLR0913, PLR0917
        self,
        statefulProcessor: object,  # noqa: N803
        outputStructType: SchemaLike,  # noqa: N803
        outputMode: str = "Update",  # noqa: N803
        timeMode: str = "None",  # noqa: N803
        initialState: object = None,  # noqa: N803
        eventTimeColumnName: str = "",  # noqa: N803
    ) -> Stream:
        """Run a PySpark ``StatefulProcessor`` over the rows of each key."""
        processed = self._processed(statefulProcessor, outputStructType, RowsAs.ROWS)
        check_event_time_column(eventTimeColumnName, processed.schema)
        return _in_modes(processed, outputMode, timeMode, initialState)

    def transformWithStateInPandas(  # noqa: N802, PLR0913, PLR0917
        self,
        statefulProcessor: object,  # noqa: N803
        outputStructType: SchemaLike,  # noqa: N803
        outputMode: str = "Update",  # noqa: N803
        timeMode: str = "None",  # noqa: N803
        initialState: object = None,  # noqa: N803
        eventTimeColumnName: str = "",  # noqa: N803
    ) -> Stream:
        """Like ``transformWithState``, with data frames."""
        processed = self._processed(statefulProcessor, outputStructType, RowsAs.PANDAS)
        check_event_time_column(eventTimeColumnName, processed.schema)
        return _in_modes(processed, outputMode, timeMode, initialState)

    def _processed(self, processor: object, output: SchemaLike, rows_as: RowsAs) -> Stream:
        rows = self.stream.schema
        head = processor_head(self.keys, processor, rows_as, rows, schema_of(output))
        return replace(self.stream, node=Keyed(self.stream.node, head))


def _in_modes(processed: Stream, output_mode: str, time_mode: str, initial_state: object) -> Stream:
    node = processed.node
    assert isinstance(node, Keyed), "a processor has just been put there"
    assert isinstance(node.head, ProcessorHead), "a processor has just been put there"
    check_initial_state(initial_state)
    spelled(output_mode, PROCESSOR_MODES, "output mode")
    mode = spelled(time_mode, TIME_MODES, "time mode")
    if mode == "EventTime" and not has_event_time(node.input):
        raise JobRejected(
            "transformWithState: time mode EventTime needs a watermark",
            "the stream has none",
            "call withWatermark right after load()",
        )
    time = event_time_column(node.input)
    head = replace(node.head, time_mode=mode, event_time=time, initial_state=initial_state)
    return replace(processed, node=replace(node, head=head))


def _named(expression: Expression, stream: Stream) -> tuple[str, str]:
    """The name that the column will have, and its expression."""
    found = compiled(expression.sql, stream.schema)
    computed = found.name if found.name != expression.sql.strip() else expression.shown.strip()
    return expression.label or computed, expression.sql


def _is_broadcast(node: Node) -> bool:
    return isinstance(node, Exchange) and node.kind is EdgeKind.BROADCAST


def _in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _column(name: str) -> Expression:
    return functions.col(_in_backticks(name))


def _aggregate_named(function: str, column: str) -> AggregateColumn:
    chosen = aggregation(function).name
    if chosen == "count":
        return functions.count(column)
    return AggregateColumn(chosen, functions.col(column), f"{chosen}({column})")
