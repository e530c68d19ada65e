"""Weir runs checkpointed, stateful dataflows on PySpark.

This module holds the public names. ``weir.testing`` is public too; every other module is internal
and may change in any release. ``docs/api.md`` describes the names, ``__init__.pyi`` gives their
types to type checkers.

A name is imported when it is first used. So ``import weir`` is cheap and works in a plain
installation, and a name whose libraries are missing says which extra brings them.
"""

from importlib import import_module

from weir.errors import JobRejected, Unavailable, WeirError
from weir.extras import MissingExtra, require_extra

__all__ = [
    "BroadcastProcessFunction",
    "BroadcastState",
    "CheckpointStatistics",
    "Client",
    "JobFailed",
    "JobRejected",
    "JobStatus",
    "ListState",
    "MissingExtra",
    "ProcessFunction",
    "Savepoint",
    "StateHandle",
    "Stream",
    "StreamingJob",
    "Unavailable",
    "WeirError",
    "WeirSession",
    "__version__",
    "functions",
    "read_committed",
    "running_jobs",
]

__version__ = "0.1.0"

_WITHOUT_SPARK = {
    "BroadcastProcessFunction": "weir.dataflow.process_functions",
    "BroadcastState": "weir.dataflow.process_functions",
    "CheckpointStatistics": "weir.rest.checkpoint_statistics",
    "Client": "weir.cli.client",
    "JobStatus": "weir.core.lifecycle",
    "ListState": "weir.dataflow.process_functions",
    "ProcessFunction": "weir.dataflow.process_functions",
    "StateHandle": "weir.dataflow.process_functions",
    "running_jobs": "weir.cli.job_lookup",
}
_WITH_SPARK = {
    "JobFailed": "weir.spark",
    "Savepoint": "weir.spark.bootstrap",
    "Stream": "weir.dataflow.stream",
    "StreamingJob": "weir.spark",
    "WeirSession": "weir.spark",
    "functions": "weir.dataflow.functions",
    "read_committed": "weir.connectors.file_sink",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name in _WITH_SPARK:
        require_extra("spark", f"weir.{name}", "polars", "pyspark", "sqlglot")
    path = _WITH_SPARK.get(name) or _WITHOUT_SPARK.get(name)
    if path is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(path)
    found: object = module if path.endswith(f".{name}") else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
