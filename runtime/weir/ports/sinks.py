"""What a slot and a driver expect of a sink: transactions that are sealed here, committed there.

A slot's writer puts rows into a hidden transaction, and seals it at each barrier. The
driver's committer makes sealed transactions visible once their checkpoint is complete. Committing
is idempotent by number; a transaction's name contains its writer (spec R5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from weir.core.ids import OperatorId, SubtaskId
from weir.ports.operators import Batch, TaskInfo


@dataclass(frozen=True, slots=True)
class SealedTransaction:
    """A transaction that takes no more rows."""

    name: str
    make_durable: Callable[[], None]
    """Runs on an upload thread, before the ack; raising declines the checkpoint."""


class Writer(Protocol):
    """One subtask's end of a sink. Belongs to the mailbox thread."""

    def write(self, batch: Batch) -> None: ...

    def seal(self) -> SealedTransaction | None:
        """End the open transaction; None if it has no rows."""

    def close(self) -> None:
        """Leave everything as it is: the restart of the subtask resolves it."""


class Committer(Protocol):
    """The driver's end of a sink. Belongs to one thread other than the driver's loop."""

    def commit(self, sequence: int, names: tuple[str, ...]) -> None:
        """Make these visible together; the same number again is a no-op."""

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        """Abort what older owners (epoch, attempt) of these subtasks left, except what is kept."""


@dataclass(frozen=True, slots=True)
class SinkOwner:
    """The job that writes to a sink's target."""

    job: str
    """The job's checkpoint directory."""
    sink: OperatorId
    commits: int
    """The highest number that one of its commits has; zero if none was made."""
    may_take_over: bool
    """It restores state from outside its own directory, so it may continue another's output."""

    def __str__(self) -> str:
        return f"sink {self.sink} of job {self.job}"


@runtime_checkable
class ClaimsTarget(Protocol):
    """What a committer may be besides: one whose place belongs to one job at a time."""

    def claim(self, owner: SinkOwner) -> None:
        """Called once, before the first resolution and commit; refuses a place of another job."""


class Sink(Protocol):
    """A description that travels to the slots by pickle; it opens nothing when it is made."""

    def open(self, place: TaskInfo) -> Writer: ...

    def committer(self) -> Committer: ...
