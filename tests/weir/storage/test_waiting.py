"""A storage that is away is asked until it answers."""

import logging

import pytest

from weir.errors import JobRejected, Unavailable
from weir.storage.waiting import RETRY_SECONDS, until_answered


class Away:
    """Somebody who gives these answers, one after the other."""

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


NOBODY = Unavailable("s3://jobs/log/0: nobody answers", 1.0)


def test_whoever_is_away_or_not_sure_is_asked_again(caplog):
    """R1 U3: and whoever reads the log learns what is waited for."""
    away = Away(NOBODY, None, NOBODY, "here")

    with caplog.at_level(logging.WARNING, logger="weir.storage"):
        assert until_answered(away.ask, away.pause) == "here"
    assert away.pauses == [RETRY_SECONDS] * 3
    assert [record.args[0] for record in caplog.records] == [NOBODY]


def test_what_keeps_the_storage_away_is_said_once(caplog):
    """U3: and again when it is something else."""
    full = Unavailable("file:///log/0: the disk is full", 1.0)
    away = Away(NOBODY, NOBODY, full, full, full, "here")

    with caplog.at_level(logging.WARNING, logger="weir.storage"):
        until_answered(away.ask, away.pause)
    assert [record.args[0] for record in caplog.records] == [NOBODY, full]


@pytest.mark.parametrize("answer", [b"", (), False])
def test_an_answer_that_says_nothing_is_one(answer):
    """R1: an empty log is a log."""
    away = Away(answer)

    assert until_answered(away.ask, away.pause) == answer


@pytest.mark.parametrize("end", [JobRejected("no such bucket"), SystemExit("told to go")])
def test_what_time_does_not_heal_is_not_waited_for(end):
    """C18 C12: nor does a wait outlive its process."""
    away = Away(NOBODY, end)

    with pytest.raises(type(end)):
        until_answered(away.ask, away.pause)
