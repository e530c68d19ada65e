"""Spark's Python daemon with everything imported that a slot needs, and no more.

Spark forks its workers from a daemon. Imports take more than half a second, so they happen here,
once, and a killed slot is replaced by a fork that is ready at once. The daemon only imports: a
thread or a lock that was used before a fork would be broken after it. It stands outside
``weir.spark``, which would bring the driver's side along.
"""

import sys
from pathlib import Path


def without_copies(path: list[str]) -> list[str]:
    """The search path without archives of what is installed beside them.

    Spark puts its own zipped copy of PySpark first. Modules in an archive are compiled whenever a
    process starts, and every fork reads the archive's whole directory again.
    """
    searched = {Path(entry).resolve() for entry in path}
    return [entry for entry in path if not _is_copy(Path(entry).resolve(), searched)]


def _is_copy(entry: Path, searched: set[Path]) -> bool:
    """Whether it lies inside the installed PySpark, and its content is installed too."""
    content = entry.name.partition(".")[0].partition("-")[0]
    installed = next((p.parent for p in entry.parents if p.name == "pyspark"), None)
    if entry.suffix != ".zip" or installed not in searched:
        return False
    return (installed / content / "__init__.py").exists()


sys.path[:] = without_copies(sys.path)

import pyspark.daemon  # noqa: E402 - from where it is installed

from weir.slot.slot_process import host_subtasks  # noqa: E402 - as above

PRELOADED = host_subtasks


def start() -> None:
    """Fork workers for as long as Spark wants some."""
    pyspark.daemon.manager()


if __name__ == "__main__":
    start()
