"""However things arrive, a snapshot holds every row before the barrier and none behind it.

Each example is a script per channel and a schedule: which channel delivers next, when the subtask
gets a turn, when an output gets credit, when time passes. What the schedule leaves undone is done
at the end, so every example runs until nothing is left to do.
"""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from subtask_harness import (
    Slot,
    X,
    Y,
    a_task,
    barrier,
    cancel,
    impatient,
    inputs,
    overtaking,
    rows_of,
    savepoint,
)
from weir.core.barriers import AlignmentType, Barrier, EndOfInput
from weir.core.scheduler import Suspend
from weir.core.snapshots import Side

TIMEOUT = 10
plenty = settings(max_examples=200, deadline=None)


def at_least_once(checkpoint):
    return barrier(checkpoint, AlignmentType.AT_LEAST_ONCE)


def patient(checkpoint):
    return impatient(checkpoint, TIMEOUT)


@dataclass
class Example:
    """What each channel brings, and in which order the world goes on."""

    scripts: list
    schedule: list
    limits: tuple
    """Batches per turn, rows per turn, credit per output."""
    at_least_once: bool = False

    def play(self, listeners=()):
        batch_limit, rows_per_turn, credit = self.limits
        task = a_task(
            inputs(len(self.scripts)), (X, Y), credit=credit, at_least_once=self.at_least_once
        )
        slot = Slot(task, batch_limit, output_limit=3, rows_per_turn=rows_per_turn)
        wires = {c: list(s) for c, s in zip(task.inboxes, self.scripts, strict=True)}
        for choice in self.schedule:
            moves = [*_moves(slot, wires), *listeners]
            moves[choice % len(moves)](slot)
        self._finish(slot, wires)
        return slot

    def _finish(self, slot, wires):
        for channel, wire in wires.items():
            slot.arrive(channel, *wire)
        for output in slot.task.outboxes:
            slot.grant(output, 1_000)
        slot.run()
        for checkpoint in slot.captured:
            slot.upload(checkpoint)
        for checkpoint in slot.in_flight:
            slot.upload_in_flight(checkpoint)


def _moves(slot, wires):
    """All that can happen next."""
    for channel, wire in wires.items():
        if wire:
            yield lambda slot, c=channel, w=wire: slot.arrive(c, w.pop(0))
    for output in slot.task.outboxes:
        yield lambda slot, o=output: slot.obey(slot.task.granted(o, 1))
    yield _turn
    yield _tick


def _turn(slot):
    if not isinstance(turn := slot.scheduler.next(), Suspend):
        slot.play(turn)


def _tick(slot):
    slot.now += TIMEOUT // 2
    slot.obey(slot.task.pass_time(slot.now))


SCHEDULES = st.lists(st.integers(0, 59), max_size=60)
LIMITS = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(0, 3))


@st.composite
def rows(draw, label):
    """Some batches of some rows, each row with a unique name."""
    sizes = draw(st.lists(st.integers(1, 3), max_size=4))
    return [tuple(f"{label}{batch}.{row}" for row in range(n)) for batch, n in enumerate(sizes)]


@st.composite
def one_checkpoint(draw, *kinds):
    """Rows, a barrier and more rows on each channel."""
    scripts = [
        [*draw(rows(f"{c}-before-")), draw(st.sampled_from(kinds))(1), *draw(rows(f"{c}-behind-"))]
        for c in range(draw(st.integers(1, 4)))
    ]
    at_least_once_too = at_least_once in kinds
    return Example(scripts, draw(SCHEDULES), draw(LIMITS), at_least_once=at_least_once_too)


def before(script, checkpoint):
    """The rows of a channel that belong to the checkpoint."""
    ends = [
        position
        for position, element in enumerate(script)
        if isinstance(element, EndOfInput)
        or (isinstance(element, Barrier) and element.checkpoint == checkpoint)
    ]
    return rows_of(script[: ends[0]])


def expect_exactly_once(example, slot, checkpoint):
    """State and in-flight input together are the rows before the barrier, in order, once."""
    for channel, script in zip(slot.task.inboxes, example.scripts, strict=True):
        state = slot.captured[checkpoint].get(channel, ())
        caught = slot.in_flight.get(checkpoint, {}).get((channel, Side.INPUT), ())
        assert state + caught == before(script, checkpoint)


def expect_whole_outputs(slot, checkpoint):
    """What left before the barrier and what it overtook are all that was emitted before it."""
    emitted = sum(len(rows) for rows in slot.captured[checkpoint].values())
    for channel, sent in slot.sent.items():
        position = next(
            p for p, e in enumerate(sent) if isinstance(e, Barrier) and e.checkpoint == checkpoint
        )
        caught = slot.in_flight.get(checkpoint, {}).get((channel, Side.OUTPUT), ())
        assert rows_of(sent[:position]) + caught == rows_of(sent)[:emitted]


def expect_nothing_stuck(example, slot):
    assert not slot.task.aligner.blocked
    for channel, script in zip(slot.task.inboxes, example.scripts, strict=True):
        assert tuple(slot.processed[channel]) == rows_of(script)
        assert not slot.task.inboxes[channel].queue


@plenty
@given(one_checkpoint(barrier))
def test_an_aligned_snapshot_is_exactly_the_rows_before_the_barrier(example):
    """A1, A2: on every channel all rows before it, none behind it, nothing in flight."""
    slot = example.play()

    assert slot.in_flight == {}
    assert slot.acks == [1]
    expect_exactly_once(example, slot, 1)
    expect_whole_outputs(slot, 1)
    expect_nothing_stuck(example, slot)


@plenty
@given(one_checkpoint(overtaking))
def test_an_unaligned_snapshot_and_its_in_flight_data_are_exactly_the_rows_before_the_barrier(
    example,
):
    """A4: queued input and output of the snapshot, none behind the barrier, none twice."""
    slot = example.play()

    assert slot.acks == [1]
    expect_exactly_once(example, slot, 1)
    expect_whole_outputs(slot, 1)
    expect_nothing_stuck(example, slot)


@plenty
@given(one_checkpoint(patient, overtaking))
def test_a_barrier_may_turn_unaligned_at_any_moment(example):
    """A5: here or upstream, before, while or after other channels deliver it."""
    slot = example.play()

    assert slot.acks == [1]
    expect_exactly_once(example, slot, 1)
    expect_whole_outputs(slot, 1)
    expect_nothing_stuck(example, slot)


@plenty
@given(one_checkpoint(at_least_once))
def test_at_least_once_never_misses_a_row_before_the_barrier(example):
    """A3: rows behind the barrier may be in the snapshot too, and nothing is ever blocked."""
    slot = example.play()

    for channel, script in zip(slot.task.inboxes, example.scripts, strict=True):
        state = slot.captured[1].get(channel, ())
        assert state == rows_of(script)[: len(state)]
        assert len(state) >= len(before(script, 1))
    expect_nothing_stuck(example, slot)


NEWEST = 4


@st.composite
def one_channel(draw, label, kinds, fates):
    """The rows of one channel, and what it brings of every checkpoint.

    A barrier that overtook the sender's queue may come before markers that were sent earlier.
    """
    script, jumping = [], []
    for checkpoint, kind in enumerate(kinds, 1):
        script += draw(rows(f"{label}-{checkpoint}-"))
        marker = draw(st.sampled_from(fates))
        if marker is EndOfInput:
            script.append(EndOfInput())
            break
        if marker is barrier and kind is overtaking:
            jumping.append(overtaking(checkpoint))
        elif marker is not None:
            script.append(cancel(checkpoint) if marker is cancel else kind(checkpoint))
    last = len(script) - (EndOfInput() in script)
    for position, jumper in zip(sorted(draw(places(len(jumping), last))), jumping, strict=True):
        script.insert(position + jumping.index(jumper), jumper)
    return script


def places(number, last):
    return st.lists(st.integers(0, last), min_size=number, max_size=number)


@st.composite
def histories(draw, kinds, fates):
    chosen = [draw(st.sampled_from(kinds)) for _ in range(NEWEST)]
    width = draw(st.integers(1, 3))
    scripts = [draw(one_channel(str(c), chosen, fates)) for c in range(width)]
    at_least_once_too = at_least_once in kinds
    return Example(scripts, draw(SCHEDULES), draw(LIMITS), at_least_once=at_least_once_too)


def delivers(script, checkpoint):
    ids = [e.checkpoint for e in script if isinstance(e, Barrier)]
    return checkpoint in ids or EndOfInput() in script


def aborting(checkpoint):
    return lambda slot: slot.obey(slot.task.abort(checkpoint, slot.now))


EXACTLY_ONCE = (barrier, patient, overtaking, savepoint)
COORDINATOR = tuple(aborting(checkpoint) for checkpoint in range(1, NEWEST))


@plenty
@given(histories(EXACTLY_ONCE, fates=(barrier, barrier, barrier, cancel, None, EndOfInput)))
def test_every_ack_is_exactly_once_whatever_else_goes_wrong(example):
    """A7: barriers, cancel markers, ends of input and aborts of several checkpoints, at random."""
    slot = example.play(COORDINATOR)

    assert list(slot.captured) == sorted(slot.captured), "a checkpoint is never begun late"
    assert len(slot.declines) == len(set(dict(slot.declines))), "declined twice"
    for checkpoint in slot.acks:
        assert all(delivers(script, checkpoint) for script in example.scripts)
        expect_exactly_once(example, slot, checkpoint)
        expect_whole_outputs(slot, checkpoint)


@plenty
@given(histories(EXACTLY_ONCE, fates=(barrier, barrier, barrier, EndOfInput)))
def test_the_newest_checkpoint_ends_all_waiting(example):
    """A7: once it has been delivered everywhere it is taken, and no channel stays blocked."""
    slot = example.play(COORDINATOR)

    expect_nothing_stuck(example, slot)
    if any(NEWEST in [e.checkpoint for e in s if isinstance(e, Barrier)] for s in example.scripts):
        assert NEWEST in slot.acks


@plenty
@given(histories((at_least_once,), fates=(barrier, barrier, barrier, EndOfInput)))
def test_at_least_once_takes_every_checkpoint_in_flight(example):
    """A8: all that were delivered everywhere, each with all rows before its barriers."""
    slot = example.play()

    begun = [e.checkpoint for script in example.scripts for e in script if isinstance(e, Barrier)]
    assert list(slot.captured) == sorted(set(begun))
    for checkpoint, state in slot.captured.items():
        for channel, script in zip(slot.task.inboxes, example.scripts, strict=True):
            assert len(state.get(channel, ())) >= len(before(script, checkpoint))
    expect_nothing_stuck(example, slot)
