"""Runs a PySpark ``DataSourceStreamWriter`` as a two-phase sink.

``write`` gets the rows between two barriers in the slots, and its message is the pre-commit; it is
staged beside the job's checkpoints. ``commit`` runs in the driver once the checkpoint is complete,
with the numbers 0, 1, 2, … as ``batchId`` (spec D1, R5, C19). A commit that is known to have
succeeded is not repeated. One whose outcome is unknown after a driver's death is repeated with its
number, by which the writer must recognize it. Messages of dead attempts go to ``abort``; as in
PySpark the message of a ``write`` that failed is None.

As in PySpark each ``write`` and each ``commit`` has a new writer object, and a subtask that had no
rows has no message in the list.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Thread
from typing import Self

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from weir.connectors import transaction_names
from weir.connectors.commit_records import CommitRecord, CommitRecords
from weir.connectors.pyspark.commit_messages import CommitMessages, MessageGone
from weir.connectors.pyspark.conversion import struct_of
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.connectors.pyspark.write_call import WriteCall
from weir.connectors.transaction_names import new_token
from weir.core.ids import SubtaskId
from weir.errors import JobRejected
from weir.ports.operators import Batch, TaskInfo
from weir.ports.sinks import SealedTransaction
from weir.ports.user_code_errors import UserCodeFailed
from weir.storage.stores import store_for

log = logging.getLogger("weir.connectors")

RECORDS_KEPT = 1000
"""Commits that are remembered, so that a restored checkpoint which is not older repeats none."""


class NotWritable(JobRejected):
    """A data source has no stream writer."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"data source {name} cannot be written to as a stream",
            "it has no streamWriter",
            "implement it",
        )


@dataclass(frozen=True, slots=True)
class StreamSink:
    """A data source that can be written to as a stream."""

    name: str
    data: DataSource
    schema: pa.Schema
    key: JobKey
    directory: str
    """Where messages wait for their commit; every slot and every driver of the job reaches it."""
    token: str = field(default_factory=new_token)

    def kept_in(self, directory: str) -> Self:
        return replace(self, directory=directory)

    def open(self, place: TaskInfo) -> "StreamWriter":
        return StreamWriter(self, place)

    def committer(self) -> "StreamCommitter":
        return StreamCommitter(self)

    def writer(self) -> DataSourceStreamWriter:
        """A new one, for one call."""
        try:
            return self.data.streamWriter(struct_of(self.schema), overwrite=False)
        except PySparkNotImplementedError:
            raise NotWritable(self.name) from None

    def messages(self) -> CommitMessages:
        return CommitMessages(store_for(self.directory), self.directory, self.key)

    def records(self) -> CommitRecords:
        return CommitRecords(store_for(self.directory), self.directory)


@contextmanager
def blaming_user_code(sink: str, method: str, batch: int) -> Iterator[int]:
    """Whatever it raises is named by what was called, for which batch."""
    try:
        yield batch
    except NotWritable:
        raise
    except Exception as problem:  # user code may raise anything
        raise UserCodeFailed(f"data source {sink}: {method}()", f"batch {batch}") from problem


class StreamWriter:
    """A subtask's end. One thread runs the calls of ``write``, one after the other."""

    def __init__(self, sink: StreamSink, place: TaskInfo) -> None:
        self._sink = sink
        self._messages = sink.messages()
        self._name = transaction_names.first_name(place, sink.token)
        self._open: WriteCall | None = None
        self._sealed: list[WriteCall] = []
        self._calls: SimpleQueue[WriteCall | None] = SimpleQueue()
        Thread(target=self._run, name=f"weir-write-{sink.name}", daemon=True).start()

    def write(self, batch: Batch) -> None:
        self._check_sealed()
        if not batch.num_rows:
            return
        if self._open is None:
            self._open = WriteCall(self._sink.name, str(self._name), batch)
            self._calls.put(self._open)
        self._open.add(batch)

    def seal(self) -> SealedTransaction | None:
        """The rows of this transaction end; its message is awaited beside the mailbox."""
        self._check_sealed()
        if self._open is None:
            return None
        call = self._open
        call.end()
        self._sealed.append(call)
        self._open = None
        self._name = self._name._replace(counter=self._name.counter + 1)
        return SealedTransaction(call.name, lambda: self._messages.put(call.name, call.message()))

    def close(self) -> None:
        if self._open is not None:
            self._open.give_up()
        self._calls.put(None)

    def _check_sealed(self) -> None:
        """A sealed transaction that failed can never be committed: only a restart helps."""
        for call in self._sealed:
            call.check()
        self._sealed = [call for call in self._sealed if not call.has_returned]

    def _run(self) -> None:
        struct = struct_of(self._sink.schema)
        while (call := self._calls.get()) is not None:
            call.run(self._sink.writer, struct, self._note_failure)

    def _note_failure(self, name: str) -> None:
        """Leave something to be aborted; what made the call fail matters more than this does."""
        try:
            self._messages.put(name, None)
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            log.warning("Sink %s: %s will not be aborted: %s", self._sink.name, name, problem)


class StreamCommitter:
    """The driver's end."""

    def __init__(self, sink: StreamSink) -> None:
        self._sink = sink
        self._messages = sink.messages()
        self._records = sink.records()

    def commit(self, sequence: int, names: tuple[str, ...]) -> None:
        if self._records.find(sequence, names) is None:
            messages = self._owed(names)
            with blaming_user_code(self._sink.name, "commit", sequence - 1) as batch:
                self._sink.writer().commit(messages, batch)
            self._records.create(CommitRecord(sequence, names, ()))
            self._records.forget(sequence - RECORDS_KEPT)
        self._messages.discard(names)

    def _owed(self, names: tuple[str, ...]) -> list[WriterCommitMessage | None]:
        """The messages that no commit has had: a savepoint may hold some that were committed."""
        try:
            return [self._messages.get(name) for name in names]
        except MessageGone:
            done = {name for record in self._records.all() for name in record.names}
        try:
            return [self._messages.get(name) for name in names if name not in done]
        except MessageGone as gone:
            raise JobRejected(
                f"data source {self._sink.name}: the commit message {gone} is not there",
                "the job goes back to a savepoint whose output was aborted since, or its "
                "directory was cleared",
                "restore a newer checkpoint",
            ) from gone

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        names = [name for name in self._messages.left_by(subtasks, owner) if name not in keep]
        if not names:
            return
        log.info("Sink %s aborts %s transactions of dead attempts.", self._sink.name, len(names))
        messages = [self._messages.get(name) for name in names]
        with blaming_user_code(self._sink.name, "abort", self._records.newest()) as batch:
            self._sink.writer().abort(messages, batch)
        self._messages.discard(names)
