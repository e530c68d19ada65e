"""Compares two captures of a state: which keys have another value now, and which have none.

Captures share chunks until a write, and values are replaced rather than changed, so what is
the same object in both captures is unchanged, and a chunk that is the same object need not even be
looked into (spec S3, S4). A key may have moved to another row; then it is gone from the one and
there in the other, which comes to the same.

A capture is remembered for as long as a later one may build on it, and not longer.
"""

from collections.abc import Iterator, Mapping
from itertools import compress, zip_longest
from operator import is_not, or_
from typing import Any, NamedTuple

from weir.core.ids import CheckpointId
from weir.state.memory.chunks import CHUNK_ROWS, Chunk

Key = tuple[object, ...]

MOST_REMEMBERED = 8
"""Of captures that later ones may be compared with: the oldest, and the newest ones."""

_EMPTY: Chunk[Any] = [None] * CHUNK_ROWS


class Version(NamedTuple):
    """The keys and one state, row by row, as they were at a capture."""

    keys: tuple[Chunk[Key], ...]
    values: tuple[Chunk[Any], ...]


class Change(NamedTuple):
    """What became of a key's row; a value of None is no value any more."""

    key: Key
    value: Any


def changes(old: Version, new: Version) -> Iterator[Change]:
    """Removals and new values. A key that was removed may come again with a value."""
    pairs = zip_longest(old.keys, old.values, new.keys, new.values, fillvalue=_EMPTY)
    for old_keys, old_values, new_keys, new_values in pairs:
        if old_values is not new_values or old_keys is not new_keys:
            # Most rows of a chunk are often the same; no loop in Python goes over those.
            is_other = map(
                or_, map(is_not, old_values, new_values), map(is_not, old_keys, new_keys)
            )
            rows = zip(old_keys, old_values, new_keys, new_values, strict=True)
            yield from _changes_of(compress(rows, is_other))


def _changes_of(rows: Iterator[tuple[Any, Any, Any, Any]]) -> Iterator[Change]:
    for old_key, old_value, key, value in rows:
        if old_value is not None and (value is None or key is not old_key):
            yield Change(old_key, None)
        if value is not None:
            yield Change(key, value)


class RememberedCaptures:
    """The captures of one operator's states that later ones may be compared with."""

    def __init__(self) -> None:
        self._captured: dict[CheckpointId, Mapping[str, Version]] = {}

    def remember(self, checkpoint: CheckpointId, states: Mapping[str, Version]) -> None:
        self._captured[checkpoint] = states
        while len(self._captured) > MOST_REMEMBERED:
            del self._captured[sorted(self._captured)[1]]

    def completed(self, checkpoint: CheckpointId) -> None:
        """No snapshot builds on an older one any more."""
        self._captured = {c: kept for c, kept in self._captured.items() if c >= checkpoint}

    def known(self) -> Mapping[CheckpointId, Mapping[str, Version]]:
        """As of now, for a writer on another thread than the mailbox."""
        return dict(self._captured)
