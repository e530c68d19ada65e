"""Storage has three results, and each is a separate event: done, certainly not done, unknown."""

import pytest

from coordinated_job import DIRECTORY, a_manifest
from failing_store import FailingStore
from stepped_slots import SteppedExecutor
from weir.core.coordinator import actions, events
from weir.core.ids import CheckpointId, Epoch
from weir.core.log_entries import EpochTaken, IdsReserved
from weir.driver.storage_actions import StorageActions
from weir.errors import JobRejected, Unavailable
from weir.storage import manifests
from weir.storage.job_log_store import JobLog
from weir.storage.object_store import OutcomeUnknown, WriteFailed

REFUSED = JobRejected("no access", "the bucket is not ours", "name another")
NOT_STORED = WriteFailed("the disk is full")
IN_DOUBT = OutcomeUnknown("no answer came")
UNPROMISED = OSError("a socket died")
MANIFEST = a_manifest(1)
ENTRY = EpochTaken(
    Epoch(1), "driver-a", "d", goes_on=False, restoring="", claims=False, ids_until=9
)
NEXT = IdsReserved(Epoch(1), "driver-a", CheckpointId(20))
OTHERS = IdsReserved(Epoch(2), "driver-b", CheckpointId(20))


@pytest.fixture
def store():
    return FailingStore()


@pytest.fixture
def journal(store):
    journal = JobLog(store, DIRECTORY)
    journal.create(0, ENTRY)
    return journal


@pytest.fixture
def answers(store, journal):
    """The event after an action was carried out."""

    def answered(action):
        heard = []
        StorageActions(store, journal, SteppedExecutor(), heard.append).carry_out(action)
        return heard

    return answered


# The manifest


def test_a_manifest_that_was_written_is_there(answers, store):
    """C8."""
    assert answers(actions.WriteManifest(MANIFEST)) == [events.ManifestWritten(1)]
    assert manifests.read(store, f"{MANIFEST.location}/_metadata") == MANIFEST


@pytest.mark.parametrize("problem", [REFUSED, NOT_STORED], ids=repr)
def test_a_manifest_that_is_surely_not_there_is_reported_with_the_cause(answers, store, problem):
    """C18."""
    store.fail("write", problem)
    assert answers(actions.WriteManifest(MANIFEST)) == [events.ManifestNotWritten(1, str(problem))]


@pytest.mark.parametrize(
    "problem", [IN_DOUBT, UNPROMISED, Unavailable("?", retry_after=1)], ids=repr
)
@pytest.mark.parametrize("acts", [True, False], ids=["it is there", "it is not there"])
def test_a_manifest_of_unknown_outcome_is_in_doubt(answers, store, problem, acts):
    """C18: whatever a store did not promise to have left undone may have been done."""
    store.fail("write", problem, acts=acts)
    assert answers(actions.WriteManifest(MANIFEST)) == [events.ManifestInDoubt(1)]


# The log


def test_an_entry_that_was_created_is_ours(answers, journal):
    """C8, C17."""
    assert answers(actions.CreateEntry(1, NEXT)) == [events.EntryCreated(1)]
    assert journal.read() == ((0, ENTRY), (1, NEXT))


def test_an_entry_that_another_driver_has_is_taken(answers, journal):
    """C17: never replaced."""
    journal.create(1, OTHERS)
    assert answers(actions.CreateEntry(1, NEXT)) == [events.EntryTaken(1)]
    assert journal.read() == ((0, ENTRY), (1, OTHERS))


@pytest.mark.parametrize("problem", [REFUSED, NOT_STORED], ids=repr)
def test_an_entry_that_is_surely_not_there_is_reported_with_the_cause(answers, store, problem):
    """C18."""
    store.fail("create", problem)
    assert answers(actions.CreateEntry(1, NEXT)) == [events.EntryNotCreated(1, str(problem))]


@pytest.mark.parametrize("problem", [IN_DOUBT, UNPROMISED], ids=repr)
@pytest.mark.parametrize("acts", [True, False], ids=["it is there", "it is not there"])
def test_an_entry_of_unknown_outcome_is_in_doubt_and_may_be_created_again(
    answers, store, problem, acts
):
    """C18: aborting a checkpoint whose entry exists would delete the newest restore point."""
    store.fail("create", problem, acts=acts)
    assert answers(actions.CreateEntry(1, NEXT)) == [events.EntryInDoubt(1)]
    assert answers(actions.CreateEntry(1, NEXT)) == [events.EntryCreated(1)]


def test_a_successor_is_seen_by_its_entry(answers, journal):
    """C17."""
    assert answers(actions.LookForSuccessor(1)) == [events.NoSuccessorSeen(1)]
    journal.create(1, OTHERS)
    assert answers(actions.LookForSuccessor(1)) == [events.EntryTaken(1)]


@pytest.mark.parametrize("problem", [IN_DOUBT, UNPROMISED], ids=repr)
def test_a_log_that_cannot_be_looked_at_says_nothing_about_a_successor(answers, store, problem):
    """C17."""
    store.fail("exists", problem)
    assert answers(actions.LookForSuccessor(1)) == [events.SuccessorUnknown(1)]


def test_a_log_is_truncated_without_an_answer(answers, journal):
    """C17: no answer is needed."""
    journal.create(1, NEXT)
    assert answers(actions.TruncateLog(1)) == []
    assert journal.read() == ((1, NEXT),)


def test_a_truncation_that_fails_is_left_to_the_next(answers, store, journal):
    """C18."""
    store.fail("write", UNPROMISED)
    assert answers(actions.TruncateLog(1)) == []
    assert journal.read() == ((0, ENTRY),)


# Files and places


def test_files_that_were_deleted_are_gone(answers, store):
    """C12."""
    store.write("memory://a", b"")
    assert answers(actions.DeleteFiles(7, ("memory://a", "memory://b"))) == [events.FilesDeleted(7)]
    assert not store.exists("memory://a")


@pytest.mark.parametrize("problem", [NOT_STORED, IN_DOUBT, UNPROMISED], ids=repr)
def test_a_deletion_that_failed_is_reported(answers, store, problem):
    """C12: it is tried again, or left to the garbage collection."""
    store.fail("delete", problem)
    assert answers(actions.DeleteFiles(7, ("memory://a",))) == [events.FilesNotDeleted(7)]


def test_a_place_for_a_savepoint_must_be_new(answers, store):
    """C12, U3: a savepoint never mixes with other files at its location."""
    place = actions.PrepareLocation(CheckpointId(1), "memory://savepoints/a")
    assert answers(place) == [events.LocationPrepared(1)]
    store.write("memory://savepoints/a/_metadata", b"")
    ((refused),) = answers(place)
    assert isinstance(refused, events.LocationNotPrepared)
    assert "memory://savepoints/a" in refused.cause


def test_a_place_that_cannot_be_made_is_reported_with_the_cause(answers, store):
    """C18."""
    store.fail("make_new", UNPROMISED)
    place = actions.PrepareLocation(CheckpointId(1), "memory://savepoints/a")
    assert answers(place) == [events.LocationNotPrepared(1, "a socket died")]
