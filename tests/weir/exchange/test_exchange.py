"""What one slot sends arrives at the other, complete and in order, or both learn it did not."""

import secrets
import socket
from contextlib import ExitStack
from threading import Thread

import pyarrow as pa
import pytest

from linked_slots import CHANNEL, OTHER_CHANNEL, RUN, SECRET, A, B, LinkedSlots, numbers
from subtask_harness import barrier
from throwaway_certificates import a_certificate
from weir.core.barriers import CancelMarker, EndOfData, EndOfInput, Idle, Watermark
from weir.core.ids import CheckpointId, Millis, SlotId
from weir.errors import JobRejected
from weir.exchange import Broken, Credited
from weir.wire.authenticated_sockets import MOST_UNAUTHENTICATED, Purpose, dial
from weir.wire.frames import HEADER, MAGIC, header

NEXT_RUN = (1, 2)


@pytest.fixture
def slots():
    linked = LinkedSlots()
    yield linked
    linked.close()


@pytest.fixture
def pair(slots):
    return slots.open(A), slots.open(B)


def test_batches_and_markers_of_a_channel_arrive_in_the_order_they_were_sent(slots, pair):
    """A1."""
    a, _ = pair
    said = [
        numbers(0, 3),
        Watermark(Millis(5)),
        numbers(3, 1),
        barrier(7),
        CancelMarker(CheckpointId(8)),
        numbers(4, 2),
        Idle(),
        EndOfData(),
        EndOfInput(),
    ]
    for element in said:
        a.send(B, RUN, CHANNEL, element)
    slots.poll_until(lambda: len(slots.heard[B]) == len(said))

    assert slots.elements(B) == said
    assert {event.sender for event in slots.heard[B]} == {A}


def test_a_flood_of_strangers_keeps_no_slot_from_sending(slots, pair):
    """X1: rows find their way although the port is full of peers that prove nothing."""
    a, b = pair
    with ExitStack() as strangers:
        for _ in range(MOST_UNAUTHENTICATED + 20):
            strangers.enter_context(socket.create_connection(b.address, timeout=30))
        a.send(B, RUN, CHANNEL, numbers(0, 3))
        slots.poll_until(lambda: slots.heard[B])

        assert slots.elements(B) == [numbers(0, 3)]


def test_channels_and_runs_are_kept_apart(slots, pair):
    a, _ = pair
    for first, (run, channel) in enumerate(
        [(RUN, CHANNEL), (NEXT_RUN, CHANNEL), (RUN, OTHER_CHANNEL), (RUN, CHANNEL)]
    ):
        a.send(B, run, channel, numbers(first, 1))
    slots.poll_until(lambda: len(slots.heard[B]) == 4)

    assert slots.elements(B, CHANNEL, RUN) == [numbers(0, 1), numbers(3, 1)]
    assert slots.elements(B, CHANNEL, NEXT_RUN) == [numbers(1, 1)]
    assert slots.elements(B, OTHER_CHANNEL, RUN) == [numbers(2, 1)]


def test_credit_travels_against_the_rows(slots, pair):
    a, b = pair
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    b.grant(A, RUN, CHANNEL, 3, 16)
    b.grant(A, RUN, CHANNEL, 70_000, 90_000)
    slots.poll_until(lambda: len(slots.heard[A]) == 2 and len(slots.heard[B]) == 1)

    assert slots.heard[A] == [Credited(RUN, CHANNEL, 3, 16), Credited(RUN, CHANNEL, 70_000, 90_000)]


def test_large_batches_arrive_whole_in_both_directions_at_once(slots, pair):
    a, b = pair
    large = [pa.record_batch({"blob": [secrets.token_bytes(3_000_000)] * 4}) for _ in range(4)]
    for batch in large:
        a.send(B, RUN, CHANNEL, batch)
        b.send(A, RUN, OTHER_CHANNEL, batch)
    assert a.queued_bytes > 48_000_000
    slots.poll_until(lambda: len(slots.heard[A]) == len(slots.heard[B]) == 4)

    assert slots.elements(B) == slots.elements(A, OTHER_CHANNEL) == large
    assert a.queued_bytes == b.queued_bytes == 0


def test_one_poll_takes_in_a_bounded_amount(slots, pair):
    """A11: control is never far away, however much has come."""
    a, _ = pair
    batch = pa.record_batch({"blob": [bytes(1_000_000)]})
    for _ in range(64):
        a.send(B, RUN, CHANNEL, batch)
    slots.poll_until(lambda: len(slots.heard[B]) == 64)

    assert slots.most_at_once <= 9


def test_received_batches_lie_where_they_were_received(slots, pair):
    a, _ = pair
    a.send(B, RUN, CHANNEL, numbers(0, 100_000))
    before = pa.total_allocated_bytes()
    slots.poll_until(lambda: len(slots.heard[B]) == 1)

    (batch,) = slots.elements(B)
    assert pa.total_allocated_bytes() - before < 1.5 * batch.nbytes
    assert batch.column(0).buffers()[1].address % 8 == 0


def test_a_slice_travels_without_the_rest_of_its_batch(slots, pair):
    a, _ = pair
    a.send(B, RUN, CHANNEL, numbers(0, 100_000).slice(500, 2))

    assert a.queued_bytes < 2_000
    slots.poll_until(lambda: slots.elements(B) == [numbers(500, 2)])


def test_a_channel_may_change_its_schema(slots, pair):
    a, _ = pair
    text = pa.record_batch({"t": ["x", None]})
    for batch in (numbers(0, 1), text, numbers(1, 1)):
        a.send(B, RUN, CHANNEL, batch)
    slots.poll_until(lambda: len(slots.heard[B]) == 3)

    assert slots.elements(B) == [numbers(0, 1), text, numbers(1, 1)]


def test_dictionaries_travel_as_their_values(slots, pair):
    a, _ = pair
    for words in (["a", "b", "a"], ["c", None, "c"]):
        encoded = pa.array(words).dictionary_encode()
        a.send(B, RUN, CHANNEL, pa.record_batch({"w": encoded, "n": [1, 2, 3]}))
    slots.poll_until(lambda: len(slots.heard[B]) == 2)

    assert slots.elements(B) == [
        pa.record_batch({"w": ["a", "b", "a"], "n": [1, 2, 3]}),
        pa.record_batch({"w": ["c", None, "c"], "n": [1, 2, 3]}),
    ]


def test_a_dictionary_inside_of_another_type_is_refused_by_name(slots, pair):
    """U3: and the connection stays usable."""
    a, _ = pair
    nested = pa.array([["x"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))
    with pytest.raises(JobRejected, match=r"column 'tags' on channel e\[0>1\].*cast it"):
        a.send(B, RUN, CHANNEL, pa.record_batch({"tags": nested}))

    a.send(B, RUN, CHANNEL, numbers(0, 1))
    slots.poll_until(lambda: slots.elements(B) == [numbers(0, 1)])


def test_a_dropped_run_is_not_sent_and_the_next_one_is(slots, pair):
    a, _ = pair
    for first in range(3):
        a.send(B, RUN, CHANNEL, numbers(first, 1))
    a.drop(RUN)
    a.send(B, NEXT_RUN, CHANNEL, numbers(9, 1))
    slots.poll_until(lambda: slots.elements(B, run=NEXT_RUN) == [numbers(9, 1)])

    assert slots.elements(B, run=RUN) == []


def test_dropping_a_run_leaves_no_half_frame_behind(slots, pair):
    a, _ = pair
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    slots.poll_until(lambda: len(slots.heard[B]) == 1)
    for first in range(30):
        a.send(B, RUN, CHANNEL, numbers(first, 100_000))
    slots.poll(A)
    assert a.queued_bytes > 0, "the kernel has taken a part"

    a.drop(RUN)
    a.send(B, NEXT_RUN, CHANNEL, numbers(7, 1))
    slots.poll_until(lambda: slots.elements(B, run=NEXT_RUN) == [numbers(7, 1)])
    assert not slots.breaks(B)


def test_the_death_of_a_peer_is_reported_per_connection_with_the_runs_it_carried(slots, pair):
    """R1: and never a hang."""
    a, b = pair
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    b.grant(A, NEXT_RUN, CHANNEL, 1, 16)
    slots.poll_until(lambda: slots.heard[A] and slots.heard[B])
    slots.kill(B)
    slots.poll_until(lambda: len(slots.breaks(A)) == 2)

    assert {event.peer for event in slots.breaks(A)} == {B}
    assert {event.runs for event in slots.breaks(A)} == {frozenset({RUN}), frozenset({NEXT_RUN})}
    assert slots.poll(A) == []


def test_a_peer_that_dies_under_load_is_noticed(slots, pair):
    """R1."""
    a, _ = pair
    for first in range(50):
        a.send(B, RUN, CHANNEL, numbers(first, 100_000))
    slots.poll_until(lambda: len(slots.heard[B]) > 3)
    slots.kill(B)
    slots.poll_until(lambda: bool(slots.breaks(A)))

    assert a.queued_bytes == 0


def test_a_slot_that_came_back_is_dialled_anew(slots, pair):
    a, _ = pair
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    slots.poll_until(lambda: len(slots.heard[B]) == 1)
    slots.kill(B)
    slots.poll_until(lambda: bool(slots.breaks(A)))
    slots.open(B)
    a.send(B, NEXT_RUN, CHANNEL, numbers(1, 1))
    slots.poll_until(lambda: len(slots.heard[B]) == 2)

    assert slots.elements(B, run=NEXT_RUN) == [numbers(1, 1)]


def test_what_was_meant_for_a_slot_that_moved_is_forgotten_without_a_word(slots, pair):
    a, _ = pair
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    slots.kill(B)
    slots.open(B)
    a.send(B, NEXT_RUN, CHANNEL, numbers(1, 1))
    slots.poll_until(lambda: len(slots.heard[B]) == 1)

    assert slots.elements(B, run=NEXT_RUN) == [numbers(1, 1)]
    assert slots.heard[A] == []


def test_a_peer_that_cannot_be_reached_is_reported_once(slots, pair):
    a, _ = pair
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = closed.getsockname()
    a.set_peers({B: nowhere})
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    a.send(B, RUN, CHANNEL, numbers(1, 1))
    slots.poll_until(lambda: bool(slots.heard[A]))

    (broken,) = slots.heard[A]
    assert broken == Broken(B, broken.cause, frozenset({RUN}))
    assert f"no peer answers at 127.0.0.1:{nowhere[1]}" in broken.cause
    assert a.queued_bytes == 0


def test_a_peer_without_address_is_reported_once(slots, pair):
    a, _ = pair
    stranger = SlotId("slot-z")
    a.send(stranger, RUN, CHANNEL, numbers(0, 1))
    a.grant(stranger, RUN, CHANNEL, 1, 16)

    assert slots.poll(A) == [Broken(stranger, "its address is unknown", frozenset({RUN}))]
    assert slots.poll(A) == []


@pytest.mark.parametrize(("speaker", "listener"), [(A, B), (B, A)])
def test_a_slot_with_another_secret_hears_and_says_nothing(slots, speaker, listener, caplog):
    """X1."""
    open_slots = {A: slots.open(A), B: slots.open(B, secret=b"the secret of some other job....")}
    open_slots[speaker].send(listener, RUN, CHANNEL, numbers(0, 1))
    slots.poll_until(lambda: bool(slots.heard[speaker]))

    (broken,) = slots.heard[speaker]
    assert "does not know this job's secret" in broken.cause
    assert slots.heard[listener] == []
    slots.close()
    assert all(record.exc_info is None for record in caplog.records)


def test_everything_travels_under_tls(tmp_path):
    """X1."""
    slots = LinkedSlots(a_certificate(tmp_path, "job"))
    a, b = slots.open(A), slots.open(B)
    said = [numbers(0, 200_000), barrier(1), *(numbers(first, 10) for first in range(200))]
    for element in said:
        a.send(B, RUN, CHANNEL, element)
    b.grant(A, RUN, CHANNEL, 2, 16)
    slots.poll_until(lambda: len(slots.heard[B]) == len(said) and bool(slots.heard[A]))

    assert slots.elements(B) == said
    assert slots.heard[A] == [Credited(RUN, CHANNEL, 2, 16)]
    slots.kill(B)
    slots.poll_until(lambda: len(slots.breaks(A)) == 2)
    slots.close()


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (b"x" * HEADER.size, "a frame begins with b'xxx'"),
        (HEADER.pack(MAGIC, 99, 0, 0, 0), "unknown kind 99"),
        (
            header(5, 2, 1, 1) + b"{}",
            "a marker frame cannot be read: the number 1 has not been defined",
        ),
        (header(1, 2, 0, 1) + b"{}", "a run frame cannot be read"),
        (header(2, 1, 1, 0) + b"1", "a channel frame cannot be read: 1 is not a channel"),
        (header(3, 3, 1, 1) + b"abc", ""),
    ],
)
def test_a_damaged_frame_breaks_the_connection_with_its_cause(slots, pair, damage, cause):
    """X2: what cannot be read is never guessed at."""
    _, b = pair
    with dial(b.address, SECRET, Purpose.EXCHANGE, None, {"slot": A}) as near:
        near.sendall(damage)
        slots.poll_until(lambda: bool(slots.heard[B]))

    (broken,) = slots.heard[B]
    assert broken.peer == A
    assert cause in broken.cause


def test_a_peer_that_connects_anew_ends_its_older_connection(slots, pair):
    _, b = pair
    hello = {"slot": A}
    with (
        dial(b.address, SECRET, Purpose.EXCHANGE, None, hello),
        dial(b.address, SECRET, Purpose.EXCHANGE, None, hello),
    ):
        slots.poll_until(lambda: bool(slots.heard[B]))
        assert slots.heard[B] == [Broken(A, "the peer has connected anew")]


def test_a_waiting_poll_is_woken_from_another_thread(slots):
    a = slots.open(A)
    waker = Thread(target=a.wake)
    waker.start()

    assert a.poll(60) == []
    waker.join()


def test_a_closed_exchange_may_be_closed_and_woken_again(pair):
    a, _ = pair
    a.send(B, RUN, CHANNEL, numbers(0, 1))
    a.close()
    a.wake()
    a.close()

    assert a.queued_bytes == 0
