"""A sink that discards all rows, by Spark's name ``noop``: to measure the operators before it."""

from dataclasses import dataclass

from weir.core.ids import SubtaskId
from weir.ports.operators import Batch, TaskInfo
from weir.ports.sinks import SealedTransaction


class NoopWriter:
    """Takes rows and keeps none."""

    def write(self, batch: Batch) -> None:
        """Forget them."""

    def seal(self) -> SealedTransaction | None:
        return None

    def close(self) -> None:
        """Nothing is open."""


class NoopCommitter:
    """Has nothing to commit."""

    def commit(self, sequence: int, names: tuple[str, ...]) -> None:
        """Nothing was sealed."""

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        """Nothing was left."""


@dataclass(frozen=True, slots=True)
class NoopSink:
    """The description of nothing."""

    def open(self, place: TaskInfo) -> NoopWriter:
        del place
        return NoopWriter()

    def committer(self) -> NoopCommitter:
        return NoopCommitter()
