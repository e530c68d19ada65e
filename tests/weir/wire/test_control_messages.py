"""Messages between a driver and its slots survive the wire; nothing else can be sent."""

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
from weir.core.rescale import InFlightShare, ListShare, StateAssignment
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
from weir.wire import control_messages
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointAborted,
    CheckpointCompleted,
    DeploySubtasks,
    EventReported,
    Heartbeat,
    Registered,
    ShutDownSlot,
    SubtaskAddress,
    SubtaskFailure,
    SubtaskMessage,
    SubtaskMetrics,
    TerminateSlot,
)
from weir.wire.json_codec import Unencodable, dumps, loads, to_json

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
HEIR = StateAssignment(
    SUM_0,
    keyed=(KeyedHandle(KeyGroupRange(0, 3), FILE),),
    lists=(ListShare(LIST, 0, 1),),
    in_flight=(InFlightShare(CAUGHT, KeyGroupRange(0, 3)), InFlightShare(CAUGHT, None)),
    watermarks=((EdgeId("e"), Millis(5)),),
    finished=False,
)

WRITTEN_NAMES = [
    "Registered",
    "HostSubtasks",
    "Reset",
    "Tell",
    "Leave",
    "Die",
    "Said",
    "Failed",
    "Pulse",
]
MESSAGES = [
    Registered(SLOT, "executor", 3, "10.0.0.1", 4000, 4711),
    DeploySubtasks(
        Epoch(2), FIRST, CheckpointId(4), (HEIR,), (SubtaskAddress(SUM_0, SLOT, "10.0.0.1", 4000),)
    ),
    CancelSubtasks((SUM_0,)),
    SubtaskMessage(SUM_0, FIRST, BARRIER),
    SubtaskMessage(SUM_0, FIRST, CheckpointAborted(CheckpointId(4))),
    SubtaskMessage(SUM_0, FIRST, CheckpointCompleted(CheckpointId(4), CHECKPOINT, leaving=True)),
    SubtaskMessage(SUM_0, FIRST, AssignSplit(SplitId("one"))),
    SubtaskMessage(SUM_0, FIRST, NoSplitsYet()),
    SubtaskMessage(SUM_0, FIRST, NoMoreSplits()),
    ShutDownSlot(),
    TerminateSlot(),
    EventReported(SubtaskAcked(FIRST, CheckpointId(4), SUM_0, SNAPSHOT, Timings(1, 2, 3, 4))),
    SubtaskFailure(FIRST, SUM_0, FailureCause.USER_CODE, "ValueError: ❄"),
    Heartbeat(
        12, 1 << 33, (SubtaskMetrics(SUM_0, 1, 2, 3, back_pressured=True, watermark=-(1 << 62)),)
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message):
    """C4, X2: as JSON, with every handle in it."""
    assert loads(dumps(message)) == message


def test_messages_are_written_under_the_names_of_the_wire_format():
    """C4: a class or a field that is renamed keeps its name on the link."""
    names = [to_json(message)["$"] for message in MESSAGES]
    assert list(dict.fromkeys(names)) == WRITTEN_NAMES
    deploy, failure = to_json(MESSAGES[1]), to_json(MESSAGES[-2])
    assert {"inheritances", "seats"} < deploy.keys()
    assert "words" in failure


def test_every_message_of_the_control_link_is_tested_here():
    """A new message is tested too."""
    messages = {
        cls
        for cls in vars(control_messages).values()
        if isinstance(cls, type) and is_dataclass(cls)
    }
    own = {cls for cls in messages if cls.__module__ == control_messages.__name__}
    assert own - {type(message) for message in MESSAGES} == {
        SubtaskAddress,
        SubtaskMetrics,
        CheckpointAborted,
        CheckpointCompleted,
    }


def test_an_object_that_is_no_message_cannot_be_sent():
    """X2: nothing is ever pickled."""
    with pytest.raises(Unencodable):
        dumps(EventReported(object()))
