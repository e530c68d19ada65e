"""Names every party by a value that cannot be mistaken for another.

Ids are the only vocabulary that the coordinator, the slots and the storage share, so they are
defined once and mean nothing but identity: no id knows where its bearer runs or what it holds.
The composite ones are named tuples because the data plane hashes and sorts them for every batch.
"""

from typing import NamedTuple, NewType

AttemptId = NewType("AttemptId", int)
"""One try at running some subtasks. Grows within an epoch; fences every message of older tries."""

CheckpointId = NewType("CheckpointId", int)
"""Never used twice within a job's directory."""

Epoch = NewType("Epoch", int)
"""The period in which one driver runs a job, counted by the job's log."""

Millis = NewType("Millis", int)
OperatorId = NewType("OperatorId", str)
EdgeId = NewType("EdgeId", str)
SlotId = NewType("SlotId", str)
RequestId = NewType("RequestId", str)
SplitId = NewType("SplitId", str)
KeyGroup = NewType("KeyGroup", int)

NO_CHECKPOINT = CheckpointId(0)
"""Smaller than every real checkpoint; what a subtask remembers before its first barrier."""

NO_REQUEST = RequestId("")
"""The id of requests that no user waits for."""

RECOVERED = -1
"""The sender of a channel that replays in-flight data of the checkpoint restored from."""


class SubtaskId(NamedTuple):
    """One parallel instance of an operator."""

    operator: OperatorId
    index: int  # type: ignore[assignment]  # no code looks up members of an id

    def __str__(self) -> str:
        return f"{self.operator}-{self.index}"


class ChannelId(NamedTuple):
    """An ordered link between two subtasks: one sender and one receiver of one edge."""

    edge: EdgeId
    sender: int
    receiver: int

    def __str__(self) -> str:
        return f"{self.edge}[{self.sender}>{self.receiver}]"
