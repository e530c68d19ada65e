"""The stateless steps of a stage, one behind the other.

A step is drained for each batch, so that no row is ever only inside a user's generator when a
barrier comes (spec A12). Batches without rows go no further.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from weir.core.ids import ChannelId
from weir.dataflow.physical import Step
from weir.ports.operators import Batch


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What happens to a batch between an operator and the edges that leave it."""

    steps: tuple[Step, ...]

    def through(self, batch: Batch) -> Iterator[Batch]:
        return self._from(0, batch)

    def _from(self, position: int, batch: Batch) -> Iterator[Batch]:
        if not batch.num_rows:
            return
        if position == len(self.steps):
            yield batch
            return
        for out in self.steps[position](batch):
            yield from self._from(position + 1, out)


class RowRouter(Protocol):
    """One sender's end of one edge."""

    def route(self, batch: Batch) -> list[tuple[ChannelId, Batch]]:
        """The parts of the batch, each with the channel that it leaves by."""
