"""Reads splits as a slot's mailbox does: asks again and again, and never waits inside."""

from collections.abc import Callable

from wait_until import until
from weir.ports.operators import Batch
from weir.ports.sources import Reader


def next_batch(reader: Reader, rows: int = 1000) -> Batch | None:
    """The next rows; None when the split has no more."""
    found: list[Batch] = []

    def looks() -> bool:
        batch = reader.read(rows)
        if batch is not None:
            found.append(batch)
        return bool(found) or reader.is_exhausted

    until("rows or the end of the split", looks, lambda: reader.position)
    return found[0] if found else None


def rest_of(reader: Reader, rows: int = 1000) -> list[tuple[object, ...]]:
    """All rows to the end of the split, as tuples."""
    taken: list[tuple[object, ...]] = []
    while not reader.is_exhausted:
        batch = next_batch(reader, rows)
        if batch is not None:
            taken += [tuple(row.values()) for row in batch.to_pylist()]
    return taken


def patiently(look: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    until("what another thread does", look, str)
