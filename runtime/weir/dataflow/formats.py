"""Which sources and sinks a session knows, by the names that users write.

The layers above bring the connectors; here they are factories behind names, and nothing more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from weir.dataflow.name_suggestions import did_you_mean
from weir.dataflow.options import Options
from weir.errors import JobRejected
from weir.ports.sinks import Sink
from weir.ports.sources import Source

SourceFactory = Callable[[Options], Source]
SinkFactory = Callable[[Options, pa.Schema], Sink]


@dataclass(frozen=True, slots=True)
class Formats:
    """Factories by name, in lower case."""

    sources: Mapping[str, SourceFactory] = field(default_factory=dict)
    sinks: Mapping[str, SinkFactory] = field(default_factory=dict)

    def source(self, options: Options) -> Source:
        if options.format.lower() not in self.sources:
            raise _unknown(options.format, "source", tuple(self.sources))
        made = self.sources[options.format.lower()](options)
        options.refuse_unread()
        return made

    def sink(self, options: Options, rows: pa.Schema) -> Sink:
        if options.format.lower() not in self.sinks:
            raise _unknown(options.format, "sink", tuple(self.sinks))
        made = self.sinks[options.format.lower()](options, rows)
        options.refuse_unread()
        return made


def _unknown(given: str, what: str, known: tuple[str, ...]) -> JobRejected:
    listed = f"known are {', '.join(sorted(known)) or 'none'}"
    if not given:
        return JobRejected(f"no {what} was named", listed, "add .format(…)")
    remedy = f"{did_you_mean(given, known)}choose one of these"
    return JobRejected(f"there is no {what} {given!r}", listed, remedy)
