"""The entries of the job's log: one numbered series of epochs and completed checkpoints.

Each entry is created exclusively at the next number. A driver takes over by consuming the number
that the driver before it would need to complete a checkpoint, so of two drivers of one job at most
one can ever complete anything, without a moment between a check and an act (spec C17).

Every entry also names the checkpoint id up to which its epoch has reserved ids. A successor starts
there, so that even a zombie, which can trigger checkpoints but complete none, never uses an id
that its successor uses too (spec C19).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weir.core.ids import CheckpointId, Epoch, OperatorId
from weir.core.lifecycle import JobStatus
from weir.core.snapshots import CheckpointKind

ID_BLOCK = 16
"""Ids reserved beyond the newest entry of an epoch."""


@dataclass(frozen=True, slots=True)
class EpochTaken:
    """A driver begins its epoch.

    It continues where the log ends, or it starts anew: from a manifest, or from nothing ("").
    """

    epoch: Epoch
    driver: str
    deployment: str
    """The submission that the driver serves; a restarted driver serves the same one."""
    goes_on: bool
    restoring: str
    claims: bool
    ids_until: CheckpointId
    address: str = ""
    """URL of the driver's API, where a driver of another submission asks whether it lives."""


@dataclass(frozen=True, slots=True)
class CheckpointLogged:
    """A checkpoint is complete: this entry is its one commit point."""

    epoch: Epoch
    driver: str
    checkpoint: CheckpointId
    kind: CheckpointKind
    manifest: str
    ids_until: CheckpointId
    numbers: tuple[tuple[OperatorId, int], ...] = ()
    """The commit number that each sink has been given last."""


@dataclass(frozen=True, slots=True)
class IdsReserved:
    """The epoch needs more ids than its last entry reserved."""

    epoch: Epoch
    driver: str
    ids_until: CheckpointId


@dataclass(frozen=True, slots=True)
class JobClosed:
    """The job has ended, with every commit confirmed."""

    epoch: Epoch
    driver: str
    status: JobStatus
    retains: bool
    """Its checkpoints stay, to be restored from; otherwise they go, and the log offers none."""
    ids_until: CheckpointId


Entry = EpochTaken | CheckpointLogged | IdsReserved | JobClosed


def readable(entries: Mapping[int, Entry]) -> tuple[tuple[int, Entry], ...]:
    """The unbroken run of entries that ends at the newest; entries before a gap do not count.

    Old entries are truncated, and a zombie may create one anew far behind the end.
    """
    run: list[tuple[int, Entry]] = []
    for index in sorted(entries, reverse=True):
        if run and index != run[-1][0] - 1:
            break
        run.append((index, entries[index]))
    return tuple(reversed(run))


def numbers_given(entries: Iterable[tuple[int, Entry]]) -> dict[OperatorId, int]:
    """The highest commit number of each sink, in any line of checkpoints."""
    highest: dict[OperatorId, int] = {}
    for _, entry in entries:
        if isinstance(entry, CheckpointLogged):
            for sink, number in entry.numbers:
                highest[sink] = max(number, highest.get(sink, 0))
    return highest


def to_probe(found: Mapping[int, Entry], absent: frozenset[int], floor: int) -> int | None:
    """The entry to read next, until nothing is left: a listing is a hint, and it may be stale.

    A reader continues beyond the newest entry that it knows, and back from the oldest, until it has
    seen both ends missing. Below the floor, which is written down before anything is truncated,
    no entry counts.
    """
    run = above(found, floor)
    newest = run[-1][0] if run else floor - 1
    if newest + 1 not in absent:
        return newest + 1
    oldest = run[0][0] if run else floor
    return oldest - 1 if oldest > floor and oldest - 1 not in absent else None


def above(found: Mapping[int, Entry], floor: int) -> tuple[tuple[int, Entry], ...]:
    """What is readable of the entries that truncation has left."""
    return readable({index: entry for index, entry in found.items() if index >= floor})


def is_conclusive(found: Mapping[int, Entry], floor: int) -> bool:
    """Whether the log has been read. One that was ever truncated is not empty: read it again."""
    return floor == 0 or bool(above(found, floor))
