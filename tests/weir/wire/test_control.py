"""What a driver and its slots say to each other survives the wire, and nothing else is a word."""

from dataclasses import is_dataclass

import pytest

from weir.core.attempt import FailureCause
from weir.core.barriers import AlignmentType, Barrier
from weir.core.coordinator.events import SubtaskAcked, Timings
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet
from weir.core.ids import (
    AttemptId,
    ChannelId,
    CheckpointId,
    EdgeId,
    Epoch,
    Millis,
    OperatorId,
    SlotId,
    SplitId,
    SubtaskId,
)
from weir.core.rescale import InFlightShare, Inheritance, ListShare
from weir.core.snapshots import (
    CheckpointKind,
    InFlightHandle,
    KeyedHandle,
    KeyGroupRange,
    ListHandle,
    Redistribution,
    Side,
    StateFile,
    SubtaskSnapshot,
    Transaction,
)
from weir.wire import control
from weir.wire.control import (
    Abort,
    Completed,
    Die,
    Failed,
    Gauge,
    HostSubtasks,
    Leave,
    Pulse,
    Registered,
    Reset,
    Said,
    Seated,
    Tell,
)
from weir.wire.values import Unencodable, dumps, loads

SUM_0 = SubtaskId(OperatorId("sum"), 0)
SLOT = SlotId("executor.3.4711")
FIRST = AttemptId(1)
CHECKPOINT = CheckpointKind.CHECKPOINT
FILE = StateFile("file:///a", 10, checksum="ab")
INLINE = StateFile("", 3, content=b"\x00\xff\x80")
LIST = ListHandle("splits", Redistribution.SPLIT, INLINE, 2)
CAUGHT = InFlightHandle(ChannelId(EdgeId("e"), 0, 1), Side.OUTPUT, FILE)
BARRIER = Barrier(CheckpointId(4), CHECKPOINT, AlignmentType.UNALIGNED, Millis(9), "chk-4")
SNAPSHOT = SubtaskSnapshot(
    SUM_0,
    keyed=(KeyedHandle(KeyGroupRange(0, 7), FILE),),
    lists=(LIST,),
    in_flight=(CAUGHT,),
    transactions=(Transaction(OperatorId("sum"), CheckpointId(4), "t"),),
    watermarks=((EdgeId("e"), Millis(-(1 << 62))),),
    reached_end=True,
)
HEIR = Inheritance(
    SUM_0,
    keyed=(KeyedHandle(KeyGroupRange(0, 3), FILE),),
    lists=(ListShare(LIST, 0, 1),),
    in_flight=(InFlightShare(CAUGHT, KeyGroupRange(0, 3)), InFlightShare(CAUGHT, None)),
    watermarks=((EdgeId("e"), Millis(5)),),
    finished=False,
)

MESSAGES = [
    Registered(SLOT, "executor", 3, "10.0.0.1", 4000, 4711),
    HostSubtasks(
        Epoch(2), FIRST, CheckpointId(4), (HEIR,), (Seated(SUM_0, SLOT, "10.0.0.1", 4000),)
    ),
    Reset((SUM_0,)),
    Tell(SUM_0, FIRST, BARRIER),
    Tell(SUM_0, FIRST, Abort(CheckpointId(4))),
    Tell(SUM_0, FIRST, Completed(CheckpointId(4), CHECKPOINT, leaving=True)),
    Tell(SUM_0, FIRST, AssignSplit(SplitId("one"))),
    Tell(SUM_0, FIRST, NoSplitsYet()),
    Tell(SUM_0, FIRST, NoMoreSplits()),
    Leave(),
    Die(),
    Said(SubtaskAcked(FIRST, CheckpointId(4), SUM_0, SNAPSHOT, Timings(1, 2, 3, 4))),
    Failed(FIRST, SUM_0, FailureCause.USER_CODE, "ValueError: ❄"),
    Pulse(12, 1 << 33, (Gauge(SUM_0, 1, 2, 3, back_pressured=True, watermark=-(1 << 62)),)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message):
    """C4, X2: as JSON, with every handle in it."""
    assert loads(dumps(message)) == message


def test_every_word_of_the_control_link_is_tried_here():
    """A new word is tried too."""
    words = {cls for cls in vars(control).values() if isinstance(cls, type) and is_dataclass(cls)}
    own = {cls for cls in words if cls.__module__ == control.__name__}
    assert own - {type(message) for message in MESSAGES} == {Seated, Gauge, Abort, Completed}


def test_an_object_that_is_no_word_cannot_be_said():
    """X2: nothing is ever pickled."""
    with pytest.raises(Unencodable):
        dumps(Said(object()))
