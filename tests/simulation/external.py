"""The system that the sinks write to: transactions that open, are pre-committed, and end.

Commits are idempotent by transaction and checked by number: each sink must see 1, 2, 3, … and the
same transactions again if a number is repeated. A new attempt fences the ones before it. What ends
up committed here is the only thing that a user of the job ever sees, so it is what the oracle
judges.
"""

from dataclasses import dataclass, field

from simulation.world import World
from weir.core import commit as commits
from weir.core.ids import OperatorId, SubtaskId
from weir.core.snapshots import Commit, Transaction

Owner = tuple[int, int]
"""(epoch, attempt) of the subtask that opened a transaction."""

Row = tuple[int, int, str, int, int]
"""(split, offset, tag, key, running count)."""


class FencedOut(Exception):
    """A newer attempt writes for this subtask."""


@dataclass
class OpenTransaction:
    """Rows that no reader sees yet."""

    name: str
    subtask: SubtaskId
    owner: Owner
    rows: list[Row] = field(default_factory=list)
    status: str = "open"


class External:
    """A transactional store outside the job."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.transactions: dict[str, OpenTransaction] = {}
        self.committed: list[Row] = []
        self.numbers: dict[OperatorId, dict[int, tuple[str, ...]]] = {}
        self.fences: dict[SubtaskId, Owner] = {}
        self.widths: dict[OperatorId, int] = {}
        """Of the newest deployment; subtasks beyond are of a wider one before it."""

    def write(self, name: str, subtask: SubtaskId, owner: Owner, row: Row) -> None:
        if owner < self.fences.get(subtask, (0, 0)):
            raise FencedOut(name)
        opened = self.transactions.setdefault(name, OpenTransaction(name, subtask, owner))
        if opened.status != "open":
            raise FencedOut(name)
        opened.rows.append(row)

    def pre_commit(self, name: str) -> None:
        opened = self.transactions.get(name)
        if opened is None or opened.status != "open":
            raise FencedOut(name)
        opened.status = "pre-committed"

    def commit(self, commit: Commit) -> None:
        names = tuple(transaction.name for transaction in commit.transactions)
        numbers = self.numbers.setdefault(commit.sink, {})
        if not names and commit.sequence in numbers:
            return
        if numbers.setdefault(commit.sequence, names) != names:
            self.world.violated(
                f"{commit.sink} commit {commit.sequence} was {numbers[commit.sequence]}, "
                f"now {names}"
            )
        if commit.sequence > 1 and commit.sequence - 1 not in numbers:
            self.world.violated(f"{commit.sink} commit {commit.sequence} leaves a gap before it")
        for transaction in commit.transactions:
            self._commit_one(transaction)

    def _commit_one(self, transaction: Transaction) -> None:
        found = self.transactions.get(transaction.name)
        if found is None or found.status in ("open", "aborted"):
            status = "unknown" if found is None else found.status
            self.world.violated(f"{transaction.name} is committed but it is {status}")
        elif found.status == "pre-committed":
            found.status = "committed"
            self.committed.extend(found.rows)

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: Owner, keep: tuple[Transaction, ...]
    ) -> None:
        """Fence older attempts of these subtasks and end what they left open."""
        for subtask in subtasks:
            self.fences[subtask] = max(owner, self.fences.get(subtask, (0, 0)))
        left = [
            name
            for name, found in self.transactions.items()
            if found.owner < owner
            and found.status in ("open", "pre-committed")
            and self._is_of(found.subtask, subtasks)
        ]
        for name in commits.resolve(left, keep).abort:
            self.transactions[name].status = "aborted"

    def _is_of(self, subtask: SubtaskId, subtasks: tuple[SubtaskId, ...]) -> bool:
        """A narrower restart still ends what the wider job before it opened."""
        if subtask in subtasks:
            return True
        return any(
            subtask.operator == other.operator and subtask.index >= self.widths[other.operator]
            for other in subtasks
        )

    def dangling(self) -> list[str]:
        return [
            f"{name} is {found.status}"
            for name, found in self.transactions.items()
            if found.status in ("open", "pre-committed")
        ]
