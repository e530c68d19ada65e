"""Where sealed rows wait for their commit: one file a transaction, under ``_staging``.

Readers that take the directory for a table, such as Spark, skip names that begin with an
underscore. A writer's rows go to an unnamed local file first, in pieces, so that memory is bounded
and a crash leaves nothing behind. Sealing only sets that file aside; another thread encodes the
last piece, uploads the file and flushes it to disk, so that the mailbox does not wait.
"""

import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from typing import IO

import pyarrow as pa

from weir.connectors import transaction_names
from weir.connectors.encodings import Encoder, Encoding
from weir.connectors.transaction_names import TransactionName
from weir.core.ids import SubtaskId
from weir.ports.operators import Batch, TaskInfo
from weir.ports.sinks import SealedTransaction
from weir.storage.stores import ObjectStore

PIECE_BYTES = 8 << 20
"""Rows that wait in memory to become one piece of a file, such as a row group; 20 ms of work."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The staged files of one sink."""

    store: ObjectStore
    directory: str
    encoding: Encoding

    def url(self, name: str) -> str:
        return f"{self.directory}/_staging/{name}.{self.encoding}"

    def names(self) -> list[TransactionName]:
        """What is staged, by anyone."""
        ending = f".{self.encoding}"
        urls = self.store.list(f"{self.directory}/_staging")
        files = (url.rpartition("/")[2] for url in urls if url.endswith(ending))
        parsed = (transaction_names.parse(file.removesuffix(ending)) for file in files)
        return sorted(name for name in parsed if name)

    def discard(self, names: Iterable[str]) -> None:
        self.store.delete(self.url(name) for name in names)

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        """Delete what older owners of these subtasks left.

        With an older epoch everything of the same operator goes, for no subtask of that epoch
        lives on: some may be beyond the width that the job has now.
        """
        operators = {subtask.operator for subtask in subtasks}
        left = (
            name
            for name in self.names()
            if name.owner < owner
            and (name.subtask in subtasks or name.epoch < owner[0])
            and name.subtask.operator in operators
        )
        self.discard(str(name) for name in left if str(name) not in keep)


class StagedFile:
    """One transaction on its way into the staging directory."""

    def __init__(self, staging: Staging, name: str, file: IO[bytes]) -> None:
        self._staging = staging
        self._name = name
        self._file = file
        self._encoder: Encoder | None = None
        self._waiting: list[Batch] = []
        self._waiting_bytes = 0
        self._uploading = threading.Lock()

    def add(self, batch: Batch) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= PIECE_BYTES:
            self._encode_waiting()

    def make_durable(self) -> None:
        """May be called again: after a failure it retries, after a success it does nothing."""
        with self._uploading:
            if self._file.closed:
                return
            self._finish()
            self._file.flush()
            content = mmap(self._file.fileno(), 0, access=ACCESS_READ)
            self._staging.store.write(self._staging.url(self._name), memoryview(content))
            self._file.close()

    def drop(self) -> None:
        """Give the local file up, in the order that encoders need."""
        if not self._file.closed:
            self._waiting = []
            self._finish()
            self._file.close()

    def __del__(self) -> None:
        """Delete the local file of a transaction that never became durable."""
        self.drop()

    def _encode_waiting(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._encoder is None:
            self._encoder = self._staging.encoding.encoder(self._file, table.schema)
        self._encoder.append(table)
        self._waiting, self._waiting_bytes = [], 0

    def _finish(self) -> None:
        self._encode_waiting()
        if self._encoder is not None:
            self._encoder.finish()
            self._encoder = None


class StagingWriter:
    """A subtask's end of every sink that stages files."""

    def __init__(self, staging: Staging, place: TaskInfo, token: str) -> None:
        self._staging = staging
        self._name = transaction_names.first_name(place, token)
        self._open: StagedFile | None = None

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        if self._open is None:
            file = tempfile.TemporaryFile()  # noqa: SIM115  # closed once it is durable
            self._open = StagedFile(self._staging, str(self._name), file)
        self._open.add(batch)

    def seal(self) -> SealedTransaction | None:
        if self._open is None:
            return None
        sealed = SealedTransaction(str(self._name), self._open.make_durable)
        self._name = self._name._replace(counter=self._name.counter + 1)
        self._open = None
        return sealed

    def close(self) -> None:
        if self._open is not None:
            self._open.drop()
