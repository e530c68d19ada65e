"""``writeStream``: says where a stream ends, in PySpark's words, and submits it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weir.dataflow.formats import Formats
from weir.dataflow.keyed import spelled
from weir.dataflow.logical import Node, OperatorSettings, WrittenStream, is_aggregated
from weir.dataflow.operator_settings import width, written_uid
from weir.dataflow.options import Options, OptionValue, as_text
from weir.errors import JobRejected

CHECKPOINT_LOCATION = "checkpointlocation"
"""The one option that is ours and not the sink's."""

OUTPUT_MODES = ("append", "update")

Submit = Callable[[WrittenStream], Any]
"""Takes a finished stream; what it returns is what ``start()`` returns."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a stream needs of the world it was made in: names of connectors, and a way to start."""

    formats: Formats
    submit: Submit


@dataclass(frozen=True, slots=True)
class StreamWriter:
    """PySpark's ``DataStreamWriter``; every call returns a new one."""

    session: Session
    input: Node
    format_name: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""
    query: str = ""
    settings: OperatorSettings = OperatorSettings()

    def format(self, name: str) -> "StreamWriter":
        return replace(self, format_name=name)

    def option(self, name: str, value: OptionValue) -> "StreamWriter":
        return replace(self, given={**self.given, name: as_text(value)})

    def options(self, **values: OptionValue) -> "StreamWriter":
        given = {name: as_text(value) for name, value in values.items()}
        return replace(self, given={**self.given, **given})

    def outputMode(self, mode: str) -> "StreamWriter":  # noqa: N802
        """``append`` or ``update``; an aggregation updates, and everything else appends."""
        return replace(self, mode=spelled(mode, OUTPUT_MODES, "output mode"))

    def queryName(self, name: str) -> "StreamWriter":  # noqa: N802
        return replace(self, query=name)

    def uid(self, name: str) -> "StreamWriter":
        """Name the sink for good: its open transactions are found by this name after an upgrade."""
        return replace(self, settings=replace(self.settings, uid=written_uid(name)))

    def setParallelism(self, parallelism: int) -> "StreamWriter":  # noqa: N802
        chosen = width(parallelism, "setParallelism")
        return replace(self, settings=replace(self.settings, parallelism=chosen))

    def start(self, path: str | None = None) -> Any:  # noqa: ANN401
        """Submit the stream; the session decides what is returned."""
        return self.session.submit(self.finished(path))

    def finished(self, path: str | None = None) -> WrittenStream:
        """What ``start`` submits."""
        given = dict(self.given) if path is None else {**self.given, "path": path}
        ours = {name: value for name, value in given.items() if name.lower() == CHECKPOINT_LOCATION}
        theirs = {name: value for name, value in given.items() if name not in ours}
        sink = self.session.formats.sink(Options(self.format_name, theirs), self.input.schema)
        return WrittenStream(
            input=self.input,
            sink=sink,
            output_mode=self._output_mode(),
            query_name=self.query,
            checkpoint_location=next(iter(ours.values()), ""),
            options=given,
            settings=self.settings,
        )

    def _output_mode(self) -> str:
        if not is_aggregated(self.input):
            return self.mode or "append"
        if self.mode == "append":
            raise JobRejected(
                "output mode append does not fit an aggregation",
                "its rows change as more rows come, so none of them is ever final",
                'use outputMode("update")',
            )
        return "update"
