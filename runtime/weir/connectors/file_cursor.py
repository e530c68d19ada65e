"""Reads one file from any position, after checking that the file has not changed.

A position is ``block:row:digest``: the next row, and a digest of every block up to that row's own.
The row after the last one is row zero of the block behind the last.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import xxhash

from weir.connectors.file_blocks import Blocks, conformed
from weir.errors import JobRejected
from weir.ports.operators import Batch
from weir.storage.stores import NotFound


class SplitChanged(JobRejected):
    """A file is no longer what a checkpoint has read of it."""


class Position(NamedTuple):
    """The next row to read."""

    block: int
    row: int
    digest: str

    def __str__(self) -> str:
        return f"{self.block}:{self.row}:{self.digest}"


def parse_position(text: str) -> Position:
    block, row, digest = text.split(":")
    return Position(int(block), int(row), digest)


@contextmanager
def blaming(url: str) -> Iterator[None]:
    """Say of which file a format's library complains."""
    try:
        yield
    except (FileNotFoundError, NotFound) as reason:
        raise JobRejected(
            f"{url} was found by the source and is gone now",
            "no file has this path any more, and no completed checkpoint is behind it",
            "put it back; files may be deleted once a checkpoint has been completed behind them",
        ) from reason
    except (OSError, pa.ArrowException) as reason:
        raise JobRejected(
            f"{url} cannot be read",
            str(reason),
            "replace it if it is damaged, of another format or was incomplete when it appeared, "
            "or remove it and start without it",
        ) from reason


class Cursor:
    """One file, always decoded up to the next row."""

    def __init__(self, url: str, blocks: Blocks, schema: pa.Schema, position: str) -> None:
        self._url = url
        self._blocks = blocks
        self._schema = schema
        self._digest = xxhash.xxh3_64(blocks.identity())
        begin = parse_position(position) if position else Position(0, 0, "")
        self._block = begin.block
        self._row = begin.row
        self._pass_blocks(begin)
        self._coming = self._decode_from(begin)
        self._ahead = next(self._coming, None)

    @property
    def position(self) -> str:
        return str(Position(self._block, self._row, self._digest.hexdigest()))

    @property
    def is_exhausted(self) -> bool:
        return self._ahead is None

    def read(self, rows: int) -> Batch | None:
        batch = self._ahead
        if batch is None:
            return None
        taken = batch.slice(0, rows)
        self._row += taken.num_rows
        self._ahead = batch.slice(rows) if rows < batch.num_rows else self._next()
        return taken

    def _next(self) -> Batch | None:
        with blaming(self._url):
            return next(self._coming, None)

    def _decode_from(self, begin: Position) -> Iterator[Batch]:
        """Non-empty batches; between two of them the place may move on to another block."""
        skip = begin.row
        while self._block < self._blocks.count:
            for batch in self._blocks.batches(self._block):
                rest = batch.slice(skip)
                skip = max(0, skip - batch.num_rows)
                if rest.num_rows:
                    yield conformed(rest, self._schema, self._url)
            self._block, self._row = self._block + 1, 0
            self._take_in(self._block)

    def _pass_blocks(self, begin: Position) -> None:
        """Take in all blocks that the position's digest covers, and compare."""
        for block in range(begin.block + 1):
            self._take_in(block)
        if begin.digest and begin.digest != self._digest.hexdigest():
            raise SplitChanged(
                f"{self._url} has changed since a checkpoint was taken in the middle of it",
                "the rest of it would not fit what was read",
                "put the old content back, or restore a checkpoint from before this file was read",
            )

    def _take_in(self, block: int) -> None:
        if block < self._blocks.count:
            self._digest.update(self._blocks.raw(block))
