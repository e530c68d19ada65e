"""Errors are sorted by who must act."""

import pytest

from weir.errors import Fenced, JobRejected, Unavailable, WeirError


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(JobRejected("restart.type = x: no such choice; use none"), id="the user"),
        pytest.param(Unavailable("s3 answers 503", retry_after=2.5), id="time"),
        pytest.param(Fenced("epoch 4 owns this job"), id="nobody: stop"),
    ],
)
def test_the_process_edge_catches_them_all(error):
    with pytest.raises(WeirError, match=str(error)[:6]):
        raise error


def test_unavailable_says_when_to_try_again():
    assert Unavailable("s3 answers 503", retry_after=2.5).retry_after == 2.5
