"""The barriers of one checkpoint are lined up across the inputs of one subtask."""

import pytest

from subtask_harness import REPLAY, A, B, C, barrier, impatient, overtaking, savepoint
from weir.core.alignment import Aligner, GiveUp, InputsDone, Snapshot, Tracker
from weir.core.barriers import AlignmentType, Barrier
from weir.core.ids import CheckpointId, Millis
from weir.core.reasons import Reason

SUBSUMED = Reason.CHECKPOINT_DECLINED_SUBSUMED
CANCELLED = Reason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER
INPUT_ENDED = Reason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM


class Inputs:
    """The inputs of one subtask; each method answers with what is to be done now."""

    def __init__(self, *channels, declines_on_end=False, machine=Aligner):
        self.machine = machine(channels, declines_on_end=declines_on_end)
        self.now = Millis(0)

    def at(self, now):
        self.now = Millis(now)
        return self

    def deliver(self, channel, barrier):
        return self.machine.barrier_reached(channel, barrier, self.now)

    def announce(self, barrier):
        return self.machine.announced(barrier, self.now)

    def trigger(self, barrier):
        return self.machine.begin(barrier, self.now)

    def arrive(self, channel):
        return self.machine.marker_arrived(channel)

    def end(self, channel):
        return self.machine.end_reached(channel)

    def cancel(self, checkpoint):
        return self.machine.cancel(CheckpointId(checkpoint), CANCELLED)

    @property
    def blocked(self):
        return self.machine.blocked

    @property
    def deadline(self):
        return self.machine.deadline()


def tracked(*channels, **options):
    return Inputs(*channels, machine=Tracker, **options)


def casual(checkpoint) -> Barrier:
    return barrier(checkpoint, AlignmentType.AT_LEAST_ONCE)


def aligned(barrier, since=0):
    return Snapshot(barrier, overtaking=False, since=Millis(since))


def overtaken(barrier, since=0):
    return Snapshot(barrier, overtaking=True, since=Millis(since))


def test_a_channel_that_delivered_the_barrier_is_not_read_until_every_channel_has():
    """A2: the others go on."""
    inputs = Inputs(A, B, C)

    assert inputs.deliver(A, barrier(1)) == []
    assert inputs.blocked == {A}
    assert inputs.deliver(C, barrier(1)) == []
    assert inputs.blocked == {A, C}


def test_the_last_barrier_takes_the_snapshot_and_unblocks_everything():
    """A2: nothing is blocked longer than it must be."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(1))

    assert inputs.deliver(B, barrier(1)) == [aligned(barrier(1))]
    assert inputs.blocked == set()


def test_one_input_is_always_aligned():
    """A2: there is nothing to wait for."""
    assert Inputs(A).deliver(A, barrier(1)) == [aligned(barrier(1))]


def test_a_source_is_aligned_when_it_is_triggered():
    """A2: it has no inputs."""
    assert Inputs().trigger(barrier(1)) == [aligned(barrier(1))]


def test_each_checkpoint_is_aligned_anew():
    """A2: what delivered the last barrier has not delivered the next."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(1))
    inputs.deliver(B, barrier(1))

    assert inputs.deliver(B, barrier(2)) == []
    assert inputs.blocked == {B}
    assert inputs.deliver(A, barrier(2)) == [aligned(barrier(2))]


def test_alignment_is_measured_from_the_first_barrier():
    """A2: the snapshot records when its first barrier arrived."""
    inputs = Inputs(A, B)
    inputs.at(30).deliver(A, barrier(1))

    assert inputs.at(70).deliver(B, barrier(1)) == [aligned(barrier(1), since=30)]


def test_at_least_once_blocks_nothing_and_snapshots_at_the_last_barrier():
    """A3: alignment is what exactly-once costs."""
    inputs = tracked(A, B)

    assert inputs.at(30).deliver(A, casual(1)) == []
    assert inputs.blocked == set()
    assert inputs.at(70).deliver(B, casual(1)) == [aligned(casual(1), since=30)]


def test_at_least_once_ignores_a_barrier_that_comes_again():
    """A3: one snapshot per checkpoint."""
    inputs = tracked(A)
    inputs.deliver(A, casual(2))

    assert inputs.deliver(A, casual(2)) == []
    assert inputs.deliver(A, casual(1)) == []


def test_the_first_overtaking_barrier_takes_the_snapshot_at_once():
    """A4: no channel is waited for, so none is blocked."""
    inputs = Inputs(A, B)

    assert inputs.announce(overtaking(1)) == [overtaken(overtaking(1))]
    assert inputs.arrive(A) == []
    assert inputs.blocked == set()


def test_in_flight_data_is_complete_when_every_channel_has_delivered():
    """A4: and that is reported once, however often the barrier arrives."""
    inputs = Inputs(A, B)
    inputs.announce(overtaking(1))
    inputs.arrive(A)

    assert inputs.announce(overtaking(1)) == []
    assert inputs.arrive(B) == [InputsDone(CheckpointId(1))]
    assert inputs.announce(overtaking(1)) == []
    assert inputs.arrive(B) == []


def test_an_aligned_barrier_counts_for_a_checkpoint_that_overtook():
    """A4, A5: the sender had room, so it had no reason to overtake; the channel is not blocked."""
    inputs = Inputs(A, B)
    inputs.announce(overtaking(1))
    inputs.arrive(A)

    assert inputs.deliver(B, impatient(1, 50)) == [InputsDone(CheckpointId(1))]
    assert inputs.blocked == set()


def test_a_marker_that_has_only_arrived_is_not_delivered_while_others_are_aligned():
    """A2: the rows before it are yet to be processed."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(1))

    assert inputs.arrive(B) == []
    assert inputs.blocked == {A}


def test_waiting_counts_from_the_moment_the_first_barrier_arrives():
    """A5: behind however much data; the barriers that follow do not extend it."""
    inputs = Inputs(A, B)

    assert inputs.at(100).announce(impatient(1, 50)) == []
    assert inputs.deadline == 150
    inputs.at(120).announce(impatient(1, 50))
    inputs.at(130).deliver(A, impatient(1, 50))
    assert inputs.deadline == 150


def test_alignment_that_takes_too_long_turns_unaligned():
    """A5: blocked channels are released, and it waits no more."""
    inputs = Inputs(A, B)
    inputs.at(100).deliver(A, impatient(1, 50))

    assert inputs.machine.overtake() == [overtaken(impatient(1, 50), since=100)]
    assert inputs.blocked == set()
    assert inputs.deadline is None
    assert inputs.machine.overtake() == []
    assert inputs.arrive(B) == [InputsDone(CheckpointId(1))]


def test_a_barrier_that_turned_unaligned_upstream_turns_everyone_downstream():
    """A5: A waited aligned; now no channel is blocked."""
    inputs = Inputs(A, B)
    inputs.deliver(A, impatient(1, 50))

    assert inputs.announce(overtaking(1)) == [overtaken(impatient(1, 50))]
    assert inputs.blocked == set()
    assert inputs.arrive(B) == [InputsDone(CheckpointId(1))]


@pytest.mark.parametrize("waiting", [barrier(1), savepoint(1)])
def test_only_a_barrier_with_a_timeout_times_out(waiting):
    """A5, A6: a savepoint waits for its alignment as long as it takes."""
    inputs = Inputs(A, B)
    inputs.deliver(A, waiting)

    assert inputs.deadline is None


def test_nothing_times_out_once_aligned():
    """A5: the clock stops with the snapshot."""
    inputs = Inputs(A)
    inputs.deliver(A, impatient(1, 50))

    assert inputs.deadline is None
    assert inputs.machine.overtake() == []


def test_a_newer_barrier_cancels_the_alignment_of_an_older_checkpoint():
    """A7, A8: its channels are released, and the newer one is aligned from scratch."""
    inputs = Inputs(A, B)
    inputs.at(10).deliver(A, barrier(1))

    assert inputs.at(20).deliver(B, barrier(2)) == [GiveUp(CheckpointId(1), SUBSUMED)]
    assert inputs.blocked == {B}
    assert inputs.deliver(A, barrier(2)) == [aligned(barrier(2), since=20)]


def test_a_newer_barrier_cancels_an_older_checkpoint_that_overtook():
    """A7: the in-flight data of the older one will never be complete."""
    inputs = Inputs(A, B)
    inputs.announce(overtaking(1))
    inputs.arrive(A)

    assert inputs.announce(overtaking(2)) == [
        GiveUp(CheckpointId(1), SUBSUMED),
        overtaken(overtaking(2)),
    ]


@pytest.mark.parametrize("old", [1, 2])
def test_a_barrier_that_is_not_newer_than_the_last_is_dropped(old):
    """A7, A9: whether its checkpoint was taken or passed over."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(2))
    inputs.deliver(B, barrier(2))

    assert inputs.deliver(A, barrier(old)) == []
    assert inputs.announce(overtaking(old)) == []
    assert inputs.trigger(barrier(old)) == []
    assert inputs.blocked == set()


def test_an_older_barrier_does_not_disturb_the_alignment_of_a_newer_checkpoint():
    """A7: it neither blocks its channel nor counts as delivered."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(2))

    assert inputs.deliver(B, barrier(1)) == []
    assert inputs.announce(overtaking(1)) == []
    assert inputs.blocked == {A}


def test_a_cancel_marker_releases_blocked_channels():
    """A7: and the barriers that come late are ignored."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(1))

    assert inputs.cancel(1) == [GiveUp(CheckpointId(1), CANCELLED)]
    assert inputs.blocked == set()
    assert inputs.deliver(B, barrier(1)) == []
    assert inputs.blocked == set()


def test_a_cancel_marker_may_come_before_any_barrier():
    """A7: the checkpoint is not begun after that."""
    inputs = Inputs(A, B)

    assert inputs.cancel(1) == [GiveUp(CheckpointId(1), CANCELLED)]
    assert inputs.deliver(A, barrier(1)) == []
    assert inputs.blocked == set()


def test_a_checkpoint_is_cancelled_once():
    """A7: every input brings a marker, one answer is enough."""
    inputs = Inputs(A, B)
    inputs.cancel(1)

    assert inputs.cancel(1) == []


@pytest.mark.parametrize("old", [1, 2])
def test_a_cancel_marker_for_what_is_over_does_nothing(old):
    """A7: checkpoint 2 was taken, and 3 is being aligned."""
    inputs = Inputs(A, B)
    for channel, checkpoint in [(A, 2), (B, 2), (A, 3)]:
        inputs.deliver(channel, barrier(checkpoint))

    assert inputs.cancel(old) == []
    assert inputs.blocked == {A}


def test_a_cancel_marker_of_a_newer_checkpoint_ends_the_older_one_too():
    """A7: markers keep their place, so the older barrier is not coming on that channel."""
    inputs = Inputs(A, B)
    inputs.deliver(A, barrier(1))

    assert inputs.cancel(2) == [
        GiveUp(CheckpointId(1), SUBSUMED),
        GiveUp(CheckpointId(2), CANCELLED),
    ]
    assert inputs.blocked == set()
    assert inputs.deliver(B, barrier(2)) == []


@pytest.mark.parametrize("machine", [Aligner, Tracker])
def test_end_of_input_counts_as_delivered(machine):
    """A7: whether the channel ends while the others deliver, or has ended before."""
    inputs = Inputs(A, B, machine=machine)
    inputs.deliver(A, barrier(1))

    assert inputs.end(B) == [aligned(barrier(1))]
    assert inputs.blocked == set()
    assert inputs.deliver(A, barrier(2)) == [aligned(barrier(2))]


@pytest.mark.parametrize("machine", [Aligner, Tracker])
def test_a_subtask_triggered_in_place_of_its_finished_inputs_waits_for_their_ends(machine):
    """A7: the coordinator knows that they have finished, their ends may still be on the way."""
    inputs = Inputs(A, B, machine=machine)
    inputs.end(A)

    assert inputs.trigger(barrier(1)) == []
    assert inputs.end(B) == [aligned(barrier(1))]
    assert inputs.trigger(barrier(2)) == [aligned(barrier(2))]


def test_end_of_input_completes_the_in_flight_data():
    """A4, A7: nothing more can come on that channel."""
    inputs = Inputs(A, B)
    inputs.announce(overtaking(1))
    inputs.arrive(A)

    assert inputs.end(B) == [InputsDone(CheckpointId(1))]


@pytest.mark.parametrize("machine", [Aligner, Tracker])
def test_an_end_during_alignment_declines_if_checkpoints_end_with_the_first_finished_subtask(
    machine,
):
    """A7, C14: that is the switch, off."""
    inputs = Inputs(A, B, C, machine=machine, declines_on_end=True)
    inputs.deliver(A, barrier(1))

    assert inputs.end(B) == [GiveUp(CheckpointId(1), INPUT_ENDED)]
    assert inputs.end(A) == [], "no checkpoint is being aligned"
    assert inputs.blocked == set()
    assert inputs.deliver(C, barrier(1)) == []


@pytest.mark.parametrize("machine", [Aligner, Tracker])
def test_the_end_of_recovered_data_is_not_a_finished_subtask(machine):
    """A7, A10: it counts as delivered, regardless of the switch."""
    inputs = Inputs(A, REPLAY, machine=machine, declines_on_end=True)
    inputs.deliver(A, barrier(1))

    assert inputs.end(REPLAY) == [aligned(barrier(1))]


def test_an_end_declines_nothing_that_was_taken_already():
    """A4, C14: what overtook has its snapshot, and the end completes it."""
    inputs = Inputs(A, B, declines_on_end=True)
    inputs.announce(overtaking(1))
    inputs.arrive(A)

    assert inputs.end(B) == [InputsDone(CheckpointId(1))]


def test_at_least_once_follows_several_checkpoints_at_once():
    """A8: the barriers of the second may come before the first is complete."""
    inputs = tracked(A, B)
    inputs.deliver(A, casual(1))
    inputs.deliver(A, casual(2))

    assert inputs.deliver(B, casual(1)) == [aligned(casual(1))]
    assert inputs.deliver(B, casual(2)) == [aligned(casual(2))]


def test_an_end_of_input_completes_all_checkpoints_that_waited_for_it():
    """A7, A8: in their order."""
    inputs = tracked(A, B)
    inputs.deliver(A, casual(1))
    inputs.deliver(A, casual(2))

    assert inputs.end(B) == [aligned(casual(1)), aligned(casual(2))]


def test_cancelling_one_checkpoint_leaves_the_others_in_flight():
    """A7, A8: at-least-once."""
    inputs = tracked(A, B)
    inputs.deliver(A, casual(1))
    inputs.deliver(A, casual(2))

    assert inputs.cancel(1) == [GiveUp(CheckpointId(1), CANCELLED)]
    assert inputs.cancel(1) == []
    assert inputs.deliver(B, casual(1)) == []
    assert inputs.deliver(B, casual(2)) == [aligned(casual(2))]
    assert inputs.cancel(2) == [], "too late"


def test_what_was_cancelled_is_forgotten_when_a_newer_checkpoint_is_taken():
    """A7: its barriers are too old from then on, so nothing has to be remembered for ever."""
    inputs = tracked(A)
    for dead in (1, 3):
        inputs.cancel(dead)
    inputs.deliver(A, casual(2))

    assert inputs.machine.dead == {3}
    assert inputs.deliver(A, casual(1)) == []
    assert inputs.deliver(A, casual(3)) == []


def test_at_least_once_does_not_begin_what_was_cancelled_first():
    """A7: barriers come late, and the checkpoint stays dead."""
    inputs = tracked(A, B)

    assert inputs.cancel(1) == [GiveUp(CheckpointId(1), CANCELLED)]
    assert inputs.deliver(A, casual(1)) == []
    assert inputs.deliver(B, casual(1)) == []


def test_a_checkpoint_that_completes_ends_older_ones_that_still_wait():
    """A7, A8: barriers keep their order on a channel, so the older one is not coming."""
    inputs = tracked(A, B)
    inputs.deliver(A, casual(1))
    inputs.deliver(A, casual(2))

    assert inputs.deliver(B, casual(2)) == [GiveUp(CheckpointId(1), SUBSUMED), aligned(casual(2))]
    assert inputs.deliver(B, casual(1)) == []
    assert inputs.cancel(1) == []
    assert inputs.end(B) == []
