"""The description of a failure names the user's own lines; its type shows if it is repeated."""

import json
import sysconfig

import pytest

from weir.errors import JobRejected, Unavailable
from weir.ports.user_code_errors import (
    MOST_FRAMES,
    UserCodeFailed,
    describe_error,
    error_type,
    user_frames,
)
from weir.storage.object_store import NotFound, OutcomeUnknown


def raised(call):
    with pytest.raises(Exception) as failed:  # noqa: PT011 - of any kind
        call()
    return failed.value


def test_frames_of_libraries_are_left_out():
    """U3: the line to change is the one that the user wrote."""
    error = raised(lambda: json.loads("{"))

    (frame,) = user_frames(error)[-1:]
    assert frame.startswith(f"{__file__}:")
    assert sysconfig.get_paths()["stdlib"] + "/json" not in describe_error(error)


def test_a_job_that_is_installed_as_a_package_is_the_users_code():
    """U3: an image has the whole program in site-packages."""
    place = "/usr/lib/python3/site-packages/shop/job.py"
    space = {}
    exec(compile("def total(row):\n    return row['a']", place, "exec"), space)  # noqa: S102
    try:
        space["total"]({})
    except KeyError as problem:
        error = problem.with_traceback(problem.__traceback__.tb_next)

    assert user_frames(error) == (f"{place}:2 in total",)


def test_a_recursion_is_shown_by_its_innermost_lines():
    """U3: short enough for a log line."""

    def deeper(left):
        return 1 // left + deeper(left - 1)

    assert len(user_frames(raised(lambda: deeper(20)))) == MOST_FRAMES


def test_a_refusal_of_ours_is_shown_as_it_is():
    """U3: it names thing, cause and remedy."""
    refusal = JobRejected("x.parquet cannot be read", "it has no footer", "replace it")

    assert describe_error(refusal) == str(refusal)


def test_a_failure_without_a_cause_is_shown_by_what_was_done():
    """U3."""
    assert str(UserCodeFailed("counting", "row 3")) == "counting failed at row 3"


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
    assert error_type(problem) == error


@pytest.mark.parametrize(
    "problem",
    [
        raised_from(ConnectionResetError("the service is away")),
        raised_from(TimeoutError()),
        raised_from(raised_from(OSError(28, "no space left"), RuntimeError("cannot write"))),
        Unavailable("no answer", retry_after=1.0),
        OutcomeUnknown("no answer"),
    ],
    ids=repr,
)
def test_a_failure_of_the_world_around_it_may_heal(problem):
    """R1, R2: also where another exception was raised from it."""
    assert error_type(problem) == ""


def test_what_was_being_handled_counts_unless_it_was_set_aside():
    """R2: as in a traceback."""
    problem = ValueError("bad row")
    problem.__context__ = ConnectionResetError("the service is away")
    assert error_type(problem) == ""
    problem.__suppress_context__ = True
    assert error_type(problem) == "ValueError"
