"""What a slot says to its driver always gets there, or something in its place does."""

import socket

import pytest

from coordinated_job import SUM_0
from weir.core.coordinator.events import SubtaskAcked, SubtaskDeclined
from weir.core.ids import AttemptId, CheckpointId
from weir.core.reasons import Reason
from weir.core.snapshots import ListHandle, Redistribution, StateFile, SubtaskSnapshot
from weir.slot.slot_process import report
from weir.wire import frames
from weir.wire.control_messages import EventReported
from weir.wire.message_link import MessageLink


@pytest.fixture
def link():
    near, far = socket.socketpair()
    links = MessageLink(near, "slot"), MessageLink(far, "driver")
    yield links
    for end in links:
        end.close()


def test_an_ack_above_the_limit_of_a_message_declines_its_checkpoint(link, monkeypatch):
    """C9 C10 R7: the coordinator hears why, instead of waiting for the timeout each time."""
    monkeypatch.setattr(frames, "FRAME_LIMIT", 2000)
    slot, driver = link
    snapshot = SubtaskSnapshot(SUM_0, lists=(inline_list(5000),))
    report(slot, SubtaskAcked(AttemptId(1), CheckpointId(7), SUM_0, snapshot))

    message = driver.receive()
    assert isinstance(message, EventReported)
    declined = message.event
    assert isinstance(declined, SubtaskDeclined)
    assert (declined.checkpoint, declined.reason) == (7, Reason.CHECKPOINT_DECLINED)
    assert "the limit is 2000" in declined.cause


def inline_list(size):
    return ListHandle(
        "positions", Redistribution.SPLIT, StateFile("", size, content=b"x" * size), 1
    )
