"""The simulator keeps its own promises: same seed, same history; enough of everything."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from simulation.bugs import BUGS
from simulation.runner import run_one
from simulation.scenario import SHAPES, Chances, draw
from simulation.simulation import Simulation
from simulation.source_patch import Bug
from weir.core.policy import Policy

ROOT = Path(__file__).parent.parent.parent


def test_the_same_seeds_give_the_same_histories_under_any_hash_seed() -> None:
    """A failing seed is worth something only if it fails again, on every machine."""
    digests = {_digest(hash_seed) for hash_seed in ("1", "2")}

    assert len(digests) == 1


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_finds_its_passage_and_its_tests(bug: Bug) -> None:
    """A plain run plants a sample, so the others are held to the source here."""
    spec = find_spec(bug.module)

    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).read_text().count(bug.passage) == 1
    assert [proof for proof in bug.proofs if not (ROOT / proof).exists()] == []


def _digest(hash_seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    env["PYTHONPATH"] = os.pathsep.join(
        str(ROOT / d) for d in ("runtime", "tests", "tests/support")
    )
    finished = subprocess.run(
        [sys.executable, "-m", "simulation", "--seeds", "60", "--digest"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return next(line for line in finished.stdout.splitlines() if line.startswith("digest"))


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_a_quiet_job_completes_every_checkpoint_that_it_begins(shape: int) -> None:
    """C9: without faults nothing expires; only subtasks that are closing decline."""
    drawn = draw(shape)
    policy = Policy(interval_ms=60, timeout_ms=5000)
    quiet = replace(drawn, chances=Chances(), policy=policy, bottleneck="", delays=(1, 3))
    quiet = replace(quiet, splits=6, rows=40, pace=8)
    simulation = Simulation(quiet)

    simulation.run()

    seen = simulation.world.seen
    assert seen["completed checkpoints"] >= 3
    assert not seen["reason: CHECKPOINT_EXPIRED"]


def test_a_violation_prints_its_history_and_how_to_replay_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U3: a failure shows the seed, the configuration and what happened."""
    monkeypatch.setattr(Simulation, "is_over", lambda _: False)

    outcome = run_one(3)

    assert "did not finish" in outcome.violation
    assert "seed 3: " in outcome.history
    assert "driver-1" in outcome.history


def test_schedules_are_real_runs() -> None:
    """In the median at least 500 events, 3 faults and 5 completed checkpoints."""
    outcomes = [run_one(seed) for seed in range(40)]
    middle = len(outcomes) // 2

    def median(values: list[int]) -> int:
        return sorted(values)[middle]

    assert Counter(outcome.violation for outcome in outcomes) == {"": len(outcomes)}
    assert median([outcome.events for outcome in outcomes]) >= 500
    assert median([outcome.faults for outcome in outcomes]) >= 3
    assert median([outcome.completed for outcome in outcomes]) >= 5
