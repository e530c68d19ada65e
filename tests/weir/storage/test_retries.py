"""A storage that is away is asked until it answers."""

import logging
import threading

import pytest

from failing_store import FailingStore
from weir.errors import JobRejected, Unavailable
from weir.storage.retries import RETRY_SECONDS, AvailabilityCheck, retry_until_available


class Away:
    """A call that gives these answers, one after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.pauses = []

    def ask(self):
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def pause(self, seconds):
        self.pauses.append(seconds)


SILENT = Unavailable("s3://jobs/log/0: no answer", retry_after=1.0)


def test_an_unavailable_or_undecided_store_is_asked_again(caplog):
    """R1 U3: and the log names the unavailable object."""
    away = Away(SILENT, None, SILENT, "here")

    with caplog.at_level(logging.WARNING, logger="weir.storage"):
        assert retry_until_available(away.ask, away.pause) == "here"
    assert away.pauses == [RETRY_SECONDS] * 3
    assert [record.args[0] for record in caplog.records] == [SILENT]


def test_what_keeps_the_storage_away_is_said_once(caplog):
    """U3: and again when it is something else."""
    full = Unavailable("file:///log/0: the disk is full", retry_after=1.0)
    away = Away(SILENT, SILENT, full, full, full, "here")

    with caplog.at_level(logging.WARNING, logger="weir.storage"):
        retry_until_available(away.ask, away.pause)
    assert [record.args[0] for record in caplog.records] == [SILENT, full]


@pytest.mark.parametrize("answer", [b"", (), False])
def test_an_answer_that_says_nothing_is_one(answer):
    """R1: an empty log is a log."""
    away = Away(answer)

    assert retry_until_available(away.ask, away.pause) == answer


@pytest.mark.parametrize(
    "end", [JobRejected("no log", "no such bucket", "create it"), SystemExit("SIGTERM")]
)
def test_what_time_does_not_heal_is_not_waited_for(end):
    """C18 C12: nor does a wait outlive its process."""
    away = Away(SILENT, end)

    with pytest.raises(type(end)):
        retry_until_available(away.ask, away.pause)


# The first answer

BRIEFLY = 0.05
FOR_EVER = 3_600.0


class HangingStore(FailingStore):
    """A mount whose server is gone: a call returns when the test lets it."""

    def __init__(self):
        super().__init__()
        self.is_back = threading.Event()

    def exists(self, url):
        self.is_back.wait()
        return super().exists(url)


def test_storage_that_hangs_in_one_call_is_given_up_with_the_remedy():
    """U3: a user who starts a job learns that its storage does not answer."""
    store = HangingStore()

    with pytest.raises(Unavailable) as silence:
        AvailabilityCheck(store, "file:///mnt/jobs/orders").wait(BRIEFLY)
    store.is_back.set()

    words = str(silence.value)
    assert "file:///mnt/jobs/orders has not answered" in words
    assert "Remedy: check that it is mounted" in words


def test_storage_that_only_fails_is_given_up_with_what_it_said():
    """U3: a wrong endpoint refuses every connection."""
    store = FailingStore()
    for _ in range(100):
        store.fail(
            "exists", Unavailable("could not connect to http://localhost:9", retry_after=1.0)
        )

    with pytest.raises(Unavailable) as silence:
        AvailabilityCheck(store, "s3://bucket/orders").wait(BRIEFLY)

    assert "could not connect to http://localhost:9" in str(silence.value)
    assert "check AWS_ENDPOINT_URL" in str(silence.value)


def test_storage_that_answers_late_is_no_error_and_the_wait_is_not_silent(caplog):
    """R1 U3: the log says soon what is waited for."""
    store = HangingStore()
    first = AvailabilityCheck(store, "memory://orders", soon=BRIEFLY)

    class Watching(logging.Handler):
        def emit(self, record):
            del record
            store.is_back.set()

    watching = Watching()
    logging.getLogger("weir.storage").addHandler(watching)
    try:
        first.wait(FOR_EVER)
    finally:
        logging.getLogger("weir.storage").removeHandler(watching)

    assert "memory://orders has not answered" in caplog.text


@pytest.mark.parametrize("longest", [FOR_EVER, None])
def test_any_answer_ends_the_wait(longest, caplog):
    """R1: also that there is nothing yet, and also after a failure."""
    store = FailingStore()
    store.fail("exists", Unavailable("no answer", retry_after=1.0))

    AvailabilityCheck(store, "memory://orders").wait(longest)

    assert caplog.text == ""


def test_a_refusal_is_an_answer():
    """U3: it says itself what to do."""
    store = FailingStore()
    store.fail(
        "exists", JobRejected("s3://bucket cannot be used", "there is no such bucket", "create it")
    )

    with pytest.raises(JobRejected, match="create it"):
        AvailabilityCheck(store, "s3://bucket/orders").wait(FOR_EVER)
