"""Errors are sorted by who must act, and keep the problem, the cause and the remedy apart."""

import pickle

import pytest

from weir.errors import (
    Fenced,
    JobRejected,
    Unavailable,
    WeirError,
    reject_all,
    sentence,
    terminal_lines,
)
from weir.storage.object_store import NotFound

REFUSAL = JobRejected("restart.type = x", "there is no such choice", "use none")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(REFUSAL, id="the user"),
        pytest.param(Unavailable("s3 answers 503", retry_after=2.5), id="time"),
        pytest.param(Fenced("epoch 4 owns this job"), id="no one: stop"),
    ],
)
def test_the_process_edge_catches_them_all(error):
    with pytest.raises(WeirError, match=str(error)[:6]):
        raise error


def test_unavailable_says_when_to_try_again():
    assert Unavailable("s3 answers 503", retry_after=2.5).retry_after == 2.5


def test_the_message_of_an_error_is_one_sentence_and_the_remedy():
    """U3."""
    assert str(REFUSAL) == "restart.type = x: there is no such choice. Remedy: use none."


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("a", "", ""), "a"),
        (("a", "b", ""), "a: b"),
        (("a", "", "c"), "a. Remedy: c."),
        (("a", "b.", "c?"), "a: b. Remedy: c?"),
        (("a", "b\nb", "c"), "a:\nb\nb.\nRemedy: c."),
    ],
)
def test_a_part_that_is_missing_leaves_no_trace_in_the_text(parts, text):
    """U3."""
    assert sentence(*parts) == text


def test_a_terminal_shows_each_part_on_its_line():
    """U3: with the line of the script between the cause and the remedy."""
    assert terminal_lines(REFUSAL, "job.py:3 in build") == [
        "Error: restart.type = x.",
        "Cause: there is no such choice.",
        "  at job.py:3 in build",
        "Remedy: use none.",
    ]


def test_several_refusals_are_one_with_a_line_for_each():
    """U3."""
    both = reject_all("the configuration", [REFUSAL, REFUSAL])

    assert reject_all("the configuration", [REFUSAL]) is REFUSAL
    assert str(both).splitlines() == [
        "the configuration has 2 problems:",
        str(REFUSAL),
        str(REFUSAL),
        "Remedy: correct each of them.",
    ]


@pytest.mark.parametrize(
    "error", [REFUSAL, Unavailable("a", "b", "c", retry_after=2.5), NotFound("file:///a")]
)
def test_a_pickled_error_keeps_its_parts(error):
    """U3: also where the constructor of a subclass takes other arguments."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
