"""What an operator believes of a driver's report, and what it refuses to read."""

import json

import pytest
from pydantic import ValidationError

from weir.api.report import (
    LARGEST,
    CheckpointReport,
    JobPhase,
    JobReport,
    Outcome,
    RequestReport,
)
from weir.core.lifecycle import JobStatus

REQUEST = RequestReport(id="nonce-1", outcome=Outcome.COMPLETED, path="s3://b/s", checkpoint=8)
REPORT = JobReport(
    attempt=3,
    phase=JobPhase.RUNNING,
    newest=CheckpointReport(id=7, path="s3://b/chk-7", completed_at_ms=1, size_bytes=2),
    requests=(REQUEST,),
)


def written(**changes):
    return json.dumps({**json.loads(REPORT.model_dump_json()), **changes})


def read(text):
    return JobReport.model_validate_json(text)


def test_a_report_is_read_as_it_was_written():
    """K7: in camelCase."""
    assert read(REPORT.model_dump_json()) == REPORT
    assert json.loads(written())["newest"]["completedAtMs"] == 1


def test_every_status_of_a_job_is_a_phase_of_a_report():
    """K7: driver and operator have one set of words, and agree on which are the last."""
    assert [s.name for s in JobStatus] == [p.name for p in JobPhase]
    assert [s.is_terminal for s in JobStatus] == [p.is_over for p in JobPhase]


def test_a_sentence_that_is_too_long_is_cut():
    """X3: and the rest of the report is still heard."""
    report = read(written(why="x" * 5_000))

    assert (len(report.why), report.why[-1], report.phase) == (2_048, "…", JobPhase.RUNNING)


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": -1},
        {"attempt": LARGEST + 1},
        {"attempt": "3"},
        {"attempt": 3.5},
        {"attempt": True},
        {"phase": "SOMEHOW"},
        {"isRejected": "yes"},
        {"newest": {"id": 7, "completedAtMs": -1}},
        {"newest": {"id": 7, "completedAtMs": 1, "path": "p" * 2_049}},
        {"requests": [{"id": "k" * 129, "outcome": "FAILED"}]},
        {"requests": [{"id": "k", "outcome": "FAILED"}] * 65},
        {"version": "v" * 65},
    ],
    ids=str,
)
def test_what_has_another_shape_or_size_is_refused(changes):
    """X3: nothing is guessed from what a stranger wrote."""
    with pytest.raises(ValidationError):
        read(written(**changes))


def test_a_field_of_another_release_is_ignored():
    """K7: driver and operator are not upgraded at one moment."""
    assert read(written(mood="cheerful")) == REPORT


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": 4},
        {"phase": JobPhase.RESTARTING},
        {"newest": None},
        {"completed": 1},
        {"restarts": 1},
        {"why": "a slot was lost"},
        {"is_rejected": True},
        {"scheduler_running": True},
        {"slots_missing": 1},
        {"requests": ()},
    ],
    ids=str,
)
def test_whatever_changes_in_a_report_makes_it_another_version(changes):
    """K7: the version identifies the whole report."""
    assert REPORT.model_copy(update=changes).stamped().version != REPORT.stamped().version


def test_a_report_that_is_the_same_has_the_same_version():
    """K7: and a client that waits for another one is not woken."""
    assert REPORT.stamped().stamped() == read(REPORT.model_dump_json()).stamped()


def test_a_report_of_a_driver_that_ended_says_why():
    """K7: the phase stays as it was, for the job may be tried again."""
    ended = REPORT.as_over("y" * 5_000)

    assert (ended.phase, ended.is_rejected, len(ended.why)) == (JobPhase.RUNNING, False, 2_048)
    assert (ended.newest, ended.requests) == (REPORT.newest, REPORT.requests)


def test_a_rejected_job_has_failed():
    """K7: a person must change something first."""
    ended = REPORT.as_over("no such column", is_rejected=True)

    assert (ended.phase, ended.is_rejected) == (JobPhase.FAILED, True)
