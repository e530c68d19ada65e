"""What a starting driver writes into the log, and what it may believe once that is there."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_job import CHECKPOINT, DIRECTORY, STOP, a_manifest
from storage_facts import NEW, OLD, closed, epoch
from weir.core.coordinator.coordinator_state import OwnCheckpoints, Unclaimed
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import ID_BLOCK, CheckpointLogged, EpochTaken, IdsReserved
from weir.core.restore_decision import ReplayCommit, RestoreFrom, RestoreRequest, StartFresh
from weir.core.takeover import (
    Claim,
    Liveness,
    claim,
    driver_to_probe,
    epoch_state,
    may_replace,
    refusal_stands,
)

WISH = RestoreRequest("submission-2")


def logged(checkpoint, epoch=1, ids_until=33):
    return CheckpointLogged(epoch, "driver-a", checkpoint, CHECKPOINT, "m", ids_until)


def restoring(checkpoint, *, goes_on=True, owned=()):
    return RestoreFrom(a_manifest(checkpoint), "m", goes_on, owned)


def claimed(*entries, resolution=None, restore_request=WISH):
    numbered = tuple(enumerate(entries))
    return claim(numbered, resolution or StartFresh(), restore_request, "driver-b")


def test_the_first_driver_of_a_job_takes_the_first_entry():
    """C17: epochs and completions are entries of one numbered log."""
    assert claimed() == Claim(
        index=0,
        entry=EpochTaken(
            epoch=1,
            driver="driver-b",
            deployment="submission-2",
            goes_on=False,
            restoring="",
            claims=False,
            ids_until=1 + ID_BLOCK,
        ),
        next_id=1,
        numbers={},
    )


def test_the_commit_numbers_of_the_log_are_known_whatever_is_restored():
    """C19: after a rollback a sink sees no number again."""
    five, six = (("write", 5),), (("write", 6),)
    entries = (replace(logged(3), numbers=five), replace(logged(4), numbers=six))
    older = restoring(3, goes_on=False)

    taken = claimed(*entries, resolution=older)

    assert taken.numbers == {"write": 6}
    assert epoch_state(taken, older, DIRECTORY).numbers == {"write": 6}


def test_a_takeover_consumes_the_entry_that_a_zombie_needs():
    """C17: the one behind the end."""
    assert claimed(logged(1), logged(2)).index == 2


def test_every_driver_has_an_epoch_of_its_own():
    """C17: later than all before it."""
    assert claimed(logged(1, epoch=4), logged(2, epoch=5)).entry.epoch == 6


def test_ids_go_on_where_the_last_epoch_s_reservation_ended():
    """C19: also those that a zombie may still use."""
    claim_ = claimed(logged(3), IdsReserved(1, "driver-a", 40), resolution=restoring(3))

    assert claim_.next_id == 40
    assert claim_.entry.ids_until == 40 + ID_BLOCK


def test_ids_are_above_those_of_a_checkpoint_that_came_from_elsewhere():
    """C19 C16: else its transactions would count as covered."""
    assert claimed(resolution=restoring(57, goes_on=False)).next_id == 58


@given(st.integers(1, 100), st.integers(1, 100))
def test_no_id_is_ever_given_out_twice(reserved, restored):
    """C19: ids never repeat within a job's directory, whatever is restored."""
    made = claimed(logged(1, ids_until=reserved), resolution=restoring(restored))

    assert made.next_id >= reserved
    assert made.next_id > restored


def test_the_entry_records_where_the_driver_begins():
    """C16 C15: so that a restarted driver finds the same beginning."""
    entry = claimed(
        resolution=restoring(9, goes_on=False),
        restore_request=RestoreRequest("submission-2", claims=True),
    ).entry

    assert (entry.goes_on, entry.restoring, entry.claims) == (False, "m", True)


def test_a_fresh_start_behind_other_checkpoints_begins_a_new_line():
    """K4 C19: nothing is restored, and no id of the line before is used again."""
    made = claimed(logged(3), restore_request=RestoreRequest("submission-2", fresh=True))

    assert (made.entry.goes_on, made.entry.restoring) == (False, "")
    assert made.next_id == 33


@pytest.mark.parametrize("resolution", [restoring(3), ReplayCommit(a_manifest(4, STOP), "m", ())])
def test_a_driver_that_goes_on_says_so(resolution):
    """C15: the line of checkpoints is not broken by it."""
    assert claimed(logged(3), resolution=resolution).entry.goes_on


# What it then knows


def begun(resolution):
    return epoch_state(claimed(logged(1), resolution=resolution), resolution, DIRECTORY)


def test_a_checkpoint_that_the_job_owns_is_where_it_goes_on():
    """C12: it is subsumed in its turn."""
    own = a_manifest(3)
    begins = begun(RestoreFrom(own, "m", goes_on=True, owned=((1, own),)))

    assert begins.start == OwnCheckpoints()
    assert begins.owned == ((1, own),)


def test_a_checkpoint_that_the_job_does_not_own_is_borrowed():
    """C16: never touched."""
    begins = begun(restoring(3))

    assert begins.start == Unclaimed(a_manifest(3))
    assert begins.owned == ()


def test_a_job_that_starts_fresh_borrows_nothing():
    """C15: and owns nothing."""
    begins = begun(StartFresh())

    assert (begins.start, begins.owned) == (OwnCheckpoints(), ())


def test_an_epoch_begins_with_what_its_entry_says():
    """C17 C19: epoch, number and ids are those that are in the log."""
    begins = begun(restoring(3))

    assert (begins.epoch, begins.index, begins.next_id) == (2, 1, 33)
    assert begins.ids_until == 33 + ID_BLOCK


def test_a_refusal_stands_only_on_the_log_that_is_still_there():
    """C17 C15: a driver that goes on deletes what its newest checkpoint subsumes."""
    read = tuple(enumerate((logged(3), logged(4))))
    moved = (*read, (2, logged(5)))

    assert refusal_stands(read, read)
    assert not refusal_stands(read, moved)
    assert not refusal_stands(read, None)


# Which drivers are replaced


def asked(*entries, restore_request=None):
    return driver_to_probe(tuple(enumerate(entries)), restore_request or RestoreRequest(NEW))


def test_the_driver_of_another_submission_is_asked_before_it_is_replaced():
    """C17: a second job of the same name must not replace the first unnoticed."""
    first, second = epoch("submission-0"), epoch(OLD)

    assert asked(first, second, logged(3)) == second


def test_a_restarted_driver_replaces_its_predecessor_without_asking():
    """R1: it serves the same submission, and its predecessor is dead or will be fenced."""
    assert asked(epoch(OLD), logged(3), restore_request=RestoreRequest(OLD)) is None


@pytest.mark.parametrize("status", [JobStatus.STOPPED, JobStatus.CANCELED, JobStatus.FAILED])
def test_no_driver_is_asked_about_a_job_that_has_ended(status):
    """C17: its driver has closed the log."""
    assert asked(epoch(OLD), logged(3), closed(status)) is None


def test_no_driver_is_asked_about_a_job_that_never_ran():
    """C17."""
    assert asked() is None


def test_a_submission_that_takes_over_asks_no_driver():
    """C17, K2: an operator replaces its own drivers, and a user may ask for it."""
    assert asked(epoch(OLD), restore_request=RestoreRequest(NEW, takes_over=True)) is None


def test_only_a_driver_that_answers_is_left_alone():
    """C17, R1: one that is dead or hangs is replaced, and the log fences it if it wakes."""
    assert [found for found in Liveness if may_replace(found)] == [Liveness.GONE, Liveness.UNKNOWN]


def test_the_log_says_where_a_driver_is_asked():
    """C17: the next driver finds it there."""
    taken = claim((), StartFresh(), WISH, "driver-b", "http://127.0.0.1:4040")

    assert taken.entry.address == "http://127.0.0.1:4040"
