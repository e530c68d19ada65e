"""Every request gets one answer, however often it is asked and whatever becomes of the driver."""

import pytest

from weir.core.coordinator.actions import RequestFailed, RequestSucceeded
from weir.core.coordinator.events import CheckpointRequested
from weir.core.ids import CheckpointId
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind
from weir.driver.pending_requests import KEPT_ANSWERS, PendingRequests

SAVEPOINT = CheckpointKind.SAVEPOINT
DONE = RequestSucceeded(CheckpointId(4), "file:///savepoints/a")


@pytest.fixture
def requests():
    return PendingRequests()


@pytest.fixture
def events():
    return []


def test_a_request_is_sent_to_the_core_with_its_target_directory(requests, events):
    """C5."""
    request, future = requests.ask(events.append, SAVEPOINT, "file:///savepoints/a")
    assert events == [CheckpointRequested(request, SAVEPOINT, "file:///savepoints/a")]
    assert not future.done()


def test_an_answer_resolves_the_future_of_its_request(requests, events):
    """U2."""
    request, future = requests.ask(events.append, SAVEPOINT)
    requests.answer(request, DONE)
    assert future.result(timeout=0) == DONE
    assert requests.find(request) is future


def test_the_same_key_asked_twice_is_one_request(requests, events):
    """K3: a client whose connection broke may ask again, also after the answer."""
    _, first = requests.ask(events.append, SAVEPOINT, key="nonce-1")
    requests.answer("nonce-1", DONE)
    _, second = requests.ask(events.append, SAVEPOINT, key="nonce-1")
    assert second is first
    assert len(events) == 1


def test_answers_are_kept_for_the_newest_requests_only(requests, events):
    """R7 K3: a job that runs for years forgets what was answered long ago, and nothing else."""
    _, open_one = requests.ask(events.append, SAVEPOINT, key="still open")
    for number in range(KEPT_ANSWERS + 2):
        requests.ask(events.append, SAVEPOINT, key=f"nonce-{number}")
        requests.answer(f"nonce-{number}", DONE)

    assert requests.find("still open") is open_one
    assert [requests.find(f"nonce-{number}") for number in (0, 1)] == [None, None]
    assert requests.find("nonce-2") is not None
    assert requests.find(f"nonce-{KEPT_ANSWERS + 1}") is not None


def test_requests_after_the_end_are_not_kept_for_ever_either(requests, events):
    """R7."""
    requests.close()
    for number in range(KEPT_ANSWERS + 1):
        requests.ask(events.append, SAVEPOINT, key=f"nonce-{number}")

    assert requests.find("nonce-0") is None


def test_requests_without_a_key_are_different_ones(requests, events):
    """C5."""
    one, _ = requests.ask(events.append, SAVEPOINT)
    other, _ = requests.ask(events.append, SAVEPOINT)
    assert one != other


def test_a_second_answer_changes_nothing(requests, events):
    """C7."""
    request, future = requests.ask(events.append, SAVEPOINT)
    requests.answer(request, DONE)
    requests.answer(request, RequestFailed(Reason.CHECKPOINT_EXPIRED, "late"))
    assert future.result(timeout=0) == DONE


def test_an_answer_to_an_unknown_request_is_dropped(requests):
    """C5: no user requested periodic checkpoints."""
    requests.answer("unknown", DONE)
    assert requests.find("unknown") is None


def test_a_request_still_pending_when_the_driver_ends_fails(requests, events):
    """U3: a fenced or failed driver leaves no request without an answer."""
    _, future = requests.ask(events.append, SAVEPOINT)
    requests.close()
    assert future.result(timeout=0).reason is Reason.CHECKPOINT_COORDINATOR_SHUTDOWN


def test_a_request_after_the_end_is_denied_at_once(requests, events):
    """U3."""
    requests.close()
    _, future = requests.ask(events.append, SAVEPOINT)
    assert isinstance(future.result(timeout=0), RequestFailed)
    assert events == []


def test_the_end_takes_back_no_answer(requests, events):
    """C7."""
    request, future = requests.ask(events.append, SAVEPOINT)
    requests.answer(request, DONE)
    requests.close()
    assert future.result(timeout=0) == DONE
