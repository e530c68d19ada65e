"""What a driver reports, and how much of it fits where the last report is left."""

import logging
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.api.report import CheckpointReport, JobPhase, JobReport, Outcome, RequestReport
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.driver.job_report import LARGEST_LAST_REPORT, report_of, trimmed, write_last_report
from weir.driver.statistics import Statistics
from weir.rest.commands import RequestState, RequestStatus

SMALL = JobReport(attempt=2, phase=JobPhase.FINISHED, why="all is well")


@dataclass
class Submitted:
    """A job without an operator."""

    attempt: int | None = None
    policy: Policy = field(default_factory=Policy)


@dataclass
class Driver:
    """A driver to which nothing has happened."""

    statistics: Statistics = field(default_factory=Statistics)
    why: str = ""


def test_a_job_without_an_operator_reports_attempt_zero():
    """K7: the report has the same shape all the same."""
    assert report_of(Submitted(), Driver(), ()).attempt == 0


@pytest.mark.parametrize(
    ("status", "interval", "runs"),
    [
        (JobStatus.RUNNING, 1_000, True),
        (JobStatus.RUNNING, 0, False),
        (JobStatus.RESTARTING, 1_000, False),
    ],
)
def test_the_report_says_whether_checkpoints_are_taken_periodically(status, interval, runs):
    """K7: an operator may wait for one only if one is to come."""
    driver = Driver()
    driver.statistics.status = status
    report = report_of(Submitted(policy=Policy(interval_ms=interval)), driver, ())

    assert report.scheduler_running is runs


def test_a_path_that_is_too_long_to_report_is_left_out():
    """X3: a path that was cut would lead elsewhere."""
    place = f"s3://b/{'d' * 2_048}"
    made = RequestState(id="k", status=RequestStatus.COMPLETED, location=place, checkpoint=8)
    (request,) = report_of(Submitted(), Driver(), [made]).requests

    assert (request.outcome, request.path, request.checkpoint) == (Outcome.COMPLETED, None, 8)


# -- the last one


def requests(count, message=""):
    return tuple(
        RequestReport(
            id=f"nonce-{n}", outcome=Outcome.COMPLETED, path=f"s3://b/{n}", message=message
        )
        for n in range(count)
    )


def left(report):
    return JobReport.model_validate_json(trimmed(report))


def test_a_report_that_fits_is_left_as_it_is():
    """K7."""
    assert left(SMALL) == SMALL


def test_sentences_are_shortened_before_a_request_is_dropped():
    """K3: the outcome of a stop is what the operator waits for."""
    report = SMALL.model_copy(update={"why": "x" * 2_000, "requests": requests(2, "y" * 2_000)})

    assert [request.id for request in left(report).requests] == ["nonce-0", "nonce-1"]
    assert left(report).why == "x" * 256


def test_of_many_requests_the_newest_are_left():
    """K3."""
    report = SMALL.model_copy(update={"requests": requests(64)})
    kept = [request.id for request in left(report).requests]

    assert kept
    assert kept == [f"nonce-{n}" for n in range(64 - len(kept), 64)]


@given(
    st.text(max_size=2_048),
    st.integers(0, 64),
    st.text(alphabet="\x00é€𐍈x", max_size=2_048),
    st.text(alphabet="\x00é€𐍈x", min_size=1, max_size=2_048),
)
def test_whatever_a_report_holds_it_fits_and_can_be_read(why, count, message, path):
    """X3 K7: Kubernetes would cut it in the middle otherwise."""
    newest = CheckpointReport(id=7, path=path, completed_at_ms=1)
    report = JobReport(
        attempt=2,
        phase=JobPhase.FAILED,
        why=why,
        newest=newest,
        requests=requests(count, message),
    )

    assert len(trimmed(report)) <= LARGEST_LAST_REPORT
    assert left(report).phase is JobPhase.FAILED


def test_the_file_is_written_in_place(tmp_path):
    """K7: its owner made it, and it may be a mount."""
    place = tmp_path / "log"
    place.write_text("x" * 9_000)
    before = place.stat().st_ino
    write_last_report(SMALL, place)

    assert JobReport.model_validate_json(place.read_bytes()) == SMALL
    assert place.stat().st_ino == before


def test_a_report_that_cannot_be_written_is_only_logged(tmp_path, caplog):
    """K7: the exit code still shows how the driver ended."""
    with caplog.at_level(logging.WARNING):
        write_last_report(SMALL, tmp_path / "nowhere" / "log")
    write_last_report(SMALL, None)

    assert "could not be left" in caplog.text
