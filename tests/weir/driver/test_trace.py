"""A driver's life can be written down and replayed, and a changed decision shows."""

import json

import pytest

from scripted_loop import ImmediateActionRunner, an_initial_state, drive
from weir.core.restarts import UNLIMITED, ExponentialDelay, FailureRate, FixedDelay, NoRestart
from weir.driver.trace import Trace, replay


def a_trace(path, **how):
    initial_state = an_initial_state(**how)
    trace = Trace(path, initial_state)
    drive(ImmediateActionRunner(), trace.on_step, initial_state=initial_state)
    trace.close()
    return path.read_text().splitlines(keepends=True)


@pytest.fixture
def lines(tmp_path):
    return a_trace(tmp_path / "life.jsonl")


def test_the_replay_of_a_life_decides_as_the_driver_did(lines):
    """C21: decisions depend on the events and on nothing else."""
    assert len(lines) > 10
    assert list(replay(iter(lines))) == []


@pytest.mark.parametrize(
    "strategy",
    [NoRestart(), FixedDelay(3, 5), ExponentialDelay(), FailureRate()],
    ids=lambda strategy: type(strategy).__name__,
)
def test_a_life_under_every_restart_strategy_can_be_replayed(tmp_path, strategy):
    """R2."""
    assert list(replay(iter(a_trace(tmp_path / "life.jsonl", strategy=strategy)))) == []


def test_a_driver_is_never_begun_with_what_cannot_be_written_down():
    """The configuration has a number for a fixed delay's attempts, so endless ones never occur."""
    assert FixedDelay().attempts is not UNLIMITED


def test_a_changed_decision_is_noticed_with_its_line(lines):
    """A replay with a changed core shows where it decides differently."""
    number = next(n for n, line in enumerate(lines[1:], 2) if "WriteManifest" in line)
    changed = json.loads(lines[number - 1])
    changed["actions"].remove("WriteManifest")
    lines[number - 1] = json.dumps(changed) + "\n"
    (finding,) = replay(iter(lines))
    assert finding.startswith(f"line {number}: ")
    assert "WriteManifest" in finding


def test_another_beginning_leads_to_other_decisions(lines):
    """C19: what the driver began with is part of its life: here, ids that it had reserved."""
    begun = json.loads(lines[0])
    begun["reign"]["ids_until"] = 1
    lines[0] = json.dumps(begun) + "\n"
    assert list(replay(iter(lines))) != []


def test_a_line_that_a_dying_driver_did_not_finish_is_not_judged(lines):
    """R1: drivers die without notice, in the middle of a line too."""
    lines[-1] = lines[-1][:20]
    assert list(replay(iter(lines))) == []


def test_a_file_that_is_no_trace_is_refused():
    """U3."""
    with pytest.raises(AssertionError, match="the initial state"):
        list(replay(iter(['{"$": "JobStarted"}\n'])))
