"""A stream of bytes is cut into the frames that were written, however it was chopped on the way."""

import socket

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.wire.frames import (
    FRAME_LIMIT,
    HEADER,
    MAGIC,
    DamagedFrame,
    FrameReader,
    header,
    read_frame,
    write_frame,
)

NUMBERS = st.integers(0, 2**32 - 1)
SAID = st.tuples(st.integers(0, 255), NUMBERS, NUMBERS, st.binary(max_size=300))


def on_the_wire(*said):
    return b"".join(
        header(kind, len(payload), channel, run) + payload for kind, channel, run, payload in said
    )


def heard(reader, data, *pieces):
    """Everything the reader makes of the data, given in pieces of at most these sizes in turn."""
    frames, turn = [], 0
    while data:
        space = reader.space()
        count = min(len(space), len(data), pieces[turn % len(pieces)])
        space[:count] = data[:count]
        frames += reader.filled(count)
        data, turn = data[count:], turn + 1
    return [(kind, channel, run, bytes(payload)) for kind, channel, run, payload in frames]


@pytest.fixture
def ends():
    near, far = socket.socketpair()
    with near, far:
        yield near, far


@given(st.lists(SAID, max_size=8), st.lists(st.integers(1, 200), min_size=1, max_size=5))
def test_frames_come_out_as_they_went_in_however_the_stream_is_chopped(said, pieces):
    assert heard(FrameReader(), on_the_wire(*said), *pieces) == said


def test_a_large_payload_is_received_into_its_own_aligned_memory():
    reader = FrameReader()
    payload = bytes(range(256)) * 4096
    reader.space()[: HEADER.size] = header(1, len(payload))

    assert reader.filled(HEADER.size) == []
    space = reader.space()
    assert len(space) == len(payload)
    space[:] = payload
    (frame,) = reader.filled(len(payload))

    assert frame.payload == payload
    assert pa.py_buffer(frame.payload).address % 64 == 0


def test_frames_that_came_together_do_not_share_memory_with_later_ones():
    reader = FrameReader()
    data = on_the_wire((1, 0, 0, b"first"))
    reader.space()[: len(data)] = data
    (first,) = reader.filled(len(data))

    heard(reader, on_the_wire((1, 0, 0, b"other")), 100)

    assert first.payload == b"first"


@pytest.mark.parametrize(
    ("damaged", "cause"),
    [
        (b"GET / HTTP/1.1\r\n", "begins with b'GET'"),
        (HEADER.pack(b"WF\x02", 1, 0, 0, 0), "begins with"),
        (HEADER.pack(MAGIC, 1, 0, 0, FRAME_LIMIT + 1), "above the limit of 268435456 bytes"),
    ],
)
def test_what_is_no_frame_of_ours_is_refused_with_the_cause(damaged, cause, ends):
    with pytest.raises(DamagedFrame, match=cause):
        heard(FrameReader(), damaged, 100)

    near, far = ends
    near.sendall(damaged)
    with pytest.raises(DamagedFrame, match=cause):
        read_frame(far)


def test_a_frame_above_the_limit_is_not_begun():
    with pytest.raises(ValueError, match="above the limit of 268435456 bytes"):
        header(1, FRAME_LIMIT + 1)


def test_a_written_frame_is_read_whole(ends):
    near, far = ends
    write_frame(near, 7, b"ready")
    write_frame(near, 8, b"")

    assert read_frame(far) == (7, 0, 0, b"ready")
    assert read_frame(far) == (8, 0, 0, b"")


@pytest.mark.parametrize("before_the_end", [b"", MAGIC, header(1, 5) + b"rea"])
def test_a_stream_that_ends_is_a_lost_connection(before_the_end, ends):
    near, far = ends
    near.sendall(before_the_end)
    near.close()

    with pytest.raises(ConnectionError, match="the peer closed the connection"):
        read_frame(far)
