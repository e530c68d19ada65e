"""What a look at the exchange can bring, and the name by which all of it is fenced."""

from dataclasses import dataclass

from weir.core.ids import ChannelId, SlotId

Run = tuple[int, int]
"""(epoch, attempt): channels of two attempts never meet, nor those of two drivers."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A batch or a marker has come, in its channel's order."""

    sender: SlotId
    run: Run
    channel: ChannelId
    element: object


@dataclass(frozen=True, slots=True)
class Credited:
    """The receiver of a channel has room for so many more batches."""

    run: Run
    channel: ChannelId
    batches: int
    rows: int
    """How many rows of a batch suit it."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A connection is lost, to this peer or from it, with all frames in transit."""

    peer: SlotId
    cause: str
    runs: frozenset[Run] = frozenset()
    """Whose elements and credits it carried: nothing of other runs is missing."""


Event = Arrived | Credited | Broken
