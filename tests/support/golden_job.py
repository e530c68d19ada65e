"""The job whose savepoints are kept, so that every later release proves to read them.

It has one of everything: a source with positions, a processor with each kind of state and timers,
an aggregation, and a sink with transactions. Run as a program it makes a savepoint of today and
puts it where it is to be kept, with what it must hold, as the generator and not the job says:

    python tests/support/golden_job.py /tmp/golden tests/golden/v2
"""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, also of unused parameters

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from weir import JobFailed, Stream, StreamingJob, WeirSession
from weir import functions as F  # noqa: N812 - as users write it
from weir.connectors.generator_options import expected_rows
from weir.core.ids import OperatorId, SplitId
from weir.core.snapshots import Manifest
from weir.dataflow.options import Options
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of
from weir.storage import manifests
from weir.storage.inspection import StateFileReaders, describe
from weir.storage.stores import store_for

FAR_AHEAD_MS = 4_102_444_800_000
"""The year 2100: such a timer never fires in a test."""

GENERATED = {"splits": "2", "keys": "5", "rows": "1000", "rowsPerSecond": "20"}
SECONDS = 2.0
NOWHERE = "file:///savepoint"
"""Where a savepoint says it was made."""

PROCESSED = "key long, value long, total long"


class OneOfEach(StatefulProcessor):
    """Keeps a sum, the last rows, a count by parity and a timer for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._total = handle.getValueState("total", "total long, rows int")
        self._seen = handle.getListState("seen", "value long")
        self._parities = handle.getMapState("parities", "parity string", "rows long")

    def handleInputRows(
        self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        total, count = self._total.get() or (0, 0)
        for row in rows:
            parity = ("odd" if row.value % 2 else "even",)
            known = self._parities.getValue(parity)
            self._parities.updateValue(parity, ((known[0] if known else 0) + 1,))
            self._seen.appendValue((row.value,))
            total, count = total + row.value, count + 1
            yield Row(key=row.key, value=row.value, total=total)
        self._total.update((total, count))
        self._handle.registerTimer(FAR_AHEAD_MS + key[0])

    def close(self) -> None:
        """Nothing to close."""


def golden_stream(session: WeirSession) -> Stream:
    rows = session.readStream.format("generator").options(**GENERATED).load().uid("rows")
    processed = (
        rows.groupBy("key")
        .transformWithState(OneOfEach(), PROCESSED, timeMode="ProcessingTime")
        .uid("each")
    )
    sums = processed.groupBy("key").agg(F.sum("value").alias("sum"), F.count("*").alias("rows"))
    return sums.uid("sums")


def make(home: Path) -> str:
    """Let the job run for a moment; where its savepoint is."""
    session = (
        WeirSession.builder.appName("golden")
        .config("weir.parallelism", 2)
        .config("weir.maxParallelism", 8)
        .config("weir.checkpointing.interval", "1 h")
        .config("weir.checkpointing.inlineThreshold", "1 KiB")
        .config("weir.checkpointing.storage", f"file://{home}/checkpoints")
        .getOrCreate()
    )
    written = golden_stream(session).writeStream.format("parquet").uid("files")
    job: StreamingJob = written.start(str(home / "output"))
    _until_it_runs(job)
    time.sleep(SECONDS)
    where = job.savepoint(f"file://{home}/savepoint")
    job.stop()
    session.stop()
    return where


def _until_it_runs(job: StreamingJob) -> None:
    while True:
        with suppress(JobFailed):
            job.checkpoint()
            return
        time.sleep(0.1)


def keep(where: str, folder: Path) -> None:
    """Copy the savepoint without a trace of the place where it was made."""
    store = store_for(where)
    found = manifests.read(store, f"{where}/_metadata")
    assert isinstance(found, Manifest), found
    moved = manifests.decode(manifests.encode(found), NOWHERE)
    assert isinstance(moved, Manifest), moved
    folder.mkdir(parents=True)
    for url in store.list(where):
        (folder / url.rpartition("/")[2]).write_bytes(store.read(url))
    (folder / "_metadata").write_bytes(manifests.encode(moved))
    description = describe(store, found, StateFileReaders(header_of, read_list))
    positions = description.by_uid[OperatorId("rows")].positions
    expected = {"positions": positions, **_expected({k: int(v) for k, v in positions.items()})}
    folder.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")


def _expected(positions: Mapping[SplitId, int]) -> dict[str, object]:
    """What the states hold after these rows of the generator; text for keys, as JSON has it."""
    rows = [
        row
        for split, position in sorted(positions.items())
        for row in expected_rows(
            Options("generator", GENERATED), int(split), 0, position
        ).to_pylist()
    ]
    seen: dict[str, list[int]] = {}
    for row in rows:
        seen.setdefault(str(row["key"]), []).append(row["value"])
    return {
        "total": {key: [sum(values), len(values)] for key, values in seen.items()},
        "seen": {key: sorted(values) for key, values in seen.items()},
        "parities": {key: _parities(values) for key, values in seen.items()},
        "timers": {key: FAR_AHEAD_MS + int(key) for key in seen},
    }


def _parities(values: list[int]) -> dict[str, int]:
    return dict(Counter("odd" if value % 2 else "even" for value in values))


if __name__ == "__main__":
    keep(make(Path(sys.argv[1]).absolute()), Path(sys.argv[2]))
