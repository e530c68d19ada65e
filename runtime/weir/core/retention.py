"""Decides what may be deleted, and when; nothing else in Weir may decide that.

Files are deleted in three cases: a newer checkpoint subsumes old ones, the job ends, or the garbage
collector removes what dead processes left behind. Savepoints belong to the user, and the job never
deletes them (spec C12). Garbage is determined from what storage holds, and only files of older
epochs qualify, because the current epoch may be about to refer to its own (spec S4).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from weir.core.ids import Epoch
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy, Retention

Kept = TypeVar("Kept")

_DISCARDED: dict[Retention, frozenset[JobStatus]] = {
    Retention.RETAIN_ON_CANCELLATION: frozenset({JobStatus.FINISHED}),
    Retention.RETAIN_ON_FAILURE: frozenset(
        {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.STOPPED}
    ),
    Retention.NEVER_RETAIN_AFTER_TERMINATION: frozenset(
        {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.STOPPED, JobStatus.FAILED}
    ),
}


def discards_at_end(policy: Policy, status: JobStatus) -> bool:
    """Whether the retained checkpoints go when the job ends like this."""
    assert status.is_terminal, "only an end discards"
    if policy.managed and status in (JobStatus.CANCELED, JobStatus.STOPPED):
        return False
    return status in _DISCARDED[policy.retention]


def subsume(completed: Sequence[Kept], retained: int) -> tuple[Sequence[Kept], Sequence[Kept]]:
    """(kept, subsumed) of the completed checkpoints, oldest first."""
    cut = max(len(completed) - retained, 0)
    return completed[cut:], completed[:cut]


class StoredFile(NamedTuple):
    """A file as a listing shows it, with the epoch that its name carries."""

    path: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """What a garbage collector has read: the log's newest epoch, all files, all references."""

    epoch: Epoch
    files: tuple[StoredFile, ...]
    referenced: frozenset[str]
    """By the manifests of completed checkpoints and of savepoints."""


def garbage(facts: StorageFacts) -> tuple[str, ...]:
    return tuple(
        sorted(
            file.path
            for file in facts.files
            if file.path not in facts.referenced and file.epoch < facts.epoch
        )
    )


def truncatable(entry_of_oldest_kept: int, entry_of_epoch: int, margin: int) -> int:
    """Log entries below this number may go: far behind everything that a reader could need."""
    return max(min(entry_of_oldest_kept, entry_of_epoch) - margin, 0)


def unreferenced(paths: Iterable[str], owned: frozenset[str]) -> tuple[str, ...]:
    """The files of an unused ack, without those that some checkpoint owns (spec C7)."""
    return tuple(sorted({path for path in paths if path not in owned}))
