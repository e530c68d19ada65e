"""Batches and files of a simulated job: tuples of rows, and values instead of bytes.

The production slot moves batches and file contents without looking inside, so tuples serve as well
as Arrow, and a schedule takes a fraction of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulation.scenario import MAX_PARALLELISM
from simulation.world import World
from weir.core.key_groups import group_of, hash_of_long
from weir.core.snapshots import KeyGroupRange
from weir.ports.operators import Batch

KEYS = 7
GROUPS = {key: group_of(hash_of_long(key), MAX_PARALLELISM) for key in range(KEYS)}

Row = tuple[int, int, str, int, int]
"""(split, offset, tag, key, count); the tag names the branch."""


def key_of(split: int, offset: int) -> int:
    """Neighbours often share a key, so that a changed order shows."""
    return (split * 5 + offset // 3) % KEYS


def time_of(row: Row) -> int:
    return row[0] * 1000 + row[1]


class Rows(tuple[Row, ...]):
    """A batch."""

    __slots__ = ()

    @property
    def num_rows(self) -> int:
        return len(self)

    def slice(self, offset: int, length: int | None = None) -> "Rows":
        return Rows(self[offset:] if length is None else self[offset : offset + length])


@dataclass(frozen=True)
class Content:
    """What a file of a snapshot holds."""

    value: Any
    name: str = ""
    is_changes: bool = False
    """Rows that changed since a checkpoint, over the files of that checkpoint."""

    @property
    def size(self) -> int:
        return len(self.value) + 1


class RowsFormat:
    """The formats of ``weir.slot.row_format``, for tuples."""

    def __init__(self, world: World) -> None:
        self._world = world

    def merge(self, elements: Sequence[Batch]) -> list[Batch]:
        if len(elements) == 1:
            return list(elements)
        return [Rows(row for batch in elements for row in batch)]

    def size_of(self, batch: Batch) -> int:
        return len(batch)

    def write_list(self, items: Sequence[Any]) -> Content:
        return Content(tuple(items))

    def read_list(self, content: Content, first: int, stop: int) -> list[Any]:
        return list(content.value[first:stop])

    def state_name(self, content: Content) -> str:
        return content.name

    def is_empty(self, content: Content) -> bool:
        return not content.value

    def write_in_flight(self, batches: Sequence[object]) -> Content:
        return Content(tuple(batches))

    def read_in_flight(
        self,
        content: Content,
        groups: KeyGroupRange | None,
        keys: Sequence[str],
        max_parallelism: int,
    ) -> list[Batch]:
        del keys, max_parallelism
        self._world.saw("replayed in-flight data")
        if groups is None:
            return list(content.value)
        kept = [Rows(row for row in rows if GROUPS[row[3]] in groups) for rows in content.value]
        return [rows for rows in kept if rows]
