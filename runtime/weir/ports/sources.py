"""What a slot and a driver expect of a source: splits that anyone can open at any position.

A split's id is the whole description of the split, so that an assignment or a checkpoint carries
nothing else. A position is text of the source's own making; reading again from it must give the
same rows (spec R5).
"""

import json
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, runtime_checkable

import pyarrow as pa

from weir.core.ids import Millis, SplitId
from weir.ports.operators import Batch

SPLITS = "splits"
"""The name of a source's state: an item for each split that it has not read to its end."""


EVENT_TIME = "event time"
"""The name of the state with a source's event time: one item from each of its readers."""


class CheckpointedTime(NamedTuple):
    """The event time of a reader in a checkpoint, without the delay that is allowed to rows."""

    reached: Millis
    """All of its splits had come this far."""
    exhausted: Millis
    """The greatest event time of the splits that it has read to their ends."""

    def encode(self) -> bytes:
        return json.dumps(self).encode()

    @classmethod
    def decode(cls, item: bytes) -> Self:
        return cls(*json.loads(item))


class CheckpointedSplit(NamedTuple):
    """A split in a checkpoint, once it was assigned."""

    split: SplitId
    position: str
    latest: Millis
    """The greatest event time that was read from it."""

    def encode(self) -> bytes:
        return json.dumps(self).encode()

    @classmethod
    def decode(cls, item: bytes) -> Self:
        return cls(*json.loads(item))


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a look around found."""

    splits: tuple[SplitId, ...]
    """New ones, each named exactly once over the life of the job."""
    seen: str
    """Up to where discovery has come: kept in checkpoints and handed to the next look."""
    is_final: bool
    """No look will ever find more."""


class Reader(Protocol):
    """One open split. Belongs to the mailbox thread, so it never waits."""

    def read(self, rows: int) -> Batch | None:
        """Up to so many rows; None when nothing is there at the moment."""

    @property
    def position(self) -> str:
        """Where reading continues after the last batch that was returned."""

    @property
    def is_exhausted(self) -> bool:
        """Nothing is left in this split, and nothing will come."""

    @property
    def rest_ms(self) -> int:
        """How long there is nothing to ask for; zero when rows may be there at once."""

    def close(self) -> None: ...


class Source(Protocol):
    """A description that travels to the slots by pickle; it opens nothing when it is made."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def is_endless(self) -> bool:
        """A split may never end, so a reader must take every one it can get."""

    @property
    def is_bounded(self) -> bool:
        """The source ends by itself, and so does a job that reads nothing else."""

    def discover(self, seen: str) -> Discovery:
        """Look around, in the driver. ``seen`` is empty at the first look of a job."""

    def open(self, split: SplitId, position: str) -> Reader:
        """Open a split in a slot, from its beginning when the position is empty."""


@runtime_checkable
class CheckpointListener(Protocol):
    """What a source may be besides: one that wants to know what is never asked for again."""

    def completed(self, seen: str, unread: tuple[SplitId, ...]) -> None:
        """Called in the driver, on a separate thread, after a checkpoint that a job recovers from.

        What discovery had seen by then is never read again, except these splits.
        """

    def stop(self) -> None:
        """The driver is done with the source. Called once, in the driver."""
