"""Names a staged file so that the name identifies its writer.

By the epoch and the attempt in a name, a later attempt distinguishes the leftovers of a dead one
from its own files. Every build of a job's graph draws a new token: two jobs that use one directory
by mistake never take each other's files for their own.
"""

import uuid
from typing import NamedTuple
from urllib.parse import quote, unquote

from weir.core.ids import OperatorId, SubtaskId
from weir.ports.operators import TaskInfo

_NUMBERS = 4


class TransactionName(NamedTuple):
    """One subtask's rows between two barriers."""

    subtask: SubtaskId
    epoch: int
    attempt: int
    counter: int
    token: str

    @property
    def owner(self) -> tuple[int, int]:
        return (self.epoch, self.attempt)

    def __str__(self) -> str:
        operator = quote(self.subtask.operator, safe="")
        numbers = (self.subtask.index, self.epoch, self.attempt, self.counter)
        return "-".join((operator, *map(str, numbers), self.token))


def new_token() -> str:
    """Tells the transactions of one driver's graph from those of every other."""
    return uuid.uuid4().hex[:12]


def first_name(place: TaskInfo, token: str) -> TransactionName:
    """What a writer that opens now calls its first transaction."""
    return TransactionName(place.subtask, place.epoch, place.attempt, 1, token)


def parse(text: str) -> TransactionName | None:
    """The parsed name; None if it is not a transaction's."""
    parts = text.rsplit("-", _NUMBERS + 1)
    numbers = parts[1:-1]
    if len(numbers) != _NUMBERS or not all(number.isdecimal() for number in numbers):
        return None
    index, epoch, attempt, counter = map(int, numbers)
    subtask = SubtaskId(OperatorId(unquote(parts[0])), index)
    return TransactionName(subtask, epoch, attempt, counter, parts[-1])
