"""Keeps the commit messages of PySpark writers from the barrier to the commit, and beyond a crash.

A message is what ``write`` returned: it may be any object and of any size, and it is there only
when ``write`` has ended. So it is staged as a signed pickle under the name of its transaction, by a
thread beside the mailbox. What was staged and never committed is found by its name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from weir.connectors import transaction_names
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.core.ids import SubtaskId
from weir.storage.stores import NotFound, ObjectStore

PURPOSE = "commit message"


class MessageGone(Exception):
    """A message is not where it was staged: it was committed or aborted since."""


@dataclass(frozen=True, slots=True)
class CommitMessages:
    """The staged messages of one sink."""

    store: ObjectStore
    directory: str
    key: JobKey

    def put(self, name: str, message: WriterCommitMessage | None) -> None:
        self.store.write(self._url(name), self.key.pickled(_purpose(name), message))

    def get(self, name: str) -> WriterCommitMessage | None:
        url = self._url(name)
        try:
            signed = self.store.read(url)
        except NotFound:
            raise MessageGone(url) from None
        message = self.key.unpickled(_purpose(name), signed, f"the commit message {url}")
        assert message is None or isinstance(message, WriterCommitMessage), "nothing else is staged"
        return message

    def discard(self, names: Iterable[str]) -> None:
        self.store.delete(self._url(name) for name in names)

    def left_by(self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int]) -> list[str]:
        """What older owners of these subtasks staged, or anyone of an older epoch."""
        operators = {subtask.operator for subtask in subtasks}
        files = (url.rpartition("/")[2] for url in self.store.list(f"{self.directory}/_staging"))
        parsed = sorted(name for file in files if (name := transaction_names.parse(file)))
        return [
            str(name)
            for name in parsed
            if name.owner < owner
            and name.subtask.operator in operators
            and (name.subtask in subtasks or name.epoch < owner[0])
        ]

    def _url(self, name: str) -> str:
        return f"{self.directory}/_staging/{name}"


def _purpose(name: str) -> str:
    """A message counts for the transaction that it was made for."""
    return f"{PURPOSE} {name}"
