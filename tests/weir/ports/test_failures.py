"""The words about a failure lead to the user's own lines."""

import json
import sysconfig

import pytest

from weir.errors import JobRejected
from weir.ports.failures import MOST_FRAMES, UserCodeFailed, in_words, user_frames


def raised(call):
    with pytest.raises(Exception) as failed:  # noqa: PT011 - of any kind
        call()
    return failed.value


def test_frames_of_libraries_are_left_out():
    """U3: the line to change is the one that the user wrote."""
    error = raised(lambda: json.loads("{"))

    (frame,) = user_frames(error)[-1:]
    assert frame.startswith(f"{__file__}:")
    assert sysconfig.get_paths()["stdlib"] + "/json" not in in_words(error)


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
    refusal = JobRejected("x.parquet cannot be read. Remedy: replace it.")

    assert in_words(refusal) == str(refusal)


def test_a_failure_without_a_cause_is_shown_by_what_was_done():
    """U3."""
    assert str(UserCodeFailed("counting", "row 3")) == "counting failed at row 3"
