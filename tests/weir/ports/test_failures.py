"""How a failure is recognised when it comes again, and which failures are not."""

import pytest

from weir.errors import Unavailable
from weir.ports.failures import UserCodeFailed, error_of, in_words
from weir.storage.contract import InDoubt, NotFound


def raised_from(cause, problem=None):
    problem = problem or UserCodeFailed("map()", "row 7")
    problem.__cause__ = cause
    return problem


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (raised_from(ValueError("bad row")), "ValueError"),
        (UserCodeFailed("map()", "row 7"), "UserCodeFailed"),
        (ZeroDivisionError(), "ZeroDivisionError"),
        (raised_from(FileNotFoundError("model.bin")), "FileNotFoundError"),
        (NotFound("chk-7/state"), "NotFound"),
    ],
    ids=repr,
)
def test_a_failure_of_the_program_has_the_type_of_what_was_raised(problem, error):
    """R2: by it the same failure is recognised."""
    assert error_of(problem) == error


@pytest.mark.parametrize(
    "problem",
    [
        raised_from(ConnectionResetError("the service is away")),
        raised_from(TimeoutError()),
        raised_from(raised_from(OSError(28, "no space left"), RuntimeError("cannot write"))),
        Unavailable("no answer", 1.0),
        InDoubt("no answer"),
    ],
    ids=repr,
)
def test_a_failure_of_the_world_around_it_may_heal(problem):
    """R1, R2: also where another exception was raised from it."""
    assert error_of(problem) == ""


def test_what_was_being_handled_counts_unless_it_was_set_aside():
    """R2: as in a traceback."""
    problem = ValueError("bad row")
    problem.__context__ = ConnectionResetError("the service is away")
    assert error_of(problem) == ""
    problem.__suppress_context__ = True
    assert error_of(problem) == "ValueError"


def test_a_failure_in_words_leads_to_what_was_called():
    """U3."""
    assert in_words(KeyError("a")) == "KeyError: 'a'"
    assert in_words(raised_from(KeyError("a"))) == "map() failed at row 7: KeyError: 'a'"
