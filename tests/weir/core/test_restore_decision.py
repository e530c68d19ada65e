"""What a starting driver restores from, on the facts that it read."""

import pytest

from coordinated_job import (
    DRAIN,
    SAVEPOINT,
    STOP,
    a_manifest,
)
from storage_facts import FOREIGN, NEW, OLD, closed, epoch, logged, path, read, resolved
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import IdsReserved
from weir.core.restore_decision import (
    Facts,
    Refuse,
    ReplayCommit,
    RestoreFrom,
    RestoreRequest,
    StartFresh,
    begins_without_state,
    closed_as,
    is_finished,
)

# Where to go on


def test_a_job_that_never_ran_starts_fresh():
    """C15: No checkpoint found during restore."""
    assert resolved(read()) == StartFresh()


def test_a_driver_that_died_before_its_first_checkpoint_is_followed_by_a_fresh_start():
    """C15: the log is there and holds no completion."""
    assert resolved(read(epoch())) == StartFresh()


def test_the_newest_completed_checkpoint_is_restored():
    """C15: restore takes the newest completed checkpoint."""
    resolution = resolved(read(epoch(), logged(3), logged(5)))

    assert resolution.manifest == a_manifest(5)
    assert resolution.path == path(5)
    assert resolution.goes_on


@pytest.mark.parametrize("ending", [(), (closed(JobStatus.STOPPED, retains=False),)])
def test_a_checkpoint_logged_behind_the_savepoint_of_a_stop_is_not_the_newest(ending):
    """C15: earlier versions logged such checkpoints; the newest is the one with the highest id."""
    resolution = resolved(
        read(epoch(OLD), logged(6, STOP), logged(5), *ending), RestoreRequest(NEW)
    )

    assert isinstance(resolution, RestoreFrom)
    assert resolution.path == path(6)


def test_the_checkpoints_before_it_are_still_owned():
    """C12: they are deleted when newer ones subsume them, also by a later driver."""
    resolution = resolved(read(epoch(), logged(3), logged(5)))

    assert resolution.owned == ((1, a_manifest(3)), (2, a_manifest(5)))


def test_a_checkpoint_that_was_subsumed_and_deleted_is_not_owned_any_more():
    """C12: its manifest is gone, and that is as it should be."""
    facts = read(epoch(), logged(3), logged(5))
    gone = {place: m for place, m in facts.manifests.items() if place != path(3)}

    assert resolved(Facts(facts.entries, gone)).owned == ((2, a_manifest(5)),)


def test_a_reservation_of_ids_is_no_checkpoint():
    """C19: entries that reserve ids stand between completions."""
    facts = read(epoch(), logged(3), IdsReserved(1, "driver-a", 40))

    assert resolved(facts).manifest == a_manifest(3)


def test_a_plain_savepoint_is_passed_over():
    """R5: it committed nothing, so going back to it would lose what was committed since."""
    resolution = resolved(read(epoch(), logged(3), logged(4, SAVEPOINT)))

    assert resolution.manifest == a_manifest(3)
    assert resolution.owned == ((1, a_manifest(3)),)


def test_a_savepoint_is_never_owned_by_the_job_that_took_it():
    """C12: savepoints are never deleted by the job."""
    facts = read(epoch(), logged(3), logged(4, STOP), closed(), epoch(NEW))

    assert resolved(facts, RestoreRequest(NEW)).owned == ((1, a_manifest(3)),)


def test_a_new_beginning_starts_a_new_line():
    """K6: what was completed before a redeployment from a chosen point is no restore point."""
    facts = read(epoch(), logged(3), epoch(NEW, goes_on=False), logged(7))

    assert resolved(facts, RestoreRequest(NEW)).owned == ((3, a_manifest(7)),)


def test_a_fresh_beginning_is_not_tempted_by_what_lies_before_it():
    """K4: a driver that restarts goes on as its submission began."""
    assert (
        resolved(read(epoch(), logged(3), epoch(NEW, goes_on=False)), RestoreRequest(NEW))
        == StartFresh()
    )


def test_a_job_that_ended_and_discarded_its_checkpoints_offers_none():
    """C12 C15: the next submission starts fresh and does not look for what was deleted."""
    facts = read(epoch(), logged(3), closed(JobStatus.FINISHED, retains=False))

    assert resolved(facts, RestoreRequest(NEW)) == StartFresh()


def test_a_job_that_ended_and_kept_its_checkpoints_offers_them():
    """C13: retained on cancellation, the next submission goes on from there."""
    facts = read(epoch(), logged(3), closed(JobStatus.CANCELED))

    assert resolved(facts, RestoreRequest(NEW)).manifest == a_manifest(3)


# Without state


def test_a_submission_that_wants_no_state_is_given_none():
    """K4: stateless is asked for, never fallen back to."""
    assert resolved(read(epoch(), logged(3)), RestoreRequest(NEW, fresh=True)) == StartFresh()


def test_a_fresh_start_is_not_kept_by_a_damaged_checkpoint():
    """K4: the state that is dropped is not read."""
    facts = read(epoch(), logged(3), damaged=[path(3)])

    assert resolved(facts, RestoreRequest(NEW, fresh=True)) == StartFresh()


def test_a_restarted_driver_of_a_fresh_start_goes_on_from_its_own_checkpoint():
    """K4 R1: fresh concerns the start of the submission, not its restarts."""
    facts = read(epoch(), logged(3), epoch(NEW, goes_on=False), logged(20))

    resolution = resolved(facts, RestoreRequest(NEW, fresh=True))

    assert (resolution.manifest, resolution.owned) == (a_manifest(20), ((3, a_manifest(20)),))


def test_a_driver_that_died_before_its_first_checkpoint_after_a_fresh_start_starts_fresh_again():
    """K4: what is before its line cannot be restored, as before."""
    facts = read(epoch(), logged(3), epoch(NEW, goes_on=False))

    assert resolved(facts, RestoreRequest(NEW, fresh=True)) == StartFresh()


# By path


def test_a_retained_checkpoint_is_restored_by_its_path():
    """C13: a retained checkpoint can be restored from by path, like a savepoint."""
    facts = read(manifests=[(FOREIGN, a_manifest(9))])

    resolution = resolved(facts, RestoreRequest(NEW, path=FOREIGN))

    assert isinstance(resolution, RestoreFrom)
    assert resolution.manifest == a_manifest(9)
    assert resolution.path == FOREIGN
    assert not resolution.goes_on


def test_a_path_goes_before_what_the_log_offers():
    """C13: redeploy from a chosen snapshot."""
    facts = read(epoch(), logged(3), manifests=[(FOREIGN, a_manifest(9))])

    assert resolved(facts, RestoreRequest(NEW, path=FOREIGN)).manifest == a_manifest(9)


def test_a_restarted_driver_goes_on_and_does_not_begin_again_from_the_path():
    """C13: the path concerns the start of the submission, not its restarts."""
    facts = read(
        epoch(goes_on=False, restoring=FOREIGN),
        logged(11),
        manifests=[(FOREIGN, a_manifest(9))],
    )

    assert resolved(facts, RestoreRequest(OLD, path=FOREIGN)).manifest == a_manifest(11)


def test_a_driver_that_died_before_its_own_first_checkpoint_begins_where_its_submission_began():
    """C16: also without the path being given again, and it owns no more than before."""
    facts = read(epoch(goes_on=False, restoring=FOREIGN), manifests=[(FOREIGN, a_manifest(9))])

    resolution = resolved(facts)

    assert resolution.manifest == a_manifest(9)
    assert resolution.owned == ()


def test_a_path_without_a_manifest_is_refused():
    """S8: with its path, and what is there instead."""
    refusal = resolved(read(epoch(), logged(3)), RestoreRequest(NEW, path=FOREIGN))

    assert isinstance(refusal, Refuse)
    assert refusal.subject == f"manifest {FOREIGN}"
    assert refusal.reason == "it cannot be read: it was not found"
    assert path(3) in refusal.remedy


# Claim modes


def test_without_a_claim_what_is_restored_is_not_owned():
    """C16: NO_CLAIM, the default: never touched."""
    facts = read(manifests=[(FOREIGN, a_manifest(9, SAVEPOINT))])

    assert resolved(facts, RestoreRequest(NEW, path=FOREIGN)).owned == ()


def test_with_a_claim_it_is_owned_under_the_number_of_the_epoch_that_claims_it():
    """C16: CLAIM: we own and later delete it."""
    facts = read(epoch(), logged(3), manifests=[(FOREIGN, a_manifest(9, SAVEPOINT))])

    resolution = resolved(facts, RestoreRequest(NEW, path=FOREIGN, claims=True))

    assert resolution.owned == ((2, a_manifest(9, SAVEPOINT)),)


def test_a_claim_outlives_the_driver_that_made_it():
    """C16: else it would never be deleted."""
    facts = read(
        epoch(goes_on=False, restoring=FOREIGN, claims=True),
        logged(11),
        manifests=[(FOREIGN, a_manifest(9))],
    )

    assert resolved(facts).owned == ((0, a_manifest(9)), (1, a_manifest(11)))


# After a stop


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_a_driver_that_died_between_savepoint_and_end_only_has_commits_to_repeat(kind):
    """R5 C11: the job has stopped; to run it again would be wrong."""
    resolution = resolved(read(epoch(), logged(3), logged(4, kind)))

    assert resolution == ReplayCommit(a_manifest(4, kind), path(4), ((1, a_manifest(3)),))


def test_a_new_submission_goes_on_from_the_savepoint_that_the_last_one_stopped_with():
    """K4: also when the last driver did not get to the end."""
    resolution = resolved(read(epoch(), logged(3), logged(4, STOP)), RestoreRequest(NEW))

    assert isinstance(resolution, RestoreFrom)
    assert resolution.manifest == a_manifest(4, STOP)


@pytest.mark.parametrize("end", [(), (closed(),)], ids=["cut short", "closed"])
def test_a_driver_that_died_before_its_first_checkpoint_after_a_stop_does_not_stop_again(end):
    """K4 C11: it was the submission before that was to stop."""
    facts = read(epoch(), logged(3), logged(4, STOP), *end, epoch(NEW, restoring=path(4)))

    resolution = resolved(facts, RestoreRequest(NEW))

    assert isinstance(resolution, RestoreFrom)
    assert resolution.manifest == a_manifest(4, STOP)


def test_a_start_from_the_savepoint_of_the_last_stop_owns_what_was_retained():
    """C12 K4: so that an upgrade leaves nothing behind when its own checkpoints are newer."""
    facts = read(epoch(), logged(3), logged(4, STOP), closed())

    resolution = resolved(facts, RestoreRequest(NEW, path=path(4)))

    assert (resolution.manifest, resolution.goes_on) == (a_manifest(4, STOP), True)
    assert resolution.owned == ((1, a_manifest(3)),)


def test_a_retained_checkpoint_that_is_named_is_not_inherited():
    """C16: unclaimed, it is never touched."""
    facts = read(epoch(), logged(3), closed(JobStatus.CANCELED))

    resolution = resolved(facts, RestoreRequest(NEW, path=path(3)))

    assert (resolution.goes_on, resolution.owned) == (False, ())


def test_a_start_that_claims_the_savepoint_of_the_last_stop_owns_it():
    """C16."""
    facts = read(epoch(), logged(3), logged(4, STOP), closed())

    resolution = resolved(facts, RestoreRequest(NEW, path=path(4), claims=True))

    assert resolution.owned == ((4, a_manifest(4, STOP)),)


def test_a_submission_that_has_ended_is_known_to_have_ended():
    """R1: a driver that is started once more finds no work."""
    entries = read(epoch(), logged(4, STOP), closed()).entries

    assert closed_as(entries, OLD) is JobStatus.STOPPED
    assert closed_as(entries, NEW) is None
    assert closed_as(entries[:-1], OLD) is None
    assert closed_as((), OLD) is None


# Too old, or damaged


def test_a_log_without_a_checkpoint_is_refused_when_one_was_required():
    """K4: never degrades to stateless."""
    refusal = resolved(read(), RestoreRequest(NEW, at_least=4))

    assert isinstance(refusal, Refuse)
    assert "checkpoint 4 or a newer one was required" in refusal.reason


@pytest.mark.parametrize(("at_least", "is_refused"), [(4, True), (3, False)])
def test_a_checkpoint_older_than_required_is_refused(at_least, is_refused):
    """K4: the operator passes the lowest acceptable checkpoint id."""
    resolution = resolved(read(epoch(), logged(3)), RestoreRequest(NEW, at_least=at_least))

    assert isinstance(resolution, Refuse) == is_refused


def test_a_damaged_manifest_is_refused_with_its_path_and_the_one_before_it_is_offered():
    """C18 S8: never silently the one before it, for output would repeat."""
    refusal = resolved(read(epoch(), logged(3), logged(5), damaged=[path(5)]))

    assert isinstance(refusal, Refuse)
    assert refusal.subject == f"manifest {path(5)}"
    assert refusal.reason == "it cannot be read: its checksum is wrong"
    assert path(3) in refusal.remedy


# A job that has finished


FINISHED = (epoch(), logged(3), closed(JobStatus.FINISHED, retains=False))


def test_a_job_that_has_finished_is_not_run_again():
    """R6, C12: its checkpoints are deleted, so it would repeat all its output."""
    assert is_finished(read(*FINISHED).entries, RestoreRequest(NEW))


@pytest.mark.parametrize(
    "restore_request",
    [
        RestoreRequest(NEW, reruns=True),
        RestoreRequest(NEW, fresh=True),
        RestoreRequest(NEW, path=FOREIGN),
    ],
    ids=["rerun", "fresh", "from a savepoint"],
)
def test_a_job_that_has_finished_runs_again_on_an_explicit_request(restore_request):
    """R6, C13."""
    assert not is_finished(read(*FINISHED).entries, restore_request)


@pytest.mark.parametrize("status", [JobStatus.STOPPED, JobStatus.CANCELED, JobStatus.FAILED])
def test_a_job_that_ended_in_any_other_way_goes_on(status):
    """C13, C15."""
    assert not is_finished(read(epoch(), logged(3), closed(status)).entries, RestoreRequest(NEW))


def test_a_job_that_runs_has_not_finished():
    """C15: whatever it did before."""
    assert not is_finished(read(*FINISHED, epoch(NEW, goes_on=False)).entries, RestoreRequest(OLD))


@pytest.mark.parametrize("retains", [True, False])
def test_a_rerun_begins_without_state_and_its_next_driver_goes_on(retains):
    """R6, R1: also where the last checkpoint of a finished job was retained."""
    before = read(epoch(), logged(3), closed(JobStatus.FINISHED, retains=retains))
    restore_request = RestoreRequest(NEW, reruns=True)
    after = read(*(e for _, e in before.entries), epoch(NEW, goes_on=False), logged(5))

    assert resolved(before, restore_request) == StartFresh()
    assert resolved(after, restore_request).manifest == a_manifest(5)


def test_a_rerun_of_a_job_that_has_not_finished_goes_on_from_its_checkpoint():
    """C15: the setting concerns finished jobs only."""
    facts = read(epoch(), logged(3), closed(JobStatus.CANCELED))

    assert not begins_without_state(facts.entries, RestoreRequest(NEW, reruns=True))
    assert resolved(facts, RestoreRequest(NEW, reruns=True)).manifest == a_manifest(3)


def test_a_rerun_that_requires_a_checkpoint_does_not_begin_without_one():
    """K4: an operator that knows of a checkpoint never starts from nothing unnoticed."""
    restore_request = RestoreRequest(NEW, reruns=True, at_least=3)

    assert isinstance(resolved(read(*FINISHED), restore_request), Refuse)
