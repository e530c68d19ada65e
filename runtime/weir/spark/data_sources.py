"""Finds the Python data sources that were registered with Spark, by the names they have there.

Spark keeps a registered class as a pickle in its JVM, which is part of this very driver; here it is
taken out again. So ``spark.dataSource.register(…)`` is all that a user has to call, as in PySpark.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from weir.connectors.pyspark.data_source import DataSourceFormat
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.dataflow.formats import Formats
from weir.errors import JobRejected

Factory = TypeVar("Factory")
Find = Callable[[str], type[DataSource] | None]


def registered(spark: SparkSession, name: str) -> type[DataSource] | None:
    """The class that Spark knows by this name; None if it knows no Python class by it."""
    known = spark._jsparkSession.sessionState().dataSourceManager()  # noqa: SLF001 - no other way
    if not known.dataSourceExists(name):
        return None
    command = known.lookupDataSource(name).dataSourceCls().command()
    pickled = bytes(int(byte) & 0xFF for byte in command.mkString(",").split(","))
    made = cloudpickle.loads(pickled)
    if not (isinstance(made, type) and issubclass(made, DataSource)):
        raise JobRejected(
            f"format {name!r} cannot be used",
            "Spark knows it as something other than a Python data source",
            "register a subclass of pyspark's DataSource under another name",
        )
    return made


def with_data_sources(built_in: Formats, find: Find, key: Callable[[], JobKey]) -> Formats:
    """The built-in formats, and whatever is registered when its name is used."""
    return Formats(
        sources=OrRegistered(built_in.sources, find, lambda c: DataSourceFormat(c, key).source),
        sinks=OrRegistered(built_in.sinks, find, lambda c: DataSourceFormat(c, key).sink),
    )


@dataclass(frozen=True, slots=True)
class OrRegistered(Mapping[str, Factory], Generic[Factory]):
    """Factories by name. Lists those that are built in; finds the registered ones too."""

    built_in: Mapping[str, Factory]
    find: Find
    make: Callable[[type[DataSource]], Factory]

    def __getitem__(self, name: str) -> Factory:
        if name in self.built_in:
            return self.built_in[name]
        found = self.find(name) if name else None
        if found is None:
            raise KeyError(name)
        return self.make(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self.built_in)

    def __len__(self) -> int:
        return len(self.built_in)
