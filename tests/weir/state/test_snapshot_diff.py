"""Which captures are remembered for later ones to be compared with."""

from weir.core.ids import CheckpointId
from weir.state.memory.snapshot_diff import MOST_REMEMBERED, RememberedCaptures


def test_the_oldest_and_the_newest_captures_are_remembered() -> None:
    """S5 S3: a later one builds on the oldest; what is between costs memory, so it is bounded."""
    captures = RememberedCaptures()
    for number in range(1, 30):
        captures.remember(CheckpointId(number), {})

    assert sorted(captures.known()) == [1, *range(31 - MOST_REMEMBERED, 30)]

    captures.completed(CheckpointId(28))
    assert sorted(captures.known()) == [28, 29]
